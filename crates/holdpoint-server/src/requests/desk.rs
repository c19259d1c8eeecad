//! Takes requests in: makes their agents, and starts the runs that carry them.

use std::sync::Arc;
use std::time::Duration;

use holdpoint_core::ids::{ActorId, RunId, ToolName};
use holdpoint_core::json::CanonicalJson;
use holdpoint_core::message::Content;
use holdpoint_core::refusal::Refusal;
use holdpoint_runtime::agent::AgentGraph;
use holdpoint_runtime::context::Context;
use holdpoint_runtime::ports::tool::Policy;
use holdpoint_runtime::use_cases::StartRun;
use holdpoint_runtime::{DriveOptions, Runtime};

use super::agent::{self, Parts, RESERVED, Source};
use super::callback::{Callbacks, Teller};
use super::model::RequestModel;
use super::policy::RequestPolicy;
use super::{Carried, Terms};

/// How long a request may wait where no rule says and the server's own agents wait for less: a day.
const WAIT_MAX: Duration = Duration::from_secs(86_400);

/// Takes requests in. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Desk {
    runtime: Runtime,
    operator: Arc<dyn Policy>,
    callbacks: Option<Callbacks>,
}

/// What is asked for.
pub(crate) struct Asked {
    /// The agent elsewhere.
    pub(crate) agent: String,
    /// What it wants to run.
    pub(crate) tool: ToolName,
    /// With which arguments.
    pub(crate) arguments: CanonicalJson,
    /// On what terms.
    pub(crate) terms: Terms,
    /// Who asks.
    pub(crate) by: ActorId,
    /// The name of the run.
    pub(crate) run: RunId,
}

impl Desk {
    pub(crate) fn new(runtime: Runtime, operator: Arc<dyn Policy>, callbacks: Option<Callbacks>) -> Self {
        Self { runtime, operator, callbacks }
    }

    /// How callbacks are sent, where they are.
    pub(crate) fn callbacks(&self) -> Option<&Callbacks> {
        self.callbacks.as_ref()
    }

    /// Whether a tool of this name may be asked about.
    pub(crate) fn takes(tool: &ToolName) -> bool {
        !tool.as_str().starts_with(RESERVED)
    }

    /// The agent of a request.
    ///
    /// # Errors
    /// The names are none.
    pub(super) fn graph(&self, source: &Source) -> Result<Arc<AgentGraph>, Refusal> {
        // Whoever asks from elsewhere says how long they wait, and that may be longer than agents here do.
        let default_deadline = self.runtime.settings().pause_deadline.map(|wait| wait.max(WAIT_MAX));
        let policy = RequestPolicy { operator: self.operator.clone(), default_deadline };
        let parts = Parts {
            model: Arc::new(RequestModel::new(&self.runtime, &source.tool)),
            policy: Arc::new(policy),
            callback: Arc::new(Teller::new(&self.runtime, self.callbacks.as_ref())),
        };
        agent::graph(source, parts)
    }

    /// The start of the run that carries a request.
    ///
    /// # Errors
    /// The agent's name is none, or the terms are larger than may be stored.
    pub(crate) fn start(&self, asked: Asked) -> Result<StartRun, Refusal> {
        let source = Source::new(&asked.agent, &asked.tool);
        let context = Context::new(&Carried { holdpoint_request: asked.terms })
            .map_err(|problem| Refusal::InvalidDefinition(format!("the terms cannot be stored: {problem}")))?;
        Ok(StartRun {
            graph: self.graph(&source)?,
            content: Content::Json(asked.arguments),
            session: Some(Runtime::own_session(asked.run)),
            turns_max: None,
            by: asked.by,
            options: DriveOptions { context: Some(context), ..DriveOptions::default() },
            only_owner: true,
            run: Some(asked.run),
        })
    }
}
