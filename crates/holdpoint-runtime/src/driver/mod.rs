//! Moves one run: asks the core what is next, does it, and feeds back what came of it.
//!
//! The driver keeps what it has not committed yet in `pending`. It commits before a tool starts, before it parks or
//! ends, and soon after a tool's outcome; a model call needs no commit before it. Waiting for a person is a return:
//! nobody waits here.

mod call_model;
mod commit;
mod edited;
mod guard;
mod lease;
mod park;
mod pinned;
mod run_tools;
mod screen;
mod thoughts;

use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;

use futures_util::future::BoxFuture;
use holdpoint_core::event::RunEvent;
use holdpoint_core::ids::{AgentId, CallPath, FramePath, RuleId, RunId};
use holdpoint_core::input::Input;
use holdpoint_core::message::Item;
use holdpoint_core::run::Run;
use holdpoint_core::step::{Step, Work};
use holdpoint_core::tool::Outcome;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use crate::agent::AgentGraph;
use crate::context::Context;
use crate::fault::{Fault, RunError};
use crate::hub::Moving;
use crate::ports::model::{ModelFault, ModelReply};
use crate::ports::store::Lease;
use crate::projection::Projection;
use crate::runtime::Runtime;
use crate::settings::{DenialFormatter, DriftPolicy};

pub(crate) use edited::objection_to_edit;
use lease::LeaseKeeper;
pub(crate) use pinned::stored_definition;

/// One drive of one run, from where it stands to its next stop.
pub(crate) struct Drive {
    runtime: Runtime,
    graph: Arc<AgentGraph>,
    options: DriveOptions,
    run: Run,
    revision: u64,
    pending: Pending,
    lease: Option<Lease>,
    /// The name under which this drive holds leases: nobody else's, so that it knows them again.
    owner: String,
    history: Arc<[Arc<Item>]>,
    context: Context,
    pinned: BTreeMap<AgentId, Arc<pinned::Pinned>>,
    under_way: JoinSet<Done>,
    models: BTreeSet<FramePath>,
    tools: BTreeSet<CallPath>,
    /// Calls whose start this drive made durable, and which it has not run yet. Nobody else may run them.
    started_here: BTreeSet<CallPath>,
    /// Rules that the store says are spent, whatever the run itself knows of their uses.
    spent_rules: BTreeSet<RuleId>,
    /// Ends when an outcome has waited long enough for company. The lock is never contended: it makes the drive shareable.
    grace: Option<Mutex<BoxFuture<'static, ()>>>,
    keeper: Option<LeaseKeeper>,
    cancelled: CancellationToken,
    moving: Moving,
    /// Whether the run may only begin in a session of its starter's own.
    only_owner: bool,
}

/// What a caller may say about a drive.
#[derive(Clone, Default)]
pub struct DriveOptions {
    /// The application's context; otherwise the stored one.
    pub context: Option<Context>,
    /// Words for denials, instead of the runtime's formatter.
    pub denial_formatter: Option<DenialFormatter>,
    /// Guardrails on calls also look before a person is asked; `None` leaves it to the runtime's settings.
    pub guardrails_before_pause: Option<bool>,
    /// What happens when a definition changed; `None` leaves it to the runtime's settings.
    pub drift: Option<DriftPolicy>,
    /// Whether a person must look at every call of the run, whatever its tools say. It counts where a run starts, and is
    /// kept with it.
    pub hold_every_call: bool,
    /// Whether the start is made durable before the first model call.
    pub commit_first: bool,
    /// Whether the run is claimed, and what happened is made durable, before each model call: whoever watches sees it
    /// while the model still thinks, and nobody else asks a model the same. Otherwise it is written together with what
    /// follows.
    pub commit_before_models: bool,
    /// What was said in the session before, where the caller kept it; otherwise the store is asked.
    pub history: Option<Vec<Arc<Item>>>,
}

/// What was taken as fact here and is not in the store yet.
#[derive(Default)]
struct Pending {
    inputs: Vec<Input>,
    events: Vec<RunEvent>,
    rows: Projection,
}

/// Something that was under way came to its end.
enum Done {
    Model {
        frame: FramePath,
        turn: u32,
        admitted: u32,
        thinking: Option<String>,
        reply: Result<ModelReply, ModelFault>,
    },
    Tool {
        call: CallPath,
        outcome: Outcome,
    },
}

/// What the driver wakes up for.
enum Woken {
    Done(Option<Result<Done, tokio::task::JoinError>>),
    GraceOver,
    Changed,
    Leaving,
}

impl Drive {
    /// A drive of a run that stands at `revision` in the store (0 for one that is not there yet).
    pub(crate) fn new(
        runtime: Runtime,
        graph: Arc<AgentGraph>,
        run: Run,
        revision: u64,
        options: DriveOptions,
    ) -> Self {
        let stored = Context::stored(run.context());
        let context = options.context.as_ref().map_or(stored.clone(), |given| given.merged_over(&stored));
        let moving = runtime.hub().moving(run.id(), run.session());
        let owner = runtime.new_owner();
        Self {
            runtime,
            graph,
            options,
            run,
            revision,
            pending: Pending::default(),
            lease: None,
            owner,
            history: Arc::from([]),
            context,
            pinned: BTreeMap::new(),
            under_way: JoinSet::new(),
            models: BTreeSet::new(),
            tools: BTreeSet::new(),
            started_here: BTreeSet::new(),
            spent_rules: BTreeSet::new(),
            grace: None,
            keeper: None,
            cancelled: CancellationToken::new(),
            moving,
            only_owner: false,
        }
    }

    /// The same drive of a run that may only begin in a session of its starter's own.
    pub(crate) fn only_owner(self, only_owner: bool) -> Self {
        Self { only_owner, ..self }
    }

    /// Goes on until the run waits for a person or is over.
    pub(crate) async fn drive(self) -> Result<Run, RunError> {
        let span =
            tracing::info_span!("run", run.id = %self.run.id(), session.id = self.run.session().map(|s| s.as_str()));
        self.go().instrument(span).await
    }

    async fn go(mut self) -> Result<Run, RunError> {
        self.history = match self.options.history.take() {
            Some(history) => history.into(),
            None => self.runtime.read_history(&self.run).await?,
        };
        if self.options.commit_first {
            self.commit().await?;
        }
        match self.go_on().await {
            Ok(()) => Ok(self.run),
            Err(error) => {
                self.stop_on_error().await;
                Err(error)
            }
        }
    }

    async fn go_on(&mut self) -> Result<(), RunError> {
        loop {
            // Somebody else's word comes before the next model call or tool.
            if futures_util::poll!(pin!(self.moving.notify.notified())).is_ready() {
                self.catch_up().await?;
            }
            let is_leaving = self.runtime.is_leaving();
            let has_begun_work = match self.run.next_step() {
                Step::Work(work) if !is_leaving => self.begin(work).await?,
                Step::Work(_) if self.tools.is_empty() || self.under_way.is_empty() => return Err(self.left()),
                Step::Work(_) | Step::AwaitCalls | Step::AwaitDecisions { .. } | Step::Finished(_) => false,
            };
            if has_begun_work {
                continue;
            }
            if !self.under_way.is_empty() && self.run.end().is_none() {
                self.wait().await?;
            } else if self.park().await? {
                return Ok(());
            }
        }
    }

    /// Begins what can be begun; says whether the run moved on, so that it must be asked again.
    async fn begin(&mut self, work: Work) -> Result<bool, RunError> {
        let is_settled = self.pending.events.is_empty() && self.lease.is_some();
        if self.options.commit_before_models && !work.call_model.is_empty() && !is_settled {
            self.settle().await?;
            // Somebody may have spoken meanwhile.
            return Ok(true);
        }
        let mut moved = self.call_models(&work.call_model).await?;
        moved |= self.check_inputs(&work.check_input).await?;
        moved |= self.check_outputs(&work.check_output).await?;
        moved |= self.screen_calls(&work.screen).await?;
        moved |= self.word_denials(&work.word).await?;
        moved |= self.start_tools(&work.run_tools).await?;
        Ok(moved)
    }

    /// Waits for something under way to end; meanwhile writes outcomes that have waited long enough.
    async fn wait(&mut self) -> Result<(), RunError> {
        if let (Some(lease), None) = (&self.lease, &self.keeper) {
            self.keeper = Some(LeaseKeeper::keep(&self.runtime, lease.clone()));
        }
        let Self { runtime, under_way, tools, grace, moving, .. } = self;
        let grace = async {
            match grace {
                Some(grace) => grace.get_mut().unwrap_or_else(PoisonError::into_inner).await,
                None => std::future::pending().await,
            }
        };
        let woken = tokio::select! {
            biased;
            done = under_way.join_next() => Woken::Done(done),
            // Tools that run come to their end first.
            () = runtime.leaving(), if tools.is_empty() => Woken::Leaving,
            () = moving.notify.notified() => Woken::Changed,
            () = grace => Woken::GraceOver,
        };
        match woken {
            // Tasks catch the panics of models and tools; one that was stopped has nothing to say.
            Woken::Done(done) => done.and_then(Result::ok).map_or(Ok(()), |done| self.take(done)),
            Woken::GraceOver => self.commit().await,
            Woken::Changed => self.catch_up().await,
            Woken::Leaving => Err(self.left()),
        }
    }

    /// Begins something that may take long. What is ready at once is taken at once, and needs no task of its own; says
    /// whether that was so.
    async fn begin_task(&mut self, task: impl Future<Output = Done> + Send + 'static) -> Result<bool, RunError> {
        let mut task = Box::pin(task);
        match futures_util::poll!(&mut task) {
            Poll::Ready(done) => self.take(done).map(|()| true),
            Poll::Pending => {
                self.under_way.spawn(task);
                Ok(false)
            }
        }
    }

    /// Takes what came of a model call or a tool.
    fn take(&mut self, done: Done) -> Result<(), RunError> {
        match done {
            Done::Model { frame, turn, admitted, thinking, reply } => {
                self.models.remove(&frame);
                let reply = reply.map_err(|source| Fault::Model { run: self.run.id(), source })?;
                self.read_reply((frame, turn), admitted, thinking, reply)
            }
            Done::Tool { call, outcome } => {
                self.tools.remove(&call);
                let grace = self.runtime.settings().outcome_grace;
                self.grace.get_or_insert_with(|| Mutex::new(self.runtime.clock().sleep(grace)));
                self.advance_if_welcome(Input::CallEnded { call, outcome });
                Ok(())
            }
        }
    }

    /// Feeds the core and remembers what it said until the next commit.
    pub(crate) fn advance(&mut self, input: Input) -> Result<(), RunError> {
        let now = self.runtime.store().now();
        let events = self.run.advance(input.clone(), now)?;
        self.pending.rows.add(&self.run, &events, now, &self.runtime.settings().notify);
        self.pending.events.extend(events);
        self.pending.inputs.push(input);
        Ok(())
    }

    /// Feeds the core something that may have been overtaken: a refusal then only means that it no longer matters.
    /// Says whether it was taken.
    fn advance_if_welcome(&mut self, input: Input) -> bool {
        let name = input.name();
        match self.advance(input) {
            Ok(()) => true,
            Err(error) => {
                tracing::debug!(run.id = %self.run.id(), %error, "{name} came too late");
                false
            }
        }
    }

    fn left(&self) -> RunError {
        Fault::Left { run: self.run_id() }.into()
    }

    fn run_id(&self) -> RunId {
        self.run.id()
    }
}
