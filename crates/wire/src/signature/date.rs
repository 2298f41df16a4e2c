//! Times in the basic format of ISO 8601, as signatures have them: `20231114T221320Z`.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::Offset;

const FORMAT: &str = "%Y%m%dT%H%M%SZ";
const TEXT_LEN: usize = 16;

/// Seconds since the epoch. `None` if the text is not a valid time.
pub(super) fn parse(text: &str) -> Option<i64> {
    // `strptime` also accepts signs, spaces and shorter numbers.
    let has_form = text.len() == TEXT_LEN
        && text.bytes().enumerate().all(|(at, byte)| match at {
            8 => byte == b'T',
            15 => byte == b'Z',
            _ => byte.is_ascii_digit(),
        });
    let time = DateTime::strptime(FORMAT, text).ok().filter(|_| has_form)?;
    Some(Offset::UTC.to_timestamp(time).ok()?.as_second())
}

/// The time with this number of seconds since the epoch.
pub(super) fn format(secs: i64) -> String {
    let time = Timestamp::from_second(secs).unwrap_or(Timestamp::MAX);
    time.strftime(FORMAT).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_times_are_read_and_written() {
        for (text, secs) in [
            ("19700101T000000Z", 0),
            ("20231114T221320Z", 1_700_000_000),
            ("20240229T235959Z", 1_709_251_199),
            ("20000301T000000Z", 951_868_800),
        ] {
            assert_eq!(parse(text), Some(secs));
            assert_eq!(format(secs), text);
        }
    }

    #[test]
    fn invalid_times_are_rejected() {
        for text in [
            "",
            "201",
            "20231114T221320",
            "20231314T221320Z",
            "20230231T221320Z",
            "20230229T221320Z",
            "20231114T241320Z",
            "2023111éT22132Z",
            "+0231114T221320Z",
            "2023 114T221320Z",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
