//! Quiet hours: times of day, in a time zone, in which no notification is sent.

use jiff::civil::Time;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan as _, Zoned};
use serde::{Deserialize, Serialize};

use crate::sensors::InvalidField;
use crate::time::EpochMillis;

const MINUTES_PER_DAY: u16 = 24 * 60;

/// From one time of day to another, which may be on the next day.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quiet {
    pub from: MinuteOfDay,
    pub to: MinuteOfDay,
    pub zone: Zone,
}

/// A time of day, written `HH:MM`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct MinuteOfDay(u16);

/// A time zone by its IANA name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Zone(TimeZone, String);

impl TryFrom<String> for MinuteOfDay {
    type Error = InvalidField;

    fn try_from(text: String) -> Result<Self, InvalidField> {
        let minute = text.split_once(':').and_then(|(hours, minutes)| {
            let is_pair = |text: &str| text.len() == 2 && text.bytes().all(|b| b.is_ascii_digit());
            let whole = hours.parse::<u16>().ok()?.checked_mul(60)?;
            let minutes: u16 = minutes.parse().ok()?;
            (is_pair(hours) && text.len() == 5 && minutes < 60).then_some(whole + minutes)
        });
        minute
            .filter(|minute| *minute < MINUTES_PER_DAY)
            .map(Self)
            .ok_or(InvalidField {
                field: "from and to of quiet",
                expected: "times of day as 22:30",
            })
    }
}

impl From<MinuteOfDay> for String {
    fn from(minute: MinuteOfDay) -> Self {
        format!("{:02}:{:02}", minute.0 / 60, minute.0 % 60)
    }
}

impl MinuteOfDay {
    fn time(self) -> Time {
        let part = |number: u16| i8::try_from(number).unwrap_or(0);
        jiff::civil::time(part(self.0 / 60), part(self.0 % 60), 0, 0)
    }
}

impl TryFrom<String> for Zone {
    type Error = InvalidField;

    fn try_from(text: String) -> Result<Self, InvalidField> {
        match TimeZone::get(&text) {
            Ok(zone) => Ok(Self(zone, text)),
            Err(_) => Err(InvalidField {
                field: "zone",
                expected: "the name of a time zone, like Europe/Berlin",
            }),
        }
    }
}

impl From<Zone> for String {
    fn from(zone: Zone) -> Self {
        zone.1
    }
}

impl Zone {
    #[must_use]
    pub fn name(&self) -> &str {
        &self.1
    }
}

impl Quiet {
    /// # Errors
    /// When both times are the same: it would never end.
    pub fn check(self) -> Result<Self, InvalidField> {
        if self.from == self.to {
            return Err(InvalidField {
                field: "to of quiet",
                expected: "another time than from",
            });
        }
        Ok(self)
    }

    /// The end of the quiet hours that `at` lies in; `None` outside of them.
    pub(in crate::alerts) fn end(&self, at: EpochMillis) -> Option<EpochMillis> {
        let now = Timestamp::from_millisecond(at.0).ok()?;
        let now = now.to_zoned(self.zone.0.clone());
        let (from, to, time) = (self.from.time(), self.to.time(), now.time());
        let is_quiet = if from < to {
            from <= time && time < to
        } else {
            from <= time || time < to
        };
        if !is_quiet {
            return None;
        }
        let ends = |day: jiff::civil::Date| -> Option<Zoned> {
            // A time that a clock change skips moves forward; of a repeated time, the first counts.
            day.to_datetime(to).to_zoned(self.zone.0.clone()).ok()
        };
        let mut end = ends(now.date())?;
        if end <= now {
            end = ends(now.date().checked_add(1.day()).ok()?)?;
        }
        Some(EpochMillis(end.timestamp().as_millisecond()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quiet(from: &str, to: &str, zone: &str) -> Quiet {
        Quiet {
            from: from.to_owned().try_into().expect("a time"),
            to: to.to_owned().try_into().expect("a time"),
            zone: zone.to_owned().try_into().expect("a zone"),
        }
    }

    fn check(quiet: &Quiet, at: &str, end: Option<&str>) {
        let millis = |text: &str| {
            let at: Timestamp = text.parse().expect("a moment");
            EpochMillis(at.as_millisecond())
        };
        assert_eq!(quiet.end(millis(at)), end.map(millis), "{at}");
    }

    #[test]
    fn quiet_night_ends_in_the_morning_of_its_zone() {
        let night = quiet("22:00", "07:00", "Europe/Berlin");
        check(&night, "2027-01-15T20:59:59Z", None);
        check(&night, "2027-01-15T21:00:00Z", Some("2027-01-16T06:00:00Z"));
        check(&night, "2027-01-16T05:59:59Z", Some("2027-01-16T06:00:00Z"));
        check(&night, "2027-01-16T06:00:00Z", None);
        let noon = quiet("12:00", "13:30", "UTC");
        check(&noon, "2027-01-15T12:00:00Z", Some("2027-01-15T13:30:00Z"));
        check(&noon, "2027-01-15T13:30:00Z", None);
    }

    #[test]
    fn clock_change_moves_the_end() {
        let night = quiet("22:00", "07:00", "Europe/Berlin");
        // On 28 March 2027 the clocks go from 2 to 3: the night is an hour shorter.
        check(&night, "2027-03-27T22:00:00Z", Some("2027-03-28T05:00:00Z"));
        // An end that does not exist on that day comes after the clock change.
        let short = quiet("01:00", "02:30", "Europe/Berlin");
        check(&short, "2027-03-28T00:15:00Z", Some("2027-03-28T01:30:00Z"));
    }

    #[test]
    fn invalid_time_or_zone_is_rejected() {
        for invalid in [
            "", "7:00", "24:00", "12:60", "12-00", "1a:00", "12:000", "+1:00",
        ] {
            assert!(
                MinuteOfDay::try_from(invalid.to_owned()).is_err(),
                "{invalid}"
            );
        }
        assert!(Zone::try_from("Europe/Atlantis".to_owned()).is_err());
        assert!(quiet("01:00", "01:00", "UTC").check().is_err());
    }
}
