//! The forms of fields in the OpenAPI document, as exact as the checks behind them: a client that
//! keeps to the document is not refused, and one that does not is.

pub(crate) mod alerts;
pub(crate) mod chargers;
pub(crate) mod records;
pub(crate) mod rules;
pub(crate) mod telemetry;

use utoipa::IntoParams;
use utoipa::openapi::schema::{
    AnyOfBuilder, ArrayBuilder, ObjectBuilder, Schema, SchemaType, Type,
};
use utoipa::openapi::{KnownFormat, RefOr, SchemaFormat};

const HARDWARE_ID: &str = "^[0-9A-F]{2}(:[0-9A-F]{2}){5}$";
const UUID: &str = "^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$";
const UUID_V4: &str =
    "^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-4[0-9a-fA-F]{3}-[89abAB][0-9a-fA-F]{3}-[0-9a-fA-F]{12}$";
/// No control characters.
const PRINTABLE: &str = r"^[^\u0000-\u001F\u007F-\u009F]+$";
/// No control characters, and something that can be seen.
const VISIBLE: &str = r"^[^\u0000-\u001F\u007F-\u009F]*[^\s\u0000-\u001F\u007F-\u009F][^\u0000-\u001F\u007F-\u009F]*$";
const PRINTABLE_ASCII: &str = "^[ -~]+$";
const GRAPHIC_ASCII: &str = "^[!-~]+$";
/// What the brackets hold is graphic and has no brackets of its own.
const EXPO_PUSH_TOKEN: &str = r"^(ExponentPushToken|ExpoPushToken)\[[!-Z\\^-~]+\]$";
const NAME: &str = "^[a-zA-Z0-9_]+$";
/// How many sensors or features there can be.
const CAPABILITIES_MAX: usize = 64;

/// The part of an address that names a sensor's device.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
#[allow(dead_code, reason = "describes the path in the OpenAPI document")]
pub(crate) struct DevicePath {
    /// The MAC address
    #[param(schema_with = hardware_id)]
    hardware_id: String,
}

/// The part of an address that names a key.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
#[allow(dead_code, reason = "describes the path in the OpenAPI document")]
pub(crate) struct KeyPath {
    /// The key's id
    #[param(schema_with = uuid)]
    key_id: String,
}

pub(crate) fn hardware_id() -> RefOr<Schema> {
    text(HARDWARE_ID, 17..=17)
        .examples(["AA:BB:CC:DD:EE:FF"])
        .into()
}

fn uuid() -> RefOr<Schema> {
    text(UUID, 36..=36)
        .examples(["7c9e6679-7425-40de-944b-e07fc1f90ae7"])
        .into()
}

pub(crate) fn uuid_v4() -> RefOr<Schema> {
    text(UUID_V4, 36..=36)
        .examples(["7c9e6679-7425-40de-944b-e07fc1f90ae7"])
        .into()
}

pub(crate) fn batch_id() -> RefOr<Schema> {
    text(GRAPHIC_ASCII, 1..=256)
        .description(Some("Identifies this reading, for ever"))
        .into()
}

pub(crate) fn firmware_version() -> RefOr<Schema> {
    text(PRINTABLE_ASCII, 1..=64).examples(["1.0.16"]).into()
}

/// Absent keeps the name, null removes it.
pub(crate) fn friendly_name_change() -> RefOr<Schema> {
    text(VISIBLE, 1..=64)
        .schema_type(nullable(Type::String))
        .description(Some("Absent keeps the name, null removes it"))
        .examples(["greenhouse-sensor-01"])
        .into()
}

pub(crate) fn sensor_names() -> RefOr<Schema> {
    ArrayBuilder::new()
        .items(text(NAME, 1..=64))
        .max_items(Some(CAPABILITIES_MAX))
        .examples([serde_json::json!(["bme280", "ds18b20", "soil_moisture"])])
        .into()
}

pub(crate) fn features() -> RefOr<Schema> {
    ObjectBuilder::new()
        .property_names(Some(Schema::Object(text(NAME, 1..=64).build())))
        .additional_properties(Some(ObjectBuilder::new().schema_type(Type::Boolean)))
        .max_properties(Some(CAPABILITIES_MAX))
        .examples([serde_json::json!({"tft_display": true})])
        .into()
}

pub(crate) fn key_description() -> RefOr<Schema> {
    text(PRINTABLE, 1..=256)
        .schema_type(nullable(Type::String))
        .description(Some("What it is for, in words"))
        .into()
}

pub(crate) fn key_system() -> RefOr<Schema> {
    let systems = homeport_systems::api_keys::schema::SYSTEMS;
    let values = systems.iter().map(|system| serde_json::json!(system));
    ObjectBuilder::new()
        .schema_type(nullable(Type::String))
        .enum_values(Some(values.chain([serde_json::Value::Null])))
        .description(Some(
            "The system whose devices use it; `sensors` unless said otherwise",
        ))
        .into()
}

pub(crate) fn key_scopes() -> RefOr<Schema> {
    ArrayBuilder::new()
        .items(text(PRINTABLE, 1..=256))
        .max_items(Some(homeport_systems::api_keys::SCOPES_MAX))
        .description(Some(
            "What it may write for; any device of its system when empty",
        ))
        .into()
}

/// A moment: milliseconds since 1970, or RFC 3339.
pub(crate) fn time() -> RefOr<Schema> {
    let millis = ObjectBuilder::new()
        .schema_type(Type::Integer)
        .format(Some(SchemaFormat::KnownFormat(KnownFormat::Int64)))
        .minimum(Some(i64::MIN))
        .maximum(Some(i64::MAX));
    AnyOfBuilder::new()
        .item(millis)
        .item(moment())
        .description(Some("Milliseconds since 1970, or RFC 3339"))
        .into()
}

fn moment() -> ObjectBuilder {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime)))
}

/// The array of readings. Each is looked at on its own, so that the document must not promise that
/// a request with a wrong one is refused.
pub(crate) fn readings() -> RefOr<Schema> {
    let reading = RefOr::Ref(utoipa::openapi::Ref::from_schema_name("NewReading"));
    let anything = ObjectBuilder::new()
        .schema_type(SchemaType::AnyValue)
        .description(Some(
            "Anything else is rejected on its own, in `results`, and does not stop the others",
        ));
    ArrayBuilder::new()
        .items(AnyOfBuilder::new().item(reading).item(anything))
        .min_items(Some(1))
        .max_items(Some(homeport_systems::sensors::READINGS_PER_REQUEST_MAX))
        .into()
}

pub(crate) fn graphic_id() -> RefOr<Schema> {
    text(GRAPHIC_ASCII, 1..=128).into()
}

pub(crate) fn user_id() -> RefOr<Schema> {
    graphic_id()
}

pub(crate) fn expo_push_token() -> RefOr<Schema> {
    text(EXPO_PUSH_TOKEN, 16..=256)
        .examples(["ExponentPushToken[xxxxxxxxxxxxxxxxxxxxxx]"])
        .into()
}

pub(crate) fn platform() -> RefOr<Schema> {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .enum_values(Some(["ios", "android"]))
        .into()
}

fn text(pattern: &str, len: std::ops::RangeInclusive<usize>) -> ObjectBuilder {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .pattern(Some(pattern))
        .min_length(Some(*len.start()))
        .max_length(Some(*len.end()))
}

fn nullable(kind: Type) -> SchemaType {
    SchemaType::from_iter([kind, Type::Null])
}
