//! How the runtime behaves. Every wait and every count has a bound.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use holdpoint_core::ids::{AgentId, RunId, ToolName};
use holdpoint_core::tool::ToolKind;

use crate::ports::notifier::NotifyRule;
use crate::ports::tool::Deadline;

/// How the runtime behaves.
#[derive(Clone)]
pub struct Settings {
    /// How long a pause waits before it expires; `None` for ever.
    pub pause_deadline: Option<Duration>,
    /// How long an agent's question waits for its answer; [`Deadline::Default`] for as long as every pause.
    pub question_deadline: Deadline,
    /// How many model calls a run's root agent may make, unless its start says otherwise; `None` for no limit.
    pub turns_max: Option<u32>,
    /// How long a lease lasts. A process that dies holds a run up for no longer.
    pub lease: Duration,
    /// How long a tool's outcome may wait for company before it is written on its own.
    pub outcome_grace: Duration,
    /// How long a run that was cancelled waits for its tools.
    pub cancel_grace: Duration,
    /// How many tools of a run may run at once; at least one always may.
    pub tools_parallel_max: usize,
    /// How many earlier runs of a session a model is shown.
    pub history_runs_max: usize,
    /// Whether guardrails on calls also look before a person is asked.
    pub guardrails_before_pause: bool,
    /// What happens when an agent's definition changed while its run was paused.
    pub drift: DriftPolicy,
    /// Words for denials that came without any.
    pub denial_formatter: Option<DenialFormatter>,
    /// Who is told of which pauses; nobody where it is empty. What is to be told is stored with the pause, and sent by a
    /// [`Dispatcher`](crate::notices::Dispatcher).
    pub notify: Vec<NotifyRule>,
    /// How long a write whose answer was lost is asked after, before its caller is told that nobody knows.
    pub doubt_patience: Duration,
    /// How often the store is looked at for what other instances wrote and did not tell: in sessions that are watched or in
    /// motion here. Only where the store has a bus between instances.
    pub watch_poll: Duration,
    /// Who this process is, as leases name it. No two processes that share a store may have the same name.
    pub owner: String,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            pause_deadline: None,
            question_deadline: Deadline::Default,
            turns_max: Some(10),
            lease: Duration::from_secs(10),
            outcome_grace: Duration::from_millis(2),
            cancel_grace: Duration::from_secs(5),
            tools_parallel_max: 32,
            history_runs_max: 50,
            guardrails_before_pause: false,
            drift: DriftPolicy::Pinned,
            denial_formatter: None,
            notify: Vec::new(),
            doubt_patience: Duration::from_secs(3),
            watch_poll: Duration::from_secs(1),
            owner: format!("pid-{}-{}", std::process::id(), rand_tail()),
        }
    }
}

impl Settings {
    /// How long a call of this kind waits for a person where nothing else is said; `None` for ever.
    pub(crate) fn wait_for(&self, kind: &ToolKind) -> Option<Duration> {
        match (kind, self.question_deadline) {
            (ToolKind::Question, Deadline::After(wait)) => Some(wait),
            (ToolKind::Question, Deadline::Never) => None,
            _ => self.pause_deadline,
        }
    }
}

/// Tells two processes with one process id apart, as those of containers have, and two runtimes of one process: by
/// sixty-two random bits.
fn rand_tail() -> String {
    format!("{:016x}", uuid::Uuid::now_v7().as_u64_pair().1)
}

/// What happens when an agent's definition changed while its run was paused.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum DriftPolicy {
    /// The run goes on with the definition as it was, which is stored.
    #[default]
    Pinned,
    /// The run does not go on.
    Refuse,
    /// The run goes on with the definition as it is now. Calls that were approved for a tool that changed are held again.
    Accept,
}

/// What a formatter is told about a denial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denial {
    /// The run.
    pub run: RunId,
    /// The agent that asked.
    pub agent: AgentId,
    /// The tool.
    pub tool: ToolName,
    /// The provider's id of the call.
    pub call_id: String,
    /// What is said without a formatter.
    pub default: String,
}

type Format = Arc<dyn Fn(Denial) -> BoxFuture<'static, Result<Option<String>, String>> + Send + Sync>;

/// Finds the words for a denial. If it fails, or finds none, the default is said.
#[derive(Clone)]
pub struct DenialFormatter(pub(crate) Format);

impl DenialFormatter {
    /// A formatter from a function.
    pub fn new<F, Fut>(format: F) -> Self
    where
        F: Fn(Denial) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Option<String>, String>> + Send + 'static,
    {
        Self(Arc::new(move |denial| Box::pin(format(denial))))
    }
}
