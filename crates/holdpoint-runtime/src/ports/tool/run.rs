//! What runs when a call may, and what the model is told of it.

use std::fmt;

use async_trait::async_trait;
use futures_util::future::BoxFuture;
use holdpoint_core::json::CanonicalJson;
use holdpoint_core::message::Content;
use serde::Serialize;
use serde_json::Value;

use super::ToolContext;

/// What runs when a call may.
#[async_trait]
pub trait RunTool: Send + Sync + 'static {
    /// Runs the call with exactly these arguments.
    ///
    /// # Errors
    /// What the model is told instead of a result.
    async fn run(&self, context: ToolContext, arguments: CanonicalJson) -> Result<Content, ToolFailure>;
}

/// A tool that did not do what it was asked; the text goes to the model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ToolFailure(pub String);

impl ToolFailure {
    /// A failure told in these words.
    pub fn new(text: impl fmt::Display) -> Self {
        Self(text.to_string())
    }
}

/// What a tool's function may return: text, JSON, [`Content`] or nothing, or a result of one of them.
pub trait IntoResult {
    /// What the model is told.
    ///
    /// # Errors
    /// What the model is told instead of a result.
    fn into_result(self) -> Result<Content, ToolFailure>;
}

/// A value that becomes a tool's result.
pub trait IntoContent {
    /// The value as content.
    ///
    /// # Errors
    /// The value has no JSON form.
    fn into_content(self) -> Result<Content, ToolFailure>;
}

/// A tool's result that is told as JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Json<T>(pub T);

impl<T: Serialize> IntoContent for Json<T> {
    fn into_content(self) -> Result<Content, ToolFailure> {
        CanonicalJson::from_serialize(&self.0).map(Content::Json).map_err(ToolFailure::new)
    }
}

impl IntoContent for Content {
    fn into_content(self) -> Result<Content, ToolFailure> {
        Ok(self)
    }
}

impl IntoContent for String {
    fn into_content(self) -> Result<Content, ToolFailure> {
        Ok(Content::Text(self))
    }
}

impl IntoContent for &str {
    fn into_content(self) -> Result<Content, ToolFailure> {
        Ok(Content::Text(self.to_owned()))
    }
}

impl IntoContent for Value {
    fn into_content(self) -> Result<Content, ToolFailure> {
        Json(self).into_content()
    }
}

impl IntoContent for () {
    fn into_content(self) -> Result<Content, ToolFailure> {
        Ok(Content::Text("done".to_owned()))
    }
}

impl<T: IntoContent> IntoResult for T {
    fn into_result(self) -> Result<Content, ToolFailure> {
        self.into_content()
    }
}

impl<T: IntoContent, E: fmt::Display> IntoResult for Result<T, E> {
    fn into_result(self) -> Result<Content, ToolFailure> {
        self.map_err(ToolFailure::new)?.into_content()
    }
}

pub(super) struct FnRunner<F>(pub(super) F);

#[async_trait]
impl<F> RunTool for FnRunner<F>
where
    F: Fn(ToolContext, CanonicalJson) -> BoxFuture<'static, Result<Content, ToolFailure>> + Send + Sync + 'static,
{
    async fn run(&self, context: ToolContext, arguments: CanonicalJson) -> Result<Content, ToolFailure> {
        (self.0)(context, arguments).await
    }
}

/// Stands where the machine itself does what is to be done: an inner agent, a question.
pub(super) struct NothingToRun;

#[async_trait]
impl RunTool for NothingToRun {
    async fn run(&self, context: ToolContext, _: CanonicalJson) -> Result<Content, ToolFailure> {
        Err(ToolFailure::new(format_args!("{} is not run as a function", context.tool)))
    }
}
