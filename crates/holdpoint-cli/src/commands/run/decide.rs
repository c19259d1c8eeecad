//! Gets answers for a run's open pauses: from the person at the terminal, from `--yes`, or from nobody.

use std::io::IsTerminal as _;

use anyhow::Result;
use holdpoint_core::decision::{Decision, DecisionInput};
use holdpoint_core::ids::ActorId;
use holdpoint_core::json::CanonicalJson;
use holdpoint_core::pause::PauseKind;
use holdpoint_core::policy::{Lifetime, NewRule};
use holdpoint_core::refusal::Refusal;
use holdpoint_core::run::Run;
use holdpoint_runtime::RunError;
use serde::Serialize;

use crate::args::RunArgs;
use crate::asked::{About, Asked};
use crate::prompt::{self, EditProblem, Said};
use crate::render;
use crate::world::World;

/// Who answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// The person at the terminal.
    Person,
    /// `--yes`: what can be approved is.
    Yes,
    /// Nobody is there.
    Nobody,
}

impl Mode {
    /// Who answers this command.
    pub fn of(args: &RunArgs) -> Self {
        // Prompts are shown on standard error and read from standard input.
        let is_terminal = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
        match (args.yes, is_terminal) {
            (true, _) => Self::Yes,
            (false, true) => Self::Person,
            (false, false) => Self::Nobody,
        }
    }
}

/// What became of the open pauses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answered {
    /// One at least was answered, here or elsewhere: the run may go on.
    Something,
    /// None was.
    Nothing,
    /// The person wants to leave.
    Stop,
}

/// Answers what can be answered. Each answer is recorded as it is given.
///
/// # Errors
/// The world failed.
pub async fn answer(world: &World, run: &Run, pauses: &[Asked], mode: Mode) -> Result<Answered> {
    let mut answered = Answered::Nothing;
    let mut left = Vec::new();
    for asked in pauses {
        let became = match mode {
            Mode::Person => ask(world, asked).await?,
            Mode::Yes if may_be_waved_through(asked) => record(world, asked, Decision::Approve, None).await?.into(),
            Mode::Yes | Mode::Nobody => Answered::Nothing,
        };
        match became {
            Answered::Something => answered = Answered::Something,
            Answered::Nothing => left.push(asked),
            Answered::Stop => return Ok(Answered::Stop),
        }
    }
    if answered == Answered::Nothing && mode != Mode::Person {
        for asked in left {
            out!("{}", as_json(run, asked)?);
        }
    }
    Ok(answered)
}

/// What `--yes` says yes to: calls and confirmations. A question has no yes, and a doubt none that is safe.
fn may_be_waved_through(asked: &Asked) -> bool {
    matches!(asked.kind, PauseKind::Approval | PauseKind::Confirmation)
}

/// Asks the person until there is an answer that is taken.
async fn ask(world: &World, asked: &Asked) -> Result<Answered> {
    render::pause(asked);
    let mut problem = None;
    loop {
        let question = asked.clone();
        let before = problem.take();
        // A prompt waits for keys, and must not stand in the way of others.
        let said = tokio::task::spawn_blocking(move || prompt::ask(&question, before.as_ref())).await??;
        let (decision, rule) = match said {
            Said::Decide(decision) => (decision, None),
            Said::Always(decision) => (decision, Some(NewRule { lifetime: Lifetime::Session, ..NewRule::default() })),
            Said::Later => return Ok(Answered::Nothing),
            Said::Stop => return Ok(Answered::Stop),
        };
        match record(world, asked, decision, rule).await? {
            Recorded::Done => return Ok(Answered::Something),
            Recorded::NotTaken => return Ok(Answered::Nothing),
            Recorded::Mend(edit) => problem = Some(edit),
            Recorded::Again => {}
        }
    }
}

/// What became of an answer.
enum Recorded {
    /// It is recorded, or somebody else's is.
    Done,
    /// The pause stays open: this person may not answer, or others must answer too.
    NotTaken,
    /// The arguments do not fit.
    Mend(EditProblem),
    /// It does not fit: another one is needed.
    Again,
}

impl From<Recorded> for Answered {
    fn from(recorded: Recorded) -> Self {
        match recorded {
            Recorded::Done => Self::Something,
            Recorded::NotTaken | Recorded::Mend(_) | Recorded::Again => Self::Nothing,
        }
    }
}

async fn record(world: &World, asked: &Asked, decision: Decision, rule: Option<NewRule>) -> Result<Recorded> {
    let edited = match &decision {
        Decision::ApproveEdited { arguments } => Some(arguments.clone()),
        _ => None,
    };
    let input = DecisionInput {
        via: Some("terminal".to_owned()),
        seen: asked.digest(),
        rule,
        ..DecisionInput::new(asked.id, decision, ActorId::local())
    };
    let refusal = match world.decide(input).await {
        Ok(decided) if decided.pause.is_open() => {
            let missing = decided.pause.approvals_missing();
            render::note(&format!("Your approval is recorded; {missing} more must approve."));
            return Ok(Recorded::NotTaken);
        }
        Ok(_) => return Ok(Recorded::Done),
        Err(RunError::Refused(refusal)) => refusal,
        Err(error) => return Err(error.into()),
    };
    render::complain(&refusal.to_string());
    Ok(match (refusal, edited) {
        (Refusal::InvalidArguments { problem, .. }, Some(arguments)) => {
            Recorded::Mend(EditProblem { arguments, problem })
        }
        (Refusal::AlreadyDecided { .. } | Refusal::Expired { .. } | Refusal::Withdrawn { .. }, _) => Recorded::Done,
        (Refusal::InvalidAnswers { .. } | Refusal::InvalidRule(_) | Refusal::EditOfSeveral { .. }, _) => {
            Recorded::Again
        }
        _ => Recorded::NotTaken,
    })
}

/// The pause for a program that reads it, with the names that the native API uses.
#[derive(Serialize)]
struct Printed<'a> {
    id: String,
    kind: &'static str,
    status: &'static str,
    session_id: Option<String>,
    run_id: String,
    agent: &'a str,
    tool: Option<&'a str>,
    /// Not read into numbers of ours: every digit is as it would run.
    args: Option<&'a CanonicalJson>,
    args_sha256: Option<String>,
    reason: Option<&'a str>,
    rule: Option<&'a str>,
    allowed_decisions: &'static [&'static str],
    approvals_needed: u32,
    expires_at: Option<String>,
}

fn as_json(run: &Run, asked: &Asked) -> Result<String> {
    let (tool, args, words) = match &asked.about {
        About::Call { tool, arguments, .. } => (Some(tool.as_str()), Some(arguments), None),
        About::Words(words) => (None, None, Some(words.as_str())),
    };
    let printed = Printed {
        id: asked.id.to_string(),
        kind: asked.kind.name(),
        status: "open",
        session_id: run.session().map(ToString::to_string),
        run_id: run.id().to_string(),
        agent: &asked.agent,
        tool,
        args,
        args_sha256: asked.digest().map(|digest| digest.to_string()),
        reason: asked.reason.as_deref().or(words),
        rule: asked.rule.as_deref(),
        allowed_decisions: asked.kind.allowed_decisions(),
        approvals_needed: asked.approvals.0,
        expires_at: asked.expires_at.map(|at| at.to_string()),
    };
    Ok(serde_json::to_string(&printed)?)
}
