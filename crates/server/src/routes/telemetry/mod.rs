//! Telemetry: messages of things, and commands to them.

mod commands;
mod messages;

use homeport_systems::telemetry::ThingName;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use axum::http::StatusCode;

use crate::auth::Reader;
use crate::problem::Problem;
use crate::state::AppState;

/// The system's name in keys.
const SYSTEM: &str = "telemetry";

pub(super) fn documented() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(messages::list_messages_of_type))
        .routes(routes!(messages::list_messages))
        .routes(routes!(messages::get_latest_message))
        .routes(routes!(commands::send_command))
}

/// Refuses keys of other systems, and keys of this one that are for other things. A key with scopes
/// sees its own things only.
fn check(caller: &Reader, thing: Option<&ThingName>) -> Result<(), Problem> {
    caller.check_system(SYSTEM)?;
    let Some(key) = &caller.0 else {
        return Ok(());
    };
    let is_allowed = match thing {
        Some(thing) => key.allows(SYSTEM, thing.as_str()),
        None => key.scopes.is_empty(),
    };
    if is_allowed {
        return Ok(());
    }
    let what = thing.map_or_else(|| "all things".to_owned(), ToString::to_string);
    Err(Problem::new(
        StatusCode::FORBIDDEN,
        "OUT_OF_SCOPE",
        format!("the key is not for {what}"),
    ))
}
