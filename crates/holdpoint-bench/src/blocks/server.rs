//! A server in a process of its own, so that its memory is its own.

use std::io::{BufRead as _, BufReader, Read as _};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;

use anyhow::{Context as _, Result};
use holdpoint::{SqliteStore, SystemClock};
use holdpoint_config::FixedEnvironment;
use holdpoint_runtime::Runtime;
use holdpoint_server::agents::{AgentFolder, Catalogue, CatalogueOptions};
use holdpoint_server::{ServerConfig, serve};

use crate::paused::resident_mib;

/// The name of the agent that the server has.
pub(super) const AGENT: &str = "clerk";

/// It looks something up without asking, and books only what a person approved.
const FILE: &str = r#"apiVersion: holdpoint/v1
kind: Agent
metadata: { name: clerk }
spec:
  type: chat_model_agent
  model: { primary: openai/clerk }
  system_prompt: You keep the books.
  tools:
    - name: look_up
      description: Looks something up.
      parameters: { type: object }
      command: { argv: ["/bin/echo", "found"] }
      effects: read_only
      approval: never
    - name: book
      description: Books something.
      parameters: { type: object }
      command: { argv: ["/bin/echo", "booked"] }
      approval: required
"#;

/// A running server. It ends when this is dropped.
pub(super) struct Server {
    child: Child,
    // The server runs until nobody holds this any more.
    _until_dropped: ChildStdin,
    pub(super) address: SocketAddr,
}

impl Server {
    /// Starts it over a folder, with a model at this address.
    pub(super) fn start(folder: &Path, model: &str) -> Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .arg("child-serve")
            .arg(folder)
            .arg(model)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let until_dropped = child.stdin.take().context("the server has no input")?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().context("the server has no output")?).read_line(&mut line)?;
        let address = line.trim().parse().with_context(|| format!("the server said {line:?}"))?;
        Ok(Self { child, _until_dropped: until_dropped, address })
    }

    pub(super) fn resident_mib(&self) -> Result<f64> {
        resident_mib(&self.child.id().to_string())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// What the process does.
pub(crate) fn child(folder: &Path, model: &str) -> Result<()> {
    let agents = folder.join("agents");
    std::fs::create_dir_all(&agents)?;
    std::fs::write(agents.join("clerk.yaml"), FILE)?;
    let environment = FixedEnvironment::empty().with("OPENAI_BASE_URL", model).with("OPENAI_API_KEY", "none");
    let options = CatalogueOptions { environment: Arc::new(environment), ..CatalogueOptions::default() };
    let catalogue = Catalogue::open(AgentFolder::new(&agents), options)?;
    let mut config = ServerConfig::solo(SocketAddr::from(([127, 0, 0, 1], 0)));
    config.limits.streams_max = 20_000;
    config.limits.streams_per_caller = 20_000;
    (config.limits.requests_per_second, config.limits.requests_burst) = (1_000_000, 1_000_000);
    let tokio = tokio::runtime::Runtime::new()?;
    let running = tokio.block_on(async {
        let store = SqliteStore::open(folder.join("holdpoint.db"), SystemClock::shared())?;
        anyhow::Ok(serve(config, Runtime::builder(Arc::new(store)).build(), catalogue).await?)
    })?;
    println!("{}", running.address());
    std::io::stdin().read_to_end(&mut Vec::new())?;
    tokio.block_on(running.stop());
    Ok(())
}
