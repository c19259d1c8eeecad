//! One destination's share of the outbox, worked off beside all others.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::notices::attempt::Desk;
use crate::ports::notifier::{Destination, NoticeKey, Notifier};
use crate::ports::observer::{AttemptEnd, Change, PauseChange};
use crate::ports::store::{NoticeRow, StoreFault};

/// How long a stop waits for attempts that are under way.
const STOP_GRACE: Duration = Duration::from_secs(5);

pub(super) struct Lane {
    pub(super) desk: Desk,
    pub(super) destination: Destination,
    pub(super) notifier: Arc<dyn Notifier>,
    pub(super) parallel_max: usize,
    pub(super) poll: Duration,
}

/// Attempts that were begun here.
type UnderWay = JoinSet<(NoticeKey, AttemptEnd)>;

impl Lane {
    /// Works off what is due, until nothing is: the end of a pause can be told as soon as its opening was.
    pub(super) async fn sweep(&self) -> Result<Vec<(NoticeKey, AttemptEnd)>, StoreFault> {
        let (mut under_way, mut ended) = (UnderWay::new(), Vec::new());
        loop {
            let claimed = self.claim(self.parallel_max).await?;
            if claimed.is_empty() {
                return Ok(ended);
            }
            self.begin(claimed, &mut under_way);
            while let Some(attempted) = under_way.join_next().await {
                ended.extend(attempted.ok());
            }
        }
    }

    /// Works until it is stopped.
    pub(super) async fn run(self, stop: CancellationToken) {
        // Before the first look, so that nothing is committed in between unheard.
        let mut news = self.desk.runtime.hub().listen_to_pauses();
        let mut under_way = UnderWay::new();
        while !stop.is_cancelled() {
            let room = self.parallel_max - under_way.len();
            match self.claim(room).await {
                Ok(claimed) => self.begin(claimed, &mut under_way),
                Err(error) => {
                    tracing::warn!(destination = %self.destination, %error, "the outbox could not be read");
                }
            }
            tokio::select! {
                () = stop.cancelled() => {}
                Some(_) = under_way.join_next() => {}
                () = heard(&mut news), if under_way.len() < self.parallel_max => {}
                () = self.desk.runtime.clock().sleep(self.poll) => {}
            }
        }
        tokio::select! {
            () = async { while under_way.join_next().await.is_some() {} } => {}
            () = self.desk.runtime.clock().sleep(STOP_GRACE) => {}
        }
    }

    async fn claim(&self, room: usize) -> Result<Vec<NoticeRow>, StoreFault> {
        if room == 0 {
            return Ok(Vec::new());
        }
        let destination = std::slice::from_ref(&self.destination);
        self.desk.runtime.store().claim_notices(destination, room, self.desk.hold).await
    }

    fn begin(&self, claimed: Vec<NoticeRow>, under_way: &mut UnderWay) {
        for row in claimed {
            under_way.spawn(self.desk.clone().attempt(self.notifier.clone(), row));
        }
    }
}

/// Ends when pauses opened or ended in this process since it was asked last.
async fn heard(news: &mut broadcast::Receiver<PauseChange>) {
    loop {
        match news.recv().await {
            Ok(PauseChange { change: Change::Voted, .. }) => {}
            Ok(_) | Err(RecvError::Lagged(_)) => break,
            Err(RecvError::Closed) => return std::future::pending().await,
        }
    }
    // One look at the outbox finds them all.
    *news = news.resubscribe();
}
