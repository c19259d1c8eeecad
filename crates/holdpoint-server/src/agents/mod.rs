//! The catalogue: which agents the server has, in which version, and what is wrong with the files they come from.
//!
//! Protocols ask it by name and never see files. A change of the files is a new version for runs that start from then
//! on; a run that began earlier goes on with the version it began with.

mod build;
mod card;
mod cards;
pub mod demo;
mod folder;
mod load;
mod pipeline;
mod versions;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use arc_swap::ArcSwap;
use async_trait::async_trait;
use holdpoint_config::{Diagnostic, Environment, Folder, FolderReader, PolicySet, ProcessEnvironment};
use holdpoint_runtime::agent::AgentGraph;
use holdpoint_runtime::ports::tool::Policy;
use holdpoint_runtime::worker::{AgentSource, AgentWanted};
use tokio::task::JoinHandle;

use build::Workshop;
use folder::Look;
use load::{Entry, Live, ScriptFolder};
use versions::Versions;

pub use card::{
    DemoCard, DisplayCard, FieldCard, FieldKind, Fill, Held, InterruptCard, OnNote, ServedAgent, ToolCard, WhileHeld,
};
pub use folder::AgentFolder;

/// The server's agents. Cheap to clone; clones see the same changes.
#[derive(Clone)]
pub struct Catalogue(Arc<Shared>);

struct Shared {
    live: ArcSwap<Live>,
    policies: Arc<ArcSwap<PolicySet>>,
    workshop: Arc<Workshop>,
    versions: Versions,
    /// Whether the server's store is Redis.
    has_redis: bool,
    /// Where the agents come from; `None` where they never change.
    origin: Option<Origin>,
}

/// A folder that is looked at again and again.
struct Origin {
    folder: AgentFolder,
    reader: FolderReader,
    look: Mutex<Look>,
}

/// What agents are built with.
pub struct CatalogueOptions {
    /// Where `${NAME}` and the keys of models are looked up.
    pub environment: Arc<dyn Environment + Send + Sync>,
    /// The folder in which tools work that name none, and that relative ones are taken from.
    pub working_folder: PathBuf,
    /// The MCP servers that agents may name.
    pub mcp_servers: Vec<String>,
    /// Whether the server's store is Redis, which agents may demand (`checkpoint_backend`).
    pub has_redis: bool,
    /// Whether a file with an error keeps the server from starting.
    pub is_strict: bool,
}

impl Default for CatalogueOptions {
    fn default() -> Self {
        Self {
            environment: Arc::new(ProcessEnvironment),
            working_folder: PathBuf::from("."),
            mcp_servers: Vec::new(),
            has_redis: false,
            is_strict: false,
        }
    }
}

/// Files with which a server must not start.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the agents cannot be served: {}", first_errors(.0))]
pub struct BadAgents(pub Arc<[Diagnostic]>);

fn first_errors(diagnostics: &[Diagnostic]) -> String {
    let errors: Vec<String> =
        diagnostics.iter().filter(|problem| problem.is_error()).map(ToString::to_string).collect();
    let more = errors.len().saturating_sub(3);
    let first = errors.into_iter().take(3).collect::<Vec<_>>().join("; ");
    if more == 0 { first } else { format!("{first}; and {more} more") }
}

impl Catalogue {
    /// A catalogue of agents that were made in code, and never change.
    pub fn of(agents: impl IntoIterator<Item = ServedAgent>) -> Self {
        let agents = agents.into_iter().map(|agent| (agent.name.clone(), Entry::of(agent))).collect();
        Self::with(Live { agents, ..Live::default() }, PolicySet::default(), CatalogueOptions::default(), None)
    }

    /// The agents of a folder. A bad file does not stop the others: see [`Catalogue::diagnostics`].
    ///
    /// # Errors
    /// A policy, or the condition of a tool, cannot be read; a store is demanded that the server has not; or, where that
    /// was asked for, any file has an error.
    pub fn open(folder: AgentFolder, options: CatalogueOptions) -> Result<Self, BadAgents> {
        let is_strict = options.is_strict;
        let reader = reader(&folder, &options.mcp_servers);
        let origin = Origin { folder, reader, look: Mutex::default() };
        let catalogue = Self::with(Live::default(), PolicySet::default(), options, Some(origin));
        let stops_the_start = catalogue.read_again(SystemTime::now()).is_some_and(|read| read.stops_the_start);
        let diagnostics = catalogue.diagnostics();
        let has_errors = diagnostics.iter().any(Diagnostic::is_error);
        if stops_the_start || (is_strict && has_errors) {
            return Err(BadAgents(diagnostics));
        }
        tell_problems(&[], &diagnostics);
        Ok(catalogue)
    }

    fn with(live: Live, policies: PolicySet, options: CatalogueOptions, origin: Option<Origin>) -> Self {
        let policies = Arc::new(ArcSwap::from_pointee(policies));
        let workshop = Workshop::new(options.environment, options.working_folder, policies.clone());
        Self(Arc::new(Shared {
            live: ArcSwap::from_pointee(live),
            policies,
            workshop: Arc::new(workshop),
            versions: Versions::default(),
            has_redis: options.has_redis,
            origin,
        }))
    }

    /// Every agent, by name.
    pub fn list(&self) -> Vec<Arc<ServedAgent>> {
        self.0.live.load().agents.values().map(|entry| entry.agent.clone()).collect()
    }

    /// One agent in the version that new runs get.
    pub fn find(&self, name: &str) -> Option<Arc<ServedAgent>> {
        self.0.live.load().agents.get(name).map(|entry| entry.agent.clone())
    }

    /// What is wrong with the files, in their order: for operators, since it shows parts of them.
    pub fn diagnostics(&self) -> Arc<[Diagnostic]> {
        self.0.live.load().diagnostics.clone()
    }

    /// What the policy files say of calls that agents elsewhere ask about: where they are silent, a person looks.
    pub fn request_policy(&self) -> Arc<dyn Policy> {
        build::of_requests(&self.0.policies)
    }

    /// How many rules the policy files have.
    pub fn rules_count(&self) -> usize {
        self.0.policies.load().rules().len()
    }

    /// Whether these are the demo agents that come with the program, and not those of a folder.
    pub fn is_demo(&self) -> bool {
        self.0.origin.is_none() && self.0.live.load().agents.values().any(|entry| entry.agent.demo.is_some())
    }

    /// Looks at the files, and reads them where they may have changed; says whether a server must not start with them.
    /// An agent whose file is bad stays as it was when it last was right. What changed is logged.
    ///
    /// Whoever calls this says what time it is: a file that was changed a moment ago is read again, since a further
    /// change of it might not show.
    pub fn look(&self, now: SystemTime) -> bool {
        let Some(read) = self.read_again(now) else { return false };
        let live = self.0.live.load();
        tell_problems(&read.before.diagnostics, &live.diagnostics);
        tell_changes(&read.before, &live);
        read.stops_the_start
    }

    /// Reads the files where they may have changed; `None` where nothing can have.
    fn read_again(&self, now: SystemTime) -> Option<Read> {
        let origin = self.0.origin.as_ref()?;
        // One look at a time; a second one has nothing to add.
        let mut look = origin.look.lock().unwrap_or_else(PoisonError::into_inner);
        let before = self.0.live.load_full();
        if !look.again(&origin.folder, &before.scripts, now) {
            return None;
        }
        let folder = origin.reader.read(self.0.workshop.environment());
        let stops_the_start = self.take(folder, &before, &ScriptFolder(origin.folder.path()));
        Some(Read { before, stops_the_start })
    }

    /// Serves what was read; says whether a server must not start with it.
    fn take(&self, folder: Folder, before: &Live, scripts: &dyn load::Scripts) -> bool {
        let reading = load::load(folder, before, &self.0.workshop, scripts, self.0.has_redis);
        if let Some(policies) = reading.policies {
            self.0.policies.store(Arc::new(policies));
        }
        self.0.live.store(Arc::new(reading.live));
        reading.stops_the_start
    }

    /// Looks at the files every second, until what is returned is dropped.
    pub fn watch(&self) -> Watching {
        let catalogue = self.clone();
        let task = tokio::spawn(async move {
            let mut ticks = tokio::time::interval(LOOK_EVERY);
            ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
            loop {
                ticks.tick().await;
                let catalogue = catalogue.clone();
                let looked = tokio::task::spawn_blocking(move || catalogue.look(SystemTime::now())).await;
                if looked.is_err() {
                    tracing::error!("the agents could not be read again; they stay as they are");
                }
            }
        });
        Watching(task)
    }

    /// The agent that a run began with, in the version that it began with.
    ///
    /// It is `None` where there is no such agent any more, or where what it was built from is not at hand: a tool, a
    /// script or a variable of the environment that is gone. The log says which.
    pub async fn version(&self, wanted: &AgentWanted) -> Option<Arc<ServedAgent>> {
        let name = wanted.root.as_str();
        let live = self.find(name);
        let is_wanted = |agent: &Arc<ServedAgent>| agent.graph.digest(&wanted.root) == Some(wanted.digest);
        if let Some(agent) = live.as_ref().filter(|agent| is_wanted(agent)) {
            return Some(agent.clone());
        }
        match &wanted.source {
            Some(source) => self.0.versions.find(wanted, source, &self.0.workshop).await,
            // It was made in code: the agent of that name goes on, with the definition that the run remembers.
            None => live,
        }
    }

    /// As [`Catalogue::version`], for what people are shown and never to be run: it is there also where a variable or a
    /// provider that the version was built with is gone.
    pub(crate) async fn as_shown(&self, wanted: &AgentWanted) -> Option<Arc<ServedAgent>> {
        match &wanted.source {
            Some(source) => self.0.versions.find_shown(wanted, source, &self.0.workshop).await,
            None => self.find(wanted.root.as_str()),
        }
    }
}

/// How often the files are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);

fn reader(folder: &AgentFolder, mcp_servers: &[String]) -> FolderReader {
    let reader = FolderReader::new(folder.path()).mcp_servers(mcp_servers.iter().cloned());
    match folder.policies_path() {
        Some(policies) => reader.policies(policies),
        None => reader,
    }
}

/// What a look at changed files came to.
struct Read {
    before: Arc<Live>,
    stops_the_start: bool,
}

/// Tells operators what is wrong: each problem once, as long as it is the same.
fn tell_problems(before: &[Diagnostic], now: &[Diagnostic]) {
    for problem in now.iter().filter(|problem| !before.contains(problem)) {
        match problem.is_error() {
            true => tracing::error!(target: "holdpoint::agents", "{problem}"),
            false => tracing::warn!(target: "holdpoint::agents", "{problem}"),
        }
    }
}

/// Tells operators which agents came, changed and went.
fn tell_changes(before: &Live, now: &Live) {
    for (name, entry) in &now.agents {
        match before.agents.get(name) {
            None => tracing::info!(target: "holdpoint::agents", agent = %name, "a new agent is served"),
            Some(known) if !Arc::ptr_eq(&known.agent, &entry.agent) => {
                tracing::info!(target: "holdpoint::agents", agent = %name, "a new version of an agent is served");
            }
            Some(_) => {}
        }
    }
    for name in before.agents.keys().filter(|name| !now.agents.contains_key(*name)) {
        tracing::info!(target: "holdpoint::agents", agent = %name, "an agent is no longer served");
    }
}

/// A catalogue that is looked after. Ends when dropped.
pub struct Watching(JoinHandle<()>);

impl Drop for Watching {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[async_trait]
impl AgentSource for Catalogue {
    async fn graph(&self, wanted: &AgentWanted) -> Option<Arc<AgentGraph>> {
        self.version(wanted).await.map(|agent| agent.graph.clone())
    }
}
