//! Schemas of fields whose bounds a Rust type does not show. They are as strict as the checks: a client that
//! follows the document is accepted, and any other is rejected.

pub(crate) mod alerts;
pub(crate) mod chargers;
pub(crate) mod people;
pub(crate) mod records;
pub(crate) mod rules;
pub(crate) mod telemetry;
pub(crate) mod uplinks;

use homeport_systems::api_keys::{DESCRIPTION_CHARS_MAX, KeyPermission, SCOPE_LEN_MAX, SCOPES_MAX};
use homeport_systems::push::{BroadcastId, ExpoPushToken, UserId};
use homeport_systems::sensors::{
    BatchId, CAPABILITIES_MAX, FirmwareVersion, FriendlyName, HardwareId, SensorName,
    TIMESTAMP_MS_MAX,
};
use homeport_systems::text::{PRINTABLE, TextType};
use utoipa::openapi::schema::{
    AdditionalProperties, AnyOfBuilder, ArrayBuilder, ObjectBuilder, Schema, SchemaType, Type,
};
use utoipa::openapi::{KnownFormat, Ref, RefOr, SchemaFormat};

const UUID: &str = "^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$";
const UUID_V4: &str =
    "^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-4[0-9a-fA-F]{3}-[89abAB][0-9a-fA-F]{3}-[0-9a-fA-F]{12}$";
const UUID_EXAMPLE: &str = "7c9e6679-7425-40de-944b-e07fc1f90ae7";
/// A time relative to the present.
const AGE: &str = "^-[0-9]{1,9}[smhdw]$";

/// Declares functions that return the schema of a text.
macro_rules! text_schemas {
    ($($(#[$doc:meta])* $name:ident = $builder:expr;)*) => {$(
        $(#[$doc])*
        pub(crate) fn $name() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
            $builder.into()
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
    ReadingPath in Path {
        /// Hardware id (MAC address)
        hardware_id: hardware_id;
        /// Time of the reading: milliseconds since 1970
        timestamp_ms: timestamp_ms;
        /// Id of the reading
        batch_id: batch_id;
    }
    KeyPath in Path {
        /// API key id
        key_id: uuid;
    }
    PushDevicePath in Path {
        /// Device id
        device_id: graphic_id;
    }
    BroadcastPath in Path {
        /// Broadcast id
        broadcast_id: broadcast_id;
    }
    UserPath in Path {
        /// User id
        user_id: graphic_id;
    }
}

text_schemas! {
    hardware_id = of::<HardwareId>();
    uuid = text(UUID, 36..=36).examples([UUID_EXAMPLE]);
    uuid_v4 = text(UUID_V4, 36..=36).examples([UUID_EXAMPLE]);
    batch_id = of::<BatchId>()
        .description(Some("Id of the reading; a repeat with the same id is not stored again"));
    firmware_version = of::<FirmwareVersion>();
    friendly_name_change = or_null::<FriendlyName>()
        .description(Some("Absent keeps the name, null removes it"));
    key_description = text(PRINTABLE.pattern, 1..=DESCRIPTION_CHARS_MAX)
        .schema_type(nullable(Type::String))
        .description(Some("Description"));
    /// The id of a user or of a device of push.
    graphic_id = of::<UserId>();
    expo_push_token = of::<ExpoPushToken>();
    broadcast_id = of::<BroadcastId>();
}

pub(crate) fn sensor_names() -> RefOr<Schema> {
    ArrayBuilder::new()
        .items(of::<SensorName>())
        .max_items(Some(CAPABILITIES_MAX))
        .examples([serde_json::json!(["bme280", "ds18b20", "soil_moisture"])])
        .into()
}

pub(crate) fn features() -> RefOr<Schema> {
    ObjectBuilder::new()
        .property_names(Some(Schema::Object(of::<SensorName>().build())))
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
        .items(text(PRINTABLE.pattern, 1..=SCOPE_LEN_MAX))
        .max_items(Some(SCOPES_MAX))
        .description(Some(
            "Hardware ids, SC-IDs or UUIDs of chargers, thing names, group ids or user ids that the key may read and write",
        ))
        .into()
}

fn timestamp_ms() -> RefOr<Schema> {
    ObjectBuilder::new()
        .schema_type(Type::Integer)
        .format(Some(SchemaFormat::KnownFormat(KnownFormat::Int64)))
        .minimum(Some(0))
        .maximum(Some(TIMESTAMP_MS_MAX - 1))
        .examples([serde_json::json!(1_704_067_800_000_i64)])
        .into()
}

pub(crate) fn key_permissions() -> RefOr<Schema> {
    let names = KeyPermission::ALL.map(KeyPermission::as_str);
    let permission = ObjectBuilder::new()
        .schema_type(Type::String)
        .enum_values(Some(names));
    ArrayBuilder::new()
        .items(permission)
        .max_items(Some(KeyPermission::ALL.len()))
        .description(Some(
            "For telemetry: `send_commands` sends commands to things; `subscribe_fleet` subscribes to the topics of all \
             things at once. For push: `send_broadcasts` sends to the devices of all users. The last two need a key of \
             the whole system",
        ))
        .into()
}

/// A time: milliseconds since 1970, RFC 3339, or an age.
pub(crate) fn time() -> RefOr<Schema> {
    any_time()
        .description(Some(
            "Milliseconds since 1970, RFC 3339, or an age in s, m, h, d or w such as `-24h`",
        ))
        .into()
}

fn any_time() -> AnyOfBuilder {
    let millis = ObjectBuilder::new()
        .schema_type(Type::Integer)
        .format(Some(SchemaFormat::KnownFormat(KnownFormat::Int64)))
        .minimum(Some(i64::MIN))
        .maximum(Some(i64::MAX));
    AnyOfBuilder::new()
        .item(millis)
        .item(date_time())
        .item(text(AGE, 3..=11))
}

fn date_time() -> ObjectBuilder {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime)))
}

/// Readings, each stored independently of the others. Each is validated on its own, so the document must not say that a
/// request with an invalid one is rejected.
pub(crate) fn readings() -> RefOr<Schema> {
    let list = list_of_any(
        "NewReading",
        homeport_systems::sensors::READINGS_PER_REQUEST_MAX,
    );
    single_member("readings", list).into()
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

/// The schema of a text type.
fn of<T: TextType>() -> ObjectBuilder {
    let rule = T::RULE;
    let schema = text(rule.form.pattern, rule.chars_min..=rule.chars_max);
    match rule.examples {
        [] => schema,
        examples => schema.examples(examples.iter().copied()),
    }
}

/// The schema of a text type that may be null.
fn or_null<T: TextType>() -> ObjectBuilder {
    of::<T>().schema_type(nullable(Type::String))
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
