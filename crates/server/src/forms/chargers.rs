//! The forms of the chargers' fields.

use homeport_systems::chargers::{EVENTS_PER_REQUEST_MAX, SET_MAX};
use utoipa::IntoParams;
use utoipa::openapi::schema::{
    AllOfBuilder, AnyOfBuilder, ArrayBuilder, ObjectBuilder, Schema, SchemaType, Type,
};
use utoipa::openapi::{KnownFormat, Ref, RefOr, SchemaFormat};

use super::{moment, nullable, text, time};

const DEVICE_NAME: &str = "^(SC-[0-9A-F]{8}|[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12})$";
const UUID: &str = "^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$";
const EVENT_TYPE: &str = "^[a-zA-Z0-9_.-]+$";
const SET_ATTRIBUTE: &str = "^(scheduler_|ota_|time_sync_|divergence_)[a-zA-Z0-9_.-]*$";
/// Milliseconds since 1970, in a text.
const MILLIS: &str = "^[+-]?[0-9]{1,18}$";

/// The part of an address that names a charger.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
#[allow(dead_code, reason = "describes the path in the OpenAPI document")]
pub(crate) struct ChargerPath {
    /// The SC-ID or the UUID
    #[param(schema_with = device_name)]
    device_id: String,
}

/// The type of events, where any is wanted unless one is named.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[allow(dead_code, reason = "describes the query in the OpenAPI document")]
pub(crate) struct AnyEventType {
    /// The one type wanted
    #[param(schema_with = event_type, required = false)]
    event_type: String,
}

pub(crate) fn device_name() -> RefOr<Schema> {
    text(DEVICE_NAME, 11..=36).examples(["SC-C014EA63"]).into()
}

pub(crate) fn device_name_or_null() -> RefOr<Schema> {
    text(DEVICE_NAME, 11..=36)
        .schema_type(nullable(Type::String))
        .description(Some("The SC-ID or the UUID"))
        .examples(["SC-C014EA63"])
        .into()
}

pub(crate) fn uuid_or_null() -> RefOr<Schema> {
    text(UUID, 36..=36)
        .schema_type(nullable(Type::String))
        .description(Some(
            "The UUID of the device; with it, a device becomes known on its first event",
        ))
        .examples(["b319d001-6b08-4d88-b4ca-4d2d98a6d43c"])
        .into()
}

pub(crate) fn event_type() -> RefOr<Schema> {
    text(EVENT_TYPE, 1..=64).examples(["telemetry"]).into()
}

pub(crate) fn time_or_null() -> RefOr<Schema> {
    AnyOfBuilder::new()
        .item(time())
        .item(ObjectBuilder::new().schema_type(Type::Null))
        .description(Some(
            "When it happened: milliseconds since 1970, or RFC 3339; when it arrives unless given",
        ))
        .into()
}

/// A day in an address: the day itself, or a time on it.
pub(crate) fn day_or_time() -> RefOr<Schema> {
    AnyOfBuilder::new()
        .item(day())
        .item(time())
        .description(Some("A day in Mountain Time, or a time on it"))
        .into()
}

/// The same in a body, where it is a text.
pub(crate) fn day_or_time_text() -> RefOr<Schema> {
    AnyOfBuilder::new()
        .item(day())
        .item(moment())
        .item(text(MILLIS, 1..=19))
        .description(Some("A day in Mountain Time, or a time on it"))
        .examples(["2026-02-01"])
        .into()
}

fn day() -> ObjectBuilder {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .format(Some(SchemaFormat::KnownFormat(KnownFormat::Date)))
}

/// One event or several. Each is looked at on its own, so that the document must not promise that
/// a request with a wrong one is refused; but a list that is none is.
pub(crate) fn events() -> RefOr<Schema> {
    let event = || RefOr::Ref(Ref::from_schema_name("NewChargerEvent"));
    let anything = ObjectBuilder::new()
        .schema_type(SchemaType::AnyValue)
        .description(Some(
            "Anything else is rejected on its own, in `results`, and does not stop the others",
        ));
    let list = ArrayBuilder::new()
        .items(AnyOfBuilder::new().item(event()).item(anything))
        .min_items(Some(1))
        .max_items(Some(EVENTS_PER_REQUEST_MAX));
    let several = ObjectBuilder::new()
        .property("events", list)
        .required("events");
    let no_list =
        || ObjectBuilder::new().property("events", ObjectBuilder::new().schema_type(Type::Null));
    AnyOfBuilder::new()
        .item(several)
        .item(AllOfBuilder::new().item(event()).item(no_list()))
        .item(no_list().description(Some("Anything else is rejected in `results`")))
        .description(Some("One event, or up to 100 of them"))
        .into()
}

/// What operators set.
pub(crate) fn state_patch() -> RefOr<Schema> {
    let value = ObjectBuilder::new()
        .schema_type(SchemaType::AnyValue)
        .description(Some(
            "At most 1024 bytes, nested at most 8 levels deep, with numbers of at most 38 digits; null removes it",
        ));
    ObjectBuilder::new()
        .property_names(Some(Schema::Object(text(SET_ATTRIBUTE, 4..=64).build())))
        .additional_properties(Some(value))
        .min_properties(Some(1))
        .max_properties(Some(SET_MAX))
        .examples([serde_json::json!({"scheduler_paused": true, "ota_session": null})])
        .into()
}
