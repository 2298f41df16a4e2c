//! Names of months and days, and time zones by name.

use std::sync::LazyLock;

use jiff::tz::{Offset, TimeZone, TimeZoneDatabase};

pub(super) const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// Starting with Monday.
pub(super) const DAYS: [&str; 7] = [
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
    "Sunday",
];

/// Length of a short name.
pub(super) const SHORT_NAME_LEN: usize = 3;

/// Abbreviations that Java interprets as a zone instead of a fixed offset.
const ABBREVIATIONS: [(&str, &str); 8] = [
    ("PST", "America/Los_Angeles"),
    ("PDT", "America/Los_Angeles"),
    ("MST", "America/Denver"),
    ("MDT", "America/Denver"),
    ("CST", "America/Chicago"),
    ("CDT", "America/Chicago"),
    ("EST", "America/New_York"),
    ("EDT", "America/New_York"),
];

/// The compiled-in time zones, because results must not depend on the machine.
static ZONES: LazyLock<TimeZoneDatabase> = LazyLock::new(TimeZoneDatabase::bundled);

/// The zone with a name such as `America/Denver`, `UTC`, `+01:00` or `UTC+1`.
pub(super) fn zone(name: &str) -> Option<TimeZone> {
    if matches!(name, "Z" | "UTC" | "GMT" | "UT") {
        return Some(TimeZone::UTC);
    }
    let unprefixed = ["UTC", "GMT", "UT"]
        .iter()
        .find_map(|prefix| name.strip_prefix(prefix))
        .unwrap_or(name);
    if unprefixed.starts_with(['+', '-']) {
        return offset(unprefixed).map(TimeZone::fixed);
    }
    let known = ABBREVIATIONS
        .iter()
        .find(|(abbreviation, _)| *abbreviation == name)
        .map_or(name, |(_, zone)| zone);
    ZONES.get(known).ok()
}

/// Parses an offset: a sign, hours, and optional minutes and seconds, with or without colons.
pub(super) fn offset(text: &str) -> Option<Offset> {
    let (sign, rest) = match text.split_at_checked(1)? {
        ("+", rest) => (1, rest),
        ("-", rest) => (-1, rest),
        _ => return None,
    };
    let parts: Vec<&str> = if rest.contains(':') {
        rest.split(':').collect()
    } else if rest.len() <= 2 {
        vec![rest]
    } else if rest.len().is_multiple_of(2) && rest.is_ascii() {
        (0..rest.len())
            .step_by(2)
            .map(|at| &rest[at..at + 2])
            .collect()
    } else {
        return None;
    };
    let number = |part: &&str| match part.len() {
        1 | 2 if part.bytes().all(|byte| byte.is_ascii_digit()) => part.parse::<i32>().ok(),
        _ => None,
    };
    let numbers: Vec<i32> = parts.iter().map(number).collect::<Option<_>>()?;
    let (hours, minutes, seconds) = match numbers[..] {
        [hours] => (hours, 0, 0),
        [hours, minutes] => (hours, minutes, 0),
        [hours, minutes, seconds] => (hours, minutes, seconds),
        _ => return None,
    };
    // Java allows at most 18 hours.
    if hours > 18 || minutes > 59 || seconds > 59 {
        return None;
    }
    Offset::from_seconds(sign * (hours * 3600 + minutes * 60 + seconds)).ok()
}
