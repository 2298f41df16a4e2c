//! Chargers: events, the fleet, states, daily statistics.

mod daily;
mod decoders;
mod events;
mod fleet;
mod ingest;
mod state;
mod uplinks;

use homeport_systems::chargers::{DeviceName, PAGE_MAX, ScId};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::auth::{Action, Caller, Subject};
use crate::problem::Problem;
use crate::request::PageQuery;
use crate::state::AppState;

pub(crate) use ingest::{EventBody, INVALID_EVENT, InvalidItem, OUT_OF_SCOPE, rejected};
pub(crate) use uplinks::{check_uplink, uplink_result};

/// Name of the system in API keys.
pub(crate) const SYSTEM: &str = "chargers";

type Page = PageQuery<PAGE_MAX>;

pub(super) fn documented() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(fleet::list_chargers))
        .routes(routes!(ingest::ingest_events, events::list_fleet_events))
        .routes(routes!(
            fleet::get_charger,
            fleet::patch_charger,
            fleet::decommission_charger
        ))
        .routes(routes!(events::list_events))
        .routes(routes!(events::delete_event))
        .routes(routes!(state::get_state, state::patch_state))
        .routes(routes!(daily::list_daily))
        .routes(routes!(daily::rebuild_daily))
        .routes(routes!(uplinks::ingest_uplinks))
        .routes(routes!(decoders::read::list_decoders))
        .routes(routes!(decoders::test::test_decoder))
        .routes(routes!(
            decoders::read::get_decoder,
            decoders::write::put_decoder,
            decoders::write::delete_decoder
        ))
        .routes(routes!(decoders::read::list_decoder_versions))
        .routes(routes!(decoders::read::get_decoder_version))
}

/// The SC-ID of a charger, if the caller may read it.
async fn readable(state: &AppState, caller: &Caller, device: &DeviceName) -> Result<ScId, Problem> {
    check(state, caller, Action::Read, device).await?;
    Ok(state.chargers.find(device).await?)
}

/// Checks that the caller may do something to a charger.
async fn check(
    state: &AppState,
    caller: &Caller,
    action: Action,
    device: &DeviceName,
) -> Result<(), Problem> {
    let ids = state.chargers.ids(device).await?;
    Ok(caller.check(action, SYSTEM, Subject::Charger(&ids))?)
}
