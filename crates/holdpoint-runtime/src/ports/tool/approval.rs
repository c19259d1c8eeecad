//! Who must look before a tool runs: nobody, a person, a person under conditions, or whatever a policy says.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::BoxFuture;
use holdpoint_core::ids::ActorId;
use holdpoint_core::json::CanonicalJson;
use holdpoint_core::policy::PauseTerms;
use holdpoint_core::time::Timestamp;
use serde_json::Value;

use super::ToolContext;

pub use holdpoint_core::policy::OnTimeout;

/// When a person must look before a tool runs.
#[derive(Clone, Default)]
pub enum Approval {
    /// Never.
    #[default]
    Never,
    /// Always.
    Always,
    /// When the predicate says so, or fails.
    When(Arc<dyn Predicate>),
    /// As a policy says, which may also allow or deny. When it fails, the call is held.
    By(Arc<dyn Policy>),
}

/// Says what is to become of a call. Asked once, when the call is made; its verdict is written down.
#[async_trait]
pub trait Policy: Send + Sync + 'static {
    /// Allows the call, denies it, or holds it on terms.
    ///
    /// # Errors
    /// It cannot be said: the call is held, with this as the reason.
    async fn verdict(&self, context: &ToolContext, arguments: &CanonicalJson) -> Result<PolicyVerdict, String>;
}

/// What a policy says of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PolicyVerdict {
    /// It runs without asking anybody.
    Allow,
    /// It does not run.
    Deny {
        /// What denies it, as it is recorded: the rule's name.
        by: ActorId,
        /// What the model is told; `None` leaves it to formatter and default.
        message: Option<String>,
    },
    /// A person must look.
    Hold(HoldTerms),
}

/// On what terms a policy holds a call. Without any: the runtime's deadline, everybody may decide, one is enough.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HoldTerms {
    /// Why a person must look, in the operator's words.
    pub reason: Option<String>,
    /// The rule's name.
    pub rule: Option<String>,
    /// How long the pause waits.
    pub deadline: Deadline,
    /// What happens when nobody decides in time.
    pub on_timeout: OnTimeout,
    /// Who may decide: names of actors, roles and groups. Empty for everybody.
    pub approvers: Vec<String>,
    /// How many different actors must approve; 0 counts as 1.
    pub quorum: u32,
}

impl Default for HoldTerms {
    fn default() -> Self {
        Self {
            reason: None,
            rule: None,
            deadline: Deadline::Default,
            on_timeout: OnTimeout::Deny,
            approvers: Vec::new(),
            quorum: 1,
        }
    }
}

impl HoldTerms {
    /// Held for this reason, otherwise as usual.
    pub fn because(reason: impl Into<String>) -> Self {
        Self { reason: Some(reason.into()), ..Self::default() }
    }

    /// What of it is kept with the pause.
    pub(crate) fn pause_terms(&self) -> PauseTerms {
        PauseTerms {
            rule: self.rule.clone(),
            approvers: self.approvers.clone(),
            quorum: self.quorum.max(1),
            on_timeout: self.on_timeout,
        }
    }
}

/// How long a pause waits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Deadline {
    /// As long as the runtime's settings say.
    #[default]
    Default,
    /// For ever.
    Never,
    /// So long.
    After(Duration),
}

impl Deadline {
    /// Until when a pause that opens now waits.
    pub(crate) fn from(self, now: Timestamp, default: Option<Duration>) -> Option<Timestamp> {
        let wait = match self {
            Self::Default => default,
            Self::Never => None,
            Self::After(wait) => Some(wait),
        };
        wait.map(|wait| now.after(wait))
    }
}

/// Asked once, when the call is made; its answer is written down.
pub trait Predicate: Send + Sync + 'static {
    /// Whether a person must look. A failure holds the call.
    fn holds(&self, context: &ToolContext, arguments: &Value) -> BoxFuture<'static, Result<bool, String>>;
}

/// Decides in code, in a person's place; what it says is recorded with its name.
#[async_trait]
pub trait AutoDecider: Send + Sync + 'static {
    /// Approves, denies, or leaves it to a person.
    async fn decide(&self, context: &ToolContext, arguments: &CanonicalJson) -> AutoDecision;
}

/// What a decider in code says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AutoDecision {
    /// Run it.
    Approve,
    /// Do not run it; an empty reason leaves the words to formatter and default.
    Deny(String),
    /// Ask a person.
    Abstain,
}

/// What a predicate may return: `bool`, or a result whose error holds the call.
pub trait IntoHold {
    /// Whether a person must look.
    ///
    /// # Errors
    /// Why it could not be said.
    fn into_hold(self) -> Result<bool, String>;
}

impl IntoHold for bool {
    fn into_hold(self) -> Result<bool, String> {
        Ok(self)
    }
}

impl<E: fmt::Display> IntoHold for Result<bool, E> {
    fn into_hold(self) -> Result<bool, String> {
        self.map_err(|error| error.to_string())
    }
}

pub(super) struct FnPredicate<F>(pub(super) F);

impl<F> Predicate for FnPredicate<F>
where
    F: Fn(ToolContext, Value) -> BoxFuture<'static, Result<bool, String>> + Send + Sync + 'static,
{
    fn holds(&self, context: &ToolContext, arguments: &Value) -> BoxFuture<'static, Result<bool, String>> {
        (self.0)(context.clone(), arguments.clone())
    }
}

pub(super) struct FnDecider<F>(pub(super) F);

#[async_trait]
impl<F> AutoDecider for FnDecider<F>
where
    F: Fn(ToolContext, CanonicalJson) -> BoxFuture<'static, AutoDecision> + Send + Sync + 'static,
{
    async fn decide(&self, context: &ToolContext, arguments: &CanonicalJson) -> AutoDecision {
        (self.0)(context.clone(), arguments.clone()).await
    }
}
