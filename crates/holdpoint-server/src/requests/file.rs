//! What became of a request, read from the journal of its run.

use holdpoint_core::decision::Decision;
use holdpoint_core::event::{RunEnd, RunEvent};
use holdpoint_core::ids::{ActorId, CallPath, FramePath, PauseId, ToolName};
use holdpoint_core::json::CanonicalJson;
use holdpoint_core::record::Entry;
use holdpoint_core::refusal::Refusal;
use holdpoint_core::time::Timestamp;
use holdpoint_core::tool::{Allowance, Outcome as CallOutcome};
use holdpoint_runtime::{RunError, Runtime};

use super::agent::CALLBACK;
use super::callback::Attempt;
use super::{Carried, RequestId, Terms, notice};
use crate::protocols::native::dossier::Dossier;

/// A request as it stands.
pub(crate) struct RequestFile {
    /// Its name.
    pub(crate) id: RequestId,
    /// The run that carries it.
    pub(crate) dossier: Dossier,
    /// The tool that is asked about.
    pub(crate) tool: ToolName,
    /// What was asked for; where it was edited, what was approved in its place.
    pub(crate) arguments: CanonicalJson,
    /// On what terms.
    pub(crate) terms: Terms,
    /// The pause, where a person is asked.
    pub(crate) pause: Option<PauseId>,
    /// What became of it.
    pub(crate) outcome: Outcome,
    /// Who decided; nobody where it expired.
    pub(crate) decided_by: Option<String>,
    /// When it was settled.
    pub(crate) decided_at: Option<Timestamp>,
    /// What was said with it.
    pub(crate) message: Option<String>,
    /// Whether whoever asked was told, where they want to be.
    pub(crate) callback: Option<CallbackState>,
}

/// What became of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Pending,
    Approved,
    Denied,
    Expired,
    Cancelled,
    Answered,
}

/// Whether whoever asked was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct CallbackState {
    /// How often it was tried.
    pub(crate) attempts: usize,
    /// Whether it arrived.
    pub(crate) is_delivered: bool,
    /// Whether it is tried no more.
    pub(crate) is_over: bool,
    /// When it is tried again.
    pub(crate) next_at: Option<Timestamp>,
}

impl RequestFile {
    /// Reads a request; `None` where there is none of this name.
    ///
    /// # Errors
    /// The store is out of order.
    pub(crate) async fn read(runtime: &Runtime, id: RequestId) -> Result<Option<Self>, RunError> {
        let file = match runtime.read_journal(id.0).await {
            Ok(entries) => Self::of(id, &entries),
            Err(RunError::Refused(Refusal::RunNotFound(_))) => None,
            Err(error) => return Err(error),
        };
        let Some(mut file) = file else { return Ok(None) };
        // The end of one that was cancelled is told by another run.
        if file.outcome == Outcome::Cancelled
            && file.callback.is_some()
            && let Some(entries) = notice::journal(runtime, id).await?
        {
            file.callback = Some(CallbackState::default());
            entries.iter().flat_map(|entry| entry.events.iter()).for_each(|event| file.hear(event));
        }
        Ok(Some(file))
    }

    fn of(id: RequestId, entries: &[Entry]) -> Option<Self> {
        let dossier = Dossier::of(id.0, entries);
        let terms = dossier.run.context()?.decode::<Carried>().ok()?.holdpoint_request;
        let mut file = Self {
            id,
            tool: ToolName::new("request").ok()?,
            arguments: CanonicalJson::parse("{}").ok()?,
            callback: terms.callback_url.as_ref().map(|_| CallbackState::default()),
            dossier,
            terms,
            pause: None,
            outcome: Outcome::Pending,
            decided_by: None,
            decided_at: None,
            message: None,
        };
        for (event, at) in entries.iter().flat_map(Entry::timed) {
            file.take(event, at);
        }
        Some(file)
    }

    fn take(&mut self, event: &RunEvent, at: Timestamp) {
        let asked = call();
        match event {
            RunEvent::RunStarted(started) => {
                if let holdpoint_core::message::Content::Json(arguments) = &started.input {
                    self.arguments = arguments.clone();
                }
            }
            RunEvent::ModelReplied(replied) => {
                if let Some(asked) = replied.calls.iter().find(|record| record.tool.as_str() != CALLBACK) {
                    self.tool = asked.tool.clone();
                }
                self.hear(event);
            }
            RunEvent::CallAllowed(allowed) if allowed.call == asked => match &allowed.by {
                Allowance::Policy => self.settle(Outcome::Approved, Some("policy".to_owned()), at),
                Allowance::Rule(rule) => self.settle(Outcome::Approved, Some(rule.to_string()), at),
                Allowance::Decider(actor) => self.settle(Outcome::Approved, Some(actor.to_string()), at),
                Allowance::Pause(_) => {}
            },
            RunEvent::CallDenied(denied) if denied.call == asked => {
                self.settle(Outcome::Denied, Some(denied.by.to_string()), at);
            }
            RunEvent::PauseOpened(opened) if opened.at == asked => {
                self.pause = Some(PauseId { run: self.id.0, number: opened.number });
            }
            RunEvent::PauseDecided(decided) if self.is_own_pause(decided.number) => {
                self.decide(&decided.decision, &decided.by, at);
            }
            RunEvent::PauseExpired(expired) if self.is_own_pause(expired.number) => {
                self.settle(Outcome::Expired, None, at);
            }
            RunEvent::CallAnswered(answered) if answered.call == asked => {
                if let (Outcome::Denied, None, CallOutcome::Denied(words)) =
                    (self.outcome, &self.message, &answered.outcome)
                {
                    self.message = Some(words.clone());
                }
            }
            RunEvent::CallAnswered(_) => self.hear(event),
            RunEvent::RunFinished(end) => {
                if let (Outcome::Pending, RunEnd::Cancelled { by, reason, .. }) = (self.outcome, end) {
                    self.settle(Outcome::Cancelled, Some(by.to_string()), at);
                    self.message = Some(reason.clone());
                }
                self.hear(event);
            }
            _ => {}
        }
    }

    /// Takes what happened to the callback.
    fn hear(&mut self, event: &RunEvent) {
        let Some(callback) = &mut self.callback else { return };
        match event {
            RunEvent::ModelReplied(replied) => {
                callback.attempts += replied.calls.iter().filter(|record| record.tool.as_str() == CALLBACK).count();
            }
            RunEvent::CallAnswered(answered) => {
                if let CallOutcome::Result(output) = &answered.outcome {
                    let attempt = Attempt::read(output);
                    callback.is_delivered = attempt.is_delivered;
                    callback.next_at = attempt.next_at_millis.map(Timestamp::from_millis);
                }
            }
            RunEvent::RunFinished(_) => {
                callback.is_over = true;
                callback.next_at = None;
            }
            _ => {}
        }
    }

    fn decide(&mut self, decision: &Decision, by: &ActorId, at: Timestamp) {
        let outcome = match decision {
            Decision::Approve => Outcome::Approved,
            Decision::ApproveEdited { arguments } => {
                self.arguments = arguments.clone();
                Outcome::Approved
            }
            Decision::Deny { message } => {
                self.message.clone_from(message);
                Outcome::Denied
            }
            Decision::Respond { content } => {
                self.message = Some(content.clone());
                Outcome::Answered
            }
            // None of these answers a held call.
            Decision::Answer { .. } | Decision::Happened { .. } | Decision::RunAgain | Decision::Abandon => return,
        };
        self.settle(outcome, Some(by.to_string()), at);
    }

    fn settle(&mut self, outcome: Outcome, by: Option<String>, at: Timestamp) {
        (self.outcome, self.decided_by, self.decided_at) = (outcome, by, Some(at));
    }

    fn is_own_pause(&self, number: u32) -> bool {
        self.pause.is_some_and(|pause| pause.number == number)
    }

    /// Whether it is settled, so that nothing about it changes any more but the callback.
    pub(crate) fn is_settled(&self) -> bool {
        self.outcome != Outcome::Pending
    }
}

/// Where the call that is asked about stands: the first of the root agent's first turn.
fn call() -> CallPath {
    FramePath::root().call(1, 0)
}
