//! What commands work with: the settings, the store, the agents.

use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use console::Term;
use holdpoint_config::{Diagnostic, ProcessEnvironment, ServerConfig, StoreKind, Style, load_server, render_all};
use holdpoint_core::decision::{Decision, DecisionInput};
use holdpoint_core::ids::RunId;
use holdpoint_core::refusal::Refusal;
use holdpoint_core::run::Run;
use holdpoint_runtime::agent::AgentGraph;
use holdpoint_runtime::ports::tool::Deadline;
use holdpoint_runtime::settings::Settings as RuntimeSettings;
use holdpoint_runtime::use_cases::Decided;
use holdpoint_runtime::worker::AgentSource as _;
use holdpoint_runtime::{DriveOptions, RunError, Runtime};
use holdpoint_server::agents::{AgentFolder, BadAgents, Catalogue, CatalogueOptions};
use holdpoint_server::metrics::Metrics;

use crate::args::Settings;
use crate::notifications;
use crate::store;

/// Which agents are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// Those of the agents folder; the demo agents where there is none.
    Configured,
    /// The demo agents.
    Demo,
}

/// What commands work with.
pub struct World {
    /// The settings.
    pub config: ServerConfig,
    /// Moves runs.
    pub runtime: Runtime,
    /// The agents.
    pub agents: Catalogue,
    /// What is counted of all that happens.
    pub metrics: Metrics,
}

impl World {
    /// Opens the store and reads the agents.
    ///
    /// # Errors
    /// The settings are wrong, the store cannot be opened, or the agents cannot be served.
    pub async fn open(settings: &Settings, which: Which) -> Result<Self> {
        Self::of(config(settings)?, which).await
    }

    /// Opens the store and reads the agents that these settings name.
    ///
    /// # Errors
    /// As [`World::open`].
    pub async fn of(config: ServerConfig, which: Which) -> Result<Self> {
        let agents = agents(&config, which)?;
        let store = store::open(&config.store).await?;
        let behaviour = RuntimeSettings {
            pause_deadline: config.pause_deadline,
            question_deadline: config.question_deadline.map_or(Deadline::Never, Deadline::After),
            turns_max: Some(config.turns_max),
            notify: notifications::rules(&config)?,
            ..RuntimeSettings::default()
        };
        let metrics = Metrics::default();
        let runtime = Runtime::builder(store).settings(behaviour).observer(Arc::new(metrics.clone())).build();
        Ok(Self { config, runtime, agents, metrics })
    }

    /// Goes on with a stored run, with the agent in the version that it began with.
    ///
    /// # Errors
    /// As [`Runtime::resume_run`]; also where the agent can no longer be found.
    pub async fn resume(&self, run: RunId) -> Result<Run, RunError> {
        self.runtime.resume_run(run, self.graph_of(run).await?, DriveOptions::default()).await
    }

    /// Records an answer. What the policy would not let run is refused before.
    ///
    /// # Errors
    /// As [`Runtime::decide_pause`] and [`Runtime::check_edit_by_policy`].
    pub async fn decide(&self, input: DecisionInput) -> Result<Decided, RunError> {
        if let Decision::ApproveEdited { arguments } = &input.decision {
            let graph = self.graph_of(input.pause.run).await?;
            self.runtime.check_edit_by_policy(input.pause, arguments, &graph).await?;
        }
        self.runtime.decide_pause(input).await
    }

    async fn graph_of(&self, run: RunId) -> Result<Arc<AgentGraph>, RunError> {
        let wanted = self.runtime.agent_wanted(run).await?;
        Ok(self.agents.graph(&wanted).await.ok_or(Refusal::AgentMissing(wanted.root))?)
    }
}

/// All settings: defaults, file, environment, flags.
///
/// # Errors
/// One of them is wrong; each was shown.
pub fn config(settings: &Settings) -> Result<ServerConfig> {
    let read = load_server(&ProcessEnvironment, &settings.0);
    show(&read.diagnostics);
    read.config.context("the settings are not right; see above")
}

/// Shows problems with the lines they are about.
pub fn show(problems: &[Diagnostic]) {
    crate::render::print_err(&render_all(problems, style(&Term::stderr())));
}

/// Colours where somebody looks.
pub fn style(term: &Term) -> Style {
    let is_coloured = term.features().colors_supported() && console::colors_enabled_stderr();
    if is_coloured { Style::Coloured } else { Style::Plain }
}

fn agents(config: &ServerConfig, which: Which) -> Result<Catalogue> {
    let options = CatalogueOptions { is_strict: config.strict, ..catalogue_options(config) };
    let folder = folder(config);
    let is_default = config.agents == std::path::Path::new("./agents");
    let opened = match which {
        Which::Demo => Catalogue::demo(options),
        Which::Configured if folder.exists() => Catalogue::open(folder, options),
        Which::Configured if is_default => Catalogue::demo(options),
        Which::Configured => bail!(
            "there is no agents folder {}: make it with `holdpoint init`, or see the demo agents with `holdpoint demo`",
            config.agents.display()
        ),
    };
    match opened {
        Ok(catalogue) => Ok(catalogue),
        Err(BadAgents(problems)) => {
            show(&problems);
            bail!("the agents cannot be served; see above, and `holdpoint check`")
        }
    }
}

/// What agents are built with. Whether a bad file stops the start is for whoever starts something.
pub fn catalogue_options(config: &ServerConfig) -> CatalogueOptions {
    CatalogueOptions {
        mcp_servers: config.mcp_servers.keys().cloned().collect(),
        has_redis: config.store.kind() == StoreKind::Redis,
        ..CatalogueOptions::default()
    }
}

/// The agents folder that is configured.
pub fn folder(config: &ServerConfig) -> AgentFolder {
    let folder = AgentFolder::new(&config.agents);
    match &config.policies {
        Some(policies) => folder.policies(policies),
        None => folder,
    }
}
