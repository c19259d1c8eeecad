//! How much later than the model's first token a client of the server sees it, beside a client that asks the model
//! itself. The agent's replies are read for confirmations, and stream all the same.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use holdpoint::{SqliteStore, SystemClock};
use holdpoint_config::FixedEnvironment;
use holdpoint_runtime::Runtime;
use holdpoint_server::agents::{AgentFolder, Catalogue, CatalogueOptions};
use holdpoint_server::{Running, ServerConfig, serve};
use holdpoint_testkit::model_server::{Answer, Gate, ModelServer};
use serde_json::json;

const AGENT: &str = "apiVersion: holdpoint/v1
kind: Agent
metadata: { name: teller }
spec:
  type: chat_model_agent
  model: { primary: openai/first-byte }
  system_prompt: You tell.
  interrupt: { enabled: true }
";

/// Milliseconds from the model's first token to the client's first byte of it, sorted.
pub(crate) struct FirstByte {
    pub(crate) served_ms: Vec<f64>,
    pub(crate) direct_ms: Vec<f64>,
}

pub(crate) fn measure(rounds: usize) -> Result<FirstByte> {
    let folder = tempfile::tempdir_in(".")?;
    let model = ModelServer::start();
    let tokio = tokio::runtime::Runtime::new()?;
    let server = tokio.block_on(start(folder.path(), &model.base_url()))?;
    let mut found = FirstByte { served_ms: Vec::new(), direct_ms: Vec::new() };
    for round in 0..rounds {
        let ask = json!({"agent_id": "teller", "session_id": format!("round-{round}"), "message": "Tell me."});
        found.served_ms.push(one(&tokio, &model, server.address(), "/api/v1/chat/stream", &ask.to_string())?);
        let ask = json!({"model": "direct", "stream": true, "messages": [{"role": "user", "content": "Tell me."}]});
        found.direct_ms.push(one(&tokio, &model, model.address(), "/v1/chat/completions", &ask.to_string())?);
    }
    tokio.block_on(server.stop());
    found.served_ms.sort_by(f64::total_cmp);
    found.direct_ms.sort_by(f64::total_cmp);
    Ok(found)
}

async fn start(folder: &Path, model: &str) -> Result<Running> {
    std::fs::write(folder.join("teller.yaml"), AGENT)?;
    let environment = FixedEnvironment::empty().with("OPENAI_BASE_URL", model).with("OPENAI_API_KEY", "none");
    let options = CatalogueOptions { environment: Arc::new(environment), ..CatalogueOptions::default() };
    let agents = Catalogue::open(AgentFolder::new(folder), options)?;
    let store = SqliteStore::open(folder.join("first-byte.db"), SystemClock::shared())?;
    let runtime = Runtime::builder(Arc::new(store)).build();
    Ok(serve(ServerConfig::solo(SocketAddr::from(([127, 0, 0, 1], 0))), runtime, agents).await?)
}

/// The model is asked and waits at its gate; from the moment it may speak until the client has read its word.
fn one(
    tokio: &tokio::runtime::Runtime,
    model: &ModelServer,
    address: SocketAddr,
    path: &str,
    body: &str,
) -> Result<f64> {
    let gate = Gate::closed();
    model.push(Answer::empty().and_gate(&gate).and_tokens(["Salutations", ".", " All", " is", " well."]));
    let mut stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    write!(
        stream,
        "POST {path} HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nConnection: close\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    )?;
    tokio.block_on(gate.reached());
    let began = Instant::now();
    gate.open();
    let mut lines = BufReader::new(stream).lines();
    let word = lines.find(|line| line.as_ref().map_or(true, |line| line.contains("Salutations")));
    let elapsed = began.elapsed();
    word.context("the stream ended without the model's first word")??;
    ensure!(lines.last().is_some(), "the stream broke off after the first word");
    Ok(elapsed.as_secs_f64() * 1e3)
}
