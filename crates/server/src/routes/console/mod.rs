//! What the console is made of: its page, and the routes that it asks beside those of the systems.

mod devices;
mod export;
mod history;
mod live;
mod overview;
mod page;
mod session;
mod tables;

use axum::Router;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::state::AppState;

pub(super) fn documented() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(
            session::begin_session,
            session::get_session,
            session::end_session
        ))
        .routes(routes!(overview::get_overview))
        .routes(routes!(devices::list_fleet_devices))
        .routes(routes!(devices::get_fleet_device))
        .routes(routes!(history::get_device_series))
        .routes(routes!(history::get_device_timeline))
        .routes(routes!(live::follow_live))
        .routes(routes!(export::export_devices))
        .routes(routes!(export::export_table))
        .routes(routes!(tables::list_tables))
        .routes(routes!(tables::get_table))
        .routes(routes!(tables::query_table))
        .routes(routes!(tables::scan_table))
        .routes(routes!(tables::put_table_item, tables::delete_table_item))
}

/// The page and what it loads.
pub(super) fn page() -> Router<AppState> {
    page::router()
}
