//! What is written down to be told, and the time that passes until it was.

use std::time::{Duration, Instant};

use holdpoint_runtime::Runtime;
use holdpoint_runtime::ports::notifier::NoticeKey;
use holdpoint_runtime::ports::store::{NoticeFilter, NoticeRow, NoticeState};
use holdpoint_testkit::clock::TestClock;

const PATIENCE: Duration = Duration::from_secs(90);

/// How long time stands still for what is done at once.
const AT_ONCE: Duration = Duration::from_millis(500);

/// An attempt that was just begun is due again after a minute; whatever is due before this waits for its next one.
const SOON: Duration = Duration::from_secs(45);

/// What a server has to tell.
pub struct Outbox<'w> {
    pub runtime: &'w Runtime,
    pub clock: &'w TestClock,
}

impl Outbox<'_> {
    pub async fn all(&self) -> Vec<NoticeRow> {
        self.runtime.store().list_notices(&NoticeFilter::default()).await.unwrap()
    }

    /// What `find` sees at last. Time passes as far as it must for what waits.
    pub async fn until<T>(&self, what: &str, mut find: impl FnMut() -> Option<T>) -> T {
        let begin = Instant::now();
        loop {
            if let Some(found) = find() {
                return found;
            }
            self.pass_time(what, begin).await;
        }
    }

    /// The notice once it fits. Time passes as far as it must for what waits.
    pub async fn notice_when(&self, key: &NoticeKey, fits: impl Fn(&NoticeRow) -> bool) -> NoticeRow {
        let begin = Instant::now();
        loop {
            let notice = self.runtime.store().notice(key).await.unwrap();
            if let Some(notice) = notice.filter(|notice| fits(notice)) {
                return notice;
            }
            self.pass_time("the notice that fits", begin).await;
        }
    }

    /// Ends when nothing is left to be told. Time passes as far as it must for what waits.
    pub async fn all_told(&self) {
        let begin = Instant::now();
        while self.all().await.iter().any(|notice| notice.state == NoticeState::Waiting) {
            self.pass_time("the end of what is to be told", begin).await;
        }
    }

    /// A second, where something is due soon. By a clock that jumps, an attempt that is under way looks like one that died, and
    /// is made again; and whoever moves a run meanwhile loses it. So time passes slowly.
    async fn pass_time(&self, what: &str, begin: Instant) {
        let notices = self.all().await;
        assert!(begin.elapsed() < PATIENCE, "{what} never came: {notices:#?}");
        let soon = self.clock.now().after(SOON);
        let is_waiting = notices.iter().any(|notice| notice.state == NoticeState::Waiting && notice.at <= soon);
        if is_waiting && begin.elapsed() > AT_ONCE {
            self.clock.advance(Duration::from_secs(1));
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
