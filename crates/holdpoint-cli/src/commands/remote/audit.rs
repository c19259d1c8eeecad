//! `holdpoint audit verify`: checks that the record of decisions is whole.

use anyhow::Result;
use console::style;
use holdpoint_core::text::visible;
use serde::Deserialize;

use crate::args::{AuditArgs, AuditTask};
use crate::commands::client::Client;
use crate::exit::Exit;

/// What a check of the chain found.
#[derive(Deserialize)]
struct Found {
    is_whole: bool,
    records: u64,
    head: Option<String>,
    broken_at: Option<u64>,
    #[serde(default)]
    written: u64,
}

/// Looks at the record.
///
/// # Errors
/// The server is not there, or refuses.
pub async fn audit(args: &AuditArgs) -> Result<Exit> {
    match args.task {
        AuditTask::Verify => verify(&Client::new(&args.server)?).await,
    }
}

async fn verify(client: &Client) -> Result<Exit> {
    let found: Found = client.get("/api/v1/audit/verify", &[]).await?;
    if !found.is_whole {
        let at = found.broken_at.map_or_else(|| "an unknown place".to_owned(), |at| format!("record {at}"));
        out!("{} the record is broken at {at}; {} records before it are whole", style("✗").red(), found.records);
        if found.broken_at == Some(found.records + 1) && found.records < found.written {
            out!("  {} records were written: what is gone was cut off at the end.", found.written);
        }
        return Ok(Exit::Failed);
    }
    out!("{} {} records, each following the one before it", style("✓").green(), found.records);
    if let Some(head) = found.head {
        out!("  head {}", visible(&head));
        out!("  Keep this elsewhere: later it shows whether the store was put back or rewritten.");
    }
    Ok(Exit::Done)
}
