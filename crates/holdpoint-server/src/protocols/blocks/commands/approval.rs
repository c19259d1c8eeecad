//! `approval`: somebody decides what a request asks. All of it is recorded in one append, or nothing is.

use holdpoint_core::decision::{Decision, DecisionInput, Manner};
use holdpoint_core::ids::ActorId;
use holdpoint_core::pause::{PauseKind, PauseState};
use holdpoint_core::run::Run;
use holdpoint_runtime::use_cases::Decided;

use super::decisions::{self, Ruling, Rulings};
use super::{Done, VIA, answers, drive};
use crate::access::{Action, Caller};
use crate::app::App;
use crate::protocols::blocks::from_wire::{Approval, Given};
use crate::protocols::blocks::projection::{AskState, Request};
use crate::protocols::blocks::refuse::{self, Refused, bad_answers, bad_decisions};
use crate::protocols::blocks::standing::Standing;
use crate::protocols::native::decide::{check_may_decide, names};

/// Decides what a request asks.
pub(in crate::protocols::blocks) async fn approval(
    app: &App,
    caller: &Caller,
    request_id: Option<&str>,
    approval: Approval,
) -> Result<Done, Refused> {
    caller.check(Action::ReadPause)?;
    let standing = Standing::read(app, caller, Action::ReadPause, &approval.session).await?;
    let request = standing.truth.request(&approval.key).ok_or_else(refuse::unknown_approval_key)?;
    let run = app.runtime().read_run(request.run).await?;
    let done = |is_repeat| Done::Decided { session: approval.session.clone(), key: approval.key.clone(), is_repeat };
    let is_repeat = request_id.is_some_and(|name| was_decided_under(request, &run, &caller.actor, name));
    if !request.is_open() && !is_repeat {
        return Err(too_late(request));
    }
    let rulings = read(app, request, &approval).await?;
    if rulings.open.is_empty() {
        // All of it is settled, as this command says; only its own maker is told that it was the one.
        return if is_repeat { Ok(done(true)) } else { Err(too_late(request)) };
    }
    for ruling in &rulings.open {
        check_may_decide(app, caller, &run, run.pause(ruling.pause)?, &ruling.decision, false)?;
    }
    let inputs = inputs(caller, request_id, &run, rulings)?;
    let decided = app.runtime().decide_pauses(inputs).await?;
    check_first(&decided, &caller.actor, request_id)?;
    drive::go_on(app, request.run, caller.actor.clone());
    // Where several must approve, those who are missing keep the request open.
    let missing = decided.iter().map(|one| one.pause.approvals_missing()).max().unwrap_or(0);
    match missing {
        0 => Ok(done(decided.iter().all(|one| one.is_repeat))),
        approvals_missing => {
            Ok(Done::Voted { session: approval.session.clone(), key: approval.key.clone(), approvals_missing })
        }
    }
}

/// What the command means for each pause that is still open.
async fn read(app: &App, request: &Request, approval: &Approval) -> Result<Rulings, Refused> {
    match (request.kind, &approval.given) {
        (PauseKind::Question, Given::Answers(given)) => {
            let mut open = Vec::new();
            for ask in &request.asks {
                let decision = Decision::Answer { answers: answers::read(&ask.questions, given)? };
                match &ask.state {
                    AskState::Open => {
                        open.push(Ruling { pause: ask.pause, decision, manner: Manner::Given, seen: None });
                    }
                    settled => decisions::check_agrees(settled, &decision)?,
                }
            }
            Ok(Rulings { open, note: approval.note.clone() })
        }
        (PauseKind::Question, Given::Decisions(_)) => Err(bad_answers("this request is a question: send answers")),
        (_, Given::Answers(_)) => Err(bad_decisions("this request is about actions: send decisions")),
        (_, Given::Decisions(given)) => {
            let agent = app.agents().version(&app.runtime().agent_wanted(request.run).await?).await;
            decisions::read(&request.asks, agent.as_deref(), given, approval.note.as_deref())
        }
    }
}

fn inputs(
    caller: &Caller,
    request_id: Option<&str>,
    run: &Run,
    rulings: Rulings,
) -> Result<Vec<DecisionInput>, Refused> {
    let mut note = rulings.note;
    let input = |ruling: Ruling| {
        Ok(DecisionInput {
            via: Some(VIA.to_owned()),
            groups: names(caller, run.pause(ruling.pause)?),
            request: request_id.map(str::to_owned),
            manner: ruling.manner,
            // Once is enough: the model reads it after all of the outcomes.
            note: note.take(),
            // Every question is shown with an option for other words.
            in_own_words: true,
            seen: ruling.seen,
            ..DecisionInput::new(ruling.pause, ruling.decision, caller.actor.clone())
        })
    };
    rulings.open.into_iter().map(input).collect()
}

/// Refuses where somebody else was faster with all of it. An equal decision of theirs is still theirs.
fn check_first(decided: &[Decided], caller: &ActorId, request_id: Option<&str>) -> Result<(), Refused> {
    if decided.iter().any(|one| !one.is_repeat) {
        return Ok(());
    }
    for one in decided {
        if let PauseState::Decided(first) = &one.pause.state {
            let is_own = request_id.is_some() && first.request.as_deref() == request_id && first.by == *caller;
            if !is_own {
                return Err(refuse::already_decided(decisions::outcome(&first.decision), Some(&first.by), first.at));
            }
        }
    }
    Ok(())
}

/// Whether this caller decided something of the request under this name.
fn was_decided_under(request: &Request, run: &Run, caller: &ActorId, name: &str) -> bool {
    request.asks.iter().filter_map(|ask| run.pause(ask.pause).ok()).any(|pause| match &pause.state {
        PauseState::Decided(decided) => {
            decided.by == *caller
                && decided.request.as_deref() == Some(name)
                && decided.via.as_deref() == Some(VIA)
                && decided.manner != Manner::Superseded
        }
        _ => false,
    })
}

/// What somebody is told who comes after the end of a request.
fn too_late(request: &Request) -> Refused {
    let settled = request.asks.iter().map(|ask| &ask.state).rfind(|state| **state != AskState::Open);
    match settled {
        Some(AskState::Decided { by, at, manner: Manner::Superseded, .. }) => {
            refuse::already_decided("superseded", Some(by), *at)
        }
        Some(settled) => decisions::too_late(settled),
        None => refuse::unknown_approval_key(),
    }
}
