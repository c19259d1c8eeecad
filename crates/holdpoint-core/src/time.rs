//! Points in time, to the millisecond. The core never asks what time it is: it is told.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Milliseconds since 1970-01-01T00:00:00Z. Printed as RFC 3339, stored as a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(i64);

impl Timestamp {
    /// The last instant that can be printed (9999-12-30T22:00:00Z); later ones are clamped to it.
    pub const MAX: Self = Self(253_402_207_200_000);

    /// The instant so many milliseconds after the epoch.
    pub fn from_millis(millis: i64) -> Self {
        Self(millis.clamp(0, Self::MAX.0))
    }

    /// Milliseconds since the epoch.
    pub fn as_millis(self) -> i64 {
        self.0
    }

    /// The instant `duration` after this one; far futures end at [`Timestamp::MAX`].
    pub fn after(self, duration: Duration) -> Self {
        let millis = i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
        Self::from_millis(self.0.saturating_add(millis))
    }

    /// How long it is from `earlier` to this; zero when `earlier` is later.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_millisecond(self.0) {
            Ok(time) => write!(f, "{time:.3}"),
            Err(_) => write!(f, "{} ms", self.0),
        }
    }
}

impl FromStr for Timestamp {
    type Err = BadTimestamp;

    fn from_str(text: &str) -> Result<Self, BadTimestamp> {
        let time: jiff::Timestamp = text.parse().map_err(|_| BadTimestamp)?;
        Ok(Self::from_millis(time.as_millisecond()))
    }
}

/// The text is not a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an RFC 3339 time expected, such as 2026-11-15T09:30:00Z")]
pub struct BadTimestamp;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_print_and_parse_as_rfc_3339() {
        let time: Timestamp = "2026-11-15T09:30:00.250Z".parse().unwrap();
        assert_eq!(time.to_string(), "2026-11-15T09:30:00.250Z");
        assert_eq!(time.as_millis(), 1_794_735_000_250);
        assert!("yesterday".parse::<Timestamp>().is_err());
    }

    #[test]
    fn no_duration_overflows_a_time() {
        assert_eq!(Timestamp::from_millis(5).after(Duration::MAX), Timestamp::MAX);
        assert_eq!(Timestamp::from_millis(5).since(Timestamp::MAX), Duration::ZERO);
    }
}
