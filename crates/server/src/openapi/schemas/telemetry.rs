//! Schemas of telemetry fields.

use homeport_systems::telemetry::{THING_NAME_LEN_MAX, WORD_LEN_MAX};

use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use utoipa::openapi::{KnownFormat, RefOr, SchemaFormat};

use super::{GRAPHIC_ASCII, parameters, text_schemas};

/// Graphic ASCII without slashes and wildcards.
const THING_NAME: &str = r#"^[!"$-*,-.0-~]+$"#;
const THING_EXAMPLE: &str = "storyteller-van-01";

parameters! {
    ThingPath in Path {
        /// Thing name
        thing: thing_name;
    }
    MessagePath in Path {
        /// Thing name
        thing: thing_name;
        /// `timestamp` of the message, in milliseconds since 1970
        timestamp: millis;
    }
    ThingQuery in Query {
        /// Thing whose history is replayed
        thing: thing_name, required = true;
    }
    OptionalMessageType in Query {
        /// Message type; all types if absent
        message_type: word, required = false;
    }
    RequiredMessageType in Query {
        /// Message type
        message_type: word, required = true;
    }
}

fn millis() -> RefOr<Schema> {
    ObjectBuilder::new()
        .schema_type(Type::Integer)
        .format(Some(SchemaFormat::KnownFormat(KnownFormat::Int64)))
        .minimum(Some(0))
        .maximum(Some(9_999_999_999_999_i64))
        .into()
}

text_schemas! {
    thing_name(THING_NAME, 1..=THING_NAME_LEN_MAX).examples([THING_EXAMPLE]);
    /// A message type or a command.
    word(GRAPHIC_ASCII, 1..=WORD_LEN_MAX);
}
