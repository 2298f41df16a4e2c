//! Schemas of alert definitions.

use homeport_systems::alerts;
use homeport_systems::text::PRINTABLE;
use utoipa::openapi::schema::{
    ArrayBuilder, ObjectBuilder, OneOfBuilder, Schema, SchemaType, Type,
};
use utoipa::openapi::{Ref, RefOr};

use super::{
    closed_object, graphic_id, nullable, of, or_null, parameters, single_member, text, text_schemas,
};

/// Base64 without padding, for lengths of 24, 27 and so on bytes. Other lengths up to 64 are accepted too.
const SECRET: &str = "^whsec_([a-zA-Z0-9+/]{4}){8,21}$";
const MINUTE: &str = "^([01][0-9]|2[0-3]):[0-5][0-9]$";

parameters! {
    DefinitionPath in Path {
        /// Alert definition id
        definition_id: timed_id;
    }
    AlertPath in Path {
        /// Alert id
        alert_id: timed_id;
    }
    TestPath in Path {
        /// Alert definition id
        definition_id: timed_id;
        /// Test id
        test_id: timed_id;
    }
}

text_schemas! {
    timed_id = of::<alerts::AlertId>();
    name = of::<alerts::DefinitionName>();
    timed_id_or_null = or_null::<alerts::DefinitionId>()
        .description(Some("Definition of the alerts"));
    name_or_null = or_null::<alerts::PersonName>()
        .description(Some("Name of a person, or null to remove the assignment"));
    acting_person = or_null::<alerts::PersonName>()
        .description(Some("Who does it; default the caller's own name"));
    note = or_null::<alerts::Note>();
    comment = of::<alerts::CommentText>();
    attribute = of::<alerts::AttributePath>()
        .description(Some("Path of the attribute: names separated by dots"));
    fault_attribute = of::<alerts::AttributePath>()
        .description(Some(
            "Path of the attribute; with * at its end, all attributes that begin like it",
        ))
        .examples(["data.fault_*"]);
    minute = text(MINUTE, 5..=5).examples(["22:30"]);
    zone = text(PRINTABLE.pattern, 1..=64)
        .description(Some("Time zone of the IANA database"))
        .examples(["Europe/Berlin"]);
}

pub(crate) fn alert_ids() -> RefOr<Schema> {
    ArrayBuilder::new()
        .schema_type(nullable(Type::Array))
        .items(of::<alerts::AlertId>())
        .min_items(Some(1))
        .max_items(Some(alerts::ACKNOWLEDGED_AT_ONCE_MAX))
        .description(Some("Ids of the alerts; give either these or a filter"))
        .into()
}

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

pub(crate) fn scalar() -> RefOr<Schema> {
    OneOfBuilder::new()
        .item(of::<alerts::WantedText>())
        .item(ObjectBuilder::new().schema_type(Type::Number))
        .item(ObjectBuilder::new().schema_type(Type::Boolean))
        .description(Some("Values of different types differ"))
        .examples([serde_json::json!("F")])
        .into()
}

pub(crate) fn devices() -> RefOr<Schema> {
    let device = of::<alerts::DeviceName>;
    let listed = ArrayBuilder::new()
        .items(device())
        .min_items(Some(1))
        .max_items(Some(alerts::DEVICES_LISTED_MAX));
    OneOfBuilder::new()
        .item(ObjectBuilder::new().schema_type(Type::Null))
        .item(single_member("listed", listed))
        .item(single_member("prefix", device()))
        .description(Some(
            "Watched devices: the listed ones, or those whose name has the prefix; all if absent or null",
        ))
        .into()
}

pub(crate) fn condition() -> RefOr<Schema> {
    let member = |name, schema| single_member(name, Ref::from_schema_name(schema));
    OneOfBuilder::new()
        .item(member("threshold", "AlertThreshold"))
        .item(member("absence", "AlertAbsence"))
        .item(member("rate", "AlertRate"))
        .item(member("equality", "AlertEquality"))
        .item(member("change", "AlertChange"))
        .item(member("fault", "AlertFault"))
        .description(Some("Condition that raises the alert"))
        .into()
}

pub(crate) fn targets() -> RefOr<Schema> {
    let secret = text(SECRET, 38..=94).schema_type(nullable(Type::String));
    let webhook = single_member("url", of::<alerts::WebhookUrl>()).property("secret", secret);
    let mqtt = closed_object().property("topic", or_null::<alerts::TopicTemplate>());
    let email = single_member("to", of::<alerts::EmailAddress>());
    let target = OneOfBuilder::new()
        .item(single_member(
            "push",
            single_member("user_id", graphic_id()),
        ))
        .item(single_member("webhook", webhook))
        .item(single_member("mqtt", mqtt))
        .item(single_member("email", email));
    ArrayBuilder::new()
        .schema_type(nullable(Type::Array))
        .items(target)
        .max_items(Some(alerts::TARGETS_MAX))
        .description(Some("Where notifications are sent"))
        .into()
}
