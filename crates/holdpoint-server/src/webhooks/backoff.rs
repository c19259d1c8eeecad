//! When to try again: soon at first, then ever later, for about three days.

use std::time::Duration;

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;

/// The seconds after each attempt that did not work.
const STEPS: [u64; 9] = [5, 5 * MINUTE, 30 * MINUTE, 2 * HOUR, 5 * HOUR, 10 * HOUR, 14 * HOUR, 20 * HOUR, 24 * HOUR];

/// How many attempts are made at a message altogether.
pub const ATTEMPTS_MAX: u32 = STEPS.len() as u32 + 1;

/// How long to wait after so many attempts that did not work, from one; `None` when it is time to give up.
///
/// The wait is up to a fifth longer or shorter, as `seed` says, so that what failed together does not come back
/// together. The same seed gives the same waits; the message's id is a good one.
pub fn backoff(attempts: u32, seed: u64) -> Option<Duration> {
    let step = attempts.checked_sub(1).and_then(|step| STEPS.get(step as usize))?;
    let share = scatter(seed ^ u64::from(attempts)) % 401;
    Some(Duration::from_millis(step * (800 + share)))
}

/// Spreads near numbers over all of `u64` (the finaliser of SplitMix64).
fn scatter(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
