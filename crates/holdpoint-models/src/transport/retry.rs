//! When to ask again, and how long to wait before. Pure: what happened goes in, a wait comes out.

use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

use holdpoint_core::time::Timestamp;
use jiff::fmt::rfc2822::DateTimeParser;

use super::HttpSettings;
use crate::problem::Problem;

/// How long to wait before attempt number `attempts + 1`; `None` to give up.
///
/// `chance` is between 0 and 1: half of a wait is left to it, so that those who failed together do not come back
/// together. A wait that the provider asks for is kept, or, where it is too long, is a reason to give up.
pub(super) fn wait_before_next(
    settings: &HttpSettings,
    problem: &Problem,
    attempts: u32,
    chance: f64,
) -> Option<Duration> {
    if attempts >= settings.attempts_max || !problem.is_worth_another_attempt() {
        return None;
    }
    let doubled = settings.wait_first.saturating_mul(1 << (attempts.saturating_sub(1)).min(20));
    let own = doubled.min(settings.wait_max).mul_f64(0.5 + chance.clamp(0.0, 1.0) / 2.0);
    match problem.wait() {
        Some(asked) => (asked <= settings.retry_after_max).then(|| asked.max(own)),
        None => Some(own),
    }
}

/// A number between 0 and 1. Nothing depends on its being unforeseeable.
pub(super) fn chance() -> f64 {
    let random = RandomState::new().hash_one(std::process::id());
    f64::from(u32::try_from(random & u64::from(u32::MAX)).unwrap_or_default()) / f64::from(u32::MAX)
}

/// How long `Retry-After` asks to wait: seconds, or a date. The date is held against the provider's own clock where it
/// says what time it is there.
pub(super) fn retry_after(value: &str, date: Option<&str>, now: Timestamp) -> Option<Duration> {
    let value = value.trim();
    if let Ok(seconds) = value.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let until = millis(value)?;
    let now = date.and_then(millis).unwrap_or(now.as_millis());
    Some(Duration::from_millis(u64::try_from(until.saturating_sub(now)).unwrap_or(0)))
}

fn millis(date: &str) -> Option<i64> {
    DateTimeParser::new().parse_timestamp(date.trim()).ok().map(|at| at.as_millisecond())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(wait: Option<u64>) -> Problem {
        Problem::Status { status: 429, message: String::new(), wait: wait.map(Duration::from_secs), will_last: false }
    }

    #[test]
    fn waits_double_up_to_a_bound_and_half_of_each_is_chance() {
        let settings = HttpSettings { attempts_max: 100, ..HttpSettings::default() };
        let wait = |attempts, chance| wait_before_next(&settings, &status(None), attempts, chance).unwrap();
        let millis = |attempts| (wait(attempts, 0.0).as_millis(), wait(attempts, 1.0).as_millis());
        assert_eq!(millis(1), (250, 500));
        assert_eq!(millis(2), (500, 1_000));
        assert_eq!(millis(3), (1_000, 2_000));
        assert_eq!(millis(7), (10_000, 20_000));
        assert_eq!(millis(99), (10_000, 20_000));
    }

    #[test]
    fn attempts_come_to_an_end() {
        let settings = HttpSettings { attempts_max: 3, ..HttpSettings::default() };
        let tries: Vec<bool> =
            (1..=4).map(|attempts| wait_before_next(&settings, &status(None), attempts, 0.5).is_some()).collect();
        assert_eq!(tries, [true, true, false, false]);
        let once = HttpSettings { attempts_max: 1, ..HttpSettings::default() };
        assert_eq!(wait_before_next(&once, &status(None), 1, 0.5), None);
    }

    #[test]
    fn a_wait_that_is_asked_for_is_kept_unless_it_is_too_long() {
        let settings = HttpSettings::default();
        let wait = |asked| wait_before_next(&settings, &status(Some(asked)), 1, 1.0);
        assert_eq!(wait(0), Some(Duration::from_millis(500)));
        assert_eq!(wait(7), Some(Duration::from_secs(7)));
        assert_eq!(wait(60), Some(Duration::from_secs(60)));
        assert_eq!(wait(61), None);
    }

    #[test]
    fn what_lasts_is_not_asked_again() {
        assert_eq!(wait_before_next(&HttpSettings::default(), &Problem::NoKey, 1, 0.5), None);
    }

    #[test]
    fn a_wait_is_read_from_seconds_and_from_dates() {
        let now = Timestamp::from_millis(784_111_777_000);
        for (value, date, expected) in [
            ("0", None, Some(0)),
            (" 12 ", None, Some(12_000)),
            ("1.5", None, Some(1_500)),
            ("Sun, 06 Nov 1994 08:50:07 GMT", None, Some(30_000)),
            ("Sun, 06 Nov 1994 08:49:00 GMT", None, Some(0)),
            // The provider's clock is an hour ahead of ours.
            ("Sun, 06 Nov 1994 09:50:07 GMT", Some("Sun, 06 Nov 1994 09:50:00 GMT"), Some(7_000)),
            ("-1", None, None),
            ("inf", None, None),
            ("NaN", None, None),
            ("1e300", None, None),
            ("soon", None, None),
            ("", None, None),
        ] {
            assert_eq!(retry_after(value, date, now), expected.map(Duration::from_millis), "{value:?}");
        }
    }

    #[test]
    fn chance_stays_within_its_bounds() {
        assert!((0..1_000).all(|_| (0.0..=1.0).contains(&chance())));
    }
}
