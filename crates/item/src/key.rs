//! Key values and their order-preserving encoding.
//!
//! Comparing two encoded keys byte by byte gives DynamoDB's order of the values: strings and
//! binaries by unsigned bytes, numbers by value. Every encoding is self-delimiting, so encodings
//! can be concatenated and no key is a prefix of another.

use crate::number::Number;
use crate::value::{Value, ValueKind};

/// Maximum length of a partition key value.
pub const PARTITION_KEY_MAX_BYTES: usize = 2048;
/// Maximum length of a sort key value.
pub const SORT_KEY_MAX_BYTES: usize = 1024;

const ESCAPED: u8 = 0x00;
const ESCAPED_ZERO: u8 = 0xFF;
const TERMINATOR: u8 = 0x01;

const NEGATIVE: u8 = 0x01;
const ZERO: u8 = 0x02;
const POSITIVE: u8 = 0x03;
/// Added to the magnitude, which maps −130…+125 to 0…255.
const MAGNITUDE_BIAS: i32 = 130;

/// The types that DynamoDB allows for key attributes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub enum KeyKind {
    S,
    N,
    B,
}

impl KeyKind {
    #[must_use]
    pub fn value_kind(self) -> ValueKind {
        match self {
            Self::S => ValueKind::S,
            Self::N => ValueKind::N,
            Self::B => ValueKind::B,
        }
    }

    #[must_use]
    pub fn of(value: &Value) -> Option<Self> {
        match value {
            Value::S(_) => Some(Self::S),
            Value::N(_) => Some(Self::N),
            Value::B(_) => Some(Self::B),
            _ => None,
        }
    }
}

/// The bytes are not a key encoding of the expected type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the bytes of a key cannot be decoded")]
pub struct KeyDecodeError;

/// Appends the encoding of `value`. Returns false and leaves `out` unchanged if the type of `value`
/// cannot be a key.
#[must_use]
pub fn encode(value: &Value, out: &mut Vec<u8>) -> bool {
    match value {
        Value::S(text) => encode_bytes(text.as_bytes(), out),
        Value::B(bytes) => encode_bytes(bytes, out),
        Value::N(number) => encode_number(number, out),
        _ => return false,
    }
    true
}

/// Appends the encoding of `prefix` without its terminator: the bytes that every longer string or
/// binary with this prefix starts with.
pub fn encode_prefix(prefix: &[u8], out: &mut Vec<u8>) {
    for chunk in prefix.split_inclusive(|byte| *byte == ESCAPED) {
        out.extend_from_slice(chunk);
        if chunk.ends_with(&[ESCAPED]) {
            out.push(ESCAPED_ZERO);
        }
    }
}

fn encode_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    encode_prefix(bytes, out);
    out.extend_from_slice(&[ESCAPED, TERMINATOR]);
}

/// Appends the sortable encoding of a number: sign, magnitude, then two digits per byte.
pub fn encode_number(number: &Number, out: &mut Vec<u8>) {
    if number.is_zero() {
        out.push(ZERO);
        return;
    }
    out.push(if number.is_negative() {
        NEGATIVE
    } else {
        POSITIVE
    });
    let start = out.len();
    let biased = u8::try_from(number.magnitude() + MAGNITUDE_BIAS)
        .expect("a number's magnitude lies within -130..=125");
    out.push(biased);
    push_digit_pairs(number, out);
    out.push(0);
    if number.is_negative() {
        // A larger magnitude is a smaller number.
        out[start..].iter_mut().for_each(|byte| *byte = !*byte);
    }
}

/// Appends the digits, most significant first, two per byte. Each pair is stored as 1…100, which
/// leaves 0 as the terminator.
fn push_digit_pairs(number: &Number, out: &mut Vec<u8>) {
    let start = out.len();
    let mut coefficient = number.coefficient();
    if number.digits() % 2 == 1 {
        // An odd number of digits leaves half a pair at the end: pad it with a zero.
        out.push((coefficient % 10) as u8 * 10 + 1);
        coefficient /= 10;
    }
    // 64-bit division is many times faster and covers almost all numbers in practice.
    let mut small = loop {
        match u64::try_from(coefficient) {
            Ok(small) => break small,
            Err(_) => {
                out.push((coefficient % 100) as u8 + 1);
                coefficient /= 100;
            }
        }
    };
    while small > 0 {
        out.push((small % 100) as u8 + 1);
        small /= 100;
    }
    out[start..].reverse();
}

/// Decodes one key value from the front of `bytes`.
///
/// # Errors
/// When the bytes are not a valid encoding.
pub fn decode(kind: KeyKind, bytes: &mut &[u8]) -> Result<Value, KeyDecodeError> {
    match kind {
        KeyKind::S => {
            let text = decode_bytes(bytes)?;
            String::from_utf8(text)
                .map(Value::S)
                .map_err(|_| KeyDecodeError)
        }
        KeyKind::B => decode_bytes(bytes).map(Value::B),
        KeyKind::N => decode_number(bytes).map(Value::N),
    }
}

fn decode_bytes(bytes: &mut &[u8]) -> Result<Vec<u8>, KeyDecodeError> {
    let mut out = Vec::with_capacity(bytes.len());
    loop {
        let at = bytes
            .iter()
            .position(|byte| *byte == ESCAPED)
            .ok_or(KeyDecodeError)?;
        out.extend_from_slice(&bytes[..at]);
        let mark = *bytes.get(at + 1).ok_or(KeyDecodeError)?;
        *bytes = &bytes[at + 2..];
        match mark {
            TERMINATOR => return Ok(out),
            ESCAPED_ZERO => out.push(0),
            _ => return Err(KeyDecodeError),
        }
    }
}

/// Decodes one number from the front of `bytes`.
///
/// # Errors
/// When the bytes are not a valid encoding.
pub fn decode_number(bytes: &mut &[u8]) -> Result<Number, KeyDecodeError> {
    let (sign, rest) = bytes.split_first().ok_or(KeyDecodeError)?;
    let flip = match *sign {
        ZERO => {
            *bytes = rest;
            return Ok(Number::ZERO);
        }
        POSITIVE => 0x00,
        NEGATIVE => 0xFF,
        _ => return Err(KeyDecodeError),
    };
    let (biased, mut rest) = rest.split_first().ok_or(KeyDecodeError)?;
    let magnitude = i32::from(biased ^ flip) - MAGNITUDE_BIAS;
    let mut coefficient: u128 = 0;
    let mut digits = 0;
    let mut last_pair = 0;
    loop {
        let (byte, after) = rest.split_first().ok_or(KeyDecodeError)?;
        rest = after;
        let pair = byte ^ flip;
        if pair == 0 {
            break;
        }
        if pair > 100 || digits >= 38 {
            return Err(KeyDecodeError);
        }
        last_pair = pair - 1;
        // The first pair holds the leading digit, which is never zero.
        if digits == 0 && last_pair < 10 {
            return Err(KeyDecodeError);
        }
        coefficient = coefficient * 100 + u128::from(last_pair);
        digits += 2;
    }
    *bytes = rest;
    // A number never ends in zeros either: each number has exactly one encoding.
    if last_pair == 0 {
        return Err(KeyDecodeError);
    }
    Number::new(flip == 0xFF, coefficient, magnitude - digits + 1).map_err(|_| KeyDecodeError)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn encoded(value: &Value) -> Vec<u8> {
        let mut out = Vec::new();
        assert!(encode(value, &mut out));
        out
    }

    fn any_number() -> impl Strategy<Value = Number> {
        let wide = (any::<bool>(), 0u128..10u128.pow(38), -130i32..126)
            .prop_filter_map("out of range", |(negative, coefficient, exponent)| {
                Number::new(negative, coefficient, exponent).ok()
            });
        prop_oneof![
            any::<i64>().prop_map(Number::from),
            (-300i64..300).prop_map(Number::from),
            wide
        ]
    }

    proptest! {
        #[test]
        fn byte_order_of_numbers_is_numeric_order(a in any_number(), b in any_number()) {
            prop_assert_eq!(encoded(&Value::N(a)).cmp(&encoded(&Value::N(b))), a.cmp(&b));
        }

        #[test]
        fn byte_order_of_binaries_is_binary_order(a: Vec<u8>, b: Vec<u8>) {
            let order = a.cmp(&b);
            prop_assert_eq!(encoded(&Value::B(a)).cmp(&encoded(&Value::B(b))), order);
        }

        #[test]
        fn byte_order_of_strings_is_utf8_order(a: String, b: String) {
            let order = a.as_bytes().cmp(b.as_bytes());
            prop_assert_eq!(encoded(&Value::S(a)).cmp(&encoded(&Value::S(b))), order);
        }

        #[test]
        fn composite_keys_compare_part_by_part(a: (Vec<u8>, i64), b: (Vec<u8>, i64)) {
            let order = a.cmp(&b);
            let join = |(bytes, number): (Vec<u8>, i64)| {
                [encoded(&Value::B(bytes)), encoded(&Value::from(number))].concat()
            };
            prop_assert_eq!(join(a).cmp(&join(b)), order);
        }

        #[test]
        fn every_key_round_trips(bytes: Vec<u8>, text: String, number in any_number()) {
            let values = [Value::B(bytes), Value::S(text), Value::N(number)];
            let joined: Vec<u8> = values.iter().flat_map(encoded).collect();
            let mut rest = joined.as_slice();
            for value in &values {
                let kind = KeyKind::of(value).expect("a key kind");
                prop_assert_eq!(&decode(kind, &mut rest).expect("decodes"), value);
            }
            prop_assert!(rest.is_empty());
        }

        #[test]
        fn encoded_prefix_starts_every_longer_key(prefix: Vec<u8>, rest: Vec<u8>) {
            let mut start = Vec::new();
            encode_prefix(&prefix, &mut start);
            prop_assert!(encoded(&Value::B([prefix, rest].concat())).starts_with(&start));
        }

        #[test]
        fn every_key_has_one_encoding(bytes in proptest::collection::vec(0u8..110, 0..8)) {
            for sign in [NEGATIVE, ZERO, POSITIVE] {
                let bytes = [&[sign], bytes.as_slice()].concat();
                let mut rest = bytes.as_slice();
                if let Ok(value) = decode(KeyKind::N, &mut rest) {
                    prop_assert_eq!(encoded(&value), &bytes[..bytes.len() - rest.len()]);
                }
            }
        }

        #[test]
        fn invalid_bytes_are_rejected_without_panic(bytes: Vec<u8>) {
            for kind in [KeyKind::S, KeyKind::N, KeyKind::B] {
                let _ = decode(kind, &mut bytes.as_slice());
            }
        }
    }

    #[test]
    fn values_that_cannot_be_keys_are_rejected() {
        assert!(!encode(&Value::Bool(true), &mut Vec::new()));
        assert!(!encode(&Value::L(vec![]), &mut Vec::new()));
    }
}
