//! Telemetry: messages of things, and commands to them.

mod commands;
mod messages;

use homeport_systems::telemetry::PAGE_MAX;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::request::PageQuery;
use crate::state::AppState;

/// Name of the system in API keys.
pub(super) const SYSTEM: &str = "telemetry";

type Page = PageQuery<PAGE_MAX>;

pub(super) fn documented() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(messages::list_messages_of_type))
        .routes(routes!(messages::list_messages))
        .routes(routes!(messages::get_latest_message))
        .routes(routes!(messages::delete_message))
        .routes(routes!(commands::send_command))
}
