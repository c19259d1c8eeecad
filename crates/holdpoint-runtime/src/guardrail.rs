//! Guardrails: code that looks at input, calls and output, and may object. They never approve anything.

use std::future::Future;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use holdpoint_core::json::CanonicalJson;
use holdpoint_core::message::{Content, Item};

use crate::context::Context;
use crate::ports::tool::ToolContext;

pub use holdpoint_core::policy::GuardrailPhase;

/// What a guardrail says about a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallVerdict {
    /// Nothing against it.
    Pass,
    /// The call does not run; the model is told this.
    Reject(String),
    /// The whole run ends.
    Halt(String),
}

/// What a guardrail says about input or output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TextVerdict {
    /// Nothing against it.
    Pass,
    /// The run ends, for this reason.
    Trip(String),
}

type CheckCall = Arc<dyn Fn(ToolContext, CanonicalJson) -> BoxFuture<'static, CallVerdict> + Send + Sync>;
type CheckInput = Arc<dyn Fn(Context, Vec<Arc<Item>>) -> BoxFuture<'static, TextVerdict> + Send + Sync>;
type CheckOutput = Arc<dyn Fn(Context, Content) -> BoxFuture<'static, TextVerdict> + Send + Sync>;

/// Looks at the arguments of a tool's calls.
#[derive(Clone)]
pub struct ToolGuardrail {
    pub(crate) name: String,
    pub(crate) before_pause: bool,
    pub(crate) before_run: bool,
    pub(crate) check: CheckCall,
}

impl ToolGuardrail {
    /// A guardrail that looks right before each run of the tool, after any approval.
    pub fn new<F, Fut>(name: impl Into<String>, check: F) -> Self
    where
        F: Fn(ToolContext, CanonicalJson) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = CallVerdict> + Send + 'static,
    {
        let check: CheckCall = Arc::new(move |context, arguments| Box::pin(check(context, arguments)));
        Self { name: name.into(), before_pause: false, before_run: true, check }
    }

    /// Looks in exactly these phases ([`GuardrailPhase::BeforePause`], [`GuardrailPhase::BeforeRun`]).
    #[must_use]
    pub fn phases(mut self, phases: &[GuardrailPhase]) -> Self {
        self.before_pause = phases.contains(&GuardrailPhase::BeforePause);
        self.before_run = phases.contains(&GuardrailPhase::BeforeRun);
        self
    }
}

/// Looks at what an agent is asked, before its first model call.
#[derive(Clone)]
pub struct InputGuardrail {
    pub(crate) name: String,
    pub(crate) check: CheckInput,
}

impl InputGuardrail {
    /// A guardrail of this name.
    pub fn new<F, Fut>(name: impl Into<String>, check: F) -> Self
    where
        F: Fn(Context, Vec<Arc<Item>>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = TextVerdict> + Send + 'static,
    {
        Self { name: name.into(), check: Arc::new(move |context, items| Box::pin(check(context, items))) }
    }
}

/// Looks at what an agent gives out. It does not look at a turn that is paused.
#[derive(Clone)]
pub struct OutputGuardrail {
    pub(crate) name: String,
    pub(crate) check: CheckOutput,
}

impl OutputGuardrail {
    /// A guardrail of this name.
    pub fn new<F, Fut>(name: impl Into<String>, check: F) -> Self
    where
        F: Fn(Context, Content) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = TextVerdict> + Send + 'static,
    {
        Self { name: name.into(), check: Arc::new(move |context, output| Box::pin(check(context, output))) }
    }
}
