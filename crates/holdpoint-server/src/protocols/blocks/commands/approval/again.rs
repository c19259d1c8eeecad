//! The same `approval` once more, under the same name: its maker is told what it came to. What says something else under a
//! name that was used is no repetition, and is refused.

use holdpoint_core::decision::{Decision, Manner};
use holdpoint_core::event::RunEvent;
use holdpoint_core::ids::ActorId;
use holdpoint_core::pause::{Pause, PauseKind, PauseState, Vote};
use holdpoint_core::run::Run;
use holdpoint_runtime::RunError;

use super::super::decisions::{self, Meant};
use super::super::{Done, VIA, answers};
use super::{agent_of, done};
use crate::access::Caller;
use crate::app::App;
use crate::protocols::blocks::from_wire::{Approval, Given};
use crate::protocols::blocks::projection::Request;
use crate::protocols::blocks::refuse::{Refused, bad_answers, bad_decisions, request_id_reused};

/// What the same command came to before.
pub(super) async fn answer(
    app: &App,
    caller: &Caller,
    name: &str,
    request: &Request,
    run: &Run,
    approval: &Approval,
) -> Result<Done, Refused> {
    let name = Name { by: &caller.actor, name };
    let mut note = approval.note.as_deref();
    for (ask, meant) in request.asks.iter().zip(meant(app, request, approval).await?) {
        let Some((decision, manner)) = name.given(run.pause(ask.pause)?) else {
            // Settled through another door before: whoever says the opposite now did not say so then.
            if meant.manner != Manner::Implied {
                decisions::check_agrees(&ask.state, &meant.decision).map_err(|_| request_id_reused())?;
            }
            continue;
        };
        if *decision != meant.recorded || manner.is_some_and(|manner| manner != meant.manner) {
            return Err(request_id_reused());
        }
        note = note.filter(|_| !meant.is_revised());
    }
    if name.note(app, request).await?.as_deref() != note {
        return Err(request_id_reused());
    }
    let pauses = request.asks.iter().filter_map(|ask| run.pause(ask.pause).ok());
    Ok(done(request, approval, pauses.map(|pause| name.missing_after(pause)).max().unwrap_or(0), true))
}

/// What the command means for each action, or for each question.
async fn meant(app: &App, request: &Request, approval: &Approval) -> Result<Vec<Meant>, Refused> {
    match (request.kind, &approval.given) {
        (PauseKind::Question, Given::Answers(given)) => {
            let each = request.asks.iter().map(|ask| {
                let decision = Decision::Answer { answers: answers::read(&ask.questions, given)? };
                Ok(Meant::plain(decision))
            });
            each.collect()
        }
        (PauseKind::Question, Given::Decisions(_)) => Err(bad_answers("this request is a question: send answers")),
        (_, Given::Answers(_)) => Err(bad_decisions("this request is about actions: send decisions")),
        (_, Given::Decisions(given)) => {
            let agent = agent_of(app, request).await?;
            decisions::meant(&request.asks, agent.as_deref(), given, approval.note.as_deref())
        }
    }
}

/// What somebody called a command.
struct Name<'a> {
    by: &'a ActorId,
    name: &'a str,
}

impl Name<'_> {
    fn is(&self, by: &ActorId, via: Option<&str>, request: Option<&str>) -> bool {
        by == self.by && via == Some(VIA) && request == Some(self.name)
    }

    /// What was recorded of a pause under this name: a decision, or an approval among several.
    fn given<'a>(&self, pause: &'a Pause) -> Option<(&'a Decision, Option<Manner>)> {
        if let PauseState::Decided(first) = &pause.state
            && self.is(&first.by, first.via.as_deref(), first.request.as_deref())
        {
            return Some((&first.decision, Some(first.manner)));
        }
        let mut votes = pause.approvals.iter();
        votes
            .any(|vote| self.is(&vote.by, vote.via.as_deref(), vote.request.as_deref()))
            .then_some((&Decision::Approve, None))
    }

    /// How many approvals were missing after the one of this name.
    fn missing_after(&self, pause: &Pause) -> u32 {
        let is_own = |vote: &Vote| self.is(&vote.by, vote.via.as_deref(), vote.request.as_deref());
        match pause.approvals.iter().zip(1..).find(|(vote, _)| is_own(vote)) {
            Some((_, given)) => pause.terms.quorum.saturating_sub(given),
            None => 0,
        }
    }

    /// The words that came with it, which were written in the same append.
    async fn note(&self, app: &App, request: &Request) -> Result<Option<String>, RunError> {
        let entries = app.runtime().read_journal(request.run).await?;
        let is_own = |event: &RunEvent| match event {
            RunEvent::PauseDecided(first) => self.is(&first.by, first.via.as_deref(), first.request.as_deref()),
            RunEvent::PauseVoted(vote) => self.is(&vote.by, vote.via.as_deref(), vote.request.as_deref()),
            _ => false,
        };
        let own = entries.iter().filter(|entry| entry.events.iter().any(is_own));
        Ok(own.flat_map(|entry| entry.events.iter()).find_map(|event| match event {
            RunEvent::InputStaged(staged) if staged.by == *self.by => Some(staged.content.to_text()),
            _ => None,
        }))
    }
}
