//! Mountain Time: the wall clock of events, and days of 23, 24 or 25 hours.
//!
//! The time zone is built in, so that the result does not depend on the machine's time zone database.

use std::fmt;
use std::str::FromStr;

use homeport_item::Value;
use jiff::civil::{Date, DateTime};
use jiff::tz::{AmbiguousOffset, Offset, TimeZone};
use jiff::{Timestamp, ToSpan as _};

use crate::time::EpochMillis;

static DENVER: TimeZone = jiff::tz::get!("America/Denver");

/// The supported instants: whole days of the years 1 to 9999 on any wall clock.
const FIRST_MS: i64 = -62_135_510_400_000;
const LAST_MS: i64 = 253_402_128_000_000;
/// The days whose start and end are supported instants.
const FIRST_DAY: Date = jiff::civil::date(1, 1, 3);
const LAST_DAY: Date = jiff::civil::date(9999, 12, 28);

/// A wall clock in America/Denver, written `YYYY-MM-DD HH:MM:SS.mmm`. Texts of this form sort by wall clock. In
/// the repeated hour in November, two instants have the same wall clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MountainTime(DateTime);

/// A day in America/Denver, written `YYYY-MM-DD`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MountainDay(Date);

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected a wall clock as 2026-02-21 14:30:00.000")]
pub struct MountainTimeError;

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected a day as 2026-02-21")]
pub struct MountainDayError;

impl MountainTime {
    /// The wall clock at an instant. Instants outside the years 1 to 9999 are moved to the nearest end.
    #[must_use]
    pub fn of(at: EpochMillis) -> Self {
        Self(DENVER.to_datetime(timestamp(at)))
    }

    /// The first instant with this wall clock. For a wall clock that March skips, it is not later than the
    /// instant of any later wall clock.
    #[must_use]
    pub fn earliest(self) -> EpochMillis {
        let (before, after) = self.candidates();
        before.min(after)
    }

    /// The last instant with this wall clock. For a wall clock that March skips, it is not earlier than the
    /// instant of any earlier wall clock.
    #[must_use]
    pub fn latest(self) -> EpochMillis {
        let (before, after) = self.candidates();
        before.max(after)
    }

    /// The most likely instant of a wall clock: the first one in a repeated hour, and the one after the gap in
    /// a skipped hour.
    #[must_use]
    pub fn assumed(self) -> EpochMillis {
        self.candidates().0
    }

    #[must_use]
    pub fn day(self) -> MountainDay {
        MountainDay(self.0.date())
    }

    /// The instants with the offsets before and after a clock change.
    fn candidates(self) -> (EpochMillis, EpochMillis) {
        let (before, after) = match DENVER.to_ambiguous_timestamp(self.0).offset() {
            AmbiguousOffset::Unambiguous { offset } => (offset, offset),
            AmbiguousOffset::Gap { before, after } | AmbiguousOffset::Fold { before, after } => {
                (before, after)
            }
        };
        (instant(self.0, before), instant(self.0, after))
    }
}

/// The range of wall clocks of all instants from `from` to `to`. Where clocks go back in between, it covers the
/// whole repeated hour.
#[must_use]
pub fn wall_clocks(from: EpochMillis, to: EpochMillis) -> (MountainTime, MountainTime) {
    // A wall clock only goes back at a clock change. So the lowest one after `from` is at `from` or at the next
    // change, and the highest one before `to` is at `to` or just before the last change.
    let next_change = DENVER.following(timestamp(from)).next();
    let lowest = next_change
        .map(|change| MountainTime(DENVER.to_datetime(change.timestamp())))
        .into_iter()
        .chain([MountainTime::of(from)])
        .min();
    let last_change = DENVER
        .preceding(timestamp(EpochMillis(to.0.saturating_add(1))))
        .next();
    let highest = last_change
        .map(|change| MountainTime::of(EpochMillis(change.timestamp().as_millisecond() - 1)))
        .into_iter()
        .chain([MountainTime::of(to)])
        .max();
    (
        lowest.unwrap_or_else(|| MountainTime::of(from)),
        highest.unwrap_or_else(|| MountainTime::of(to)),
    )
}

impl MountainDay {
    #[must_use]
    pub fn of(at: EpochMillis) -> Self {
        MountainTime::of(at).day()
    }

    /// Parses the bound of a range: any day of the years 0 to 9999. Days at the ends of the supported time are
    /// moved inside.
    #[must_use]
    pub fn nearest(text: &str) -> Option<Self> {
        let date: Date = text.parse().ok()?;
        let is_plain = date.year() >= 0 && date.to_string() == text;
        is_plain.then(|| Self(date.clamp(FIRST_DAY, LAST_DAY)))
    }

    /// The first instant of the day.
    #[must_use]
    pub fn start(self) -> EpochMillis {
        MountainTime(self.0.to_datetime(jiff::civil::Time::midnight())).earliest()
    }

    /// The first instant of the next day.
    #[must_use]
    pub fn end(self) -> EpochMillis {
        self.next().start()
    }

    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0.saturating_add(1.day()))
    }

    #[must_use]
    pub fn previous(self) -> Self {
        Self(self.0.saturating_sub(1.day()))
    }

    /// The number of days from this one to `last`, both included.
    #[must_use]
    pub fn days_to(self, last: Self) -> usize {
        let days = self.0.duration_until(last.0).as_hours() / 24 + 1;
        usize::try_from(days).unwrap_or(0)
    }
}

impl fmt::Display for MountainTime {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (date, time) = (self.0.date(), self.0.time());
        write!(
            formatter,
            "{} {:02}:{:02}:{:02}.{:03}",
            MountainDay(date),
            time.hour(),
            time.minute(),
            time.second(),
            time.millisecond()
        )
    }
}

impl FromStr for MountainTime {
    type Err = MountainTimeError;

    fn from_str(text: &str) -> Result<Self, MountainTimeError> {
        // A wall clock has one spelling: parse it leniently and compare.
        let civil: DateTime = text.parse().map_err(|_| MountainTimeError)?;
        let read = Self(civil);
        let has_room = (FIRST_DAY..=LAST_DAY).contains(&civil.date());
        (has_room && read.to_string() == text)
            .then_some(read)
            .ok_or(MountainTimeError)
    }
}

impl fmt::Display for MountainDay {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let date = self.0;
        write!(
            formatter,
            "{:04}-{:02}-{:02}",
            date.year(),
            date.month(),
            date.day()
        )
    }
}

impl FromStr for MountainDay {
    type Err = MountainDayError;

    fn from_str(text: &str) -> Result<Self, MountainDayError> {
        let read = Self(text.parse().map_err(|_| MountainDayError)?);
        let has_room = (FIRST_DAY..=LAST_DAY).contains(&read.0);
        (has_room && read.to_string() == text)
            .then_some(read)
            .ok_or(MountainDayError)
    }
}

impl From<MountainTime> for Value {
    fn from(time: MountainTime) -> Self {
        Self::from(time.to_string())
    }
}

impl From<MountainDay> for Value {
    fn from(day: MountainDay) -> Self {
        Self::from(day.to_string())
    }
}

fn timestamp(at: EpochMillis) -> Timestamp {
    Timestamp::from_millisecond(at.0.clamp(FIRST_MS, LAST_MS))
        .expect("an instant of the years 1 to 9999 is a timestamp")
}

/// Wall clocks outside the supported time are moved to the nearest instant.
fn instant(civil: DateTime, offset: Offset) -> EpochMillis {
    let at = offset.to_timestamp(civil).ok();
    let end_ms = if civil.year() > 0 { LAST_MS } else { FIRST_MS };
    EpochMillis(at.map_or(end_ms, |at| at.as_millisecond()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use proptest::test_runner::RngSeed;

    const HOUR_MS: i64 = 3_600_000;
    /// 2026-11-01T08:00:00Z, when 01:59:59.999 is followed by 01:00:00.000.
    const FALL_BACK_MS: i64 = 1_793_520_000_000;
    /// 2026-03-08T09:00:00Z, when 01:59:59.999 is followed by 03:00:00.000.
    const SPRING_FORWARD_MS: i64 = 1_772_960_400_000;

    fn wall(ms: i64) -> String {
        MountainTime::of(EpochMillis(ms)).to_string()
    }

    #[test]
    fn wall_clock_has_the_documented_form() {
        assert_eq!(wall(1_771_709_400_000), "2026-02-21 14:30:00.000");
        assert_eq!(wall(1_708_425_600_007), "2024-02-20 03:40:00.007");
    }

    #[test]
    fn repeated_hour_has_two_instants_per_wall_clock() {
        let first = FALL_BACK_MS - HOUR_MS / 2;
        let second = FALL_BACK_MS + HOUR_MS / 2;
        assert_eq!(wall(first), "2026-11-01 01:30:00.000");
        assert_eq!(wall(second), wall(first));
        let clock: MountainTime = wall(first).parse().unwrap();
        assert_eq!(clock.earliest(), EpochMillis(first));
        assert_eq!(clock.latest(), EpochMillis(second));
        assert_eq!(clock.assumed(), EpochMillis(first));
    }

    #[test]
    fn skipped_hour_does_not_exist() {
        assert_eq!(wall(SPRING_FORWARD_MS - 1), "2026-03-08 01:59:59.999");
        assert_eq!(wall(SPRING_FORWARD_MS), "2026-03-08 03:00:00.000");
        let skipped: MountainTime = "2026-03-08 02:30:00.000".parse().unwrap();
        assert_eq!(
            skipped.earliest(),
            EpochMillis(SPRING_FORWARD_MS - HOUR_MS / 2)
        );
        assert_eq!(
            skipped.assumed(),
            EpochMillis(SPRING_FORWARD_MS + HOUR_MS / 2)
        );
        assert_eq!(skipped.latest(), skipped.assumed());
    }

    #[test]
    fn range_covers_the_repeated_hour() {
        let range = |from, to| {
            let (from, to) = wall_clocks(EpochMillis(from), EpochMillis(to));
            (from.to_string(), to.to_string())
        };
        let half = HOUR_MS / 2;
        let at = |time: &str| format!("2026-11-01 {time}");
        for (from, to, expected) in [
            // After the first 01:30, 01:00 comes again.
            (
                FALL_BACK_MS - half,
                FALL_BACK_MS + 3 * HOUR_MS,
                ("01:00:00.000", "04:00:00.000"),
            ),
            // Before the second 01:30, 01:59 has occurred.
            (
                FALL_BACK_MS - 2 * HOUR_MS,
                FALL_BACK_MS + half,
                ("00:00:00.000", "01:59:59.999"),
            ),
            (
                FALL_BACK_MS - half,
                FALL_BACK_MS + half,
                ("01:00:00.000", "01:59:59.999"),
            ),
            // Both within one pass of the hour.
            (
                FALL_BACK_MS + half,
                FALL_BACK_MS + 2 * HOUR_MS,
                ("01:30:00.000", "03:00:00.000"),
            ),
            (
                FALL_BACK_MS - 2 * HOUR_MS,
                FALL_BACK_MS - half,
                ("00:00:00.000", "01:30:00.000"),
            ),
        ] {
            assert_eq!(range(from, to), (at(expected.0), at(expected.1)));
        }
        assert_eq!(
            range(SPRING_FORWARD_MS - half, SPRING_FORWARD_MS + half),
            (
                "2026-03-08 01:30:00.000".to_owned(),
                "2026-03-08 03:30:00.000".to_owned()
            )
        );
    }

    #[test]
    fn days_have_23_24_or_25_hours() {
        for (text, hours) in [("2026-03-08", 23), ("2026-03-09", 24), ("2026-11-01", 25)] {
            let day: MountainDay = text.parse().unwrap();
            assert_eq!(day.end().0 - day.start().0, hours * HOUR_MS, "{text}");
            assert_eq!(day.to_string(), text);
            assert_eq!(day.next().previous(), day);
        }
        let day = |text: &str| text.parse::<MountainDay>().unwrap();
        assert_eq!(day("2026-03-08").days_to(day("2026-03-08")), 1);
        assert_eq!(day("2026-02-27").days_to(day("2026-03-01")), 3);
        assert_eq!(day("2026-03-08").days_to(day("2026-03-07")), 0);
    }

    #[test]
    fn other_forms_are_rejected() {
        for text in [
            "",
            "2026-02-21",
            "2026-02-21T14:30:00.000",
            "2026-02-21 14:30:00",
            "2026-02-30 00:00:00.000",
            "2026-02-21 14:30:00.0001",
        ] {
            assert!(text.parse::<MountainTime>().is_err(), "{text}");
        }
        for text in [
            "",
            "2026-2-21",
            "2026-02-30",
            "2026-02-21 00:00",
            "20260221",
        ] {
            assert!(text.parse::<MountainDay>().is_err(), "{text}");
        }
    }

    #[test]
    fn bound_can_be_any_day() {
        for (text, day) in [
            ("2026-02-21", "2026-02-21"),
            ("0000-01-01", "0001-01-03"),
            ("9999-12-31", "9999-12-28"),
        ] {
            assert_eq!(MountainDay::nearest(text), day.parse().ok(), "{text}");
        }
        for text in [
            "",
            "2026-02-30",
            "20260221",
            "2026-02-21 00:00",
            "-000001-01-01",
        ] {
            assert_eq!(MountainDay::nearest(text), None, "{text}");
        }
    }

    #[test]
    fn ends_of_time_do_not_panic() {
        for ms in [i64::MIN, i64::MAX, FIRST_MS, LAST_MS] {
            let day = MountainDay::of(EpochMillis(ms));
            let _ = (
                day.start(),
                day.end(),
                day.next().next().end(),
                day.previous().start(),
            );
            let _ = wall_clocks(EpochMillis(ms), EpochMillis(ms));
        }
        assert!("9999-12-31 23:59:59.999".parse::<MountainTime>().is_err());
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2000, rng_seed: RngSeed::Fixed(7), ..ProptestConfig::default() })]

        // 2020 to 2030: an instant survives the way to a key and back, except in the repeated hour.
        #[test]
        fn wall_clock_and_instant_agree(ms in 1_577_836_800_000_i64..1_893_456_000_000) {
            let clock = MountainTime::of(EpochMillis(ms));
            prop_assert_eq!(clock.to_string().parse(), Ok(clock));
            prop_assert!(clock.earliest().0 == ms || clock.latest().0 == ms);
            prop_assert_eq!(MountainTime::of(clock.earliest()), clock);
            prop_assert_eq!(MountainTime::of(clock.latest()), clock);
            prop_assert!(clock.latest().0 - clock.earliest().0 <= HOUR_MS);
        }

        #[test]
        fn texts_sort_as_wall_clocks_do(one in 0_i64..4_102_444_800_000, two in 0_i64..4_102_444_800_000) {
            let (one, two) = (MountainTime::of(EpochMillis(one)), MountainTime::of(EpochMillis(two)));
            prop_assert_eq!(one.cmp(&two), one.to_string().cmp(&two.to_string()));
        }

        #[test]
        fn range_contains_every_wall_clock(
            from in FALL_BACK_MS - 3 * HOUR_MS..FALL_BACK_MS + 3 * HOUR_MS,
            len in 0..4 * HOUR_MS,
            part in 0.0..1.0,
        ) {
            let (lowest, highest) = wall_clocks(EpochMillis(from), EpochMillis(from + len));
            let within = MountainTime::of(EpochMillis(from + (len as f64 * part) as i64));
            prop_assert!(lowest <= within && within <= highest);
        }
    }
}
