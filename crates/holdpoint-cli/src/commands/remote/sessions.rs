//! `holdpoint sessions`: the conversations of a running server, newest first.

use anyhow::Result;
use holdpoint_core::text::visible;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::args::SessionsArgs;
use crate::commands::client::Client;
use crate::exit::Exit;
use crate::render;

#[derive(Deserialize)]
struct Page {
    sessions: Vec<Map<String, Value>>,
}

/// Lists sessions.
///
/// # Errors
/// The server is not there, or refuses.
pub async fn sessions(args: &SessionsArgs) -> Result<Exit> {
    let client = Client::new(&args.server)?;
    let page: Page = client.get("/api/v1/sessions", &[("limit", args.limit.to_string())]).await?;
    if args.json {
        for session in &page.sessions {
            out!("{}", serde_json::to_string(session)?);
        }
        return Ok(Exit::Done);
    }
    if page.sessions.is_empty() {
        render::note("There are no sessions yet.");
    }
    for session in &page.sessions {
        let text = |name: &str| match session.get(name) {
            Some(Value::String(text)) => visible(text),
            Some(Value::Null) | None => "-".to_owned(),
            Some(other) => visible(&other.to_string()),
        };
        out!("{}  {}  {} runs  of {}", text("last_at"), text("session_id"), text("runs"), text("owner"));
    }
    Ok(Exit::Done)
}
