//! Times as the design documents write them. Each unit has its own type, so that milliseconds are never taken
//! for seconds.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;

/// Milliseconds since the epoch, as devices send them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EpochMillis(pub i64);

/// Seconds since the epoch, the unit of times to live.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EpochSeconds(pub i64);

/// The order of a list that is sorted by time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Order {
    OldestFirst,
    #[default]
    NewestFirst,
}

/// A second of UTC, written exactly as `YYYY-MM-DDTHH:MM:SSZ`. Texts of this form sort by time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UtcSecond(EpochSeconds);

/// A millisecond of UTC, written as `YYYY-MM-DDTHH:MM:SS.mmmZ` like JavaScript's `toISOString`. Texts of this
/// form sort by time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UtcMillis(EpochMillis);

/// The text is not a time of the expected form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected a time as YYYY-MM-DDTHH:MM:SSZ")]
pub struct TimeError;

impl EpochMillis {
    #[must_use]
    pub fn seconds(self) -> EpochSeconds {
        EpochSeconds(self.0.div_euclid(1000))
    }
}

impl EpochSeconds {
    #[must_use]
    pub fn plus_secs(self, secs: i64) -> Self {
        Self(self.0.saturating_add(secs))
    }
}

/// 0001-01-01T00:00:00Z
const FIRST_WRITTEN_SECS: i64 = -62_135_596_800;
/// 9999-12-30T00:00:00Z: time zones need the last hours of that year.
const LAST_WRITTEN_SECS: i64 = 253_402_128_000;

impl UtcSecond {
    /// The second at `seconds`, or the nearest one that can be written.
    #[must_use]
    pub fn new(seconds: EpochSeconds) -> Self {
        Self(EpochSeconds(
            seconds.0.clamp(FIRST_WRITTEN_SECS, LAST_WRITTEN_SECS),
        ))
    }

    #[must_use]
    pub fn seconds(self) -> EpochSeconds {
        self.0
    }
}

impl fmt::Display for UtcSecond {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let timestamp = Timestamp::from_second(self.0.0).map_err(|_| fmt::Error)?;
        write!(formatter, "{}", timestamp.strftime("%Y-%m-%dT%H:%M:%SZ"))
    }
}

impl UtcMillis {
    /// The millisecond at `millis`, or the nearest one that can be written.
    #[must_use]
    pub fn new(millis: EpochMillis) -> Self {
        Self(EpochMillis(
            millis
                .0
                .clamp(FIRST_WRITTEN_SECS * 1000, LAST_WRITTEN_SECS * 1000),
        ))
    }
}

impl fmt::Display for UtcMillis {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let timestamp = Timestamp::from_millisecond(self.0.0).map_err(|_| fmt::Error)?;
        write!(
            formatter,
            "{}",
            timestamp.strftime("%Y-%m-%dT%H:%M:%S.%3fZ")
        )
    }
}

impl FromStr for UtcSecond {
    type Err = TimeError;

    fn from_str(text: &str) -> Result<Self, TimeError> {
        // A second has exactly one spelling, so writing the time again checks the form.
        let timestamp: Timestamp = text.parse().map_err(|_| TimeError)?;
        let second = Self::new(EpochSeconds(timestamp.as_second()));
        if second.to_string() == text {
            Ok(second)
        } else {
            Err(TimeError)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn second_has_the_documented_form() {
        let second = UtcSecond::new(EpochMillis(1_705_328_520_999).seconds());
        assert_eq!(second.to_string(), "2024-01-15T14:22:00Z");
        assert_eq!("2024-01-15T14:22:00Z".parse(), Ok(second));
    }

    #[test]
    fn seconds_out_of_range_are_clamped() {
        let text = |seconds| UtcSecond::new(EpochSeconds(seconds)).to_string();
        assert_eq!(text(i64::MAX), "9999-12-30T00:00:00Z");
        assert_eq!(text(i64::MIN), "0001-01-01T00:00:00Z");
    }

    #[test]
    fn millisecond_has_the_form_of_javascript() {
        let text = |millis| UtcMillis::new(EpochMillis(millis)).to_string();
        assert_eq!(text(1_705_328_520_007), "2024-01-15T14:22:00.007Z");
        assert_eq!(text(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(text(i64::MAX), "9999-12-30T00:00:00.000Z");
        assert_eq!(text(i64::MIN), "0001-01-01T00:00:00.000Z");
        assert!(text(999) < text(1000));
    }

    #[test]
    fn other_forms_are_rejected() {
        for text in [
            "2024-01-15T14:22:00+00:00",
            "2024-01-15T14:22:00.5Z",
            "2024-01-15 14:22:00Z",
            "2024-01-15T14:22Z",
            "2024-02-30T00:00:00Z",
            "",
        ] {
            assert_eq!(text.parse::<UtcSecond>(), Err(TimeError), "{text}");
        }
    }

    #[test]
    fn texts_sort_by_time() {
        let text = |secs| UtcSecond::new(EpochSeconds(secs)).to_string();
        assert!(text(0) < text(1));
        assert!(text(999_999_999) < text(1_000_000_000));
        assert_eq!(text(i64::MIN), "0001-01-01T00:00:00Z");
    }
}
