//! A process that stops begins nothing more, cuts off no tool, and leaves its runs to whoever is next, who need not wait for
//! its lease. Time stands still in all of these.
use std::future::IntoFuture as _;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use crate::common::*;
use holdpoint::*;
use holdpoint_testkit::clock::TestClock;
use serde_json::json;
use tokio::sync::{Notify, Semaphore};
use tokio::task::JoinHandle;

/// A tool that says when it has begun, and ends when it may, or soon when nobody wants it any more.
#[derive(Clone)]
struct Slow {
    effects: Effects,
    began: Arc<Notify>,
    gate: Arc<Semaphore>,
}

#[async_trait::async_trait]
impl RunTool for Slow {
    async fn run(&self, context: ToolContext, _: CanonicalJson) -> Result<Content, ToolFailure> {
        self.effects.happen();
        self.began.notify_one();
        tokio::select! {
            allowed = self.gate.acquire() => allowed.unwrap().forget(),
            () = context.cancelled.cancelled() => return Ok("half of it".into()),
        }
        Ok("paid".into())
    }
}

/// Calls the tool this many times, and then says that it is done, or hangs.
struct Paying {
    times: usize,
    hangs_at_last: bool,
    asked: Arc<Notify>,
    count: Arc<AtomicU32>,
}

#[async_trait::async_trait]
impl Model for Paying {
    async fn reply(&self, request: ModelRequest, deltas: DeltaSink) -> Result<ModelReply, ModelFault> {
        self.count.fetch_add(1, Ordering::SeqCst);
        self.asked.notify_one();
        let paid = request.items.iter().filter(|item| matches!(&***item, Item::ToolResult { .. })).count();
        let is_last = paid == self.times;
        if is_last && self.hangs_at_last {
            std::future::pending::<()>().await;
        }
        let script = ScriptedModel::by(move |_| match is_last {
            true => Reply::text("Done."),
            false => Reply::call("pay", json!({"n": paid})),
        });
        script.reply(request, deltas).await
    }

    fn name(&self) -> &str {
        "paying"
    }
}

struct Stage {
    store: Arc<MemoryStore>,
    clock: TestClock,
    slow: Slow,
    agent: Agent,
    asked: Arc<Notify>,
    count: Arc<AtomicU32>,
}

impl Stage {
    fn new() -> Self {
        let (clock, gate) = (TestClock::default(), Arc::new(Semaphore::new(0)));
        let slow = Slow { effects: Effects::default(), began: Arc::default(), gate };
        let tool = Tool::builder("pay").description("Pays.").schema(json!({"type": "object"}));
        let tool = tool.effect(Effect::AtMostOnce).runner(slow.clone()).build().unwrap();
        Self {
            store: Arc::new(MemoryStore::new(clock.shared())),
            clock,
            slow,
            agent: agent("Payer", [tool]),
            asked: Arc::default(),
            count: Arc::default(),
        }
    }

    /// A process of its own over the same store.
    fn process(&self, times: usize, hangs_at_last: bool) -> Runner {
        let (asked, count) = (self.asked.clone(), self.count.clone());
        let model = Arc::new(Paying { times, hangs_at_last, asked, count });
        Runner::builder().store(self.store.clone()).clock(self.clock.shared()).model(model).build()
    }

    /// A process that is told to leave its run while the first of two payments is under way.
    async fn leave_in_the_tool(&self) -> (Runner, JoinHandle<Result<RunOutcome, RunError>>) {
        let process = self.process(2, false);
        let driving = tokio::spawn(process.run(&self.agent, "pay twice").into_future());
        self.slow.began.notified().await;
        process.runtime().leave_runs();
        (process, driving)
    }

    fn models_asked(&self) -> u32 {
        self.count.load(Ordering::SeqCst)
    }
}

/// The one run of a store.
async fn only_run(runner: &Runner) -> RunId {
    let runs = runner.runtime().list_runs(&store::RunFilter::default()).await.unwrap().runs;
    assert_eq!(runs.len(), 1);
    runs[0].run
}

#[tokio::test]
async fn a_tool_that_runs_is_waited_for_and_nothing_comes_after_it() {
    let stage = Stage::new();
    let (_process, driving) = stage.leave_in_the_tool().await;
    tokio::task::yield_now().await;
    assert!(!driving.is_finished(), "the tool is not cut off");
    stage.slow.gate.add_permits(1);
    let left = driving.await.unwrap().unwrap_err();
    assert_eq!((left.code(), stage.slow.effects.count(), stage.models_asked()), ("run_left", 1, 1));

    let next = stage.process(2, false);
    let run = only_run(&next).await;
    let told_so_far = told(&next.read(run).await.unwrap().items());
    assert_eq!(told_so_far.len(), 1, "what the tool did is written down: {told_so_far:?}");
    stage.slow.gate.add_permits(1);
    let done = next.resume(&stage.agent, run).await.unwrap();
    assert_eq!((text_of(&done).as_str(), stage.slow.effects.count()), ("Done.", 2));
}

#[tokio::test]
async fn a_tool_that_is_waited_for_hears_of_a_cancellation() {
    let stage = Stage::new();
    let (process, driving) = stage.leave_in_the_tool().await;
    let run = only_run(&process).await;
    process.runtime().cancel_run(run, ActorId::local(), "enough").await.unwrap();
    let RunOutcome::Cancelled { .. } = driving.await.unwrap().unwrap() else { panic!("a cancelled run expected") };
    let told = told(&process.read(run).await.unwrap().items());
    assert!(told.iter().any(|(_, output, _)| output == "half of it"), "{told:?}");
}

#[tokio::test]
async fn no_tool_begins_when_its_guardrail_has_passed_too_late() {
    let (effects, process) = (Effects::default(), Arc::new(OnceLock::<Runtime>::new()));
    let leaving = process.clone();
    let slow = ToolGuardrail::new("slow", move |_, _| {
        leaving.get().unwrap().leave_runs();
        async { CallVerdict::Pass }
    });
    let agent = agent("Desk", [counted("note", &effects).guardrail(slow).build().unwrap()]);
    let runner = Runner::in_memory(ScriptedModel::new([Reply::call("note", json!({}))]));
    assert!(process.set(runner.runtime().clone()).is_ok());
    let left = runner.run(&agent, "go").await.unwrap_err();
    assert_eq!((left.code(), effects.count()), ("run_left", 0));
    // Not even its start is stored: nothing is in doubt.
    let journal = runner.runtime().read_journal(only_run(&runner).await).await.unwrap();
    let is_start = |event: &RunEvent| matches!(event, RunEvent::CallStarted(_));
    assert!(!journal.iter().flat_map(|entry| entry.events.iter()).any(is_start), "{journal:?}");
}

#[tokio::test]
async fn what_a_model_is_about_to_say_is_not_waited_for() {
    let stage = Stage::new();
    let process = stage.process(0, true);
    let driving = tokio::spawn(process.run(&stage.agent, "say it").into_future());
    stage.asked.notified().await;
    process.runtime().leave_runs();
    assert_eq!(driving.await.unwrap().unwrap_err().code(), "run_left");
    let next = stage.process(0, false);
    let run = only_run(&next).await;
    assert_eq!(text_of(&next.resume(&stage.agent, run).await.unwrap()), "Done.");
}

#[tokio::test]
async fn a_run_that_is_set_in_motion_later_is_kept_and_not_moved() {
    let stage = Stage::new();
    let process = stage.process(0, false);
    process.runtime().leave_runs();
    let left = process.run(&stage.agent, "say it").await.unwrap_err();
    assert_eq!((left.code(), stage.models_asked()), ("run_left", 0));
    let next = stage.process(0, false);
    // A worker that leaves has nothing to say about it, and one that does not goes on.
    let sweep = process.worker(std::slice::from_ref(&stage.agent)).unwrap().sweep().await.unwrap();
    assert!(sweep.is_idle(), "{sweep:?}");
    let sweep = next.worker(std::slice::from_ref(&stage.agent)).unwrap().sweep().await.unwrap();
    assert_eq!(sweep.driven, [only_run(&next).await]);
}

#[tokio::test]
async fn who_waits_for_a_person_is_told_as_ever_and_decisions_are_taken() {
    let effects = Effects::default();
    let model = ScriptedModel::new([Reply::call("delete", json!({"path": "a"})), Reply::text("Done.")]);
    let (runner, agent) = (Runner::in_memory(model), agent("Desk", [gated(&effects)]));
    let paused = runner.run(&agent, "go").await.unwrap();
    runner.runtime().leave_runs();
    let still = runner.resume(&agent, paused.run_id()).await.unwrap();
    assert_eq!(still.pauses().len(), 1);
    runner.approve(&still.pauses()[0]).by("ana").await.unwrap();
    let left = runner.resume(&agent, paused.run_id()).await.unwrap_err();
    assert_eq!((left.code(), effects.count()), ("run_left", 0));
}
