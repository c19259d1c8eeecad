//! `holdpoint doctor`: whether this machine has what the configured server needs.

mod machine;
mod models;
mod notifications;
mod report;
mod store;

use anyhow::Result;
use holdpoint_config::{Diagnostic, ProcessEnvironment, ServerConfig, load_server};
use holdpoint_server::agents::{BadAgents, Catalogue};

use crate::args::{DoctorArgs, Settings};
use crate::exit::Exit;
use crate::world;

use report::{Finding, Report};

/// Looks at everything, and says what to do about what is wrong.
///
/// # Errors
/// None: what is wrong is shown.
pub async fn run(args: &DoctorArgs, settings: &Settings) -> Result<Exit> {
    let mut report = Report::default();
    let read = load_server(&ProcessEnvironment, &settings.0);
    for problem in &read.diagnostics {
        report.add("settings", Finding::of_diagnostic(problem));
    }
    if let Some(config) = read.config {
        report.add("settings", Finding::fine(format!("listen on {}, store {}", config.listen, config.store)));
        report.add("listen", machine::listen(config.listen));
        store::look(&config.store, args.offline, &mut report).await;
        agents(&config, &mut report);
        models::look(&config, args.offline, &mut report).await;
        notifications::look(&config, args.offline, &mut report).await;
        mcp(&config, &mut report);
    }
    machine::look(&mut report);
    report.print();
    Ok(if report.has_failures() { Exit::Failed } else { Exit::Done })
}

fn agents(config: &ServerConfig, report: &mut Report) {
    let folder = world::folder(config);
    if !folder.exists() {
        let what = format!("there is no folder {}: demo agents are served", folder.path().display());
        report.add("agents", Finding::caution(what, "holdpoint init writes one to start from"));
        return;
    }
    let opened = Catalogue::open(folder, world::catalogue_options(config));
    let (count, problems) = match &opened {
        Ok(catalogue) => (catalogue.list().len(), catalogue.diagnostics()),
        Err(BadAgents(problems)) => (0, problems.clone()),
    };
    let errors = problems.iter().filter(|problem| problem.is_error()).count();
    match errors {
        0 => report.add("agents", Finding::fine(format!("{count} can be served"))),
        _ => {
            let what = format!("{count} can be served; {errors} errors in their files");
            report.add("agents", Finding::failure(what, "holdpoint check shows them all"));
        }
    }
    // Models are looked at on their own.
    let is_other =
        |problem: &&Diagnostic| !problem.is_error() && problem.code != holdpoint_config::Code::MissingVariable;
    problems.iter().filter(is_other).for_each(|problem| report.add("agents", Finding::of_diagnostic(problem)));
}

fn mcp(config: &ServerConfig, report: &mut Report) {
    for name in config.mcp_servers.keys() {
        let what = format!("mcp_servers.{name} is configured; this version does not connect to MCP servers");
        report.add("mcp", Finding::caution(what, "use http or command tools in their place"));
    }
}
