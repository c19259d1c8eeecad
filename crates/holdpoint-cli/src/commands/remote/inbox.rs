//! `holdpoint inbox`: what waits on a running server, answered one after the other.

use std::io::IsTerminal as _;

use anyhow::Result;

use super::decide::{Body, send};
use super::pause::{Page, Pause};
use crate::args::InboxArgs;
use crate::asked::Asked;
use crate::commands::client::Client;
use crate::exit::Exit;
use crate::prompt::{self, Said};
use crate::render;

/// How many pauses a page has.
const PAGE: usize = 50;

/// Shows what waits, and asks about it where somebody is there to answer.
///
/// # Errors
/// The server is not there, or refuses.
pub async fn inbox(args: &InboxArgs) -> Result<Exit> {
    let client = Client::new(&args.server)?;
    let is_terminal = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
    let (mut cursor, mut seen) = (None, 0_usize);
    loop {
        let page = page(&client, args, cursor).await?;
        for pause in &page.pauses {
            seen += 1;
            if args.json || !is_terminal {
                out!("{}", serde_json::to_string(pause)?);
            } else if !answer(&client, pause).await? {
                return Ok(Exit::Interrupted);
            }
        }
        cursor = page.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    if seen == 0 {
        render::note("Nothing waits for a person.");
    }
    Ok(Exit::Done)
}

async fn page(client: &Client, args: &InboxArgs, cursor: Option<String>) -> Result<Page> {
    let mut query = vec![("status", "open".to_owned()), ("limit", PAGE.to_string())];
    query.extend(args.agent.clone().map(|agent| ("agent", agent)));
    query.extend(cursor.map(|cursor| ("cursor", cursor)));
    client.get("/api/v1/pauses", &query).await
}

/// Asks about one pause; says whether to go on.
async fn answer(client: &Client, pause: &Pause) -> Result<bool> {
    if pause.unreadable {
        let (id, run) = (render::line(&pause.id), render::line(&pause.run_id));
        render::complain(&format!("{id} cannot be answered: what the server has stored of {run} cannot be read"));
        return Ok(true);
    }
    let asked = pause.asked()?;
    render::pause(&asked);
    loop {
        let question: Asked = asked.clone();
        let said = tokio::task::spawn_blocking(move || prompt::ask(&question, None)).await??;
        let body = match said {
            Said::Decide(decision) => Body::of(decision),
            Said::Always(decision) => Body::of(decision).always(),
            Said::Later => return Ok(true),
            Said::Stop => return Ok(false),
        };
        match send(client, &pause.id, &body.seeing(asked.digest())).await {
            Ok(pause) => {
                render::note(&format!("{} is {}", render::line(&pause.id), render::line(&pause.status)));
                return Ok(true);
            }
            Err(error) => {
                render::complain(&render::chain(&error));
                let now: Result<Pause> = client.get(&format!("/api/v1/pauses/{}", pause.id), &[]).await;
                // Somebody was faster, or its time is up: there is nothing left to ask.
                if now.map_or(true, |now| now.status != "open") {
                    return Ok(true);
                }
            }
        }
    }
}
