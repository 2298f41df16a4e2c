//! Schemas of record store fields.

use homeport_systems::records::{
    DataType, IdTag, Name, RETENTION_SECS_MAX, RETENTION_SECS_MIN, Unit, VALUE_CHARS_MAX,
};
use utoipa::openapi::schema::{ObjectBuilder, Schema, SchemaType, Type};
use utoipa::openapi::{KnownFormat, RefOr, SchemaFormat};

use super::{nullable, of, or_null, parameters, text, text_schemas};

/// Which of these texts are ids depends on a secret salt.
const ENCODED_ID: &str = "^[a-zA-Z0-9]+$";

parameters! {
    GroupPath in Path {
        /// Group id
        gid: encoded_id;
    }
    GroupDevicePath in Path {
        /// Group id
        gid: encoded_id;
        /// Device id
        did: encoded_id;
    }
    JournalPath in Path {
        /// Group id
        gid: encoded_id;
        /// Device id
        did: encoded_id;
        /// Journal id
        jid: encoded_id;
    }
    JournalRecordPath in Path {
        /// Group id
        gid: encoded_id;
        /// Device id
        did: encoded_id;
        /// Journal id
        jid: encoded_id;
        /// Time of the record, in milliseconds since 1970
        timestamp: record_time;
    }
}

text_schemas! {
    encoded_id = text(ENCODED_ID, 1..=12).examples(["OxaYbwKR"]);
    id_tag = of::<IdTag>();
    record_time = text("^[0-9]+$", 1..=13).examples(["1800000000000"]);
    /// A name, model, data type or record type.
    label = of::<Name>();
    label_or_null = or_null::<Name>();
    unit = of::<Unit>().description(Some("Unit of the value; empty if it has none"));
}

/// The data type of a journal.
pub(crate) fn data_type() -> RefOr<Schema> {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .enum_values(Some(DataType::NAMES))
        .description(Some(
            "Type of the values of the journal; `text` is another name for `string`, and `any` accepts all values",
        ))
        .examples(["number"])
        .into()
}

pub(crate) fn salt() -> RefOr<Schema> {
    ObjectBuilder::new()
        .schema_type(nullable(Type::String))
        .min_length(Some(1))
        .max_length(Some(128))
        .description(Some("Salt of the tag's encoded ids; random if absent"))
        .into()
}

pub(crate) fn value() -> RefOr<Schema> {
    ObjectBuilder::new()
        .schema_type(SchemaType::from_iter([
            Type::Number,
            Type::String,
            Type::Boolean,
        ]))
        .max_length(Some(VALUE_CHARS_MAX))
        .description(Some(
            "A number of at most 38 digits, a string of at most 4096 characters, or a boolean",
        ))
        .examples([21.5])
        .into()
}

pub(crate) fn retention() -> RefOr<Schema> {
    ObjectBuilder::new()
        .schema_type(nullable(Type::Integer))
        .format(Some(SchemaFormat::KnownFormat(KnownFormat::Int64)))
        .minimum(Some(RETENTION_SECS_MIN))
        .maximum(Some(RETENTION_SECS_MAX))
        .description(Some(
            "Retention of the history in seconds; null keeps it forever",
        ))
        .examples([86_400])
        .into()
}

pub(crate) fn policy() -> RefOr<Schema> {
    ObjectBuilder::new()
        .schema_type(nullable(Type::Object))
        .description(Some(
            "Access policy: which API keys may read and write the device. A list `Statement` of objects with `Effect` \
             (`Allow` or `Deny`), `Action` (`read`, `write`, `*`, or a list) and optionally `Principal` (ids of keys). \
             Stored as it is: at most 16 KiB, members nested at most 15 levels deep, numbers of at most 38 digits",
        ))
        .into()
}
