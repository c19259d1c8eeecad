//! A folder of agents, a catalogue over it, and runs of its agents.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use holdpoint_config::FixedEnvironment;
use holdpoint_core::decision::{Decision, DecisionInput};
use holdpoint_core::event::RunEnd;
use holdpoint_core::ids::{ActorId, RunId, SessionId};
use holdpoint_core::message::Content;
use holdpoint_core::pause::{PauseState, PauseView};
use holdpoint_core::run::Run;
use holdpoint_runtime::memory::MemoryStore;
use holdpoint_runtime::ports::clock::SystemClock;
use holdpoint_runtime::use_cases::StartRun;
use holdpoint_runtime::worker::AgentSource as _;
use holdpoint_runtime::{DriveOptions, RunError, Runtime};
use tempfile::TempDir;

use holdpoint_server::agents::{AgentFolder, BadAgents, Catalogue, CatalogueOptions};

/// A folder of agents and a store.
pub(super) struct Bench {
    folder: TempDir,
    pub(super) environment: FixedEnvironment,
    pub(super) runtime: Runtime,
}

impl Bench {
    pub(super) fn new(files: &[(&str, &str)]) -> Self {
        let bench = Self {
            folder: tempfile::tempdir().unwrap(),
            environment: FixedEnvironment::empty(),
            runtime: Runtime::builder(Arc::new(MemoryStore::new(SystemClock::shared()))).build(),
        };
        std::fs::create_dir_all(bench.folder.path().join("agents/policies")).unwrap();
        files.iter().for_each(|(path, text)| bench.write(path, text));
        bench
    }

    /// Where a file of the folder is.
    pub(super) fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join("agents").join(path)
    }

    /// Writes a file of the folder.
    pub(super) fn write(&self, path: &str, text: &str) {
        std::fs::write(self.path(path), text).unwrap();
    }

    pub(super) fn remove(&self, path: &str) {
        std::fs::remove_file(self.path(path)).unwrap();
    }

    /// Opens the folder: a fresh process, as far as agents go.
    pub(super) fn open(&self) -> Result<Catalogue, BadAgents> {
        self.open_with(false)
    }

    pub(super) fn open_with(&self, is_strict: bool) -> Result<Catalogue, BadAgents> {
        self.open_as(CatalogueOptions { is_strict, ..self.options() })
    }

    /// Opens the folder for a server whose store is Redis.
    pub(super) fn open_on_redis(&self) -> Result<Catalogue, BadAgents> {
        self.open_as(CatalogueOptions { has_redis: true, ..self.options() })
    }

    fn options(&self) -> CatalogueOptions {
        CatalogueOptions {
            environment: Arc::new(self.environment.clone()),
            working_folder: self.folder.path().to_owned(),
            mcp_servers: vec!["files".to_owned()],
            ..CatalogueOptions::default()
        }
    }

    fn open_as(&self, options: CatalogueOptions) -> Result<Catalogue, BadAgents> {
        Catalogue::open(AgentFolder::new(self.folder.path().join("agents")), options)
    }

    /// Starts a run and drives it to its first stop.
    pub(super) async fn start(&self, catalogue: &Catalogue, agent: &str, message: &str) -> Run {
        let missing = || panic!("no agent {agent}: {:#?}", catalogue.diagnostics());
        let agent = catalogue.find(agent).unwrap_or_else(missing);
        let start = StartRun {
            graph: agent.graph.clone(),
            content: Content::Text(message.to_owned()),
            session: Some(SessionId::new("s1").unwrap()),
            turns_max: agent.turns_max,
            by: ActorId::new("ana").unwrap(),
            options: DriveOptions::default(),
            run: None,
            only_owner: false,
        };
        self.runtime.start_run(start).await.unwrap()
    }

    /// Decides a pause, and goes on with the run in the version that it began with.
    pub(super) async fn decide(&self, catalogue: &Catalogue, pause: &PauseView, decision: Decision) -> Run {
        self.record(pause, decision).await;
        self.go_on(catalogue, pause.id().run).await.unwrap()
    }

    pub(super) async fn record(&self, pause: &PauseView, decision: Decision) {
        let input = DecisionInput::new(pause.id(), decision, ActorId::new("ben").unwrap());
        self.runtime.decide_pause(input).await.unwrap();
    }

    pub(super) async fn go_on(&self, catalogue: &Catalogue, run: RunId) -> Result<Run, RunError> {
        let wanted = self.runtime.agent_wanted(run).await?;
        let missing = holdpoint_core::refusal::Refusal::AgentMissing(wanted.root.clone());
        let graph = catalogue.graph(&wanted).await.ok_or(missing)?;
        self.runtime.resume_run(run, graph, DriveOptions::default()).await
    }
}

/// A time at which no file counts as just changed.
pub(super) fn later() -> SystemTime {
    SystemTime::now() + Duration::from_secs(3_600)
}

/// The one open pause of a run.
pub(super) fn pause(run: &Run) -> PauseView {
    let mut open = run.open_pauses();
    assert_eq!(open.len(), 1, "one open pause expected: {open:?}, {:?}", run.end());
    open.remove(0)
}

/// What a run came to.
pub(super) fn output(run: &Run) -> String {
    match run.end() {
        Some(RunEnd::Done(output)) => output.to_text(),
        other => panic!("an output expected: {other:?}, {:?}", run.open_pauses()),
    }
}

/// An agent whose model replies from `{name}.json`, with this under `spec`.
pub(super) fn agent(name: &str, spec: &str) -> String {
    format!(
        "apiVersion: holdpoint/v1\nkind: Agent\nmetadata: {{ name: {name}, description: the agent {name} }}\n\
         spec:\n  type: chat_model_agent\n  model: {{ primary: scripted/{name}.json }}\n{spec}"
    )
}

/// How many whole seconds a pause waits. The moment between looking at a call and opening its pause does not count.
pub(super) fn waits_seconds(pause: &PauseView) -> u64 {
    let PauseState::Open { expires_at: Some(expires_at) } = pause.pause.state else {
        panic!("a deadline expected: {pause}")
    };
    (expires_at.since(pause.pause.opened_at) + Duration::from_millis(500)).as_secs()
}

/// A tool that is a program: it prints `says` and then its arguments.
pub(super) fn echo(name: &str, says: &str, more: &str) -> String {
    format!(
        "    - name: {name}\n      description: does {name}\n      parameters: {{ type: object }}\n      \
         command: {{ argv: [\"/bin/sh\", \"-c\", \"printf '{says} '; cat\"] }}\n{more}"
    )
}

/// A script: one call of a tool, then what came of it.
pub(super) fn calls(tool: &str, arguments: &str) -> String {
    format!(r#"{{"replies": [{{"calls": [{{"tool": "{tool}", "arguments": {arguments}}}]}}, "{{result}}"]}}"#)
}
