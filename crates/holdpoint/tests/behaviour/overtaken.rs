//! Two processes move one run, because neither holds it while its model thinks: who was overtaken writes nothing old.
use std::future::IntoFuture as _;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use crate::common::*;
use holdpoint::*;
use holdpoint_testkit::clock::TestClock;
use serde_json::json;
use tokio::sync::{mpsc, oneshot};

/// A model whose every reply is given by the test.
struct ByHand(mpsc::UnboundedSender<Asked>);

/// Which turn the model is asked for, and where its reply goes.
type Asked = (u32, oneshot::Sender<Reply>);

#[async_trait::async_trait]
impl Model for ByHand {
    async fn reply(&self, request: ModelRequest, deltas: DeltaSink) -> Result<ModelReply, ModelFault> {
        let (answer, answered) = oneshot::channel();
        self.0.send((request.turn, answer)).unwrap();
        let Ok(reply) = answered.await else { std::future::pending().await };
        ScriptedModel::by(move |_| reply.clone()).reply(request, deltas).await
    }

    fn name(&self) -> &str {
        "by hand"
    }
}

/// A tool that says whether its run was cancelled.
struct Note(Effects);

#[async_trait::async_trait]
impl RunTool for Note {
    async fn run(&self, context: ToolContext, _: CanonicalJson) -> Result<Content, ToolFailure> {
        self.0.happen();
        Ok(if context.cancelled.is_cancelled() { "cancelled" } else { "noted" }.into())
    }
}

struct Stage {
    clock: TestClock,
    store: Arc<MemoryStore>,
    effects: Effects,
    agent: Agent,
    run: RunId,
    /// The process that leaves its runs when its model says so.
    leaving: Arc<OnceLock<Runtime>>,
}

/// A process over the stage's store, and what its model is asked.
struct Process {
    runner: Runner,
    asked: mpsc::UnboundedReceiver<Asked>,
}

impl Process {
    /// The next question to its model, which is about this turn.
    async fn asked(&mut self, turn: u32) -> oneshot::Sender<Reply> {
        let asked = tokio::time::timeout(Duration::from_secs(30), self.asked.recv()).await;
        let (found, answer) = asked.expect("the model is asked in time").unwrap();
        assert_eq!(found, turn);
        answer
    }
}

impl Stage {
    /// A run whose only call was denied: the model is asked for its second turn next.
    async fn new() -> Self {
        let (clock, effects) = (TestClock::default(), Effects::default());
        let store = Arc::new(MemoryStore::new(clock.shared()));
        let note = Tool::builder("note").description("Notes.").schema(json!({"type": "object"}));
        let note = note.effect(Effect::AtMostOnce).runner(Note(effects.clone())).build().unwrap();
        let leaving = Arc::new(OnceLock::<Runtime>::new());
        let leaves = leaving.clone();
        // What reads a reply is asked right before the reply is taken.
        let reads = move |words: &str| {
            if let Some(runtime) = leaves.get().filter(|_| words.contains("and leaves")) {
                runtime.leave_runs();
            }
            None::<String>
        };
        let agent = Agent::builder("Desk").instructions("Do.").tool(gated(&Effects::default())).tool(note);
        let agent = agent.confirm_when(reads).build().unwrap();
        let first = ScriptedModel::new([Reply::call("delete", json!({"path": "a"}))]);
        let first = Runner::builder().store(store.clone()).clock(clock.shared()).model(Arc::new(first)).build();
        let paused = first.run(&agent, "go").await.unwrap();
        first.deny(&paused.pauses()[0]).by("ana").await.unwrap();
        Self { clock, store, effects, agent, run: paused.run_id(), leaving }
    }

    fn process(&self) -> Process {
        let (ask, asked) = mpsc::unbounded_channel();
        let runner = Runner::builder().store(self.store.clone()).clock(self.clock.shared());
        Process { runner: runner.model(Arc::new(ByHand(ask))).build(), asked }
    }

    fn drive(&self, process: &Process) -> tokio::task::JoinHandle<Result<RunOutcome, RunError>> {
        tokio::spawn(process.runner.resume(&self.agent, self.run).into_future())
    }

    /// One process asks its model and is overtaken by another, which notes something and thinks about its next turn.
    async fn overtake(&self) -> (Process, oneshot::Sender<Reply>, Overtaking) {
        let (mut slow, mut quick) = (self.process(), self.process());
        let slow_driving = self.drive(&slow);
        let old = slow.asked(2).await;
        let quick_driving = self.drive(&quick);
        quick.asked(2).await.send(Reply::call("note", json!({}))).unwrap();
        let last = quick.asked(3).await;
        // What the tool did is written when it has waited long enough for company.
        self.clock.advance(Settings::default().outcome_grace);
        while told(&quick.runner.read(self.run).await.unwrap().items()).len() < 2 {
            tokio::task::yield_now().await;
        }
        (slow, old, Overtaking { slow: slow_driving, quick: quick_driving, last })
    }
}

/// Both drives, and where the reply to the quick one's last question goes.
struct Overtaking {
    slow: tokio::task::JoinHandle<Result<RunOutcome, RunError>>,
    quick: tokio::task::JoinHandle<Result<RunOutcome, RunError>>,
    last: oneshot::Sender<Reply>,
}

#[tokio::test]
async fn a_last_word_about_an_earlier_turn_does_not_end_the_run() {
    let stage = Stage::new().await;
    let (mut slow, old, moving) = stage.overtake().await;
    old.send(Reply::text("the slow one is done")).unwrap();
    // It sees how far the other has come, and asks about that.
    let _next = slow.asked(3).await;
    assert!(slow.runner.read(stage.run).await.unwrap().end().is_none());
    moving.last.send(Reply::text("the quick one is done")).unwrap();
    assert_eq!(text_of(&moving.quick.await.unwrap().unwrap()), "the quick one is done");
    assert_eq!(stage.effects.count(), 1);
    moving.slow.abort();
}

#[tokio::test]
async fn calls_of_an_earlier_turn_are_not_made_again() {
    let stage = Stage::new().await;
    let (mut slow, old, moving) = stage.overtake().await;
    old.send(Reply::call("note", json!({}))).unwrap();
    let _next = slow.asked(3).await;
    moving.last.send(Reply::text("Done.")).unwrap();
    assert_eq!((text_of(&moving.quick.await.unwrap().unwrap()).as_str(), stage.effects.count()), ("Done.", 1));
    moving.slow.abort();
}

#[tokio::test]
async fn who_stops_with_a_reply_to_an_earlier_turn_leaves_it_unsaid() {
    let stage = Stage::new().await;
    let (slow, old, moving) = stage.overtake().await;
    assert!(stage.leaving.set(slow.runner.runtime().clone()).is_ok());
    old.send(Reply::text("the slow one is done, and leaves")).unwrap();
    assert_eq!(moving.slow.await.unwrap().unwrap_err().code(), "run_left");
    moving.last.send(Reply::text("the quick one is done")).unwrap();
    assert_eq!(text_of(&moving.quick.await.unwrap().unwrap()), "the quick one is done");
}

#[tokio::test]
async fn an_end_that_was_overtaken_cancels_no_tool() {
    let stage = Stage::new().await;
    let (mut slow, old, moving) = stage.overtake().await;
    old.send(Reply::text("the slow one is done")).unwrap();
    let next = slow.asked(3).await;
    // The other one dies, and the slow one goes on when its lease is over.
    moving.quick.abort();
    stage.clock.advance(Settings::default().lease + Duration::from_secs(1));
    next.send(Reply::call("note", json!({}))).unwrap();
    slow.asked(4).await.send(Reply::text("Done.")).unwrap();
    assert_eq!(text_of(&moving.slow.await.unwrap().unwrap()), "Done.");
    let told = told(&slow.runner.read(stage.run).await.unwrap().items());
    assert_eq!(told.last().unwrap().1, "noted", "{told:?}");
}
