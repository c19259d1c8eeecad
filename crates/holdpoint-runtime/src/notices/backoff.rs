//! When an attempt that did not work is made again: twice as long after each, and not all at the same moment.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use crate::ports::notifier::NoticeKey;

/// How many attempts are made. With the waits between them that is four to five hours.
pub const ATTEMPTS_MAX: u32 = 16;

/// The longest wait of our own.
const WAIT_MAX: Duration = Duration::from_secs(3_600);

/// The longest wait that the other side may ask for.
const ASKED_MAX: Duration = Duration::from_secs(24 * 3_600);

/// How long to wait after this attempt: from one second to an hour, and up to a quarter more so that those who failed
/// together do not come back together; and not less than the other side asks for.
pub(super) fn wait(key: &NoticeKey, attempt: u32, asked: Option<Duration>) -> Duration {
    let doublings = attempt.saturating_sub(1).min(12);
    let base = Duration::from_secs(1 << doublings).min(WAIT_MAX);
    let spread = base.mul_f64(f64::from(chance(key, attempt)) / f64::from(u32::MAX) / 4.0);
    (base + spread).max(asked.unwrap_or_default().min(ASKED_MAX))
}

/// Looks random, and is the same for the same attempt.
fn chance(key: &NoticeKey, attempt: u32) -> u32 {
    let mut hasher = DefaultHasher::new();
    (key, attempt).hash(&mut hasher);
    u32::try_from(hasher.finish() >> 32).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ports::notifier::{Destination, NoticeKind};
    use holdpoint_core::ids::PauseId;

    fn key(number: u32) -> NoticeKey {
        let run = "run_0198c0ffee007000800000000000beef".parse().unwrap();
        let destination = Destination::new("ops").unwrap();
        NoticeKey { pause: PauseId { run, number }, kind: NoticeKind::Opened, destination }
    }

    #[test]
    fn waits_double_from_a_second_to_an_hour() {
        for attempt in 1..=40 {
            let base = Duration::from_secs((1_u64 << (attempt - 1).min(20)).min(3_600));
            let wait = wait(&key(1), attempt, None);
            assert!(base <= wait && wait <= base.mul_f64(1.25), "{attempt}: {wait:?}");
        }
    }

    #[test]
    fn those_who_failed_together_do_not_come_back_together() {
        let mut waits: Vec<Duration> = (0..100).map(|number| wait(&key(number), 8, None)).collect();
        waits.sort_unstable();
        waits.dedup();
        assert!(waits.len() > 90, "{}", waits.len());
    }

    #[test]
    fn the_other_side_may_ask_for_more_time_within_a_day() {
        assert_eq!(wait(&key(1), 1, Some(Duration::from_secs(90))), Duration::from_secs(90));
        assert_eq!(wait(&key(1), 1, Some(Duration::MAX)), ASKED_MAX);
        assert!(wait(&key(1), 1, Some(Duration::ZERO)) >= Duration::from_secs(1));
    }
}
