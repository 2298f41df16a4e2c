//! Schemas of charger fields.

use homeport_systems::chargers::{
    DATA_DEPTH_MAX, EVENTS_PER_REQUEST_MAX, EventType, SET_MAX, STATE_VALUE_BYTES_MAX,
};
use utoipa::openapi::schema::{AnyOfBuilder, ObjectBuilder, Schema, SchemaType, Type};
use utoipa::openapi::{KnownFormat, Ref, RefOr, SchemaFormat};

use super::{
    AGE, UUID, any_time, closed_object, date_time, list_of_any, nullable, of, parameters, text,
    text_schemas,
};

const DEVICE_NAME: &str = "^(SC-[0-9A-F]{8}|[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12})$";
const SET_ATTRIBUTE: &str = "^(scheduler_|ota_|time_sync_|divergence_)[a-zA-Z0-9_.-]*$";
/// A wall clock. February has 28 days here, because no pattern knows leap years.
const WALL_CLOCK: &str = "^(19|20)[0-9]{2}-((0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])|(0[13-9]|1[0-2])-(29|30)|(0[13578]|1[02])-31) ([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]\\.[0-9]{3}$";
/// Milliseconds since 1970 as text.
const MILLIS: &str = "^[+-]?[0-9]{1,18}$";

parameters! {
    ChargerPath in Path {
        /// SC-ID or UUID
        device_id: device_name;
    }
    EventPath in Path {
        /// SC-ID or UUID
        device_id: device_name;
        /// Key of the event: wall-clock time in America/Denver
        timestamp_mt: timestamp_mt;
    }
    OptionalEventType in Query {
        /// Event type; all types if absent
        event_type: event_type, required = false;
    }
    RequiredEventType in Query {
        /// Event type
        event_type: event_type, required = true;
    }
}

text_schemas! {
    device_name = text(DEVICE_NAME, 11..=36).examples(["SC-C014EA63"]);
    device_name_or_null = text(DEVICE_NAME, 11..=36)
        .schema_type(nullable(Type::String))
        .description(Some("SC-ID or UUID"))
        .examples(["SC-C014EA63"]);
    uuid_or_null = text(UUID, 36..=36)
        .schema_type(nullable(Type::String))
        .description(Some("UUID of the device; the first event with it registers the device"))
        .examples(["b319d001-6b08-4d88-b4ca-4d2d98a6d43c"]);
    timestamp_mt = wall_clock().examples(["2026-02-21 14:30:00.000"]);
    event_type = of::<EventType>();
}

/// A time of a request to chargers.
pub(crate) fn time_or_wall_clock() -> RefOr<Schema> {
    any_time()
        .item(wall_clock())
        .description(Some(
            "Milliseconds since 1970, RFC 3339, an age such as `-24h`, or a wall clock in Mountain Time such as \
             `2026-02-21 14:30:00.000`",
        ))
        .into()
}

fn wall_clock() -> ObjectBuilder {
    text(WALL_CLOCK, 23..=23)
}

pub(crate) fn time_or_null() -> RefOr<Schema> {
    any_time()
        .item(wall_clock())
        .item(ObjectBuilder::new().schema_type(Type::Null))
        .description(Some(
            "Time of the event: milliseconds since 1970, RFC 3339, an age such as `-24h`, or a wall clock in Mountain \
             Time; time of arrival if absent",
        ))
        .into()
}

/// A day in a query: the day itself, or a time on it.
pub(crate) fn day_or_time() -> RefOr<Schema> {
    AnyOfBuilder::new()
        .item(day())
        .item(time_or_wall_clock())
        .description(Some("A day in Mountain Time, or a time on it"))
        .into()
}

/// A day in a body, where all forms are strings.
pub(crate) fn day_or_time_text() -> RefOr<Schema> {
    AnyOfBuilder::new()
        .item(day())
        .item(date_time())
        .item(text(MILLIS, 1..=19))
        .item(text(AGE, 3..=11))
        .item(wall_clock())
        .description(Some("A day in Mountain Time, or a time on it"))
        .examples(["2026-02-01"])
        .into()
}

fn day() -> ObjectBuilder {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .format(Some(SchemaFormat::KnownFormat(KnownFormat::Date)))
}

/// One event or a list. Each event is validated on its own, so the document must not say that a request with
/// an invalid one is rejected. An invalid list is.
pub(crate) fn events() -> RefOr<Schema> {
    let list = closed_object()
        .property(
            "events",
            list_of_any("NewChargerEvent", EVENTS_PER_REQUEST_MAX),
        )
        .required("events");
    let event = RefOr::<Schema>::Ref(Ref::from_schema_name("NewChargerEvent"));
    AnyOfBuilder::new()
        .item(list)
        .item(event)
        .description(Some("One event, or up to 100 of them"))
        .into()
}

pub(crate) fn state_patch() -> RefOr<Schema> {
    let value = ObjectBuilder::new()
        .schema_type(SchemaType::AnyValue)
        .description(Some(format!(
            "At most {STATE_VALUE_BYTES_MAX} bytes, nested at most {DATA_DEPTH_MAX} levels deep, with numbers of at \
             most 38 digits; null removes the attribute"
        )));
    ObjectBuilder::new()
        .property_names(Some(Schema::Object(text(SET_ATTRIBUTE, 4..=64).build())))
        .additional_properties(Some(value))
        .min_properties(Some(1))
        .max_properties(Some(SET_MAX))
        .examples([serde_json::json!({"scheduler_paused": true, "ota_session": null})])
        .into()
}
