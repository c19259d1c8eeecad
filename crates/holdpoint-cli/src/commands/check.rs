//! `holdpoint check`: everything that is wrong with the files, in one go.

mod told;

use std::path::{Path, PathBuf};

use anyhow::Result;
use console::Term;
use holdpoint_config::{Diagnostic, ProcessEnvironment, ServerConfig, load_server, render_all};
use holdpoint_server::agents::{AgentFolder, BadAgents, Catalogue, CatalogueOptions};
use serde::Serialize;

use crate::args::{CheckArgs, CheckFormat, Settings};
use crate::exit::Exit;
use crate::world::{self, style};

/// Shows what is wrong. Agents are built as for serving, so that a program or a script that is missing is found too.
///
/// # Errors
/// None: what is wrong is shown.
pub fn run(args: &CheckArgs, settings: &Settings) -> Result<Exit> {
    let (config, mut problems) = settings_of(args, settings)?;
    let folder = match (&args.folder, &config) {
        (Some(folder), _) => Some(AgentFolder::new(agents_in(folder))),
        (None, Some(config)) => Some(world::folder(config)),
        (None, None) => None,
    };
    let mut agents = Vec::new();
    if let Some(folder) = folder {
        let options = config.as_ref().map_or_else(CatalogueOptions::default, world::catalogue_options);
        match Catalogue::open(folder, options) {
            Ok(catalogue) => {
                agents = catalogue.list().iter().map(|agent| agent.name.clone()).collect();
                problems.extend(catalogue.diagnostics().iter().cloned());
            }
            Err(BadAgents(found)) => problems.extend(found.iter().cloned()),
        }
    }
    if let Some(config) = &config {
        problems.extend(told::problems(config, &agents)?);
    }
    print(&problems, args.format)?;
    let has_errors = problems.iter().any(Diagnostic::is_error);
    if args.format != CheckFormat::Json && !has_errors {
        let count = agents.len();
        err!("{count} agent{} can be served: {}", if count == 1 { "" } else { "s" }, agents.join(", "));
    }
    Ok(if has_errors { Exit::Failed } else { Exit::Done })
}

/// The settings: of the folder's own file where a folder is named, otherwise as always.
fn settings_of(args: &CheckArgs, settings: &Settings) -> Result<(Option<ServerConfig>, Vec<Diagnostic>)> {
    let mut flags = settings.0.clone();
    if let Some(folder) = &args.folder {
        let own = folder.join("holdpoint.yaml");
        if own.is_file() {
            flags.set("config", own.display().to_string())?;
        }
    }
    let read = load_server(&ProcessEnvironment, &flags);
    Ok((read.config, read.diagnostics))
}

/// The folder itself, or the `agents` in it where it has them there.
fn agents_in(folder: &Path) -> PathBuf {
    let inside = folder.join("agents");
    if inside.is_dir() { inside } else { folder.to_owned() }
}

#[derive(Serialize)]
struct Printed<'a> {
    file: &'a str,
    line: usize,
    column: usize,
    severity: &'static str,
    code: &'static str,
    message: &'a str,
    hint: Option<&'a str>,
}

fn print(problems: &[Diagnostic], format: CheckFormat) -> Result<()> {
    match format {
        CheckFormat::Full => crate::render::print(&render_all(problems, style(&Term::stdout()))),
        CheckFormat::Short => problems.iter().for_each(|problem| out!("{problem}")),
        CheckFormat::Json => {
            for problem in problems {
                let printed = Printed {
                    file: &problem.file,
                    line: problem.line,
                    column: problem.column,
                    severity: problem.severity.name(),
                    code: problem.code.name(),
                    message: &problem.message,
                    hint: problem.hint.as_deref(),
                };
                out!("{}", serde_json::to_string(&printed)?);
            }
        }
    }
    Ok(())
}
