//! `holdpoint ready`: whether a running server can do its work, for health checks that have no shell and no curl.

use anyhow::Result;
use holdpoint_core::text::visible;
use serde::Deserialize;

use crate::args::ReadyArgs;
use crate::commands::client::Client;
use crate::exit::Exit;

#[derive(Deserialize)]
struct Ready {
    instance: String,
    store: Store,
}

#[derive(Deserialize)]
struct Store {
    name: String,
    settings: String,
}

/// Asks the server.
///
/// # Errors
/// The server is not there, or says that it is not ready.
pub async fn ready(args: &ReadyArgs) -> Result<Exit> {
    let client = Client::new(&args.server)?;
    let ready: Ready = client.get("/readyz", &[]).await?;
    let line = |text: &str| visible(text).replace('\n', " ");
    out!("ready: {}, {} ({})", line(&ready.instance), line(&ready.store.name), line(&ready.store.settings));
    Ok(Exit::Done)
}
