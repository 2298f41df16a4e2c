//! Schemas of uplinks and payload decoders. A schema cannot describe how the members of a decoder depend on each other.

use std::borrow::Cow;

use homeport_systems::chargers::decoders::{
    DESCRIPTION_CHARS_MAX, DEVICES_MAX, DecoderName, FIELDS_MAX, PORTS_MAX, PREFIX_BYTES_MAX,
    UNIT_CHARS_MAX, VALUE_CHARS_MAX, VALUES_MAX,
};
use homeport_systems::chargers::{EVENTS_PER_REQUEST_MAX, PAYLOAD_BYTES_MAX};
use serde_json::{Value, json};
use utoipa::openapi::schema::{AllOfBuilder, AnyOfBuilder, ObjectBuilder, Schema, Type};
use utoipa::openapi::{Ref, RefOr};
use utoipa::{IntoParams, PartialSchema, ToSchema};

use super::chargers::device_name;
use super::{
    UUID, closed_object, list_of_any, nullable, of, or_null, parameters, text, text_schemas,
};

/// Base64 with padding.
const BASE64: &str = "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$";
const HEX: &str = "^([0-9a-fA-F]{2})*$";
/// Characters of the Base64 of the longest payload.
const BASE64_CHARS_MAX: usize = PAYLOAD_BYTES_MAX.div_ceil(3) * 4;
const NAME: &str = "^[a-zA-Z0-9_.-]+$";

parameters! {
    DecoderPath in Path {
        /// Decoder name
        name: decoder_name;
    }
}

text_schemas! {
    decoder_name = of::<DecoderName>();
    decoder_name_or_null = or_null::<DecoderName>();
    base64_or_null = text(BASE64, 0..=BASE64_CHARS_MAX)
        .schema_type(nullable(Type::String))
        .examples(["AQIDPoA="]);
    hex_or_null = text(HEX, 0..=2 * PAYLOAD_BYTES_MAX)
        .schema_type(nullable(Type::String))
        .examples(["0102033e80"]);
}

#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
#[allow(
    dead_code,
    reason = "only describes parameters in the OpenAPI document"
)]
pub(crate) struct DecoderVersionPath {
    /// Decoder name
    #[param(schema_with = decoder_name)]
    name: String,
    /// Version
    #[param(minimum = 1, maximum = 9_007_199_254_740_991_i64)]
    version: i64,
}

/// Schema of an uplink of AWS IoT Wireless.
#[derive(Debug)]
pub(crate) struct UplinkSchema;

/// Schema of a payload decoder.
#[derive(Debug)]
pub(crate) struct DecoderSchema;

impl PartialSchema for UplinkSchema {
    fn schema() -> RefOr<Schema> {
        uplink()
    }
}

impl ToSchema for UplinkSchema {
    fn name() -> Cow<'static, str> {
        Cow::Borrowed("ChargerUplink")
    }
}

impl PartialSchema for DecoderSchema {
    fn schema() -> RefOr<Schema> {
        parsed(decoder())
    }
}

impl ToSchema for DecoderSchema {
    fn name() -> Cow<'static, str> {
        Cow::Borrowed("ChargerDecoderDocument")
    }
}

/// One uplink or a list.
pub(crate) fn uplinks() -> RefOr<Schema> {
    let list = closed_object()
        .property(
            "uplinks",
            list_of_any("ChargerUplink", EVENTS_PER_REQUEST_MAX),
        )
        .required("uplinks");
    let no_list =
        ObjectBuilder::new().property("uplinks", ObjectBuilder::new().schema_type(Type::Null));
    let uplink = RefOr::<Schema>::Ref(Ref::from_schema_name("ChargerUplink"));
    AnyOfBuilder::new()
        .item(list)
        .item(AllOfBuilder::new().item(uplink).item(no_list))
        .description(Some("One uplink, or up to 100 of them"))
        .into()
}

fn uplink() -> RefOr<Schema> {
    let whole = json!({"type": ["integer", "null"], "format": "int64", "minimum": 0});
    let time = json!({"type": ["string", "null"], "format": "date-time"});
    let network = |sequence: &str| {
        let mut properties = json!({"Timestamp": time});
        properties[sequence] = whole.clone();
        json!({"type": "object", "properties": properties, "description": "Other members are stored as they are"})
    };
    let mut lorawan = network("FCnt");
    lorawan["properties"]["FPort"] =
        json!({"type": ["integer", "null"], "minimum": 0, "maximum": 255});
    let one = |name: &str, schema: Value| json!({"type": "object", "properties": {name: schema}, "required": [name]});
    let metadata = json!({"oneOf": [one("Sidewalk", network("Seq")), one("LoRaWAN", lorawan)]});
    parsed(json!({
        "type": "object",
        "description": "A message of AWS IoT Wireless; other members are stored as they are",
        "required": ["WirelessDeviceId", "PayloadData", "WirelessMetadata"],
        "properties": {
            "WirelessDeviceId": {"type": "string", "pattern": UUID, "minLength": 36, "maxLength": 36},
            "PayloadData": {"type": "string", "pattern": BASE64, "maxLength": BASE64_CHARS_MAX},
            "WirelessMetadata": metadata,
        },
        "example": {
            "WirelessDeviceId": "b319d001-6b08-4d88-b4ca-4d2d98a6d43c",
            "PayloadData": "AQIDPoA=",
            "WirelessMetadata": {"Sidewalk": {"Seq": 7, "Timestamp": "2026-02-21T21:30:00.295Z"}},
        },
    }))
}

fn decoder() -> Value {
    let device = serde_json::to_value(device_name()).unwrap_or_default();
    let printable = |chars: usize| json!({"type": "string", "minLength": 1, "maxLength": chars});
    let endian = json!({"type": ["string", "null"], "enum": ["big", "little", null]});
    let bits = json!({
        "type": ["object", "null"], "additionalProperties": false, "required": ["first", "length"],
        "description": "Some bits of a whole number; bit 0 is the least significant one",
        "properties": {
            "first": {"type": "integer", "minimum": 0, "maximum": 63},
            "length": {"type": "integer", "minimum": 1, "maximum": 64},
        },
    });
    let texts = |description: &str| {
        json!({
            "type": "object", "description": description,
            "minProperties": 1, "maxProperties": VALUES_MAX,
            "additionalProperties": printable(VALUE_CHARS_MAX),
        })
    };
    let number = json!({
        "offset": {"type": "integer", "minimum": 0, "maximum": PAYLOAD_BYTES_MAX - 1, "description": "Bytes before the number"},
        "type": {"type": "string", "enum": ["u8", "u16", "u24", "u32", "u64", "i8", "i16", "i24", "i32", "i64", "f32", "f64"]},
        "endian": endian,
        "bits": bits,
    });
    let with = |others: Value| {
        let mut members = number.clone();
        if let (Value::Object(members), Value::Object(others)) = (&mut members, others) {
            members.extend(others);
        }
        members
    };
    let or_null = |mut schema: Value| {
        schema["type"] = json!(["object", "null"]);
        schema
    };
    let field = json!({
        "type": "object", "additionalProperties": false, "required": ["name", "offset", "type"],
        "properties": with(json!({
            "name": {"type": "string", "pattern": NAME, "minLength": 1, "maxLength": 64},
            "scale": {"type": ["number", "null"], "description": "The number is multiplied by this"},
            "add": {"type": ["number", "null"], "description": "This is added after scaling"},
            "unit": {"type": ["string", "null"], "minLength": 1, "maxLength": UNIT_CHARS_MAX, "description": "For readers of the decoder"},
            "values": or_null(texts("The text for each number; `*` is for all others")),
            "flags": or_null(texts("The name of each bit")),
            "flags_as": {"type": ["string", "null"], "enum": ["booleans", "list", null]},
            "optional": {"type": "boolean", "description": "Whether payloads may end before the field"},
        })),
    });
    json!({
        "type": "object", "additionalProperties": false, "required": ["fields"],
        "properties": {
            "description": {"type": ["string", "null"], "minLength": 1, "maxLength": DESCRIPTION_CHARS_MAX},
            "applies_to": {
                "type": "object", "additionalProperties": false,
                "description": "The uplinks that the decoder is for; all of them if empty",
                "properties": {
                    "devices": {"type": "array", "items": device, "maxItems": DEVICES_MAX},
                    "network": {"type": ["string", "null"], "enum": ["sidewalk", "lorawan", null]},
                    "f_ports": {"type": "array", "maxItems": PORTS_MAX, "items": {"type": "integer", "minimum": 0, "maximum": 255}},
                    "prefix": {"type": ["string", "null"], "pattern": "^([0-9a-fA-F]{2})+$", "minLength": 2, "maxLength": 2 * PREFIX_BYTES_MAX, "description": "The first bytes of the payload"},
                },
            },
            "payload": {"type": "string", "enum": ["bytes", "hex_text"], "description": "What the payload contains; default `bytes`"},
            "endian": {"type": "string", "enum": ["big", "little"], "description": "Byte order; default `big`"},
            "event_type": {"type": ["string", "null"], "pattern": NAME, "minLength": 1, "maxLength": 64, "description": "Default `telemetry`"},
            "event_type_from": {
                "type": ["object", "null"], "additionalProperties": false, "required": ["offset", "type", "values"],
                "description": "A number in the payload that determines the event type",
                "properties": with(json!({"values": texts("The event type for each number; `*` is for all others")})),
            },
            "fields": {"type": "array", "items": field, "maxItems": FIELDS_MAX},
        },
        "example": {
            "event_type_from": {"offset": 0, "type": "u8", "values": {"1": "telemetry", "2": "boot"}},
            "fields": [
                {"name": "j1772_state", "offset": 1, "type": "u8", "bits": {"first": 0, "length": 3}, "values": {"0": "A", "1": "B", "2": "C"}},
                {"name": "faults", "offset": 2, "type": "u8", "flags": {"0": "fault_ground", "1": "fault_overheat"}},
                {"name": "current_ma", "offset": 3, "type": "u16", "unit": "mA"},
            ],
        },
    })
}

fn parsed(schema: Value) -> RefOr<Schema> {
    let schema: Schema =
        serde_json::from_value(schema).expect("the schemas of this file are valid");
    schema.into()
}
