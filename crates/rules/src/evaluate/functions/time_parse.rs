//! Parses times by `java.time` patterns.

use jiff::civil::{Date, Time};
use jiff::tz::TimeZone;

use super::time_fields::{DAYS, MONTHS, SHORT_NAME_LEN, offset, zone};
use super::time_pattern::Piece;

/// Maximum length of a zone name.
const ZONE_NAME_LEN_MAX: usize = 64;

/// The parsed fields of a time.
#[derive(Debug, Default, Clone)]
struct Fields {
    year: Option<i32>,
    before_christ: bool,
    month: Option<i32>,
    day: Option<i32>,
    day_of_year: Option<i32>,
    weekday: Option<usize>,
    hour: Option<i32>,
    /// The hour of the half day, 0 to 11.
    half_hour: Option<i32>,
    afternoon: Option<bool>,
    minute: Option<i32>,
    second: Option<i32>,
    nanosecond: Option<i32>,
    zone: Option<TimeZone>,
}

/// Milliseconds since 1970, or a message that says why the text is invalid.
pub(super) fn parse(pieces: &[Piece], text: &str) -> Result<i64, String> {
    let mut fields = Fields::default();
    match read(pieces, text, &mut fields) {
        Some("") => {}
        Some(rest) => return Err(format!("unexpected text `{}` at the end", beginning(rest))),
        None => return Err("the text does not have the form of the pattern".to_owned()),
    }
    let date = fields.date().ok_or("the text has no valid date")?;
    let time = fields.time().ok_or("the text has no valid time of day")?;
    if fields.weekday.is_some_and(|day| {
        usize::try_from(date.weekday().to_monday_zero_offset()).ok() != Some(day)
    }) {
        return Err("the date is another day of the week".to_owned());
    }
    let zone = fields.zone.unwrap_or(TimeZone::UTC);
    // For a wall-clock time that occurs twice the first is used, and a skipped one is moved
    // forward, as in Java.
    zone.to_ambiguous_timestamp(date.to_datetime(time))
        .compatible()
        .map(|timestamp| timestamp.as_millisecond())
        .map_err(|_| "the time is out of range".to_owned())
}

fn beginning(text: &str) -> String {
    text.chars().take(20).collect()
}

impl Fields {
    fn date(&self) -> Option<Date> {
        let year = self.year?;
        let year = i16::try_from(if self.before_christ { 1 - year } else { year }).ok()?;
        if let Some(day_of_year) = self.day_of_year {
            let first = Date::new(year, 1, 1).ok()?;
            if !(1..=i32::from(first.days_in_year())).contains(&day_of_year) {
                return None;
            }
            let days = jiff::Span::new().try_days(day_of_year - 1).ok()?;
            return first.checked_add(days).ok();
        }
        let month = i8::try_from(self.month?).ok()?;
        let first = Date::new(year, month, 1).ok()?;
        let day = i8::try_from(self.day?)
            .ok()
            .filter(|day| (1..=31).contains(day))?;
        // The 31st of a shorter month becomes its last day, as in java.time.
        Date::new(year, month, day.min(first.days_in_month())).ok()
    }

    fn time(&self) -> Option<Time> {
        let hour = match (self.hour, self.half_hour) {
            (Some(hour), _) => hour,
            (None, Some(half)) => half + if self.afternoon? { 12 } else { 0 },
            (None, None) => 0,
        };
        Time::new(
            i8::try_from(hour).ok()?,
            i8::try_from(self.minute.unwrap_or(0)).ok()?,
            i8::try_from(self.second.unwrap_or(0)).ok()?,
            self.nanosecond.unwrap_or(0),
        )
        .ok()
    }
}

/// Parses all pieces and returns the rest of the text.
fn read<'t>(pieces: &[Piece], mut text: &'t str, fields: &mut Fields) -> Option<&'t str> {
    for (index, piece) in pieces.iter().enumerate() {
        text = match piece {
            Piece::Text(expected) => text.strip_prefix(expected.as_str())?,
            Piece::Optional(inner) => {
                let mut attempt = fields.clone();
                match read(inner, text, &mut attempt) {
                    Some(rest) => {
                        *fields = attempt;
                        rest
                    }
                    None => text,
                }
            }
            Piece::Field { letter, width } => {
                // A number directly followed by another one has exactly the given width.
                let adjacent = pieces.get(index + 1).is_some_and(is_number);
                read_field(*letter, *width, adjacent, text, fields)?
            }
        };
    }
    Some(text)
}

fn is_number(piece: &Piece) -> bool {
    match piece {
        Piece::Field { letter, width } => match letter {
            'M' | 'L' => *width <= 2,
            letter => "uydDKhHkmsSn".contains(*letter),
        },
        _ => false,
    }
}

fn read_field<'t>(
    letter: char,
    width: usize,
    adjacent: bool,
    text: &'t str,
    fields: &mut Fields,
) -> Option<&'t str> {
    match letter {
        'G' => {
            let (before_christ, rest) = either(text, "BC", "AD")?;
            fields.before_christ = before_christ;
            Some(rest)
        }
        'a' => {
            let (afternoon, rest) = either(text, "PM", "AM")?;
            fields.afternoon = Some(afternoon);
            Some(rest)
        }
        'E' => {
            let (day, rest) = name(text, &DAYS, width > SHORT_NAME_LEN)?;
            fields.weekday = Some(day);
            Some(rest)
        }
        'M' | 'L' if width >= SHORT_NAME_LEN => {
            let (month, rest) = name(text, &MONTHS, width > SHORT_NAME_LEN)?;
            fields.month = i32::try_from(month + 1).ok();
            Some(rest)
        }
        'V' | 'z' | 'O' => {
            let (zone, rest) = longest_zone(text)?;
            fields.zone = Some(zone);
            Some(rest)
        }
        'X' | 'x' | 'Z' => {
            let zulu = letter == 'X' || (letter == 'Z' && width >= 5);
            if zulu && let Some(rest) = text.strip_prefix('Z') {
                fields.zone = Some(TimeZone::UTC);
                return Some(rest);
            }
            let text = match (letter, width) {
                ('Z', 4) => text.strip_prefix("GMT")?,
                _ => text,
            };
            let len = 1 + text
                .get(1..)?
                .find(|character: char| !character.is_ascii_digit() && character != ':')
                .unwrap_or(text.len() - 1);
            fields.zone = Some(TimeZone::fixed(offset(&text[..len])?));
            Some(&text[len..])
        }
        'S' => {
            let (digits, rest) = digits(text, width, width)?;
            let nanos: String = digits
                .chars()
                .chain(std::iter::repeat('0'))
                .take(9)
                .collect();
            fields.nanosecond = nanos.parse().ok();
            Some(rest)
        }
        _ => read_number(letter, width, adjacent, text, fields),
    }
}

fn read_number<'t>(
    letter: char,
    width: usize,
    adjacent: bool,
    text: &'t str,
    fields: &mut Fields,
) -> Option<&'t str> {
    /// More digits than any field can have.
    const DIGITS_MAX: usize = 9;
    let most = match (letter, width) {
        _ if adjacent => width,
        ('u' | 'y', 2) => 2,
        ('u' | 'y' | 'n', _) => DIGITS_MAX,
        ('D', _) => 3,
        _ => 2,
    };
    let (digits, rest) = digits(text, width, most.max(width))?;
    let number: i32 = digits.parse().ok()?;
    let within = |least: i32, most: i32| (least..=most).contains(&number).then_some(number);
    match letter {
        // A two-digit year is in this century.
        'u' | 'y' if width == 2 => fields.year = Some(2000 + number),
        'u' | 'y' => fields.year = Some(number),
        'M' | 'L' => fields.month = Some(within(1, 12)?),
        'd' => fields.day = Some(within(1, 31)?),
        'D' => fields.day_of_year = Some(within(1, 366)?),
        'H' => fields.hour = Some(within(0, 23)?),
        'k' => fields.hour = Some(within(1, 24)? % 24),
        'K' => fields.half_hour = Some(within(0, 11)?),
        'h' => fields.half_hour = Some(within(1, 12)? % 12),
        'm' => fields.minute = Some(within(0, 59)?),
        's' => fields.second = Some(within(0, 59)?),
        _ => fields.nanosecond = Some(number),
    }
    Some(rest)
}

fn either<'t>(text: &'t str, yes: &str, no: &str) -> Option<(bool, &'t str)> {
    match text.strip_prefix(yes) {
        Some(rest) => Some((true, rest)),
        None => Some((false, text.strip_prefix(no)?)),
    }
}

fn name<'t>(text: &'t str, names: &[&str], full: bool) -> Option<(usize, &'t str)> {
    names.iter().enumerate().find_map(|(index, name)| {
        let name = if full { name } else { &name[..SHORT_NAME_LEN] };
        Some((index, text.strip_prefix(name)?))
    })
}

fn digits(text: &str, least: usize, most: usize) -> Option<(&str, &str)> {
    let len = text
        .bytes()
        .take(most)
        .take_while(u8::is_ascii_digit)
        .count();
    (len >= least).then(|| text.split_at(len))
}

/// The zone at the start of the text, by the longest matching name.
fn longest_zone(text: &str) -> Option<(TimeZone, &str)> {
    let len = text
        .find(|character: char| {
            !character.is_ascii_alphanumeric() && !matches!(character, '/' | '_' | '+' | '-' | ':')
        })
        .unwrap_or(text.len())
        .min(ZONE_NAME_LEN_MAX);
    (1..=len)
        .rev()
        .find_map(|len| Some((zone(text.get(..len)?)?, &text[len..])))
}
