//! A checked payload decoder: turns bytes into an event type and data. No payload makes it panic.

use std::borrow::Cow;
use std::collections::BTreeMap;

use homeport_item::{Decimal, Map, Number, Value};

use super::document::PayloadForm;
use super::number::{NumberPlace, RawNumber};
use crate::chargers::types::{EventData, EventType};

/// A checked payload decoder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decoder {
    pub(super) payload: PayloadForm,
    pub(super) event_type: EventTypeSource,
    pub(super) fields: Vec<Field>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum EventTypeSource {
    Fixed(EventType),
    Code(NumberPlace, Texts<EventType>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Field {
    pub(super) name: String,
    pub(super) place: NumberPlace,
    pub(super) meaning: Meaning,
    pub(super) is_optional: bool,
}

/// How a number becomes members of the data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Meaning {
    Number {
        scale: Option<Decimal>,
        add: Option<Decimal>,
    },
    Text(Texts<String>),
    /// Bits with their names.
    Booleans(Vec<(u32, String)>),
    List(Vec<(u32, String)>),
}

/// Texts for numbers, and the text for all other numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Texts<T> {
    pub(super) known: BTreeMap<i128, T>,
    pub(super) other: Option<T>,
}

/// A decoded payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decoded {
    pub event_type: EventType,
    pub data: EventData,
}

/// Why a payload cannot be decoded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {reason}")]
pub struct DecodeError {
    /// The name of the field, or `event_type`, `payload` or `data`.
    pub field: String,
    pub reason: String,
}

impl Decoder {
    /// # Errors
    /// When a field cannot be read.
    pub fn decode(&self, payload: &[u8]) -> Result<Decoded, DecodeError> {
        let payload = self.bytes(payload)?;
        let event_type = match &self.event_type {
            EventTypeSource::Fixed(event_type) => event_type.clone(),
            EventTypeSource::Code(place, texts) => {
                let read = read(place, &payload).and_then(|number| texts.of(number).cloned());
                read.map_err(in_field("event_type"))?
            }
        };
        let mut data = Map::new();
        for field in &self.fields {
            if field.is_optional && payload.len() < field.place.end() {
                continue;
            }
            let number = read(&field.place, &payload);
            let written = number.and_then(|number| field.write(number, &mut data));
            written.map_err(in_field(&field.name))?;
        }
        let data = EventData::new(data).map_err(|error| in_field("data")(error.to_string()))?;
        Ok(Decoded { event_type, data })
    }

    /// The bytes that fields are in.
    pub(super) fn bytes<'a>(&self, payload: &'a [u8]) -> Result<Cow<'a, [u8]>, DecodeError> {
        match self.payload {
            PayloadForm::Bytes => Ok(Cow::Borrowed(payload)),
            PayloadForm::HexText => hex::decode(payload)
                .map(Cow::Owned)
                .map_err(|error| in_field("payload")(format!("not hexadecimal digits: {error}"))),
        }
    }
}

impl Field {
    fn write(&self, number: RawNumber, data: &mut Map) -> Result<(), String> {
        match &self.meaning {
            Meaning::Number { scale, add } => {
                let number = scaled(number, scale.as_ref(), add.as_ref())?;
                data.insert(self.name.clone(), Value::N(number));
            }
            Meaning::Text(texts) => {
                let text = texts.of(number)?.as_str();
                data.insert(self.name.clone(), text.into());
            }
            Meaning::Booleans(flags) => {
                for (bit, name) in flags {
                    data.insert(name.clone(), is_set(number, *bit).into());
                }
            }
            Meaning::List(flags) => {
                let set = flags.iter().filter(|(bit, _)| is_set(number, *bit));
                let names = set.map(|(_, name)| name.as_str().into());
                data.insert(self.name.clone(), Value::L(names.collect()));
            }
        }
        Ok(())
    }
}

impl<T> Texts<T> {
    fn of(&self, number: RawNumber) -> Result<&T, String> {
        let RawNumber::Whole(number) = number else {
            return Err("only whole numbers have values".to_owned());
        };
        let text = self.known.get(&number).or(self.other.as_ref());
        text.ok_or_else(|| format!("{number} is not one of its values"))
    }
}

fn read(place: &NumberPlace, payload: &[u8]) -> Result<RawNumber, String> {
    place.read(payload).ok_or_else(|| {
        format!(
            "needs bytes {} to {}, and the payload has {} bytes",
            place.offset,
            place.end() - 1,
            payload.len()
        )
    })
}

fn scaled(
    number: RawNumber,
    scale: Option<&Decimal>,
    add: Option<&Decimal>,
) -> Result<Number, String> {
    let not_a_number = || "the number is not finite".to_owned();
    let mut value = number.to_decimal().ok_or_else(not_a_number)?;
    let too_large = |error: &dyn std::fmt::Display| format!("the number cannot be stored: {error}");
    if let Some(scale) = scale {
        value = value.multiply(scale).map_err(|error| too_large(&error))?;
    }
    if let Some(add) = add {
        value = value.add(add).map_err(|error| too_large(&error))?;
    }
    Number::try_from(value).map_err(|error| too_large(&error))
}

fn is_set(number: RawNumber, bit: u32) -> bool {
    matches!(number, RawNumber::Whole(number) if number >> bit & 1 == 1)
}

fn in_field(field: &str) -> impl Fn(String) -> DecodeError {
    let field = field.to_owned();
    move |reason| DecodeError {
        field: field.clone(),
        reason,
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::option::of;
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::chargers::decoders::{DecoderDocument, Decoders};
    use crate::plain_json;

    fn decoder(document: &serde_json::Value) -> Decoder {
        let document = serde_json::from_value(document.clone()).expect("a document");
        Decoders::check(&document).expect("a decoder")
    }

    /// The event type and the data, or the error.
    fn decode(document: &serde_json::Value, payload: &[u8]) -> String {
        match decoder(document).decode(payload) {
            Ok(decoded) => {
                let data = Value::M(decoded.data.members().clone());
                format!("{} {}", decoded.event_type, plain_json::value(&data))
            }
            Err(error) => error.to_string(),
        }
    }

    /// The example of the documentation.
    fn evse() -> serde_json::Value {
        let document = include_str!("../../../../../docs/systems/chargers.md");
        let start = document.find("```json evse-v1").expect("the example");
        let text = &document[start..];
        let text = &text[text.find('\n').expect("a line") + 1..];
        serde_json::from_str(&text[..text.find("```").expect("an end")]).expect("json")
    }

    #[test]
    fn documented_decoder_reads_the_documented_event() {
        let payload = [0x01, 0x0a, 0x02, 0x3e, 0x80, 0x09, 0x60, 0x3c];
        assert_eq!(
            decode(&evse(), &payload),
            r#"telemetry {"current_ma":16000,"fault_ground":false,"fault_overheat":true,"j1772_state":"C","proximity":true,"temperature_c":20,"voltage_mv":240000}"#
        );
        // Older firmware sends no temperature.
        assert!(decode(&evse(), &payload[..7]).contains(r#""voltage_mv":240000}"#));
        assert!(decode(&evse(), &[2, 0, 0, 0, 0, 0, 0]).starts_with("boot "));
        assert_eq!(
            decode(&evse(), &[9, 0, 0, 0, 0, 0, 0]),
            "event_type: 9 is not one of its values"
        );
    }

    #[test]
    fn fields_are_scaled_exactly() {
        let field = |number_type: &str, scale: f64, add: f64| json!({"fields": [{"name": "a", "offset": 0, "type": number_type, "scale": scale, "add": add}]});
        for (document, payload, expected) in [
            (field("u8", 0.1, 0.0), vec![3], r#"telemetry {"a":0.3}"#),
            (
                field("i16", 0.01, -40.0),
                vec![0xff, 0xff],
                r#"telemetry {"a":-40.01}"#,
            ),
            (
                field("u64", 1e-3, 0.0),
                vec![0xff; 8],
                r#"telemetry {"a":18446744073709551.615}"#,
            ),
            (
                field("f32", 1.0, 0.0),
                vec![0x3d, 0xcc, 0xcc, 0xcd],
                r#"telemetry {"a":0.1}"#,
            ),
            (
                field("f32", 1.0, 0.0),
                vec![0x7f, 0xc0, 0, 0],
                "a: the number is not finite",
            ),
        ] {
            assert_eq!(decode(&document, &payload), expected);
        }
        let large = decode(&field("f64", 1e300, 0.0), &[0x40; 8]);
        assert!(
            large.starts_with("a: the number cannot be stored"),
            "{large}"
        );
    }

    #[test]
    fn other_values_have_a_text_or_fail() {
        let with = |values: serde_json::Value| json!({"fields": [{"name": "a", "offset": 0, "type": "i8", "values": values}]});
        let known = with(json!({"-1": "off", "1": "on"}));
        assert_eq!(decode(&known, &[0xff]), r#"telemetry {"a":"off"}"#);
        assert_eq!(decode(&known, &[7]), "a: 7 is not one of its values");
        let other = with(json!({"1": "on", "*": "other"}));
        assert_eq!(decode(&other, &[7]), r#"telemetry {"a":"other"}"#);
    }

    #[test]
    fn flags_are_booleans_or_a_list() {
        let with = |flags_as: &str| {
            let flags = json!({"0": "fault_a", "3": "fault_b"});
            json!({"fields": [{"name": "faults", "offset": 0, "type": "u8", "bits": {"first": 4, "length": 4}, "flags": flags, "flags_as": flags_as}]})
        };
        let booleans = decode(&with("booleans"), &[0x8f]);
        assert_eq!(booleans, r#"telemetry {"fault_a":false,"fault_b":true}"#);
        let list = decode(&with("list"), &[0x9f]);
        assert_eq!(list, r#"telemetry {"faults":["fault_a","fault_b"]}"#);
    }

    #[test]
    fn hexadecimal_text_is_read_as_bytes() {
        let document =
            json!({"payload": "hex_text", "fields": [{"name": "a", "offset": 1, "type": "u8"}]});
        assert_eq!(decode(&document, b"f4e6"), r#"telemetry {"a":230}"#);
        let error = decode(&document, b"f4e");
        assert!(
            error.starts_with("payload: not hexadecimal digits"),
            "{error}"
        );
    }

    fn field() -> impl Strategy<Value = serde_json::Value> {
        let number_type = prop::sample::select(vec![
            "u8", "u16", "u24", "u32", "u64", "i8", "i16", "i24", "i32", "i64", "f32", "f64",
        ]);
        let bits = of((0u32..66, 0u32..66));
        let texts = || {
            of(prop::collection::btree_map(
                "-?[0-9]{1,3}|\\*",
                "[a-z_ ]{1,4}",
                1..4,
            ))
        };
        let scale = of(prop_oneof![any::<f64>(), Just(0.1)]);
        (
            ("[a-z]{1,3}", 0usize..40, number_type, any::<bool>(), bits),
            (scale.clone(), scale, texts(), texts(), any::<bool>()),
        )
            .prop_map(|((name, offset, number_type, is_little, bits), (scale, add, values, flags, optional))| {
                json!({
                    "name": name, "offset": offset, "type": number_type, "optional": optional,
                    "endian": if is_little { "little" } else { "big" },
                    "bits": bits.map(|(first, length)| json!({"first": first, "length": length})),
                    "scale": scale, "add": add, "values": values, "flags": flags,
                })
            })
    }

    proptest! {
        #[test]
        fn no_decoder_and_payload_panic(
            fields in vec(field(), 0..4),
            is_hex: bool,
            code in of(field()),
            payload in vec(any::<u8>(), 0..64),
        ) {
            let code = code.map(|code| json!({
                "offset": code["offset"], "type": code["type"], "bits": code["bits"],
                "values": if code["values"].is_null() { json!({"*": "boot"}) } else { code["values"].clone() },
            }));
            let payload_form = if is_hex { "hex_text" } else { "bytes" };
            let document = json!({"fields": fields, "event_type_from": code, "payload": payload_form});
            let document: DecoderDocument = serde_json::from_value(document).unwrap();
            if let Ok(decoder) = Decoders::check(&document) {
                let first = decoder.decode(&payload);
                prop_assert_eq!(&first, &decoder.decode(&payload));
                let digits = hex::encode(&payload);
                let _ = decoder.decode(digits.as_bytes());
            }
        }

        #[test]
        fn valid_fields_of_long_payloads_decode(
            offset in 0usize..40, first in 0u32..32, length in 1u32..=32, payload in vec(any::<u8>(), 48),
        ) {
            let length = length.min(32 - first);
            let document = json!({"fields": [{
                "name": "a", "offset": offset, "type": "u32", "bits": {"first": first, "length": length},
            }]});
            let number = u32::from_be_bytes(payload[offset..offset + 4].try_into().unwrap());
            let expected = (u64::from(number) >> first) & ((1 << length) - 1);
            prop_assert_eq!(decode(&document, &payload), format!("telemetry {{\"a\":{expected}}}"));
        }
    }
}
