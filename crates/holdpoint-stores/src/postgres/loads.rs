//! Runs that are asked for at the same time are read together: one answer of the server for all of them.

use std::sync::Arc;
use std::time::Instant;

use holdpoint_core::ids::RunId;
use tokio::sync::oneshot;

use super::columns;
use super::fault::Broken;
use super::group::Desk;
use super::load::{self, RawRun};
use crate::together::{Together, Turn};

/// How many are read together.
const GROUP_MAX: usize = 64;

/// Where those who read wait for each other.
pub(super) struct Loads(Arc<Together<Waiting>>);

impl Default for Loads {
    fn default() -> Self {
        Self(Together::new(2, GROUP_MAX))
    }
}

struct Waiting {
    run: RunId,
    after: u64,
    answer: oneshot::Sender<Option<RawRun>>,
}

impl Loads {
    /// A run with its entries after a revision, read together with others; `None` where it could not be read so.
    pub(super) async fn load(&self, run: RunId, after: u64, desk: &Desk) -> Option<Option<RawRun>> {
        let (answer, answered) = oneshot::channel();
        if let Some(turn) = self.0.add(Waiting { run, after, answer }) {
            tokio::spawn(read_all(turn, desk.clone()));
        }
        answered.await.ok()
    }
}

async fn read_all(mut turn: Turn<Waiting>, desk: Desk) {
    loop {
        let mut group = turn.take(|_, _| true);
        if group.is_empty() {
            return;
        }
        group.retain(|waiting| !waiting.answer.is_closed());
        // Whoever is not answered reads by itself, and is told why where that does not work either.
        if let Ok(Ok(found)) = tokio::time::timeout(desk.patience, read(&group, &desk)).await {
            for (waiting, found) in group.into_iter().zip(found) {
                let _ = waiting.answer.send(found);
            }
        }
    }
}

async fn read(group: &[Waiting], desk: &Desk) -> Result<Vec<Option<RawRun>>, Broken> {
    let connection = desk.pools.reader().await?;
    if desk.clock.is_stale() {
        let asked = Instant::now();
        if let Some(row) = connection.query_opt(columns::CLOCK, &[]).await? {
            desk.clock.arbiter(asked, columns::get(&row, 0)?);
        }
    }
    let now = desk.clock.now();
    let found = match group {
        [one] => vec![load::run(&connection, one.run, one.after, now).await?],
        _ => {
            let wanted: Vec<(RunId, u64)> = group.iter().map(|waiting| (waiting.run, waiting.after)).collect();
            load::runs(&connection, &wanted, now).await?
        }
    };
    connection.give_back();
    Ok(found)
}
