//! Schemas of people.

use homeport_systems::people::{
    LIMIT_ENTRIES_MAX, PASSWORD_CHARS_MAX, PASSWORD_CHARS_MIN, PersonName, ROLES_MAX, Role,
};
use homeport_systems::text::PRINTABLE;
use utoipa::openapi::schema::{ArrayBuilder, ObjectBuilder, Schema, Type};
use utoipa::openapi::{Ref, RefOr};

use super::{nullable, of, parameters, text, text_schemas};

const CREDENTIAL_ID: &str = "^[0-9a-fA-F]{16}$";
const GROUP: &str = "^[0-9a-zA-Z]+$";
const DEVICE: &str = "^(sensors|chargers|push|telemetry)/[!-~]+$";

parameters! {
    PersonPath in Path {
        /// Name of the person
        name: name;
    }
    OwnCredentialPath in Path {
        /// Id of the session or token
        id: credential_id;
    }
    CredentialPath in Path {
        /// Name of the person
        name: name;
        /// Id of the session or token
        id: credential_id;
    }
}

text_schemas! {
    name = of::<PersonName>();
    credential_id = text(CREDENTIAL_ID, 16..=16).examples(["5f0c3a9e8b7d6412"]);
    token_name = text(PRINTABLE.pattern, 1..=100).examples(["Grafana"]);
    password = of_password();
    password_or_null = of_password()
        .schema_type(nullable(Type::String))
        .description(Some("12 to 256 characters; one is generated and returned if absent"));
    role = ObjectBuilder::new()
        .schema_type(Type::String)
        .enum_values(Some(Role::ALL.map(Role::as_str)));
    groups = entries(text(GROUP, 1..=12).examples(["5YXd4XZ0"]))
        .description(Some("Groups of records that the role is limited to"));
    devices = entries(text(DEVICE, 1..=300).examples(["sensors/AA:BB:CC:DD:EE:FF"]))
        .description(Some(
            "Devices that the role is limited to, each with its system; chargers by SC-ID, phones by their user",
        ));
    roles = all_roles();
    roles_or_null = all_roles().schema_type(nullable(Type::Array));
}

pub(crate) fn systems() -> RefOr<Schema> {
    let systems = homeport_systems::fleet::SYSTEMS.iter();
    let names = systems.map(|system| serde_json::json!(system.name.as_str()));
    let system = ObjectBuilder::new()
        .schema_type(Type::String)
        .enum_values(Some(names));
    entries(system)
        .description(Some("Systems that the role is limited to"))
        .into()
}

fn entries(entry: ObjectBuilder) -> ArrayBuilder {
    ArrayBuilder::new()
        .items(entry)
        .max_items(Some(LIMIT_ENTRIES_MAX))
}

fn of_password() -> ObjectBuilder {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .min_length(Some(PASSWORD_CHARS_MIN))
        .max_length(Some(PASSWORD_CHARS_MAX))
}

fn all_roles() -> ArrayBuilder {
    let role = RefOr::<Schema>::Ref(Ref::from_schema_name("Role"));
    ArrayBuilder::new()
        .items(role)
        .min_items(Some(1))
        .max_items(Some(ROLES_MAX))
}
