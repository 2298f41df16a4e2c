//! The console: its page, and routes that span all systems.

mod devices;
mod export;
mod live;
mod overview;
mod page;
mod series;
mod tables;
mod timeline;

use axum::Router;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::state::AppState;

pub(super) fn documented() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(overview::get_overview))
        .routes(routes!(devices::list_fleet_devices))
        .routes(routes!(devices::get_fleet_device))
        .routes(routes!(series::get_device_series))
        .routes(routes!(timeline::get_device_timeline))
        .routes(routes!(live::follow_live))
        .routes(routes!(export::export_devices))
        .routes(routes!(export::export_table))
        .routes(routes!(tables::list_tables))
        .routes(routes!(tables::get_table))
        .routes(routes!(tables::query_table))
        .routes(routes!(tables::scan_table))
        .routes(routes!(tables::put_table_item, tables::delete_table_item))
}

/// The page and its assets.
pub(super) fn page() -> Router<AppState> {
    page::router()
}
