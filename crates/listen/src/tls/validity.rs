//! Reads the end of a certificate's validity, which the TLS library keeps to itself.

use jiff::civil::DateTime;
use jiff::tz::TimeZone;

const INTEGER: u8 = 0x02;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
const SEQUENCE: u8 = 0x30;
/// The version of a certificate, which the first version leaves out.
const VERSION: u8 = 0xa0;

/// The time at which a certificate in DER expires, in seconds since the epoch. `None` if it is not a certificate.
pub(super) fn expires_at(certificate: &[u8]) -> Option<i64> {
    let (SEQUENCE, certificate, _) = element(certificate)? else {
        return None;
    };
    let (SEQUENCE, mut fields, _) = element(certificate)? else {
        return None;
    };
    if let (VERSION, _, rest) = element(fields)? {
        fields = rest;
    }
    // Serial number, algorithm and issuer come before the validity.
    for expected in [INTEGER, SEQUENCE, SEQUENCE] {
        let (tag, _, rest) = element(fields)?;
        fields = (tag == expected).then_some(rest)?;
    }
    let (SEQUENCE, validity, _) = element(fields)? else {
        return None;
    };
    let (_, _not_before, rest) = element(validity)?;
    let (tag, not_after, _) = element(rest)?;
    time(tag, std::str::from_utf8(not_after).ok()?)
}

/// The tag and the content of the first element, and the bytes after it.
fn element(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = bytes.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (len, rest) = match first {
        0..=0x7f => (usize::from(first), rest),
        // A length of up to four bytes. 0x80 is a length that DER does not have.
        0x81..=0x84 => {
            let (len, rest) = rest.split_at_checked(usize::from(first - 0x80))?;
            let append = |len: usize, byte: &u8| len << 8 | usize::from(*byte);
            (len.iter().fold(0, append), rest)
        }
        _ => return None,
    };
    let (content, rest) = rest.split_at_checked(len)?;
    Some((tag, content, rest))
}

fn time(tag: u8, text: &str) -> Option<i64> {
    let text = match tag {
        // RFC 5280: years from 50 are in the 20th century.
        UTC_TIME if text.get(..2)? >= "50" => format!("19{text}"),
        UTC_TIME => format!("20{text}"),
        GENERALIZED_TIME => text.to_owned(),
        _ => return None,
    };
    let time = DateTime::strptime("%Y%m%d%H%M%SZ", &text).ok()?;
    let time = time.to_zoned(TimeZone::UTC).ok()?;
    Some(time.timestamp().as_second())
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair, date_time_ymd};

    use super::*;

    #[test]
    fn end_of_validity_is_read() {
        let key = KeyPair::generate().expect("a key");
        // Two forms of times: years from 2050 have four digits.
        for (year, expected) in [(2027, 1_798_761_600), (2050, 2_524_608_000)] {
            let mut params = CertificateParams::new(["localhost".to_owned()]).expect("a name");
            params.not_after = date_time_ymd(year, 1, 1);
            let certificate = params.self_signed(&key).expect("a certificate");
            assert_eq!(expires_at(certificate.der()), Some(expected), "{year}");
        }
    }

    #[test]
    fn invalid_certificates_have_no_end() {
        let key = KeyPair::generate().expect("a key");
        let params = CertificateParams::new(["localhost".to_owned()]).expect("a name");
        let certificate = params.self_signed(&key).expect("a certificate");
        let bytes: &[u8] = certificate.der();
        for len in 0..bytes.len() {
            assert_eq!(expires_at(&bytes[..len]), None, "{len}");
        }
        assert_eq!(expires_at(b"\x30\x84\xff\xff\xff\xff"), None);
    }
}
