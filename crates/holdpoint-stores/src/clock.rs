//! The clock of a store that several instances share is the database's, so that all go by one. Between two looks at it,
//! its time is worked out from how long ago the last look was, and never runs ahead of it: nothing is due early.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use holdpoint_core::time::Timestamp;
use holdpoint_runtime::ports::clock::Clock;

/// How long a look lasts. Clocks of two machines drift apart by less than a millisecond meanwhile.
const LOOK_LASTS: Duration = Duration::from_secs(10);

pub(crate) enum StoreClock {
    /// One that somebody else sets: for tests.
    Given(Arc<dyn Clock>),
    Database(Follower),
}

impl StoreClock {
    /// Now, as far as can be told without asking.
    pub(crate) fn now(&self) -> Timestamp {
        match self {
            Self::Given(clock) => clock.now(),
            Self::Database(follower) => Timestamp::from_millis(follower.millis_at(Instant::now())),
        }
    }

    /// What arbitrates a write that read this from the database under its locks.
    pub(crate) fn arbiter(&self, asked: Instant, millis: i64) -> Timestamp {
        match self {
            Self::Given(clock) => clock.now(),
            Self::Database(follower) => {
                follower.look(asked, Instant::now(), millis);
                Timestamp::from_millis(millis)
            }
        }
    }

    /// Whether the last look was long ago.
    pub(crate) fn is_stale(&self) -> bool {
        match self {
            Self::Given(_) => false,
            Self::Database(follower) => follower.is_stale(Instant::now()),
        }
    }
}

/// Follows a clock elsewhere by the time that passes here, whatever this machine takes the date to be.
pub(crate) struct Follower {
    began: Instant,
    /// What to add to the milliseconds since it began.
    ahead: AtomicI64,
    looked: Mutex<Instant>,
}

impl Follower {
    /// Follows a clock that showed `millis` at some time between `asked` and `answered`.
    pub(crate) fn new(asked: Instant, answered: Instant, millis: i64) -> Self {
        let follower = Self { began: asked, ahead: AtomicI64::new(0), looked: Mutex::new(answered) };
        follower.ahead.store(millis - follower.at_most_since_began(answered), Ordering::Relaxed);
        follower
    }

    fn since_began(&self, at: Instant) -> i64 {
        i64::try_from(at.saturating_duration_since(self.began).as_millis()).unwrap_or(i64::MAX)
    }

    /// The same, where a part of a millisecond counts as a whole one: what is worked out from it is never ahead.
    fn at_most_since_began(&self, at: Instant) -> i64 {
        let nanos = at.saturating_duration_since(self.began).as_nanos();
        i64::try_from(nanos.div_ceil(1_000_000)).unwrap_or(i64::MAX)
    }

    fn millis_at(&self, at: Instant) -> i64 {
        self.since_began(at).saturating_add(self.ahead.load(Ordering::Relaxed))
    }

    /// Takes note of another look. What was worked out stays where it fits; otherwise it is the least that fits.
    fn look(&self, asked: Instant, answered: Instant, millis: i64) {
        let (least, most) = (millis - self.at_most_since_began(answered), millis - self.since_began(asked));
        let ahead = self.ahead.load(Ordering::Relaxed);
        if !(least..=most).contains(&ahead) {
            self.ahead.store(least, Ordering::Relaxed);
        }
        *self.looked.lock().unwrap_or_else(PoisonError::into_inner) = answered;
    }

    fn is_stale(&self, now: Instant) -> bool {
        let looked = *self.looked.lock().unwrap_or_else(PoisonError::into_inner);
        now.saturating_duration_since(looked) >= LOOK_LASTS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn it_never_runs_ahead_of_the_clock_it_follows() {
        let began = Instant::now();
        // The clock showed 1000 somewhere in these 20 ms: at their end it shows 1000 at least.
        let follower = Follower::new(began, began + 20 * MS, 1_000);
        assert_eq!(follower.millis_at(began + 20 * MS), 1_000);
        assert_eq!(follower.millis_at(began + 70 * MS), 1_050);
        // A quicker look shows that it is later than was known.
        follower.look(began + 100 * MS, began + 102 * MS, 1_095);
        assert_eq!(follower.millis_at(began + 102 * MS), 1_095);
        // A slow one shows nothing new.
        follower.look(began + 200 * MS, began + 300 * MS, 1_240);
        assert_eq!(follower.millis_at(began + 300 * MS), 1_293);
    }

    #[test]
    fn it_follows_a_clock_that_is_set_back() {
        let began = Instant::now();
        let follower = Follower::new(began, began, 5_000);
        follower.look(began + 10 * MS, began + 11 * MS, 3_000);
        assert_eq!(follower.millis_at(began + 11 * MS), 3_000);
    }

    #[test]
    fn a_look_lasts_ten_seconds() {
        let began = Instant::now();
        let follower = Follower::new(began, began, 5_000);
        assert!(!follower.is_stale(began + LOOK_LASTS - MS));
        assert!(follower.is_stale(began + LOOK_LASTS));
        follower.look(began + LOOK_LASTS, began + LOOK_LASTS, 15_000);
        assert!(!follower.is_stale(began + LOOK_LASTS + MS));
    }
}
