//! `holdpoint serve` and `holdpoint demo`: serves agents over HTTP until it is told to end.

mod settings;

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

use anyhow::{Context as _, Result};
use console::style;
use holdpoint_core::text::visible;
use holdpoint_server::agents::Catalogue;
use holdpoint_server::serve::serve_with;
use holdpoint_server::{Running, StartError};

use crate::args::Settings;
use crate::exit::Exit;
use crate::render;
use crate::store;
use crate::world::{self, Which, World};

/// Serves until SIGTERM or Ctrl-C.
///
/// # Errors
/// The server does not start; the error says what to change.
pub async fn run(flags: &Settings, which: Which) -> Result<Exit> {
    open_more_files();
    let config = world::config(flags)?;
    let telemetry = holdpoint_server::telemetry::start(&settings::telemetry(&config))?;
    let world = World::of(config, which).await?;
    let config = settings::server(&world.config)?;
    let started = serve_with(config, world.runtime.clone(), world.agents.clone(), world.metrics.clone()).await;
    let running = started.map_err(explain)?;
    let _watching = world.agents.watch();
    let greeting = greeting(&world, &running);
    let mut ending = pin!(running.until_told());
    // From here on a signal is heard. Only then is anybody told that the server is there.
    let early = poll_fn(|context| Poll::Ready(ending.as_mut().poll(context))).await;
    // A server goes on whether or not somebody reads what it says.
    render::announce(&greeting);
    let told = match early {
        Poll::Ready(told) => told,
        Poll::Pending => ending.await,
    };
    told.context("the machine does not tell of signals")?;
    telemetry.stop().await;
    Ok(Exit::Done)
}

/// Lets the process have as many connections as the machine allows it: what it gets by itself is often about a thousand.
#[cfg(unix)]
fn open_more_files() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    // A process that may not ask has what it has.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}

#[cfg(not(unix))]
fn open_more_files() {}

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

/// What is said at the start: where to go, what keeps what, and who may come in.
fn greeting(world: &World, running: &Running) -> String {
    let bold = |text: String| style(text).bold();
    let durability = world.runtime.store().durability();
    let kept = store::promise(&durability);
    let names: Vec<String> = world.agents.list().iter().map(|agent| visible(&agent.name)).collect();
    let from = if world.agents.is_demo() { "" } else { " from the agents folder" };
    let mut lines = vec![
        format!("holdpoint {} serves {}", env!("CARGO_PKG_VERSION"), bold(format!("http://{}", running.address()))),
        format!("  store     {} ({}; {kept})", world.config.store, durability.settings),
        format!("  instance  {}", world.runtime.settings().owner),
        format!("  access    {}", settings::access_in_words(&world.config)),
        format!("  agents    {}{from}: {}", names.len(), names.join(", ")),
    ];
    let problems = world.agents.diagnostics().len();
    if problems > 0 {
        lines.push(format!("  problems  {problems} with agent or policy files: see above, and `holdpoint check`"));
    }
    lines.extend(try_these(&world.agents));
    lines.join("\n") + "\n"
}

fn try_these(agents: &Catalogue) -> Vec<String> {
    let listed = agents.list();
    let demos: Vec<_> = listed.iter().filter_map(|agent| Some((&agent.name, agent.demo.as_ref()?))).collect();
    if demos.is_empty() {
        return Vec::new();
    }
    let sign = style("!").yellow();
    let mut lines = vec![
        String::new(),
        format!("{sign} These are demo agents: their models reply from scripts, and their tools do nothing real."),
    ];
    if agents.is_demo() {
        lines.push("  There is no agents folder here. For agents of your own: holdpoint init".to_owned());
    }
    lines.push("  Ask one of these, in a browser, with curl, or with `holdpoint run AGENT MESSAGE`:".to_owned());
    for (name, demo) in demos {
        lines.push(format!("    {name:<14} \"{}\"", demo.message));
        lines.push(format!("    {:<14} {}", "", style(format!("shows {}", demo.shows)).dim()));
    }
    lines
}
