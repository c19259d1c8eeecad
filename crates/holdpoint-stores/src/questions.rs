//! What is asked at the same time is asked together: one answer of the server for all of it.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;

use crate::together::{Together, Turn};

/// How many questions are asked together.
const GROUP_MAX: usize = 64;

/// Where those who ask wait for each other.
pub(crate) struct Questions<Q, A>(Arc<Together<Waiting<Q, A>>>);

impl<Q, A> Default for Questions<Q, A> {
    fn default() -> Self {
        Self(Together::new(GROUP_MAX))
    }
}

struct Waiting<Q, A> {
    question: Q,
    answer: oneshot::Sender<A>,
}

impl<Q: Send + 'static, A: Send + 'static> Questions<Q, A> {
    /// The answer to a question, which is asked together with others by `ask`: that answers each in the same order. `None`
    /// where it could not be asked so.
    pub(crate) async fn ask<E, F>(
        &self,
        question: Q,
        patience: Duration,
        ask: impl Fn(Vec<Q>) -> F + Send + 'static,
    ) -> Option<A>
    where
        E: Send + 'static,
        F: Future<Output = Result<Vec<A>, E>> + Send + 'static,
    {
        let (answer, answered) = oneshot::channel();
        if let Some(turn) = self.0.add(Waiting { question, answer }) {
            tokio::spawn(ask_all(turn, patience, ask));
        }
        answered.await.ok()
    }
}

async fn ask_all<Q, A, E, F>(mut turn: Turn<Waiting<Q, A>>, patience: Duration, ask: impl Fn(Vec<Q>) -> F)
where
    F: Future<Output = Result<Vec<A>, E>>,
{
    loop {
        let mut group = turn.take(|_, _| true).await;
        if group.is_empty() {
            return;
        }
        group.retain(|waiting| !waiting.answer.is_closed());
        let (questions, waiting): (Vec<Q>, Vec<_>) =
            group.into_iter().map(|waiting| (waiting.question, waiting.answer)).unzip();
        // Whoever is not answered asks by itself, and is told why where that does not work either.
        if let Ok(Ok(found)) = tokio::time::timeout(patience, ask(questions)).await {
            for (answer, found) in waiting.into_iter().zip(found) {
                let _ = answer.send(found);
            }
        }
    }
}
