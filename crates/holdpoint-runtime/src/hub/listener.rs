//! One listener to a session: a queue that is empty, and takes up nothing, until something happens. Many listen for long
//! to sessions in which nothing does.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use holdpoint_core::ids::SessionId;
use tokio::sync::Notify;

use super::{Hub, Live};

/// What a listener has not heard yet.
#[derive(Default)]
pub(super) struct Queue {
    unheard: Mutex<Unheard>,
    more: Notify,
}

#[derive(Default)]
struct Unheard {
    told: VecDeque<Arc<Live>>,
    has_lagged: bool,
}

/// Something was told and is gone: the listener reads the store.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Lagged;

/// Hears what is told about a session, as long as it lives.
pub(crate) struct Listener {
    hub: Arc<Hub>,
    session: SessionId,
    queue: Arc<Queue>,
}

impl Queue {
    /// Adds something; of more than `most` the oldest is lost.
    pub(super) fn push(&self, live: Arc<Live>, most: usize) {
        let mut unheard = self.lock();
        if unheard.told.len() >= most {
            unheard.told.pop_front();
            unheard.has_lagged = true;
        }
        unheard.told.push_back(live);
        drop(unheard);
        self.more.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, Unheard> {
        self.unheard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Listener {
    pub(super) fn new(hub: Arc<Hub>, session: SessionId, queue: Arc<Queue>) -> Self {
        Self { hub, session, queue }
    }

    /// The next thing that is told; waits for it. Nothing is lost by a caller that stops waiting.
    pub(crate) async fn recv(&mut self) -> Result<Live, Lagged> {
        loop {
            if std::mem::take(&mut self.queue.lock().has_lagged) {
                return Err(Lagged);
            }
            if let Some(live) = self.try_recv() {
                return Ok(live);
            }
            self.queue.more.notified().await;
        }
    }

    /// What was told and not heard yet; never waits.
    pub(crate) fn try_recv(&mut self) -> Option<Live> {
        let mut unheard = self.queue.lock();
        let live = unheard.told.pop_front();
        if unheard.told.is_empty() {
            // Whoever has heard all of it may hear nothing for long.
            unheard.told = VecDeque::new();
        }
        drop(unheard);
        live.map(Arc::unwrap_or_clone)
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.hub.forget(&self.session, &self.queue);
    }
}

#[cfg(test)]
mod tests {
    use holdpoint_core::ids::{FramePath, RunId};

    use super::*;
    use crate::ports::model::Delta;

    fn said(text: &str) -> Live {
        let run: RunId = "run_0198c0ffee007000800000000000beef".parse().unwrap();
        Live::Delta { run, frame: FramePath::root(), delta: Delta::Text(text.to_owned()) }
    }

    fn text(live: Live) -> String {
        match live {
            Live::Delta { delta: Delta::Text(text), .. } => text,
            other => panic!("words expected: {other:?}"),
        }
    }

    #[tokio::test]
    async fn each_listener_hears_everything_once_and_one_that_is_gone_is_forgotten() {
        let hub = Arc::<Hub>::default();
        let session = SessionId::new("s").unwrap();
        let (mut one, mut other) = (hub.listen(&session), hub.listen(&session));
        hub.tell(&session, || said("a"));
        hub.tell(&SessionId::new("t").unwrap(), || panic!("nobody listens there"));
        drop(hub.listen(&session));
        hub.tell(&session, || said("b"));
        for listener in [&mut one, &mut other] {
            assert_eq!(text(listener.recv().await.unwrap()), "a");
            assert_eq!(text(listener.try_recv().unwrap()), "b");
            assert!(listener.try_recv().is_none());
        }
        drop((one, other));
        hub.tell(&session, || panic!("nobody listens any more"));
    }

    #[tokio::test]
    async fn a_listener_that_lags_is_told_so_once_and_loses_the_oldest() {
        let hub = Arc::<Hub>::default();
        let session = SessionId::new("s").unwrap();
        let mut listener = hub.listen(&session);
        for number in 0..=super::super::LAG_MAX {
            hub.tell(&session, || said(&number.to_string()));
        }
        assert_eq!(listener.recv().await.unwrap_err(), Lagged);
        assert_eq!(text(listener.recv().await.unwrap()), "1");
    }

    #[tokio::test]
    async fn who_waits_is_woken() {
        let hub = Arc::<Hub>::default();
        let session = SessionId::new("s").unwrap();
        let mut listener = hub.listen(&session);
        let heard = tokio::spawn(async move { text(listener.recv().await.unwrap()) });
        tokio::task::yield_now().await;
        hub.tell(&session, || said("a"));
        assert_eq!(heard.await.unwrap(), "a");
    }
}
