//! Sessions that need not be kept any more are removed now and then. Every instance does it at its own time; several at
//! once only share the work.

use std::time::Duration;

use crate::app::App;

/// How many sessions are removed before others get their turn.
const AT_ONCE: usize = 100;

/// How long sessions are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// How long after the last thing that happened in them.
    pub keep: Duration,
    /// How often it is looked for those that need not be kept any more.
    pub sweep: Duration,
}

/// Removes old sessions until the server stops.
pub(crate) async fn sweep(app: App, retention: Retention) {
    let stop = app.stopping();
    // Instances that start together do not look together.
    let mut wait = retention.sweep.mul_f64(f64::from(uuid::Uuid::now_v7().as_bytes()[15]) / 256.0);
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(wait) => {}
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = remove_all(&app, retention.keep) => {}
        }
        wait = retention.sweep;
    }
}

/// Removes everything that is old enough, a few at a time. What cannot be removed now is old enough the next time too.
async fn remove_all(app: &App, keep: Duration) {
    let mut removed = 0;
    loop {
        match app.runtime().remove_old(keep, AT_ONCE).await {
            Ok(0) => break,
            Ok(some) => removed += some,
            Err(error) => {
                tracing::warn!(%error, "old sessions could not be removed; it is tried again later");
                break;
            }
        }
    }
    match removed {
        0 => tracing::debug!("looked for old sessions: there are none"),
        _ => tracing::info!(sessions = removed, "old sessions were removed"),
    }
}
