//! Schemas of fields whose bounds a Rust type does not show. They are as strict as the checks: a client that
//! follows the document is accepted, and any other is rejected.

pub(crate) mod alerts;
pub(crate) mod chargers;
pub(crate) mod records;
pub(crate) mod rules;
pub(crate) mod telemetry;

use homeport_systems::api_keys::{DESCRIPTION_CHARS_MAX, SCOPE_LEN_MAX, SCOPES_MAX};
use utoipa::openapi::schema::{
    AdditionalProperties, AnyOfBuilder, ArrayBuilder, ObjectBuilder, Schema, SchemaType, Type,
};
use utoipa::openapi::{KnownFormat, Ref, RefOr, SchemaFormat};

const HARDWARE_ID: &str = "^[0-9A-F]{2}(:[0-9A-F]{2}){5}$";
const UUID: &str = "^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$";
const UUID_V4: &str =
    "^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-4[0-9a-fA-F]{3}-[89abAB][0-9a-fA-F]{3}-[0-9a-fA-F]{12}$";
const UUID_EXAMPLE: &str = "7c9e6679-7425-40de-944b-e07fc1f90ae7";
/// No control characters.
const PRINTABLE: &str = r"^[^\u0000-\u001F\u007F-\u009F]+$";
/// No control characters, and at least one character that is not white space.
const VISIBLE: &str = r"^[^\u0000-\u001F\u007F-\u009F]*[^\s\u0000-\u001F\u007F-\u009F][^\u0000-\u001F\u007F-\u009F]*$";
const PRINTABLE_ASCII: &str = "^[ -~]+$";
const GRAPHIC_ASCII: &str = "^[!-~]+$";
/// Graphic characters without brackets, in brackets.
const EXPO_PUSH_TOKEN: &str = r"^(ExponentPushToken|ExpoPushToken)\[[!-Z\\^-~]+\]$";
const NAME: &str = "^[a-zA-Z0-9_]+$";
/// Maximum number of sensors or features of a device.
const CAPABILITIES_MAX: usize = 64;

/// Declares functions that return the schema of a text: its pattern, its length, and calls of the builder.
macro_rules! text_schemas {
    ($($(#[$doc:meta])* $name:ident($pattern:expr, $length:expr) $(.$method:ident($argument:expr))*;)*) => {$(
        $(#[$doc])*
        pub(crate) fn $name() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
            $crate::openapi::schemas::text($pattern, $length)$(.$method($argument))*.into()
        }
    )*};
}
use text_schemas;

/// Declares the parameters of a path, query or header that have such a schema. They are required unless they say
/// otherwise. The derive macro would ignore both that and the description.
macro_rules! parameters {
    ($($name:ident in $place:ident {
        $(#[doc = $description:literal] $field:ident: $schema:ident
            $(, rename = $rename:literal)? $(, required = $required:literal)?;)*
    })*) => {$(
        pub(crate) struct $name;

        impl utoipa::IntoParams for $name {
            fn into_params(
                _: impl Fn() -> Option<utoipa::openapi::path::ParameterIn>,
            ) -> Vec<utoipa::openapi::path::Parameter> {
                vec![$({
                    let name = [$($rename,)? stringify!($field)][0];
                    let is_required = [$($required,)? true][0];
                    utoipa::openapi::path::ParameterBuilder::new()
                        .name(name)
                        .parameter_in(utoipa::openapi::path::ParameterIn::$place)
                        .description(Some($description.trim_start()))
                        .required(if is_required {
                            utoipa::openapi::Required::True
                        } else {
                            utoipa::openapi::Required::False
                        })
                        .schema(Some($schema()))
                        .build()
                },)*]
            }
        }
    )*};
}
use parameters;

parameters! {
    DevicePath in Path {
        /// Hardware id (MAC address)
        hardware_id: hardware_id;
    }
    KeyPath in Path {
        /// API key id
        key_id: uuid;
    }
    PushDevicePath in Path {
        /// Device id
        device_id: graphic_id;
    }
    UserPath in Path {
        /// User id
        user_id: graphic_id;
    }
}

text_schemas! {
    hardware_id(HARDWARE_ID, 17..=17).examples(["AA:BB:CC:DD:EE:FF"]);
    uuid(UUID, 36..=36).examples([UUID_EXAMPLE]);
    uuid_v4(UUID_V4, 36..=36).examples([UUID_EXAMPLE]);
    batch_id(GRAPHIC_ASCII, 1..=256)
        .description(Some("Id of the reading; a repeat with the same id is not stored again"));
    firmware_version(PRINTABLE_ASCII, 1..=64).examples(["1.0.16"]);
    friendly_name_change(VISIBLE, 1..=64)
        .schema_type(nullable(Type::String))
        .description(Some("Absent keeps the name, null removes it"))
        .examples(["greenhouse-sensor-01"]);
    key_description(PRINTABLE, 1..=DESCRIPTION_CHARS_MAX)
        .schema_type(nullable(Type::String))
        .description(Some("Description"));
    graphic_id(GRAPHIC_ASCII, 1..=128);
    expo_push_token(EXPO_PUSH_TOKEN, 16..=256)
        .examples(["ExponentPushToken[xxxxxxxxxxxxxxxxxxxxxx]"]);
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

pub(crate) fn key_system() -> RefOr<Schema> {
    let systems = homeport_systems::fleet::SYSTEMS.iter();
    let values = systems.map(|system| serde_json::json!(system.name.as_str()));
    ObjectBuilder::new()
        .schema_type(nullable(Type::String))
        .enum_values(Some(values.chain([serde_json::Value::Null])))
        .description(Some("The system that the key is for; default `sensors`"))
        .into()
}

pub(crate) fn key_scopes() -> RefOr<Schema> {
    ArrayBuilder::new()
        .items(text(PRINTABLE, 1..=SCOPE_LEN_MAX))
        .max_items(Some(SCOPES_MAX))
        .description(Some(
            "Devices, things, groups or users that the key may read and write; all of its system if empty",
        ))
        .into()
}

/// A time: milliseconds since 1970, or RFC 3339.
pub(crate) fn time() -> RefOr<Schema> {
    let millis = ObjectBuilder::new()
        .schema_type(Type::Integer)
        .format(Some(SchemaFormat::KnownFormat(KnownFormat::Int64)))
        .minimum(Some(i64::MIN))
        .maximum(Some(i64::MAX));
    AnyOfBuilder::new()
        .item(millis)
        .item(date_time())
        .description(Some("Milliseconds since 1970, or RFC 3339"))
        .into()
}

fn date_time() -> ObjectBuilder {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime)))
}

/// The readings of a request. Each is validated on its own, so the document must not say that a request
/// with an invalid one is rejected.
pub(crate) fn readings() -> RefOr<Schema> {
    list_of_any(
        "NewReading",
        homeport_systems::sensors::READINGS_PER_REQUEST_MAX,
    )
    .into()
}

/// A list of items whose invalid ones are rejected one by one.
fn list_of_any(schema_name: &str, items_max: usize) -> ArrayBuilder {
    let item = RefOr::<Schema>::Ref(Ref::from_schema_name(schema_name));
    let invalid = ObjectBuilder::new()
        .schema_type(SchemaType::AnyValue)
        .description(Some(
            "An invalid item is rejected in `results`, and the others are stored",
        ));
    ArrayBuilder::new()
        .items(AnyOfBuilder::new().item(item).item(invalid))
        .min_items(Some(1))
        .max_items(Some(items_max))
}

pub(crate) fn platform() -> RefOr<Schema> {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .enum_values(Some(["ios", "android"]))
        .into()
}

fn text(pattern: &str, length: std::ops::RangeInclusive<usize>) -> ObjectBuilder {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .pattern(Some(pattern))
        .min_length(Some(*length.start()))
        .max_length(Some(*length.end()))
}

fn nullable(kind: Type) -> SchemaType {
    SchemaType::from_iter([kind, Type::Null])
}

/// An object without other members.
fn closed_object() -> ObjectBuilder {
    let no_others: AdditionalProperties<Schema> = AdditionalProperties::FreeForm(false);
    ObjectBuilder::new().additional_properties(Some(no_others))
}

/// An object with exactly one member.
fn single_member(name: &str, schema: impl Into<RefOr<Schema>>) -> ObjectBuilder {
    closed_object().property(name, schema).required(name)
}
