//! Several instances over one database, which tell each other what happens. The same for each store that has a bus.
//!
//! Where a test is about what is told, nobody looks at the store for an hour: what arrives was told.

mod consequences;
mod faults;
mod words;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use holdpoint_core::decision::{Decision, DecisionInput};
use holdpoint_core::ids::{ActorId, PauseId, RunId, SessionId};
use holdpoint_core::json::CanonicalJson;
use holdpoint_core::message::Content;
use holdpoint_core::run::Run;
use holdpoint_runtime::agent::{Agent, AgentGraph};
use holdpoint_runtime::ports::model::{Delta, DeltaSink, Model, ModelFault, ModelReply, ModelRequest, ProposedCall};
use holdpoint_runtime::ports::store::Store;
use holdpoint_runtime::ports::tool::{RunTool, Tool, ToolContext, ToolFailure};
use holdpoint_runtime::settings::Settings;
use holdpoint_runtime::use_cases::{StartRun, WatchItem, WatchSession};
use holdpoint_runtime::{DriveOptions, RunError, Runtime};
use tokio::sync::{Mutex, Semaphore, mpsc};
use tokio::task::JoinHandle;

pub use consequences::*;
pub use faults::*;
pub use words::*;

/// A database that several instances share.
pub trait Place: Send + Sync {
    /// Opens it once more.
    fn store(&self) -> impl Future<Output = Arc<dyn Store>> + Send;

    /// Opens another one on the same server.
    fn other_store(&self) -> impl Future<Output = Arc<dyn Store>> + Send;

    /// Ends all connections to it.
    fn hang_up(&self) -> impl Future<Output = ()> + Send;

    /// Says something on the channel that instances tell each other by, which nobody of them would.
    fn shout(&self, bytes: &[u8]) -> impl Future<Output = ()> + Send;
}

/// Nothing in these tests waits longer.
const PATIENCE: Duration = Duration::from_secs(60);

const NEVER: Duration = Duration::from_secs(3_600);

/// Waits for something that must come.
pub async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, what).await.expect("it comes in time")
}

/// Waits until something is so.
async fn until(is_so: impl Fn() -> bool) {
    soon(async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

/// What all instances of a test have in common: one agent, its model and its tools.
struct Stage {
    graph: Arc<AgentGraph>,
    lines: mpsc::UnboundedSender<Line>,
    speaker: Arc<Speaker>,
    effects: Arc<Effects>,
}

/// What the model is told to do next.
enum Line {
    Say(Delta),
    Reply(ModelReply),
}

/// A model that says what a test tells it, when it is told.
struct Speaker(Mutex<mpsc::UnboundedReceiver<Line>>);

#[async_trait]
impl Model for Speaker {
    async fn reply(&self, _: ModelRequest, deltas: DeltaSink) -> Result<ModelReply, ModelFault> {
        let mut lines = self.0.lock().await;
        loop {
            match lines.recv().await.expect("the test goes on") {
                Line::Say(delta) => deltas.tell(delta),
                Line::Reply(reply) => return Ok(reply),
            }
        }
    }

    fn name(&self) -> &str {
        "speaker"
    }
}

/// What the tools did. `pay` is held and ends at once, `wait` runs until it is let go or cancelled, `note` just ends.
struct Effects {
    paid: Semaphore,
    waiting: Semaphore,
    let_go: Semaphore,
    cancelled: Semaphore,
}

struct Doing(Arc<Effects>);

#[async_trait]
impl RunTool for Doing {
    async fn run(&self, context: ToolContext, _: CanonicalJson) -> Result<Content, ToolFailure> {
        match context.tool.as_str() {
            "pay" => self.0.paid.add_permits(1),
            "wait" => {
                self.0.waiting.add_permits(1);
                tokio::select! {
                    permit = self.0.let_go.acquire() => permit.unwrap().forget(),
                    () = context.cancelled.cancelled() => self.0.cancelled.add_permits(1),
                }
            }
            _ => {}
        }
        Ok(Content::Text("done".to_owned()))
    }
}

impl Stage {
    fn new() -> Self {
        let (lines, told) = mpsc::unbounded_channel();
        let gate = || Semaphore::new(0);
        let effects = Arc::new(Effects { paid: gate(), waiting: gate(), let_go: gate(), cancelled: gate() });
        let tool = |name: &str| {
            Tool::builder(name).needs_approval(name == "pay").runner(Doing(effects.clone())).build().unwrap()
        };
        let agent = Agent::builder("Desk").tool(tool("pay")).tool(tool("wait")).tool(tool("note")).build().unwrap();
        Self { graph: agent.graph().unwrap(), lines, speaker: Arc::new(Speaker(Mutex::new(told))), effects }
    }

    /// An instance that looks at the store so often.
    fn instance(&self, store: Arc<dyn Store>, watch_poll: Duration) -> Runtime {
        let settings = Settings { watch_poll, ..Settings::default() };
        Runtime::builder(store).model(self.speaker.clone()).settings(settings).build()
    }

    /// Instances that are told what happens, and look at nothing; they know each other.
    async fn instances<const N: usize>(&self, place: &impl Place) -> [Runtime; N] {
        let mut instances = Vec::new();
        for _ in 0..N {
            instances.push(self.instance(place.store().await, NEVER));
        }
        // All are asked each time: an instance begins to listen when it is first asked for others.
        let known = || instances.iter().map(Runtime::instances_elsewhere).min();
        until(|| known() == Some(N - 1)).await;
        instances.try_into().unwrap_or_else(|_| panic!("as many as were made"))
    }

    fn say(&self, text: &str) {
        self.lines.send(Line::Say(Delta::Text(text.to_owned()))).unwrap();
    }

    fn reply(&self, text: &str) {
        self.lines.send(Line::Reply(ModelReply { text: Some(text.to_owned()), ..ModelReply::default() })).unwrap();
    }

    /// The model asks for these tools.
    fn call(&self, tools: &[&str]) {
        let call = |tool: &&str| ProposedCall {
            id: format!("call-{tool}"),
            tool: (*tool).to_owned(),
            arguments: "{}".to_owned(),
        };
        let calls = tools.iter().map(call).collect();
        self.lines.send(Line::Reply(ModelReply { calls, ..ModelReply::default() })).unwrap();
    }

    /// Starts a run in the session `s`, in a task of its own.
    fn start(&self, runtime: &Runtime) -> (RunId, JoinHandle<Result<Run, RunError>>) {
        let run = runtime.name_run();
        let start = StartRun {
            graph: self.graph.clone(),
            content: Content::Text("go".to_owned()),
            session: Some(session()),
            turns_max: Some(10),
            by: ActorId::local(),
            options: DriveOptions { commit_first: true, commit_before_models: true, ..DriveOptions::default() },
            only_owner: false,
            run: Some(run),
        };
        let runtime = runtime.clone();
        (run, tokio::spawn(async move { runtime.start_run(start).await }))
    }

    /// Starts a run that stops at a pause.
    async fn paused(&self, runtime: &Runtime) -> PauseId {
        let (run, task) = self.start(runtime);
        self.call(&["pay"]);
        soon(task).await.unwrap().unwrap();
        PauseId { run, number: 1 }
    }
}

fn session() -> SessionId {
    SessionId::new("s").unwrap()
}

fn ana() -> ActorId {
    ActorId::new("ana").unwrap()
}

async fn approve(runtime: &Runtime, pause: PauseId) {
    runtime.decide_pause(DecisionInput::new(pause, Decision::Approve, ana())).await.unwrap();
}

/// What a watcher sees, one short line for each thing; words of a model in a row are one.
struct Watcher {
    watch: WatchSession,
    seen: Vec<String>,
    numbers: Vec<u64>,
}

impl Watcher {
    fn of(runtime: &Runtime) -> Self {
        Self { watch: runtime.watch_session(&session(), 1), seen: Vec::new(), numbers: Vec::new() }
    }

    async fn next(&mut self) -> WatchItem {
        let item = soon(async {
            loop {
                match self.watch.next().await {
                    Ok(item) => return item,
                    // A store that is away for a moment; the watch goes on.
                    Err(RunError::Fault(_)) => tokio::time::sleep(Duration::from_millis(20)).await,
                    Err(error) => panic!("{error}"),
                }
            }
        })
        .await;
        match &item {
            WatchItem::Event { seq, event, .. } => {
                self.numbers.push(*seq);
                self.seen.push(event.name().to_owned());
            }
            WatchItem::Delta { delta: Delta::Text(text), .. } => match self.seen.last_mut() {
                Some(last) if last.starts_with("says: ") => last.push_str(text),
                _ => self.seen.push(format!("says: {text}")),
            },
            WatchItem::Delta { delta, .. } => self.seen.push(format!("{delta:?}")),
        }
        item
    }

    /// Watches until an event of this name.
    async fn until(&mut self, name: &str) {
        loop {
            if matches!(self.next().await, WatchItem::Event { event, .. } if event.name() == name) {
                return;
            }
        }
    }

    /// Watches until the last line is this.
    async fn until_line(&mut self, line: &str) {
        while self.seen.last().is_none_or(|last| last != line) {
            self.next().await;
        }
    }

    /// Checks what was seen, and that numbers have no gap.
    #[track_caller]
    fn saw(&self, expected: &[impl AsRef<str>]) {
        let expected: Vec<&str> = expected.iter().map(AsRef::as_ref).collect();
        assert_eq!(self.seen, expected);
        assert_eq!(self.numbers, (1..=self.numbers.len() as u64).collect::<Vec<_>>());
    }
}

/// A test of each scene, over the place that `$place` makes.
macro_rules! tests {
    ($place:expr) => {
        $crate::instances::tests! {
            $place;
            what_one_commits_the_others_see
            the_feed_of_pauses_shows_what_others_change
            a_decision_wakes_whoever_moves_the_run_elsewhere
            a_cancellation_reaches_whoever_moves_the_run_elsewhere
            a_run_that_needs_somebody_is_gone_on_with_by_any_worker
            words_are_seen_elsewhere_while_the_model_speaks_and_by_latecomers_from_the_beginning
            words_of_several_turns_stand_where_they_stand_at_the_instance_that_drives
            whoever_begins_to_watch_behind_the_beginning_sees_the_words_that_follow
            long_and_hostile_words_arrive_whole
            words_are_told_only_where_somebody_watches
            what_nobody_told_is_found_by_looking
            connections_that_are_lost_are_made_again_and_nothing_is_missed
            whatever_is_shouted_on_the_channel_changes_nothing
            texts_come_in_order_to_all_and_to_no_other_store
        }
    };
    ($place:expr; $($scene:ident)*) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $scene() {
                $crate::instances::$scene(&$place.await).await;
            }
        )*
    };
}

pub(crate) use tests;
