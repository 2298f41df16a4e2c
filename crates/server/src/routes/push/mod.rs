//! Push: devices of app users, notifications, broadcasts, maintenance.

mod broadcasts;
mod devices;
mod maintenance;
mod message_body;
mod notifications;

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::state::AppState;

pub use maintenance::{PushCheck, PushCleanup, PushDeviceCheck, PushLastNotification};
pub(in crate::routes) use notifications::DeviceDeliveryBody;

/// Name of the system in API keys.
pub(super) const SYSTEM: &str = "push";

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
        .routes(routes!(
            broadcasts::send_broadcast,
            broadcasts::list_broadcasts
        ))
        .routes(routes!(broadcasts::get_broadcast))
        .routes(routes!(broadcasts::cancel_broadcast))
        .routes(routes!(maintenance::clean_up_push_devices))
        .routes(routes!(maintenance::check_push_devices))
        .routes(routes!(maintenance::erase_push_user))
}
