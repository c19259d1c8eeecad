//! One attempt at one notice: read the run, tell, write down what came of it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use holdpoint_core::event::RunEvent;
use holdpoint_core::ids::PauseId;
use holdpoint_core::pause::PauseView;
use holdpoint_core::record::Entry;
use holdpoint_core::run::Run;
use holdpoint_core::text::{clamp, visible};
use tokio_util::task::AbortOnDropHandle;

use crate::notices::backoff::{self, ATTEMPTS_MAX};
use crate::ports::notifier::{Delivery, Notice, NoticeKey, Notifier};
use crate::ports::observer::{AttemptEnd, NoticeAttempted};
use crate::ports::store::{NOTICE_WHY_BYTES_MAX, NoticeOutcome, NoticeRow, NoticeState, StoreFault};
use crate::runtime::Runtime;

/// What every attempt needs.
#[derive(Clone)]
pub(super) struct Desk {
    pub(super) runtime: Runtime,
    /// How long others leave an attempt alone.
    pub(super) hold: Duration,
}

impl Desk {
    /// Makes the attempt that was claimed, and writes down what came of it.
    pub(super) async fn attempt(self, notifier: Arc<dyn Notifier>, row: NoticeRow) -> (NoticeKey, AttemptEnd) {
        let begun = Instant::now();
        let delivery = if row.attempts > ATTEMPTS_MAX {
            Delivery::GaveUp { why: "no attempt came to an end; the last ones died with their process".to_owned() }
        } else {
            self.deliver(notifier, &row).await
        };
        let (outcome, end, why) = self.outcome(&row, delivery);
        let end = match self.runtime.store().settle_notice(&row.key, row.attempts, outcome).await {
            Ok(true) => end,
            Ok(false) => AttemptEnd::Late,
            Err(error) => {
                // Due again when the hold is over.
                tracing::warn!(notice = %row.key, %error, "what came of a notice could not be written down");
                AttemptEnd::Late
            }
        };
        tell_operators(&row, end, why.as_deref());
        let (key, attempt, duration) = (&row.key, row.attempts, begun.elapsed());
        self.runtime.observe(|observer| observer.notice_attempted(&NoticeAttempted { key, attempt, end, duration }));
        (row.key, end)
    }

    /// Tells. In a task of its own, so that a notifier that panics, blocks or hangs takes nothing with it.
    async fn deliver(&self, notifier: Arc<dyn Notifier>, row: &NoticeRow) -> Delivery {
        let retry = |why: &str| Delivery::Retry { after: None, why: why.to_owned() };
        let (runtime, row) = (self.runtime.clone(), row.clone());
        let telling = AbortOnDropHandle::new(tokio::spawn(async move {
            match read(&runtime, &row).await {
                Ok(Some(notice)) => notifier.deliver(&notice).await,
                Ok(None) => Delivery::GaveUp { why: "the run or the pause is not there".to_owned() },
                Err(fault) => Delivery::Retry { after: None, why: format!("the run could not be read: {fault}") },
            }
        }));
        tokio::select! {
            told = telling => told.unwrap_or_else(|_| retry("the notifier panicked")),
            // Before anybody else may take it.
            () = self.runtime.clock().sleep(self.hold.mul_f64(0.75)) => retry("the notifier took too long"),
        }
    }

    fn outcome(&self, row: &NoticeRow, delivery: Delivery) -> (NoticeOutcome, AttemptEnd, Option<String>) {
        match delivery {
            Delivery::Delivered { receipt } => (NoticeOutcome::Delivered { receipt }, AttemptEnd::Delivered, None),
            Delivery::Retry { after, why } if row.attempts < ATTEMPTS_MAX => {
                let due = self.runtime.store().now().after(backoff::wait(&row.key, row.attempts, after));
                (NoticeOutcome::Retry(due), AttemptEnd::Retried, Some(line(&why)))
            }
            Delivery::Retry { why, .. } | Delivery::GaveUp { why } => {
                let why = line(&why);
                (NoticeOutcome::Failed { why: why.clone() }, AttemptEnd::Failed, Some(why))
            }
        }
    }
}

/// What is told, as it stands now; `None` where the store has nothing of it.
async fn read(runtime: &Runtime, row: &NoticeRow) -> Result<Option<Notice>, StoreFault> {
    let (store, id) = (runtime.store(), row.key.pause);
    let Some(loaded) = store.load(id.run, 0).await? else { return Ok(None) };
    let Some((run, pause)) = as_shown(id, &loaded.entries) else { return Ok(None) };
    let receipt = match row.key.opened() {
        Some(opened) => match store.notice(&opened).await?.map(|row| row.state) {
            Some(NoticeState::Delivered { receipt }) => receipt,
            Some(NoticeState::Waiting | NoticeState::Failed { .. }) | None => None,
        },
        None => None,
    };
    let pause_key = format!("{}_{}", loaded.session, group(&loaded.entries, id.number));
    let (key, attempt, at) = (row.key.clone(), row.attempts, store.now());
    Ok(Some(Notice { key, attempt, at, run: Arc::new(run), pause, pause_key, receipt }))
}

/// The run as it stands, and the pause as it was asked, standing as it does now: what a call was to run with is part of
/// the run only as long as its turn lasts.
fn as_shown(id: PauseId, entries: &[Entry]) -> Option<(Run, PauseView)> {
    let (mut run, mut asked) = (Run::new(id.run), None);
    for (event, at) in entries.iter().flat_map(Entry::timed) {
        run.apply(event, at);
        if matches!(event, RunEvent::PauseOpened(opened) if opened.number == id.number) {
            asked = run.pause_view(id);
        }
    }
    let pause = run.pause(id).ok()?.clone();
    Some((run, PauseView { pause, ..asked? }))
}

/// The number that pauses opened together share.
fn group(entries: &[Entry], number: u32) -> u64 {
    let opens = |event: &RunEvent| matches!(event, RunEvent::PauseOpened(opened) if opened.number == number);
    let opening = entries.iter().find(|entry| entry.events.iter().any(opens));
    opening.and_then(|entry| entry.pause_group).unwrap_or_default()
}

/// A reason as one line of a log, whatever is in it.
fn line(why: &str) -> String {
    visible(clamp(why, NOTICE_WHY_BYTES_MAX)).replace(['\n', '\t'], " ")
}

fn tell_operators(row: &NoticeRow, end: AttemptEnd, why: Option<&str>) {
    let (notice, attempt) = (&row.key, row.attempts);
    match end {
        AttemptEnd::Delivered => tracing::debug!(%notice, attempt, "a notice was delivered"),
        AttemptEnd::Retried => tracing::info!(%notice, attempt, why, "a notice was not delivered; it is tried again"),
        AttemptEnd::Failed => tracing::warn!(%notice, attempt, why, "a notice was given up"),
        AttemptEnd::Late => tracing::info!(%notice, attempt, why, "an attempt at a notice counts for nothing"),
    }
}
