//! Time-based one-time passwords (RFC 6238): six digits, half a minute each, HMAC-SHA-1, as all authenticator apps
//! make them.

use hmac::{Hmac, Mac as _};
use sha1::Sha1;
use subtle::ConstantTimeEq as _;

const STEP_SECS: i64 = 30;
const DIGITS: u32 = 6;
/// How many steps the clock of a phone may be ahead or behind.
const STEPS_OFF_MAX: i64 = 1;
const BASE32: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/// The step whose code this is, if it is one of the present and later than `after`, the step of the last used code.
pub(super) fn step_of(secret: &[u8], sent: &str, now_secs: i64, after: i64) -> Option<i64> {
    let now = now_secs.div_euclid(STEP_SECS);
    let steps = (now - STEPS_OFF_MAX..=now + STEPS_OFF_MAX).filter(|step| *step > after);
    steps.into_iter().find(|step| {
        let code = code(secret, *step);
        code.as_bytes().ct_eq(sent.as_bytes()).into()
    })
}

/// The code of a step.
fn code(secret: &[u8], step: i64) -> String {
    let mut mac = Hmac::<Sha1>::new_from_slice(secret).expect("HMAC takes keys of any length");
    mac.update(&step.to_be_bytes());
    let digest = mac.finalize().into_bytes();
    let at = usize::from(digest[19] & 0x0f);
    let number = u32::from_be_bytes([digest[at], digest[at + 1], digest[at + 2], digest[at + 3]]);
    let code = (number & 0x7fff_ffff) % 10_u32.pow(DIGITS);
    format!("{code:0width$}", width = DIGITS as usize)
}

/// Base32 without padding.
pub(super) fn base32(bytes: &[u8]) -> String {
    let mut text = String::new();
    for chunk in bytes.chunks(5) {
        let mut group = [0; 5];
        group[..chunk.len()].copy_from_slice(chunk);
        let bits = group
            .iter()
            .fold(0_u64, |bits, byte| bits << 8 | u64::from(*byte));
        let chars = (chunk.len() * 8).div_ceil(5);
        for at in 0..chars {
            let index = (bits >> (35 - 5 * at)) & 31;
            text.push(char::from(
                BASE32[usize::try_from(index).unwrap_or_default()],
            ));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The secret of the test vectors in RFC 6238.
    const SECRET: &[u8] = b"12345678901234567890";

    #[test]
    fn codes_are_those_of_the_standard() {
        for (secs, code) in [
            (59, "287082"),
            (1_111_111_109, "081804"),
            (1_234_567_890, "005924"),
            (20_000_000_000, "353130"),
        ] {
            assert_eq!(step_of(SECRET, code, secs, 0), Some(secs / 30));
        }
    }

    #[test]
    fn codes_of_neighbouring_steps_are_accepted_once() {
        let sent = code(SECRET, 100);
        for (secs, is_accepted) in [
            (2969, false),
            (2970, true),
            (3000, true),
            (3059, true),
            (3060, false),
        ] {
            assert_eq!(
                step_of(SECRET, &sent, secs, 0).is_some(),
                is_accepted,
                "{secs}"
            );
        }
        assert_eq!(step_of(SECRET, &sent, 3000, 100), None);
        assert_eq!(step_of(SECRET, "", 3000, 0), None);
    }

    #[test]
    fn base32_is_that_of_the_standard() {
        for (text, expected) in [
            ("", ""),
            ("f", "MY"),
            ("fo", "MZXQ"),
            ("foo", "MZXW6"),
            ("foob", "MZXW6YQ"),
            ("fooba", "MZXW6YTB"),
            ("foobar", "MZXW6YTBOI"),
        ] {
            assert_eq!(base32(text.as_bytes()), expected);
        }
    }
}
