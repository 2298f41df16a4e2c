//! The forms of the record store's fields.

use utoipa::IntoParams;
use utoipa::openapi::schema::{ObjectBuilder, Schema, SchemaType, Type};
use utoipa::openapi::{KnownFormat, RefOr, SchemaFormat};

use super::{PRINTABLE, nullable, text};

/// Which of these are ids depends on a salt that nobody is told.
const ENCODED: &str = "^[a-zA-Z0-9]+$";
const TAG: &str = "^[a-zA-Z0-9_-]+$";
/// No control characters, and nothing at all as well.
const PRINTABLE_OR_EMPTY: &str = r"^[^\u0000-\u001F\u007F-\u009F]*$";

macro_rules! paths {
    ($($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident),* })*) => {$(
        $(#[$doc])*
        #[derive(IntoParams)]
        #[into_params(parameter_in = Path)]
        #[allow(dead_code, reason = "describes the path in the OpenAPI document")]
        pub(crate) struct $name {
            $($(#[$field_doc])* #[param(schema_with = encoded_id)] $field: String,)*
        }
    )*};
}

paths! {
    /// The part of an address that names a group.
    GroupPath {
        /// The group
        gid
    }
    /// The parts that name a device of a group.
    GroupDevicePath {
        /// The group
        gid,
        /// The device
        did
    }
    /// The parts that name a journal of a device.
    JournalPath {
        /// The group
        gid,
        /// The device
        did,
        /// The journal
        jid
    }
}

pub(crate) fn encoded_id() -> RefOr<Schema> {
    text(ENCODED, 1..=12).examples(["OxaYbwKR"]).into()
}

pub(crate) fn id_tag() -> RefOr<Schema> {
    text(TAG, 1..=64).examples(["gid"]).into()
}

pub(crate) fn salt() -> RefOr<Schema> {
    ObjectBuilder::new()
        .schema_type(nullable(Type::String))
        .min_length(Some(1))
        .max_length(Some(128))
        .description(Some(
            "What makes its encoded ids differ from those of others; at random unless given",
        ))
        .into()
}

/// A name, a model, a data type or a type.
pub(crate) fn words() -> RefOr<Schema> {
    text(PRINTABLE, 1..=128).into()
}

pub(crate) fn words_or_null() -> RefOr<Schema> {
    text(PRINTABLE, 1..=128)
        .schema_type(nullable(Type::String))
        .into()
}

pub(crate) fn unit() -> RefOr<Schema> {
    text(PRINTABLE_OR_EMPTY, 0..=128)
        .description(Some("Empty for what has no unit"))
        .examples(["C"])
        .into()
}

pub(crate) fn value() -> RefOr<Schema> {
    ObjectBuilder::new()
        .schema_type(SchemaType::from_iter([
            Type::Number,
            Type::String,
            Type::Boolean,
        ]))
        .max_length(Some(4096))
        .description(Some(
            "A number of at most 38 digits, a text of at most 4096 characters, or true or false",
        ))
        .examples([21.5])
        .into()
}

/// Null keeps history for ever.
pub(crate) fn retention() -> RefOr<Schema> {
    ObjectBuilder::new()
        .schema_type(nullable(Type::Integer))
        .format(Some(SchemaFormat::KnownFormat(KnownFormat::Int64)))
        .minimum(Some(60))
        .maximum(Some(3_162_240_000_i64))
        .description(Some(
            "How long history is kept, in seconds; null keeps it for ever",
        ))
        .examples([86_400])
        .into()
}

pub(crate) fn policy() -> RefOr<Schema> {
    ObjectBuilder::new()
        .schema_type(nullable(Type::Object))
        .description(Some(
            "Who may do what with it: a JSON object that is kept as it is, of at most 16 KiB, its members nested at \
             most 15 levels deep, with numbers of at most 38 digits",
        ))
        .into()
}
