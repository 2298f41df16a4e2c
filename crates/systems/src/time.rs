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

/// How far ahead of the clock the time of data may be. A device whose clock is further ahead would hide its later data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FutureLimit {
    secs: i64,
}

/// A time is beyond the [`FutureLimit`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the time is more than {limit_secs} seconds ahead of the server's clock; check the clock of the device"
)]
pub struct TimeInFuture {
    limit_secs: i64,
}

impl TimeInFuture {
    /// The error code of all systems.
    pub const CODE: &str = "TIME_IN_FUTURE";
}

impl Default for FutureLimit {
    /// One day.
    fn default() -> Self {
        Self::new(24 * 60 * 60)
    }
}

impl FutureLimit {
    #[must_use]
    pub fn new(secs: i64) -> Self {
        Self { secs }
    }

    /// # Errors
    /// If `at` is beyond the limit.
    pub fn check(self, at: EpochMillis, now: EpochMillis) -> Result<(), TimeInFuture> {
        let latest_ms = now.0.saturating_add(self.secs.saturating_mul(1000));
        if at.0 > latest_ms {
            return Err(TimeInFuture {
                limit_secs: self.secs,
            });
        }
        Ok(())
    }
}

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

/// Units of relative times, in milliseconds.
const RELATIVE_UNITS: [(char, i64); 5] = [
    ('s', 1000),
    ('m', 60 * 1000),
    ('h', 60 * 60 * 1000),
    ('d', 24 * 60 * 60 * 1000),
    ('w', 7 * 24 * 60 * 60 * 1000),
];
/// Longest number of a relative time.
const RELATIVE_DIGITS_MAX: usize = 9;

/// Parses the time of a request: milliseconds since 1970, RFC 3339, or a time before `now` such as `-24h`.
#[must_use]
pub fn parse_time(text: &str, now: EpochMillis) -> Option<EpochMillis> {
    if let Ok(millis) = text.parse() {
        return Some(EpochMillis(millis));
    }
    if let Some(age) = text.strip_prefix('-') {
        return Some(EpochMillis(now.0.saturating_sub(parse_age(age)?)));
    }
    let timestamp: Timestamp = text.parse().ok()?;
    Some(EpochMillis(timestamp.as_millisecond()))
}

/// Parses an age such as `24h` to milliseconds.
fn parse_age(text: &str) -> Option<i64> {
    let unit = text.chars().next_back()?;
    let (_, unit_ms) = RELATIVE_UNITS.iter().find(|(known, _)| *known == unit)?;
    let number = text.strip_suffix(unit)?;
    let is_number = (1..=RELATIVE_DIGITS_MAX).contains(&number.len())
        && number.bytes().all(|byte| byte.is_ascii_digit());
    let number: i64 = is_number.then(|| number.parse().ok()).flatten()?;
    number.checked_mul(*unit_ms)
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
    fn future_is_limited_to_the_millisecond() {
        let (limit, now) = (FutureLimit::new(60), EpochMillis(1_800_000_000_000));
        assert_eq!(limit.check(EpochMillis(now.0 + 60_000), now), Ok(()));
        assert!(limit.check(EpochMillis(now.0 + 60_001), now).is_err());
        assert_eq!(limit.check(EpochMillis(i64::MIN), now), Ok(()));
        assert!(
            FutureLimit::default()
                .check(EpochMillis(i64::MAX), now)
                .is_err()
        );
    }

    #[test]
    fn times_of_requests_have_three_forms() {
        let now = EpochMillis(1_704_067_800_000);
        for (text, millis) in [
            ("1704067800000", 1_704_067_800_000),
            ("-5", -5),
            ("2024-01-01T00:10:00Z", 1_704_067_800_000),
            ("2024-01-01T01:10:00.5+01:00", 1_704_067_800_500),
            ("-0s", now.0),
            ("-90s", now.0 - 90_000),
            ("-5m", now.0 - 300_000),
            ("-24h", now.0 - 86_400_000),
            ("-7d", now.0 - 7 * 86_400_000),
            ("-2w", now.0 - 14 * 86_400_000),
        ] {
            assert_eq!(parse_time(text, now), Some(EpochMillis(millis)), "{text}");
        }
        for text in [
            "",
            "-",
            "-h",
            "24h",
            "+24h",
            "-24 h",
            "-1.5h",
            "-24H",
            "-1y",
            "--1h",
            "-1234567890s",
            "yesterday",
            "2026-02-21 14:30:00.000",
        ] {
            assert_eq!(parse_time(text, now), None, "{text}");
        }
    }

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
