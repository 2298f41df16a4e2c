//! The forms of the fields of alerts.

use homeport_systems::alerts;
use utoipa::IntoParams;
use utoipa::openapi::schema::{
    AdditionalProperties, ArrayBuilder, ObjectBuilder, OneOfBuilder, Schema, SchemaType, Type,
};
use utoipa::openapi::{Ref, RefOr};

use super::{PRINTABLE, VISIBLE, graphic_id, nullable, text};

const TIMED_ID: &str =
    "^[0-9]{13}-[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$";
/// Names with dots between them.
const ATTRIBUTE: &str =
    r"^[^.\u0000-\u001F\u007F-\u009F]+(\.[^.\u0000-\u001F\u007F-\u009F]+){0,7}$";
const URL: &str = r"^https?://[a-zA-Z0-9-]+(\.[a-zA-Z0-9-]+)*(:[1-9][0-9]{0,3})?(/[a-zA-Z0-9._~:/?@!$&'()*+,;=%-]*)?$";
const TOPIC: &str = r##"^[ !"%-*,-~][ -"$-*,-~]*$"##;
const EMAIL: &str = r"^[a-zA-Z0-9]+([._+-][a-zA-Z0-9]+)*@[a-zA-Z0-9]+(-[a-zA-Z0-9]+)*(\.[a-zA-Z0-9]+(-[a-zA-Z0-9]+)*)*$";
/// 24, 27 and so on bytes need no padding; any other number up to 64 is taken too.
const SECRET: &str = "^whsec_([a-zA-Z0-9+/]{4}){8,21}$";
const MINUTE: &str = "^([01][0-9]|2[0-3]):[0-5][0-9]$";

/// The part of an address that names a definition.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
#[allow(dead_code, reason = "describes the path in the OpenAPI document")]
pub(crate) struct DefinitionPath {
    /// The definition
    #[param(schema_with = timed_id)]
    definition_id: String,
}

/// The part of an address that names an alert.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
#[allow(dead_code, reason = "describes the path in the OpenAPI document")]
pub(crate) struct AlertPath {
    /// The alert
    #[param(schema_with = timed_id)]
    alert_id: String,
}

pub(crate) fn timed_id() -> RefOr<Schema> {
    text(TIMED_ID, 50..=50)
        .examples(["1800000000000-7c9e6679-7425-40de-944b-e07fc1f90ae7"])
        .into()
}

pub(crate) fn name() -> RefOr<Schema> {
    text(VISIBLE, 1..=alerts::NAME_CHARS_MAX).into()
}

pub(crate) fn note() -> RefOr<Schema> {
    text(VISIBLE, 1..=alerts::NOTE_CHARS_MAX)
        .schema_type(nullable(Type::String))
        .into()
}

pub(crate) fn attribute() -> RefOr<Schema> {
    text(ATTRIBUTE, 1..=alerts::ATTRIBUTE_CHARS_MAX)
        .description(Some("Where the value is: names with dots between them"))
        .examples(["battery.volts"])
        .into()
}

pub(crate) fn minute() -> RefOr<Schema> {
    text(MINUTE, 5..=5).examples(["22:30"]).into()
}

pub(crate) fn zone() -> RefOr<Schema> {
    text(PRINTABLE, 1..=64)
        .description(Some("A time zone of the IANA's database"))
        .examples(["Europe/Berlin"])
        .into()
}

/// A decimal with every digit.
pub(crate) fn decimal() -> RefOr<Schema> {
    ObjectBuilder::new()
        .schema_type(Type::Number)
        .description(Some("At most 38 digits"))
        .examples([12.4])
        .into()
}

pub(crate) fn decimal_or_null() -> RefOr<Schema> {
    ObjectBuilder::new()
        .schema_type(SchemaType::from_iter([Type::Number, Type::Null]))
        .into()
}

/// All devices when it is absent or null.
pub(crate) fn devices() -> RefOr<Schema> {
    let device = || text(VISIBLE, 1..=alerts::DEVICE_CHARS_MAX);
    let listed = ArrayBuilder::new()
        .items(device())
        .min_items(Some(1))
        .max_items(Some(alerts::DEVICES_LISTED_MAX));
    OneOfBuilder::new()
        .item(ObjectBuilder::new().schema_type(Type::Null))
        .item(only("listed", listed))
        .item(only("prefix", device()))
        .description(Some(
            "Which devices are watched: those listed, or those whose names begin so; all unless given",
        ))
        .into()
}

pub(crate) fn condition() -> RefOr<Schema> {
    OneOfBuilder::new()
        .item(only("threshold", Ref::from_schema_name("AlertThreshold")))
        .item(only("absence", Ref::from_schema_name("AlertAbsence")))
        .item(only("rate", Ref::from_schema_name("AlertRate")))
        .description(Some("What is watched for"))
        .into()
}

pub(crate) fn targets() -> RefOr<Schema> {
    let webhook = object([
        ("url", text(URL, 8..=alerts::URL_LEN_MAX), true),
        (
            "secret",
            text(SECRET, 38..=94).schema_type(nullable(Type::String)),
            false,
        ),
    ]);
    let topic = text(TOPIC, 1..=alerts::TOPIC_LEN_MAX).schema_type(nullable(Type::String));
    let mqtt = object([("topic", topic, false)]);
    let email = object([("to", text(EMAIL, 3..=alerts::EMAIL_LEN_MAX), true)]);
    let push = ObjectBuilder::new()
        .property("user_id", graphic_id())
        .required("user_id")
        .additional_properties(Some(AdditionalProperties::FreeForm(false)));
    let target = OneOfBuilder::new()
        .item(only("push", push))
        .item(only("webhook", webhook))
        .item(only("mqtt", mqtt))
        .item(only("email", email));
    ArrayBuilder::new()
        .schema_type(nullable(Type::Array))
        .items(target)
        .max_items(Some(alerts::TARGETS_MAX))
        .description(Some("Who is told"))
        .into()
}

fn object<const N: usize>(members: [(&str, ObjectBuilder, bool); N]) -> ObjectBuilder {
    let mut object =
        ObjectBuilder::new().additional_properties(Some(AdditionalProperties::FreeForm(false)));
    for (name, schema, is_required) in members {
        object = object.property(name, schema);
        if is_required {
            object = object.required(name);
        }
    }
    object
}

/// An object with one member and no other.
fn only(name: &str, schema: impl Into<RefOr<Schema>>) -> ObjectBuilder {
    ObjectBuilder::new()
        .property(name, schema)
        .required(name)
        .additional_properties(Some(AdditionalProperties::FreeForm(false)))
}
