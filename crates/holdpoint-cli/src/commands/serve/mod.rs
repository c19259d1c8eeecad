//! `holdpoint serve` and `holdpoint demo`: serves agents over HTTP until it is told to end.

mod settings;

use anyhow::{Context as _, Result};
use console::style;
use holdpoint_core::text::visible;
use holdpoint_server::agents::Catalogue;
use holdpoint_server::serve::serve_with;
use holdpoint_server::{Running, StartError};

use crate::args::Settings;
use crate::exit::Exit;
use crate::world::{self, Which, World};

/// Serves until SIGTERM or Ctrl-C.
///
/// # Errors
/// The server does not start; the error says what to change.
pub async fn run(flags: &Settings, which: Which) -> Result<Exit> {
    let config = world::config(flags)?;
    let telemetry = holdpoint_server::telemetry::start(&settings::telemetry(&config))?;
    let world = World::of(config, which)?;
    let config = settings::server(&world.config)?;
    let started = serve_with(config, world.runtime.clone(), world.agents.clone(), world.metrics.clone()).await;
    let running = started.map_err(explain)?;
    let _watching = world.agents.watch();
    greet(&world, &running);
    running.until_told().await.context("the machine does not tell of signals")?;
    telemetry.stop().await;
    Ok(Exit::Done)
}

/// What to do about an address that cannot be had.
fn explain(error: StartError) -> anyhow::Error {
    match &error {
        StartError::Listen { source, .. } if source.kind() == std::io::ErrorKind::AddrInUse => {
            let hint = "another process listens there, perhaps another holdpoint: stop it, or choose another address \
                        with --listen";
            anyhow::Error::new(error).context(hint)
        }
        StartError::Listen { source, .. } if source.kind() == std::io::ErrorKind::PermissionDenied => {
            anyhow::Error::new(error).context("this port needs more rights: choose one above 1023 with --listen")
        }
        _ => error.into(),
    }
}

/// Says where to go, what keeps what, and who may come in.
fn greet(world: &World, running: &Running) {
    let bold = |text: String| style(text).bold();
    let durability = world.runtime.store().durability();
    let kept = if durability.survives_crash { "survives crashes" } else { "lost when the process ends" };
    out!("holdpoint {} serves {}", env!("CARGO_PKG_VERSION"), bold(format!("http://{}", running.address())));
    out!("  store     {} ({}; {kept})", world.config.store, durability.settings);
    out!("  access    {}", settings::access_in_words(&world.config));
    let names: Vec<String> = world.agents.list().iter().map(|agent| visible(&agent.name)).collect();
    let from = if world.agents.is_demo() { "" } else { " from the agents folder" };
    out!("  agents    {}{from}: {}", names.len(), names.join(", "));
    let problems = world.agents.diagnostics().len();
    if problems > 0 {
        out!("  problems  {problems} with agent or policy files: see above, and `holdpoint check`");
    }
    try_these(&world.agents);
}

fn try_these(agents: &Catalogue) {
    let listed = agents.list();
    let demos: Vec<_> = listed.iter().filter_map(|agent| Some((&agent.name, agent.demo.as_ref()?))).collect();
    if demos.is_empty() {
        return;
    }
    out!();
    out!(
        "{} These are demo agents: their models reply from scripts, and their tools do nothing real.",
        style("!").yellow()
    );
    if agents.is_demo() {
        out!("  There is no agents folder here. For agents of your own: holdpoint init");
    }
    out!("  Ask one of these, in a browser, with curl, or with `holdpoint run AGENT MESSAGE`:");
    for (name, demo) in demos {
        out!("    {name:<14} \"{}\"", demo.message);
        out!("    {:<14} {}", "", style(format!("shows {}", demo.shows)).dim());
    }
}
