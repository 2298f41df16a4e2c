//! Schemas of telemetry fields.

use homeport_systems::telemetry::{MessageType, ThingName};

use utoipa::PartialSchema as _;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use utoipa::openapi::{KnownFormat, RefOr, SchemaFormat};

use super::{of, parameters, text_schemas};
use crate::openapi::enums::AlertSeverity;

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
    TypeOrSeverity in Query {
        /// Message type; required without `severity`
        message_type: word, required = false;
        /// Severity, for messages with an attribute `severity`; required without `message_type`
        severity: severity, required = false;
    }
}

fn severity() -> RefOr<Schema> {
    AlertSeverity::schema()
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
    thing_name = of::<ThingName>();
    /// A message type or a command.
    word = of::<MessageType>();
}
