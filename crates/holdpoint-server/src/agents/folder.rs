//! The agents folder on disk: whether anything in it may have changed since it was looked at last.
//!
//! It is looked at, not watched by the kernel: that works on every file system, also on volumes that are mounted into
//! containers and exchanged as a whole.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Where agents and policies are read from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentFolder {
    agents: PathBuf,
    policies: Option<PathBuf>,
}

impl AgentFolder {
    /// A folder of agents. Policies are in `policies` inside it and beside it.
    pub fn new(agents: impl Into<PathBuf>) -> Self {
        Self { agents: agents.into(), policies: None }
    }

    /// The same folder with its policies in this folder, and nowhere else.
    #[must_use]
    pub fn policies(mut self, folder: impl Into<PathBuf>) -> Self {
        self.policies = Some(folder.into());
        self
    }

    /// Where the agents are.
    pub fn path(&self) -> &Path {
        &self.agents
    }

    /// Where the policies are, where that was said.
    pub fn policies_path(&self) -> Option<&Path> {
        self.policies.as_deref()
    }

    /// Whether there is such a folder.
    pub fn exists(&self) -> bool {
        self.agents.is_dir()
    }

    /// Every file whose change may count.
    fn files(&self) -> BTreeSet<PathBuf> {
        let beside = self.agents.file_name().and(self.agents.parent()).map(|parent| parent.join("policies"));
        let policies = match &self.policies {
            Some(folder) => vec![folder.clone()],
            None => std::iter::once(self.agents.join("policies")).chain(beside).collect(),
        };
        let listed = |folder: &PathBuf| fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
        let is_yaml = |path: &PathBuf| path.extension().is_some_and(|end| end == "yaml" || end == "yml");
        std::iter::once(&self.agents).chain(&policies).flat_map(listed).filter(is_yaml).collect()
    }
}

/// What was seen of the files at the last look.
#[derive(Debug, Default)]
pub(super) struct Look {
    /// `None` before the first look.
    stamps: Option<Vec<Stamp>>,
}

/// Changes within this time of one another may leave no trace in a file's time.
const TIME_GRAIN: Duration = Duration::from_secs(3);

impl Look {
    /// Looks again; says whether the files must be read. `also` are further files that the agents refer to.
    pub(super) fn again(&mut self, folder: &AgentFolder, also: &BTreeSet<PathBuf>, now: SystemTime) -> bool {
        let stamps: Vec<Stamp> = folder.files().union(also).map(|path| Stamp::of(path)).collect();
        let is_fresh = |time: SystemTime| now.duration_since(time).map_or(true, |age| age < TIME_GRAIN);
        let has_changed = self.stamps.as_ref() != Some(&stamps);
        let must_read = has_changed || stamps.iter().filter_map(|stamp| stamp.seen?.1).any(is_fresh);
        self.stamps = Some(stamps);
        must_read
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Stamp {
    path: PathBuf,
    /// Length, time and number of the file; `None` where it is gone.
    seen: Option<(u64, Option<SystemTime>, u64)>,
}

impl Stamp {
    fn of(path: &Path) -> Self {
        let seen = fs::metadata(path).ok().map(|found| (found.len(), found.modified().ok(), number(&found)));
        Self { path: path.to_owned(), seen }
    }
}

#[cfg(unix)]
fn number(found: &fs::Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::ino(found)
}

#[cfg(not(unix))]
fn number(_: &fs::Metadata) -> u64 {
    0
}
