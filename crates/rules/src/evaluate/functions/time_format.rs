//! Formats times by Joda-Time patterns.

use std::fmt::Write as _;

use jiff::Zoned;
use jiff::tz::Offset;

use super::time_fields::{DAYS, MONTHS, SHORT_NAME_LEN};
use super::time_pattern::Piece;

pub(super) fn format(pieces: &[Piece], time: &Zoned, zone_name: &str) -> String {
    let mut out = String::new();
    for piece in pieces {
        match piece {
            Piece::Text(text) => out.push_str(text),
            Piece::Optional(inner) => out.push_str(&format(inner, time, zone_name)),
            Piece::Field { letter, width } => field(&mut out, *letter, *width, time, zone_name),
        }
    }
    out
}

fn field(out: &mut String, letter: char, width: usize, time: &Zoned, zone_name: &str) {
    let year = i32::from(time.year());
    let year_of_era = if year > 0 { year } else { 1 - year };
    let hour = i32::from(time.hour());
    let week = time.date().iso_week_date();
    let number = match letter {
        'G' => return out.push_str(if year > 0 { "AD" } else { "BC" }),
        'a' => return out.push_str(if hour < 12 { "AM" } else { "PM" }),
        'E' => {
            let day = DAYS[day_index(time)];
            let len = if width > SHORT_NAME_LEN {
                day.len()
            } else {
                SHORT_NAME_LEN
            };
            return out.push_str(&day[..len]);
        }
        'M' if width >= SHORT_NAME_LEN => {
            let month = MONTHS[usize::try_from(time.month() - 1).unwrap_or(0) % MONTHS.len()];
            let len = if width > SHORT_NAME_LEN {
                month.len()
            } else {
                SHORT_NAME_LEN
            };
            return out.push_str(&month[..len]);
        }
        'S' => {
            let nanos = format!("{:09}", time.subsec_nanosecond());
            let digits = nanos.chars().chain(std::iter::repeat('0')).take(width);
            return out.extend(digits);
        }
        'z' => return out.push_str(&abbreviation(time, zone_name)),
        'Z' if width >= 3 => return out.push_str(zone_name),
        'Z' => return offset(out, time.offset(), width == 2),
        'y' if width == 2 => year.rem_euclid(100),
        'Y' if width == 2 => year_of_era % 100,
        'x' if width == 2 => i32::from(week.year()).rem_euclid(100),
        'y' => year,
        'Y' => year_of_era,
        'x' => i32::from(week.year()),
        'C' => year_of_era / 100,
        'w' => i32::from(week.week()),
        'e' => i32::try_from(day_index(time)).unwrap_or(0) + 1,
        'D' => i32::from(time.day_of_year()),
        'M' => i32::from(time.month()),
        'd' => i32::from(time.day()),
        'K' => hour % 12,
        'h' => (hour + 11) % 12 + 1,
        'H' => hour,
        'k' => (hour + 23) % 24 + 1,
        'm' => i32::from(time.minute()),
        _ => i32::from(time.second()),
    };
    let sign = if number < 0 { "-" } else { "" };
    let _ = write!(out, "{sign}{:0>width$}", number.unsigned_abs());
}

fn day_index(time: &Zoned) -> usize {
    usize::try_from(time.weekday().to_monday_zero_offset()).unwrap_or(0) % DAYS.len()
}

/// The zone's short name at this time.
///
/// DIFFERENCE: Joda-Time also has long names ("Central Standard Time"); here `zzzz` is short as
/// well.
fn abbreviation(time: &Zoned, zone_name: &str) -> String {
    let info = time.time_zone().to_offset_info(time.timestamp());
    let name = info.abbreviation();
    // A zone that is only an offset has no name.
    if name.starts_with(['+', '-']) && zone_name.starts_with(['+', '-']) {
        return zone_name.to_owned();
    }
    name.to_owned()
}

fn offset(out: &mut String, offset: Offset, colon: bool) {
    let seconds = offset.seconds();
    let sign = if seconds < 0 { '-' } else { '+' };
    let minutes = seconds.unsigned_abs() / 60;
    let colon = if colon { ":" } else { "" };
    let _ = write!(out, "{sign}{:02}{colon}{:02}", minutes / 60, minutes % 60);
}
