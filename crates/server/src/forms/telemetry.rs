//! The forms of telemetry's fields.

use homeport_systems::telemetry::{THING_NAME_LEN_MAX, WORD_LEN_MAX};
use utoipa::IntoParams;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::Schema;

use super::{GRAPHIC_ASCII, text};

/// Graphic, and no slash.
const THING_NAME: &str = "^[!-.0-~]+$";
/// That, and no wildcard of topics.
const ADDRESSABLE: &str = r#"^[!"$-*,-.0-~]+$"#;

/// The part of an address that names a thing.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
#[allow(dead_code, reason = "describes the path in the OpenAPI document")]
pub(crate) struct ThingPath {
    /// The thing's name
    #[param(schema_with = thing_name)]
    thing: String,
}

/// The same where a topic is made of it.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
#[allow(dead_code, reason = "describes the path in the OpenAPI document")]
pub(crate) struct AddressableThingPath {
    /// The thing's name
    #[param(schema_with = addressable_thing_name)]
    thing: String,
}

/// The type of messages, where any is wanted unless one is named.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[allow(dead_code, reason = "describes the query in the OpenAPI document")]
pub(crate) struct AnyMessageType {
    /// The one type wanted
    #[param(schema_with = word, required = false)]
    message_type: String,
}

fn thing_name() -> RefOr<Schema> {
    text(THING_NAME, 1..=THING_NAME_LEN_MAX)
        .examples(["storyteller-van-01"])
        .into()
}

fn addressable_thing_name() -> RefOr<Schema> {
    text(ADDRESSABLE, 1..=THING_NAME_LEN_MAX)
        .examples(["storyteller-van-01"])
        .into()
}

/// A message's type, or a command.
pub(crate) fn word() -> RefOr<Schema> {
    text(GRAPHIC_ASCII, 1..=WORD_LEN_MAX).into()
}
