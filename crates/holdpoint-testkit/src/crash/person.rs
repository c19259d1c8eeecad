//! The person of a scenario: answers what is asked, truthfully about what happened, and remembers what was confirmed.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use holdpoint_core::Refusal;
use holdpoint_core::decision::{Decision, DecisionInput};
use holdpoint_core::ids::{ActorId, PauseId};
use holdpoint_core::input::SupersedeInput;
use holdpoint_core::message::Content;
use holdpoint_core::pause::{PauseKind, PauseView};
use holdpoint_core::run::Run;
use holdpoint_runtime::{Fault, RunError, Runtime};

use crate::clock::TestClock;
use crate::crash::{Answering, Scenario, World};

/// Decisions that were confirmed to the person. None of them may be lost.
#[derive(Debug, Clone, Default)]
pub struct Acknowledged {
    /// What was confirmed.
    pub decisions: BTreeMap<PauseId, Decision>,
    file: Option<PathBuf>,
}

impl Acknowledged {
    /// Decisions in a file that outlives the process in which they were confirmed.
    ///
    /// # Panics
    /// The file holds something else.
    pub fn in_file(path: &Path) -> Self {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let read = |line: &str| serde_json::from_str::<(PauseId, Decision)>(line).expect("a confirmed decision");
        Self { decisions: text.lines().map(read).collect(), file: Some(path.to_owned()) }
    }

    fn confirm(&mut self, pause: PauseId, decision: Decision) {
        if let Some(path) = &self.file {
            let line = serde_json::to_string(&(pause, &decision)).expect("a decision has a JSON form");
            let file = OpenOptions::new().create(true).append(true).open(path);
            let mut file = file.expect("the file of confirmed decisions opens");
            file.write_all(format!("{line}\n").as_bytes()).expect("the file of confirmed decisions takes a line");
        }
        self.decisions.insert(pause, decision);
    }
}

/// Answers every open pause once; a pause that the scenario leaves unanswered runs out.
pub(super) async fn answer(
    runtime: &Runtime,
    scenario: &Scenario,
    run: &Run,
    clock: &TestClock,
    world: &World,
    acknowledged: &mut Acknowledged,
) -> Result<(), Fault> {
    let is_asked = run.open_pauses().iter().any(|pause| pause.kind() != PauseKind::InDoubt);
    match scenario.answering {
        Answering::Together(words) => decide_all(runtime, scenario, run, words, world, acknowledged).await,
        Answering::Instead(words) if is_asked => supersede(runtime, run, words, acknowledged).await,
        Answering::OneByOne | Answering::Instead(_) => {
            answer_each(runtime, scenario, run, clock, world, acknowledged).await
        }
    }
}

async fn answer_each(
    runtime: &Runtime,
    scenario: &Scenario,
    run: &Run,
    clock: &TestClock,
    world: &World,
    acknowledged: &mut Acknowledged,
) -> Result<(), Fault> {
    for pause in run.open_pauses() {
        match decision(scenario, &pause, world) {
            Some(decision) => decide(runtime, &pause, decision, acknowledged).await?,
            None => {
                clock.advance(scenario.pause_deadline.expect("a pause that nobody answers has a deadline"));
                match runtime.expire_pauses(16).await {
                    Ok(_) => {}
                    Err(RunError::Fault(fault)) => return Err(fault),
                    Err(RunError::Refused(refusal)) => panic!("{}: refused: {refusal}", scenario.name),
                }
            }
        }
    }
    Ok(())
}

/// Decides all that is open at once, with words for the model beside the first that is no doubt after a crash.
async fn decide_all(
    runtime: &Runtime,
    scenario: &Scenario,
    run: &Run,
    words: &str,
    world: &World,
    acknowledged: &mut Acknowledged,
) -> Result<(), Fault> {
    let open = run.open_pauses();
    let answers = open.iter().map(|pause| decision(scenario, pause, world).expect("every pause is answered"));
    let mut inputs: Vec<DecisionInput> = open.iter().zip(answers).map(|(pause, answer)| input(pause, answer)).collect();
    if let Some(index) = open.iter().position(|pause| pause.kind() != PauseKind::InDoubt) {
        inputs[index].note = Some(words.to_owned());
    }
    match runtime.decide_pauses(inputs.clone()).await {
        Ok(_) => {
            inputs.into_iter().for_each(|given| acknowledged.confirm(given.pause, given.decision));
            Ok(())
        }
        Err(RunError::Refused(refusal)) => panic!("decisions were refused: {refusal}"),
        Err(RunError::Fault(fault)) => Err(fault),
    }
}

/// Says something else than was asked for.
async fn supersede(runtime: &Runtime, run: &Run, words: &str, acknowledged: &mut Acknowledged) -> Result<(), Fault> {
    let (content, by) = (Content::Text(words.to_owned()), ana());
    let message = SupersedeInput { content, by, via: None, request: None };
    match runtime.supersede(run.id(), message).await {
        Ok(after) => {
            for pause in run.open_pauses() {
                let closed = after.pause(pause.id()).expect("a pause that was there");
                acknowledged.confirm(pause.id(), closed.decision().expect("it is closed").clone());
            }
            Ok(())
        }
        Err(RunError::Refused(refusal)) => panic!("a message was refused: {refusal}"),
        Err(RunError::Fault(fault)) => Err(fault),
    }
}

/// About a call in doubt the person looks at the world.
fn decision(scenario: &Scenario, pause: &PauseView, world: &World) -> Option<Decision> {
    if pause.pause.kind != PauseKind::InDoubt {
        return (scenario.answer)(pause);
    }
    let call = pause.call.as_ref().expect("a pause in doubt is about a call");
    let key = format!("{}:{}", pause.pause.id.run, call.path);
    Some(match world.count(&key) {
        0 => Decision::RunAgain,
        _ => Decision::Happened { result: Content::Text("it had happened".to_owned()) },
    })
}

async fn decide(
    runtime: &Runtime,
    pause: &PauseView,
    decision: Decision,
    acknowledged: &mut Acknowledged,
) -> Result<(), Fault> {
    match runtime.decide_pause(input(pause, decision.clone())).await {
        Ok(_) => {
            acknowledged.confirm(pause.id(), decision);
            Ok(())
        }
        // It was recorded before the cut, and is told to the one who asks again.
        Err(RunError::Refused(Refusal::AlreadyDecided { .. } | Refusal::Expired { .. })) => Ok(()),
        Err(RunError::Refused(refusal)) => panic!("a decision was refused: {refusal}"),
        Err(RunError::Fault(fault)) => Err(fault),
    }
}

fn ana() -> ActorId {
    ActorId::new("ana").expect("a name")
}

/// A decision that saw what is held.
fn input(pause: &PauseView, decision: Decision) -> DecisionInput {
    let seen = pause.call.as_ref().map(|call| call.digest);
    DecisionInput { seen, ..DecisionInput::new(pause.id(), decision, ana()) }
}
