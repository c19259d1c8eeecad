//! Answering pauses, from any process.

use std::future::{Future, IntoFuture};
use std::pin::Pin;

use holdpoint_core::decision::{Decision, DecisionInput};
use holdpoint_core::ids::{ActorId, PauseId};
use holdpoint_core::json::{CanonicalJson, Digest};
use holdpoint_core::pause::PauseView;
use holdpoint_core::policy::{Constraint, Lifetime, NewRule};
use holdpoint_core::refusal::Refusal;
use holdpoint_core::time::Timestamp;
use holdpoint_runtime::use_cases::Decided;
use holdpoint_runtime::{RunError, Runtime};

/// What names a pause: its id, or the pause as it was shown.
pub trait PauseRef {
    /// The pause's id.
    fn pause_id(&self) -> PauseId;

    /// The digest of the arguments that were shown, where they were.
    fn seen(&self) -> Option<Digest> {
        None
    }
}

impl PauseRef for PauseId {
    fn pause_id(&self) -> PauseId {
        *self
    }
}

impl PauseRef for PauseView {
    fn pause_id(&self) -> PauseId {
        self.pause.id
    }

    // Whoever decides on what was shown binds the decision to it: a changed copy approves nothing.
    fn seen(&self) -> Option<Digest> {
        self.call.as_ref().map(|call| call.arguments.digest())
    }
}

impl<T: PauseRef> PauseRef for &T {
    fn pause_id(&self) -> PauseId {
        (**self).pause_id()
    }

    fn seen(&self) -> Option<Digest> {
        (**self).seen()
    }
}

/// A decision that is made to stand: "always". Unless said otherwise for this agent, this tool and this run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Always(NewRule);

impl Always {
    /// For this agent and tool, to the end of the run.
    pub fn in_run() -> Self {
        Self::default()
    }

    /// For this agent and tool, to the end of the session.
    pub fn in_session() -> Self {
        Self(NewRule { lifetime: Lifetime::Session, ..NewRule::default() })
    }

    /// For this agent and tool, in the session until then.
    pub fn until(end: Timestamp) -> Self {
        Self(NewRule { lifetime: Lifetime::Until(end), ..NewRule::default() })
    }

    /// For every agent of the run that has the tool.
    #[must_use]
    pub fn any_agent(mut self) -> Self {
        self.0.any_agent = true;
        self
    }

    /// Only for arguments that meet this condition.
    #[must_use]
    pub fn only(mut self, constraint: Constraint) -> Self {
        self.0.constraints.push(constraint);
        self
    }

    /// For so many calls.
    #[must_use]
    pub fn uses_max(mut self, uses: u32) -> Self {
        self.0.uses_max = Some(uses);
        self
    }

    /// Also for the pauses that are open now.
    #[must_use]
    pub fn apply_to_open(mut self) -> Self {
        self.0.apply_to_open = true;
        self
    }

    /// The rule that it makes.
    pub fn into_rule(self) -> NewRule {
        self.0
    }
}

/// An answer to a pause that is about to be recorded: `.await` records it.
#[must_use = "nothing is recorded before it is awaited"]
pub struct DecideRequest {
    runtime: Runtime,
    pause: PauseId,
    decision: Result<Decision, String>,
    by: Result<ActorId, String>,
    via: Option<String>,
    groups: Vec<String>,
    request: Option<String>,
    note: Option<String>,
    seen: Option<Digest>,
    rule: Option<NewRule>,
}

impl DecideRequest {
    pub(crate) fn new(runtime: Runtime, pause: impl PauseRef, decision: Decision) -> Self {
        Self {
            runtime,
            pause: pause.pause_id(),
            decision: Ok(decision),
            by: Ok(ActorId::local()),
            via: None,
            groups: Vec::new(),
            request: None,
            note: None,
            seen: pause.seen(),
            rule: None,
        }
    }

    /// Who answers.
    pub fn by(mut self, who: impl AsRef<str>) -> Self {
        self.by = ActorId::new(who).map_err(|bad| bad.to_string());
        self
    }

    /// Through which door.
    pub fn via(mut self, door: impl Into<String>) -> Self {
        self.via = Some(door.into());
        self
    }

    /// The names of roles and groups under which they may also act, for pauses that not everybody may decide.
    pub fn acting_as(mut self, groups: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.groups.extend(groups.into_iter().map(Into::into));
        self
    }

    /// A name of one's own for this request, recorded with the decision.
    pub fn request(mut self, name: impl Into<String>) -> Self {
        self.request = Some(name.into());
        self
    }

    /// Words for the model beside the decision: it sees them with its next call. They change no argument.
    pub fn note(mut self, words: impl Into<String>) -> Self {
        self.note = Some(words.into());
        self
    }

    /// What the model is told on a denial; an empty text counts.
    pub fn message(mut self, text: impl Into<String>) -> Self {
        self.decision = match self.decision {
            Ok(Decision::Deny { .. }) => Ok(Decision::Deny { message: Some(text.into()) }),
            Ok(decision) => Err(format!("a message goes with a denial, not with {}", decision.name())),
            error => error,
        };
        self
    }

    /// Runs the call with these arguments instead.
    pub fn edited(mut self, arguments: &impl serde::Serialize) -> Self {
        self.decision = match self.decision {
            Ok(Decision::Approve | Decision::ApproveEdited { .. }) => CanonicalJson::from_serialize(arguments)
                .map(|arguments| Decision::ApproveEdited { arguments })
                .map_err(|problem| problem.to_string()),
            Ok(decision) => Err(format!("edited arguments go with an approval, not with {}", decision.name())),
            error => error,
        };
        self
    }

    /// The digest of the arguments that the person saw; the decision counts for no others.
    pub fn seeing(mut self, digest: Digest) -> Self {
        self.seen = Some(digest);
        self
    }

    /// Makes the decision stand for later calls.
    pub fn always(mut self, always: Always) -> Self {
        self.rule = Some(always.into_rule());
        self
    }

    async fn record(self) -> Result<Decided, RunError> {
        let pause = self.pause;
        let refuse = |problem| Refusal::InvalidArguments { pause, problem };
        let decision = self.decision.map_err(refuse)?;
        let by = self.by.map_err(Refusal::InvalidDefinition)?;
        let input = DecisionInput {
            via: self.via,
            groups: self.groups,
            request: self.request,
            note: self.note,
            seen: self.seen,
            rule: self.rule,
            ..DecisionInput::new(pause, decision, by)
        };
        self.runtime.decide_pause(input).await
    }
}

impl IntoFuture for DecideRequest {
    type Output = Result<Decided, RunError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.record())
    }
}
