//! Alerts: what is watched for, and what was found. For operators only.

mod definitions;
mod raised;
mod terms;

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::state::AppState;

pub(super) use terms::{AbsenceBody, RateBody, ThresholdBody};

pub(super) fn documented() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(
            definitions::list_alert_definitions,
            definitions::create_alert_definition
        ))
        .routes(routes!(
            definitions::get_alert_definition,
            definitions::replace_alert_definition,
            definitions::delete_alert_definition
        ))
        .routes(routes!(raised::list_alerts))
        .routes(routes!(raised::get_alert))
        .routes(routes!(raised::acknowledge_alert))
}
