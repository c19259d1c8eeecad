//! `approval`: somebody decides what a request asks. All of it is recorded in one append, or nothing is.

mod again;

use std::sync::Arc;

use holdpoint_core::decision::{Decision, DecisionInput, Manner};
use holdpoint_core::ids::ActorId;
use holdpoint_core::pause::{PauseKind, PauseState};
use holdpoint_core::refusal::Refusal;
use holdpoint_core::run::Run;
use holdpoint_runtime::RunError;
use holdpoint_runtime::use_cases::Decided;

use super::decisions::{self, Ruling, Rulings};
use super::{Done, VIA, answers, drive};
use crate::access::{Action, Caller};
use crate::agents::ServedAgent;
use crate::app::App;
use crate::protocols::blocks::from_wire::{Approval, Given};
use crate::protocols::blocks::projection::{AskState, Request, Use};
use crate::protocols::blocks::refuse::{self, Refused, bad_answers, bad_decisions};
use crate::protocols::blocks::standing::look;
use crate::protocols::native::decide::{check_edit, check_may_decide, names};

/// Decides what a request asks.
pub(in crate::protocols::blocks) async fn approval(
    app: &App,
    caller: &Caller,
    request_id: Option<&str>,
    approval: Approval,
) -> Result<Done, Refused> {
    caller.check(Action::ReadPause)?;
    let (request, used) = look(app, caller, Action::ReadPause, &approval.session, |told| {
        let used = request_id.and_then(|name| told.truth.named(&caller.actor, name));
        (told.truth.request(&approval.key).cloned(), used.cloned())
    })
    .await?;
    let request = request.ok_or_else(refuse::unknown_approval_key)?;
    let run = app.runtime().read_run(request.run).await?;
    match (request_id, used) {
        (Some(name), Some(Use::Approval(key))) if key == approval.key => {
            return again::answer(app, caller, name, &request, &run, &approval).await;
        }
        (Some(_), Some(_)) => return Err(refuse::request_id_reused()),
        _ => {}
    }
    if !request.is_open() {
        return Err(too_late(&request));
    }
    let rulings = read(app, &request, &approval).await?;
    for ruling in &rulings.open {
        let pause = run.pause(ruling.pause)?;
        check_may_decide(app, caller, &run, pause, &ruling.decision, false)?;
        check_edit(app, &run, pause, &ruling.decision).await.map_err(|error| refused(error, &request))?;
    }
    let inputs = inputs(caller, request_id, &run, rulings)?;
    let decided = app.runtime().decide_pauses(inputs).await.map_err(|error| refused(error, &request))?;
    check_first(&decided, &caller.actor, request_id)?;
    drive::go_on(app, request.run, caller.actor.clone());
    // Where several must approve, those who are missing keep the request open.
    let missing = decided.iter().map(|one| one.pause.approvals_missing()).max().unwrap_or(0);
    let is_repeat = decided.iter().all(|one| one.is_repeat);
    Ok(done(&request, &approval, missing, is_repeat))
}

/// Why the decisions were turned down. What is wrong with an edit is told by its place in the command.
fn refused(error: RunError, request: &Request) -> Refused {
    let place = error.refusal().and_then(Refusal::pause);
    let place = place.and_then(|pause| request.asks.iter().position(|ask| ask.pause == pause));
    let at = format!("decisions[{}].edited_action.args", place.unwrap_or_default());
    let message = match error.refusal() {
        Some(Refusal::InvalidArguments { problem, .. }) => format!("{at}: {problem}"),
        Some(Refusal::NumberOutOfRange { number, .. }) => {
            format!(
                "{at}: {number} cannot be kept exactly by the programs that run it; send it as text where the tool takes one"
            )
        }
        _ => return error.into(),
    };
    Refused { message, ..error.into() }
}

/// What a command came to.
fn done(request: &Request, approval: &Approval, approvals_missing: u32, is_repeat: bool) -> Done {
    let (session, key) = (approval.session.clone(), approval.key.clone());
    match approvals_missing {
        0 => Done::Decided { session, key, is_repeat },
        approvals_missing => Done::Voted { session, run: request.run, key, approvals_missing },
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
            let agent = agent_of(app, request).await?;
            decisions::read(&request.asks, agent.as_deref(), given, approval.note.as_deref())
        }
    }
}

/// The agent that asks, in the version that its run goes on with.
async fn agent_of(app: &App, request: &Request) -> Result<Option<Arc<ServedAgent>>, Refused> {
    Ok(app.agents().version(&app.runtime().agent_wanted(request.run).await?).await)
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

/// What somebody is told who comes after the end of a request.
fn too_late(request: &Request) -> Refused {
    let settled = request.asks.iter().map(|ask| &ask.state).rfind(|state| **state != AskState::Open);
    match settled {
        Some(AskState::Decided { by, at, manner: Manner::Superseded, .. }) => {
            refuse::already_decided("superseded", Some(by), *at)
        }
        Some(settled) => decisions::too_late(settled).of_several(request.asks.iter().map(|ask| ask.state.name())),
        None => refuse::unknown_approval_key(),
    }
}
