//! `holdpoint sessions prune`: removes old sessions from the store that is configured, beside a server or without one.

use anyhow::{Context as _, Result};
use holdpoint_core::time::Timestamp;
use holdpoint_runtime::ports::store::{PAGE_MAX, RunFilter, RunStatus, SessionFilter, SessionRow, Store, StoreFault};

use crate::args::{PruneArgs, Settings};
use crate::exit::Exit;
use crate::{render, store, world};

/// How many sessions are removed before others get their turn.
const AT_ONCE: usize = 100;

/// Removes old sessions, or says how many there are.
///
/// # Errors
/// The settings are wrong, or the store does not do its work.
pub async fn run(args: &PruneArgs, settings: &Settings) -> Result<Exit> {
    let config = world::config(settings)?;
    let store = store::open(&config.store).await?;
    let age = i64::try_from(args.older_than.as_millis()).unwrap_or(i64::MAX);
    let before = Timestamp::from_millis(store.now().as_millis().saturating_sub(age));
    let broken =
        || format!("the store {} stopped half-way: what was removed until then was removed whole", config.store);
    let count = match args.dry_run {
        true => count(&*store, before).await.with_context(|| format!("the store {}", config.store))?,
        false => remove(&*store, before).await.with_context(broken)?,
    };
    let sessions = if count == 1 { "session" } else { "sessions" };
    match args.dry_run {
        true => out!("{count} {sessions} would be removed: nothing has happened there since {before}"),
        false => {
            out!("{count} {sessions} removed: nothing had happened there since {before}");
            render::note("The record of decisions stays as it is: see `holdpoint audit verify`.");
        }
    }
    Ok(Exit::Done)
}

async fn remove(store: &dyn Store, before: Timestamp) -> Result<u64, StoreFault> {
    let mut removed = 0;
    loop {
        match store.remove_old(before, AT_ONCE).await? {
            0 => return Ok(removed),
            some => removed += some,
        }
    }
}

/// How many sessions could be removed.
async fn count(store: &dyn Store, before: Timestamp) -> Result<u64, StoreFault> {
    let mut filter = SessionFilter { limit: PAGE_MAX, ..SessionFilter::default() };
    let mut count = 0;
    loop {
        let page = store.list_sessions(&filter).await?;
        let Some(last) = page.last() else { return Ok(count) };
        filter.after = Some(last.session.clone());
        for row in page.iter().filter(|row| row.last_at < before) {
            count += u64::from(is_over(store, row).await?);
        }
    }
}

/// Whether all runs of a session are over.
async fn is_over(store: &dyn Store, row: &SessionRow) -> Result<bool, StoreFault> {
    for status in [RunStatus::Working, RunStatus::Waiting] {
        let session = Some(row.session.clone());
        let filter = RunFilter { session, status: Some(status), limit: 1, ..RunFilter::default() };
        if !store.list_runs(&filter).await?.is_empty() {
            return Ok(false);
        }
    }
    Ok(true)
}
