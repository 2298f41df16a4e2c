//! Sensors: registration, readings, devices.

mod devices;
mod ingest;
mod readings;
mod register;

use homeport_systems::sensors::{FriendlyName, InvalidField, NameChange, PAGE_MAX};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::request::PageQuery;
use crate::state::AppState;

pub(crate) use ingest::ReadingBody;

/// Name of the system in API keys.
pub(super) const SYSTEM: &str = "sensors";

type Page = PageQuery<PAGE_MAX>;

pub(super) fn documented() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(register::register_device))
        .routes(routes!(ingest::ingest_readings))
        .routes(routes!(devices::list_devices))
        .routes(routes!(
            devices::get_device,
            devices::patch_device,
            devices::decommission_device
        ))
        .routes(routes!(readings::get_latest_reading))
        .routes(routes!(readings::list_readings))
        .routes(routes!(readings::delete_reading))
}

/// An absent name is kept, and null removes it.
pub(in crate::routes) fn name_change(
    sent: Option<Option<String>>,
) -> Result<NameChange, InvalidField> {
    Ok(match sent {
        None => NameChange::Keep,
        Some(None) => NameChange::Remove,
        Some(Some(name)) => NameChange::Set(FriendlyName::try_from(name)?),
    })
}
