//! Runs that are asked for at the same time are read together: one answer of the server for all of them.

use std::sync::Arc;
use std::time::Duration;

use holdpoint_core::ids::RunId;
use tokio::sync::oneshot;

use crate::together::{Company, Together, Turn};

/// How many are read together.
const GROUP_MAX: usize = 64;

/// Where those who read wait for each other; `R` is a run as it stands in the database.
pub(crate) struct Loads<R>(Arc<Together<Waiting<R>>>);

impl<R> Default for Loads<R> {
    fn default() -> Self {
        Self(Together::new(2, GROUP_MAX, Company::AsItComes))
    }
}

struct Waiting<R> {
    run: RunId,
    after: u64,
    answer: oneshot::Sender<Option<R>>,
}

impl<R: Send + 'static> Loads<R> {
    /// A run with its entries after a revision, read together with others by `read`, which answers for each in the same
    /// order; `None` where it could not be read so.
    pub(crate) async fn load<E, F>(
        &self,
        (run, after): (RunId, u64),
        patience: Duration,
        read: impl Fn(Vec<(RunId, u64)>) -> F + Send + 'static,
    ) -> Option<Option<R>>
    where
        E: Send + 'static,
        F: Future<Output = Result<Vec<Option<R>>, E>> + Send + 'static,
    {
        let (answer, answered) = oneshot::channel();
        if let Some(turn) = self.0.add(Waiting { run, after, answer }) {
            tokio::spawn(read_all(turn, patience, read));
        }
        answered.await.ok()
    }
}

async fn read_all<R, E, F>(mut turn: Turn<Waiting<R>>, patience: Duration, read: impl Fn(Vec<(RunId, u64)>) -> F)
where
    F: Future<Output = Result<Vec<Option<R>>, E>>,
{
    loop {
        let mut group = turn.take(|_, _| true);
        if group.is_empty() {
            return;
        }
        group.retain(|waiting| !waiting.answer.is_closed());
        let wanted = group.iter().map(|waiting| (waiting.run, waiting.after)).collect();
        // Whoever is not answered reads by itself, and is told why where that does not work either.
        if let Ok(Ok(found)) = tokio::time::timeout(patience, read(wanted)).await {
            for (waiting, found) in group.into_iter().zip(found) {
                let _ = waiting.answer.send(found);
            }
        }
    }
}
