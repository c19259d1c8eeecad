//! A clock that stands still until a test moves it. Whoever sleeps by it wakes when its time has come, never before.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use futures_util::future::BoxFuture;
use holdpoint_core::time::Timestamp;
use holdpoint_runtime::ports::clock::Clock;
use tokio::sync::{Notify, oneshot};

/// A clock for tests. Its clones show the same time.
///
/// ```
/// use std::time::Duration;
/// use holdpoint_runtime::ports::clock::Clock;
/// use holdpoint_testkit::clock::TestClock;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let clock = TestClock::default();
/// let start = clock.now();
/// let nap = tokio::spawn(clock.sleep(Duration::from_secs(60)));
/// clock.wait_for_sleepers(1).await;
/// clock.advance(Duration::from_secs(60));
/// nap.await.unwrap();
/// assert_eq!(clock.now().since(start), Duration::from_secs(60));
/// # }
/// ```
#[derive(Clone)]
pub struct TestClock {
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    fell_asleep: Notify,
}

struct State {
    now: Timestamp,
    asleep_so_far: u64,
    /// By the time to wake at, then in the order in which they fell asleep.
    sleepers: BTreeMap<(Timestamp, u64), oneshot::Sender<()>>,
}

impl TestClock {
    /// A clock that shows `now`.
    pub fn at(now: Timestamp) -> Self {
        let state = Mutex::new(State { now, asleep_so_far: 0, sleepers: BTreeMap::new() });
        Self { shared: Arc::new(Shared { state, fell_asleep: Notify::new() }) }
    }

    /// The clock as the runtime takes it.
    pub fn shared(&self) -> Arc<dyn Clock> {
        Arc::new(self.clone())
    }

    /// The time that it shows.
    pub fn now(&self) -> Timestamp {
        self.state().now
    }

    /// Moves on by `duration` and wakes whose time has come, earliest first.
    pub fn advance(&self, duration: Duration) {
        let until = self.now().after(duration);
        self.set(until);
    }

    /// Shows another time, forwards or back, and wakes whose time has come, earliest first.
    pub fn set(&self, now: Timestamp) {
        let mut state = self.state();
        state.now = now;
        while let Some(sleeper) = state.sleepers.first_entry().filter(|sleeper| sleeper.key().0 <= now) {
            // A sleeper that gave up has nobody to wake.
            sleeper.remove().send(()).ok();
        }
    }

    /// How many sleep.
    pub fn sleepers(&self) -> usize {
        self.state().sleeping()
    }

    /// When the next sleeper wakes.
    pub fn next_wake(&self) -> Option<Timestamp> {
        let mut state = self.state();
        state.sleeping();
        state.sleepers.keys().next().map(|(wake_at, _)| *wake_at)
    }

    /// Ends when at least `count` sleep: then whoever is under test has done what it can do without time passing.
    pub async fn wait_for_sleepers(&self, count: usize) {
        loop {
            let changed = self.shared.fell_asleep.notified();
            if self.sleepers() >= count {
                return;
            }
            changed.await;
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().expect("nothing panics while it holds the clock")
    }
}

impl Default for TestClock {
    /// A clock that shows an ordinary moment.
    fn default() -> Self {
        Self::at(Timestamp::from_millis(1_794_735_000_000))
    }
}

impl State {
    fn sleeping(&mut self) -> usize {
        self.sleepers.retain(|_, sleeper| !sleeper.is_closed());
        self.sleepers.len()
    }
}

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        TestClock::now(self)
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        let clock = self.clone();
        // The time counts from the call, as with a real clock, but whoever is never polled does not sleep.
        let wake_at = self.now().after(duration);
        Box::pin(async move {
            let Some(woken) = clock.fall_asleep(wake_at) else { return };
            // The sender lives in the clock, which this future holds.
            woken.await.ok();
        })
    }
}

impl TestClock {
    fn fall_asleep(&self, wake_at: Timestamp) -> Option<oneshot::Receiver<()>> {
        let mut state = self.state();
        if wake_at <= state.now {
            return None;
        }
        let (sleeper, woken) = oneshot::channel();
        state.asleep_so_far += 1;
        let place = (wake_at, state.asleep_so_far);
        state.sleepers.insert(place, sleeper);
        drop(state);
        self.shared.fell_asleep.notify_waiters();
        Some(woken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::mpsc;

    #[tokio::test]
    async fn sleepers_wake_in_the_order_of_their_time() {
        let clock = TestClock::default();
        let (woke, mut order) = mpsc::unbounded_channel();
        for seconds in [30, 10, 20] {
            let (nap, woke) = (clock.sleep(Duration::from_secs(seconds)), woke.clone());
            tokio::spawn(async move {
                nap.await;
                woke.send(seconds).unwrap();
            });
        }
        clock.wait_for_sleepers(3).await;
        clock.advance(Duration::from_secs(25));
        assert_eq!([order.recv().await, order.recv().await], [Some(10), Some(20)]);
        assert_eq!(clock.sleepers(), 1);
        assert!(order.try_recv().is_err());
        clock.advance(Duration::from_secs(5));
        assert_eq!(order.recv().await, Some(30));
    }

    #[tokio::test]
    async fn nobody_wakes_a_millisecond_early() {
        let clock = TestClock::default();
        let mut nap = clock.sleep(Duration::from_millis(1_000));
        assert!(futures_util::poll!(&mut nap).is_pending());
        clock.advance(Duration::from_millis(999));
        assert!(futures_util::poll!(&mut nap).is_pending());
        clock.advance(Duration::from_millis(1));
        assert!(futures_util::poll!(&mut nap).is_ready());
    }

    #[tokio::test]
    async fn a_sleeper_that_gave_up_is_forgotten() {
        let clock = TestClock::default();
        let mut nap = clock.sleep(Duration::from_secs(1));
        assert!(futures_util::poll!(&mut nap).is_pending());
        assert_eq!((clock.sleepers(), clock.next_wake().is_some()), (1, true));
        drop(nap);
        assert_eq!((clock.sleepers(), clock.next_wake()), (0, None));
    }

    #[tokio::test]
    async fn no_time_at_all_is_over_at_once() {
        let clock = TestClock::default();
        clock.sleep(Duration::ZERO).await;
        clock.set(Timestamp::from_millis(5));
        assert_eq!(clock.now(), Timestamp::from_millis(5));
    }
}
