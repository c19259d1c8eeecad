//! One reading of all files: which agents can be served, in which version, and what is wrong.
//!
//! An agent whose file is bad, or that cannot be built, stays as it was when it last was right. One whose file is gone
//! is gone. Policies that cannot be read stay as they were.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use holdpoint_config::{CheckpointBackend, Code, Diagnostic, Folder, LoadedAgent, PolicySet};
use serde_json::Value;

use crate::agents::build::{Bundle, Workshop, missing_keys};
use crate::agents::card::ServedAgent;

/// What is served.
#[derive(Default)]
pub(super) struct Live {
    pub(super) agents: BTreeMap<String, Entry>,
    pub(super) diagnostics: Arc<[Diagnostic]>,
    /// Further files that the agents refer to.
    pub(super) scripts: BTreeSet<PathBuf>,
}

/// An agent, and what it was made from.
#[derive(Clone)]
pub(super) struct Entry {
    pub(super) agent: Arc<ServedAgent>,
    /// The file that defines it.
    file: String,
    source: Value,
}

impl Entry {
    /// An agent that was made in code.
    pub(super) fn of(agent: ServedAgent) -> Self {
        Self { agent: Arc::new(agent), file: String::new(), source: Value::Null }
    }
}

/// What a reading came to.
pub(super) struct Reading {
    pub(super) live: Live,
    /// The policies; `None` where one of their files is bad.
    pub(super) policies: Option<PolicySet>,
    /// Whether a server must not start with these files, strict or not.
    pub(super) stops_the_start: bool,
}

/// Where scripts of scripted models are found.
pub(super) trait Scripts {
    /// The text of a script, and the file it is in, if it is in one; or why it cannot be read.
    fn script(&self, name: &str) -> (Option<PathBuf>, Result<String, String>);
}

/// Makes agents of files that were read, for a server whose store is Redis or not.
pub(super) fn load(
    folder: Folder,
    before: &Live,
    workshop: &Workshop,
    scripts: &dyn Scripts,
    has_redis: bool,
) -> Reading {
    let (live, said) = (Live::default(), Vec::new());
    let mut loading = Loading { before, workshop, scripts, has_redis, live, said, is_fatal: false };
    for loaded in &folder.agents {
        loading.add(&folder, loaded);
    }
    loading.said.extend(folder.diagnostics.iter().cloned());
    loading.keep_those_in_bad_files();
    let Loading { mut live, mut said, is_fatal, .. } = loading;
    let place = |problem: &Diagnostic| (problem.file.clone(), problem.line, problem.column);
    said.sort_by_key(place);
    live.diagnostics = said.into();
    let stops_the_start = is_fatal || folder.stops_the_start();
    Reading { live, policies: folder.policies, stops_the_start }
}

struct Loading<'a> {
    before: &'a Live,
    workshop: &'a Workshop,
    scripts: &'a dyn Scripts,
    has_redis: bool,
    live: Live,
    said: Vec<Diagnostic>,
    is_fatal: bool,
}

impl Loading<'_> {
    fn add(&mut self, folder: &Folder, loaded: &LoadedAgent) {
        let name = loaded.name().to_string();
        let before = self.before.agents.get(&name);
        let entry = match self.bundle(folder, loaded) {
            Some(bundle) => match before.filter(|before| before.source == bundle.to_json()) {
                Some(same) => Some(same.clone()),
                None => self.build(&bundle, loaded),
            },
            None => None,
        };
        self.warn_of_missing_keys(loaded);
        if let Some(entry) = entry.or_else(|| before.cloned()) {
            self.live.agents.insert(name, entry);
        }
    }

    /// The agent as data; `None` where something that it needs is missing.
    fn bundle(&mut self, folder: &Folder, loaded: &LoadedAgent) -> Option<Bundle> {
        let agents = folder.bundle(loaded.name())?;
        let mut bundle = Bundle { scripts: BTreeMap::new(), agents };
        let mut is_whole = self.check_backend(loaded);
        for script in Bundle::script_names(&bundle.agents) {
            let (file, text) = self.scripts.script(&script);
            self.live.scripts.extend(file);
            match text {
                Ok(text) => {
                    bundle.scripts.insert(script, text);
                }
                Err(problem) => {
                    is_whole = false;
                    let problem = format!("the script {script} cannot be read: {problem}");
                    self.said.push(loaded.places.error("spec.model.primary", Code::BadValue, problem));
                }
            }
        }
        is_whole.then_some(bundle)
    }

    /// A store that a file demands must be the server's; memory asks for no more than any store keeps.
    fn check_backend(&mut self, loaded: &LoadedAgent) -> bool {
        let interrupt = loaded.file.spec.interrupt.as_ref();
        match interrupt.and_then(|interrupt| interrupt.checkpoint_backend) {
            None | Some(CheckpointBackend::Memory) => true,
            Some(CheckpointBackend::Redis) if self.has_redis => true,
            Some(CheckpointBackend::Redis) => {
                let message = "`checkpoint_backend: redis` is asked for, and the server's store is not Redis";
                let problem = loaded.places.error("spec.interrupt.checkpoint_backend", Code::Conflict, message);
                let hint = "leave `checkpoint_backend` out, since pauses are kept in the server's own store; or serve \
                            from Redis, with `--store redis://…`";
                self.said.push(problem.with_hint(hint));
                self.is_fatal = true;
                false
            }
        }
    }

    fn build(&mut self, bundle: &Bundle, loaded: &LoadedAgent) -> Option<Entry> {
        match self.workshop.build(bundle) {
            Ok(agent) => {
                let file = loaded.places.find("metadata").map(|place| place.file).unwrap_or_default();
                Some(Entry { agent: Arc::new(agent), file, source: bundle.to_json() })
            }
            Err(problems) => {
                for problem in problems {
                    let is_own = problem.agent == *loaded.name();
                    // What is wrong with another agent is told where that one is built; here only that it is needed.
                    let (path, message) = match is_own {
                        true => (problem.path, problem.message),
                        false => ("spec".to_owned(), format!("agent {}: {}", problem.agent, problem.message)),
                    };
                    self.said.push(loaded.places.error(&path, Code::Unsupported, message));
                }
                None
            }
        }
    }

    fn warn_of_missing_keys(&mut self, loaded: &LoadedAgent) {
        let spec = loaded.file.spec.model.as_ref();
        for (path, variable) in spec.map(|spec| missing_keys(spec, self.workshop)).unwrap_or_default() {
            let message = format!("the environment variable {variable} is not set: this model cannot be asked");
            let problem = loaded.places.warning(path, Code::MissingVariable, message);
            self.said.push(problem.with_hint(format!("set {variable}, or name another model")));
        }
    }

    /// An agent whose file has an error now is served as it was.
    fn keep_those_in_bad_files(&mut self) {
        let is_bad = |file: &str| self.said.iter().any(|problem| problem.is_error() && problem.file == file);
        for (name, entry) in &self.before.agents {
            if is_bad(&entry.file) {
                self.live.agents.entry(name.clone()).or_insert_with(|| entry.clone());
            }
        }
    }
}

/// Scripts that are files in a folder.
pub(super) struct ScriptFolder<'a>(pub(super) &'a Path);

impl Scripts for ScriptFolder<'_> {
    fn script(&self, name: &str) -> (Option<PathBuf>, Result<String, String>) {
        let is_inside =
            Path::new(name).components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
        if !is_inside {
            return (None, Err("a path below the agents folder is expected, without `..` and not absolute".to_owned()));
        }
        let path = self.0.join(name);
        let text = read(&path);
        (Some(path), text)
    }
}

/// How many bytes a script may have.
const SCRIPT_BYTES_MAX: u64 = 256 << 10;

fn read(path: &Path) -> Result<String, String> {
    let found = std::fs::metadata(path).map_err(|error| error.to_string())?;
    match found.len() <= SCRIPT_BYTES_MAX {
        true => std::fs::read_to_string(path).map_err(|error| error.to_string()),
        false => Err(format!("it has more than {SCRIPT_BYTES_MAX} bytes")),
    }
}
