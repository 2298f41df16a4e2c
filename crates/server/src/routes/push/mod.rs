//! Push: devices of app users, notifications to them, upkeep.

pub(super) mod devices;
pub(super) mod notifications;
pub(super) mod upkeep;

/// The system's name in keys.
const SYSTEM: &str = "push";

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::state::AppState;

pub(super) fn documented() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(devices::list_push_devices))
        .routes(routes!(
            devices::register_push_device,
            devices::get_push_device,
            devices::delete_push_device
        ))
        .routes(routes!(devices::deactivate_push_device))
        .routes(routes!(
            notifications::send_notification,
            notifications::list_notifications
        ))
        .routes(routes!(notifications::get_notification))
        .routes(routes!(upkeep::clean_up_push_devices))
        .routes(routes!(upkeep::check_push_devices))
}
