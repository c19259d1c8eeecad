//! How fast one caller may ask: a bucket of tokens each, filled at an even rate.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use holdpoint_core::ids::ActorId;
use tokio::time::Instant;

use crate::problem::{Code, Problem};

/// The buckets of all callers of this process.
pub struct RateLimiter {
    rate: Rate,
    buckets: Mutex<HashMap<ActorId, Bucket>>,
}

/// How fast something of one connection may come.
pub struct Pace {
    rate: Rate,
    bucket: Bucket,
}

#[derive(Debug, Clone, Copy)]
struct Rate {
    per_second: f64,
    burst: f64,
}

struct Bucket {
    tokens: f64,
    at: Instant,
}

impl Rate {
    fn new(per_second: u32, burst: u32) -> Self {
        Self { per_second: f64::from(per_second.max(1)), burst: f64::from(burst.max(1)) }
    }

    fn full(self, now: Instant) -> Bucket {
        Bucket { tokens: self.burst, at: now }
    }

    fn filled(self, bucket: &Bucket, now: Instant) -> f64 {
        let rested = now.saturating_duration_since(bucket.at).as_secs_f64();
        (bucket.tokens + rested * self.per_second).min(self.burst)
    }

    /// Takes a token, if there is one.
    fn take(self, bucket: &mut Bucket, now: Instant) -> bool {
        bucket.tokens = self.filled(bucket, now);
        bucket.at = now;
        let is_there = bucket.tokens >= 1.0;
        if is_there {
            bucket.tokens -= 1.0;
        }
        is_there
    }
}

impl Pace {
    /// So many a second on average, and so many at once after a rest.
    pub fn new(per_second: u32, burst: u32) -> Self {
        let rate = Rate::new(per_second, burst);
        Self { rate, bucket: rate.full(Instant::now()) }
    }

    /// Takes one; whether it may come.
    pub fn take(&mut self) -> bool {
        self.rate.take(&mut self.bucket, Instant::now())
    }
}

/// How many buckets are kept. Callers are credentials that an operator gave out, so this is never reached in peace.
const BUCKETS_MAX: usize = 100_000;

impl RateLimiter {
    /// So many requests a second on average, and so many at once after a rest.
    pub fn new(per_second: u32, burst: u32) -> Self {
        Self { rate: Rate::new(per_second, burst), buckets: Mutex::default() }
    }

    /// Takes a token.
    ///
    /// # Errors
    /// 429 `rate_limited`, with the time after which there is a token again.
    pub fn take(&self, actor: &ActorId) -> Result<(), Problem> {
        let (rate, now) = (self.rate, Instant::now());
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if buckets.len() >= BUCKETS_MAX {
            // A bucket that is full again says no more than one that is not there.
            buckets.retain(|_, bucket| rate.filled(bucket, now) < rate.burst);
        }
        let bucket = buckets.entry(actor.clone()).or_insert_with(|| rate.full(now));
        if rate.take(bucket, now) {
            return Ok(());
        }
        let seconds = ((1.0 - bucket.tokens) / rate.per_second).ceil().max(1.0);
        let detail =
            format!("at most {} requests a second: wait, or open a stream instead of asking again", rate.per_second);
        Err(Problem::new(Code::RATE_LIMITED, detail).retry_after(seconds as u64))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_pace_has_a_burst_and_then_an_even_rate() {
        let mut pace = Pace::new(2, 3);
        assert_eq!([0; 4].map(|_| pace.take()), [true, true, true, false]);
        tokio::time::advance(Duration::from_millis(500)).await;
        assert_eq!([0; 2].map(|_| pace.take()), [true, false]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_caller_has_a_burst_and_then_an_even_rate_and_others_are_not_held_up() {
        let limiter = RateLimiter::new(2, 3);
        let (ana, ben) = (ActorId::new("ana").unwrap(), ActorId::new("ben").unwrap());
        for _ in 0..3 {
            limiter.take(&ana).unwrap();
        }
        let refused = limiter.take(&ana).unwrap_err();
        assert_eq!(refused.code(), "rate_limited");
        assert_eq!(refused.headers()[0].1, "1");
        limiter.take(&ben).unwrap();
        tokio::time::advance(Duration::from_millis(500)).await;
        limiter.take(&ana).unwrap();
        assert!(limiter.take(&ana).is_err());
        tokio::time::advance(Duration::from_secs(60)).await;
        for _ in 0..3 {
            limiter.take(&ana).unwrap();
        }
        assert!(limiter.take(&ana).is_err());
    }
}
