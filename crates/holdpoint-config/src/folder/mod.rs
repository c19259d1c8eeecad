//! A folder of agents with its policies: read as a whole, so that a bad file does not stop the others and names are
//! checked across files.

mod bundle;
mod cross;
mod files;
mod rules;

use std::path::{Path, PathBuf};

use crate::agent::read::{self as agent_file, LoadedAgent};
use crate::diagnostic::{Code, Diagnostic};
use crate::environment::Environment;
use crate::policy::PolicySet;
use crate::policy::read as policy_file;
use crate::source::Source;

pub use bundle::{AgentBundle, BundleProblem};
pub(crate) use files::read_source;

/// What came of reading a folder.
#[derive(Debug, Clone, Default)]
pub struct Folder {
    /// The agents whose files are right, in the order of file names. Agents that need one which is not are left out.
    pub agents: Vec<LoadedAgent>,
    /// The rules of all policy files; `None` where one of the files has an error, since a gate would be missing.
    pub policies: Option<PolicySet>,
    /// Everything that is wrong with any of the files, in the order of files and lines.
    pub diagnostics: Vec<Diagnostic>,
    stops_the_start: bool,
}

impl Folder {
    /// The agent of this name.
    pub fn agent(&self, name: &str) -> Option<&LoadedAgent> {
        self.agents.iter().find(|agent| agent.name().as_str() == name)
    }

    /// Whether any file has an error.
    pub fn has_errors(&self) -> bool {
        self.diagnostics.iter().any(Diagnostic::is_error)
    }

    /// Whether a server must not start with this folder, strict or not: a policy file has an error, or a condition of a
    /// tool cannot be read.
    pub fn stops_the_start(&self) -> bool {
        self.stops_the_start
    }
}

/// Reads a folder of agents, and the policies in `policies` inside of it or beside it.
///
/// ```no_run
/// use holdpoint_config::{ProcessEnvironment, Style, read_folder, render_all};
///
/// let folder = read_folder("agents".as_ref(), &ProcessEnvironment);
/// eprint!("{}", render_all(&folder.diagnostics, Style::Plain));
/// ```
pub fn read_folder(folder: &Path, environment: &dyn Environment) -> Folder {
    FolderReader::new(folder).read(environment)
}

/// Reads a folder of agents and policies.
#[derive(Debug, Clone)]
pub struct FolderReader {
    agents: PathBuf,
    policies: Option<PathBuf>,
    mcp_servers: Option<Vec<String>>,
}

impl FolderReader {
    /// Reads the agents of this folder.
    pub fn new(agents: impl Into<PathBuf>) -> Self {
        Self { agents: agents.into(), policies: None, mcp_servers: None }
    }

    /// Reads the policies of this folder, which must exist, and of no other.
    #[must_use]
    pub fn policies(mut self, folder: impl Into<PathBuf>) -> Self {
        self.policies = Some(folder.into());
        self
    }

    /// Checks that agents name only these MCP servers. Without this, their names are not checked.
    #[must_use]
    pub fn mcp_servers(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.mcp_servers = Some(names.into_iter().map(Into::into).collect());
        self
    }

    /// Reads all files. A folder or file that cannot be read is a diagnostic like any other.
    pub fn read(&self, environment: &dyn Environment) -> Folder {
        let mut unread = Vec::new();
        let agents = files::sources(&self.agents, &mut unread);
        let before = unread.len();
        let mut policies = Vec::new();
        for folder in self.policy_folders() {
            policies.extend(files::sources(&folder, &mut unread));
        }
        let policies_unread = unread.len() > before;
        let mut folder = self.check(agents, policies, environment);
        if policies_unread {
            folder.policies = None;
            folder.stops_the_start = true;
        }
        folder.diagnostics.extend(unread);
        crate::diagnostic::sort(&mut folder.diagnostics);
        folder
    }

    /// Checks texts as if they were the files of a folder.
    pub fn check(&self, agents: Vec<Source>, policies: Vec<Source>, environment: &dyn Environment) -> Folder {
        let agents: Vec<_> = agents.into_iter().map(|source| agent_file::read(source, environment)).collect();
        let policies: Vec<_> = policies.into_iter().map(|source| policy_file::read(source, environment)).collect();
        cross::check(&agents, self.mcp_servers.as_deref());
        let rules = rules::join(&policies, &agents);
        let has_bad_gate = agents.iter().any(|draft| draft.links.has_bad_expression());
        let mut folder =
            Folder { stops_the_start: rules.is_none() || has_bad_gate, policies: rules, ..Folder::default() };
        for draft in agents {
            folder.agents.extend(draft.agent.filter(|_| !draft.reader.has_errors()));
            folder.diagnostics.extend(draft.reader.finish());
        }
        for draft in policies {
            folder.diagnostics.extend(draft.reader.finish());
        }
        crate::diagnostic::sort(&mut folder.diagnostics);
        folder
    }

    /// The folder that was named, or else `policies` inside of the agents' folder and beside it, where they exist.
    fn policy_folders(&self) -> Vec<PathBuf> {
        if let Some(folder) = &self.policies {
            return vec![folder.clone()];
        }
        let inside = self.agents.join("policies");
        let beside = self.agents.file_name().and(self.agents.parent()).map(|parent| parent.join("policies"));
        [Some(inside), beside].into_iter().flatten().filter(|folder| folder.is_dir()).collect()
    }
}

/// Says that there is more than is read.
fn too_many(file: impl Into<String>, message: String) -> Diagnostic {
    Diagnostic::outside(file, crate::diagnostic::Severity::Error, Code::TooMany, message)
}
