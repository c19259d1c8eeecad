//! Agents that show what holdpoint does: one for each kind of pause, on a model that replies from a script, so that they
//! need no key and no network. The files are also what `holdpoint init` writes.

use std::path::PathBuf;

use holdpoint_config::{FolderReader, PolicySet, Source};

use crate::agents::card::{DemoCard, ServedAgent};
use crate::agents::load::{Live, Scripts};
use crate::agents::{BadAgents, Catalogue, CatalogueOptions};

/// The files: their place in the agents folder, and their text.
pub const FILES: &[(&str, &str)] = &[
    ("refund-desk.yaml", include_str!("files/refund-desk.yaml")),
    ("refund-desk.json", include_str!("files/refund-desk.json")),
    ("trip-planner.yaml", include_str!("files/trip-planner.yaml")),
    ("trip-planner.json", include_str!("files/trip-planner.json")),
    ("record-keeper.yaml", include_str!("files/record-keeper.yaml")),
    ("record-keeper.json", include_str!("files/record-keeper.json")),
    ("slow-transfer.yaml", include_str!("files/slow-transfer.yaml")),
    ("slow-transfer.json", include_str!("files/slow-transfer.json")),
    ("policies/limits.yaml", include_str!("files/policies/limits.yaml")),
];

/// The demo agents: their name, a message to try, and what it shows.
pub const TRY: &[(&str, &str, &str)] = &[
    ("refund-desk", "Please refund order A-1001, the lamp arrived broken", "a tool call that waits for an approval"),
    ("trip-planner", "Plan a weekend trip for me", "questions to a person"),
    ("record-keeper", "Clean up the archive", "a confirmation that the model's own words ask for"),
    (
        "slow-transfer",
        "Send 250 to Ana",
        "a call in doubt: approve it, kill the server while it runs, and start it again; the question comes about 10 \
         seconds after the kill",
    ),
];

impl Catalogue {
    /// The demo agents. They say of themselves that they are.
    ///
    /// # Errors
    /// They cannot be built on this machine, which lacks a shell.
    pub fn demo(options: CatalogueOptions) -> Result<Self, BadAgents> {
        let catalogue = Self::with(Live::default(), PolicySet::default(), options, None);
        let is_policy = |path: &str| path.starts_with("policies/");
        let sources = |wanted: bool| {
            let yaml = FILES.iter().filter(move |(path, _)| path.ends_with(".yaml") && is_policy(path) == wanted);
            yaml.map(|(path, text)| Source::new(format!("demo/{path}"), *text)).collect::<Vec<_>>()
        };
        let reader = FolderReader::new("demo");
        let folder = reader.check(sources(false), sources(true), catalogue.0.workshop.environment());
        catalogue.take(folder, &Live::default(), &Embedded);
        let diagnostics = catalogue.diagnostics();
        match diagnostics.iter().any(holdpoint_config::Diagnostic::is_error) {
            true => Err(BadAgents(diagnostics)),
            false => Ok(catalogue),
        }
    }
}

/// What a demo agent is shown with, by its name and its label.
pub(super) fn card(agent: &ServedAgent) -> Option<DemoCard> {
    agent.labels.get("demo")?;
    let (_, message, shows) = TRY.iter().find(|(name, ..)| *name == agent.name)?;
    Some(DemoCard { message: (*message).to_owned(), shows: (*shows).to_owned() })
}

/// Scripts that are part of the program.
struct Embedded;

impl Scripts for Embedded {
    fn script(&self, name: &str) -> (Option<PathBuf>, Result<String, String>) {
        let found = FILES.iter().find(|(path, _)| *path == name);
        (None, found.map(|(_, text)| (*text).to_owned()).ok_or_else(|| "there is no such script".to_owned()))
    }
}
