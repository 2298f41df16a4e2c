//! Alerts and their definitions, for operators.

mod definition_conditions;
mod definition_terms;
mod definitions;
mod handling;
mod notifications;
mod preview;
mod raised;
mod target_tests;

use homeport_systems::alerts::PAGE_MAX;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::request::PageQuery;
use crate::state::AppState;

pub(crate) use definition_conditions::{
    AbsenceBody, ChangeBody, EqualityBody, FaultBody, RateBody, ThresholdBody,
};
pub(super) use raised::alert_device;

type Page = PageQuery<PAGE_MAX>;

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
        .routes(routes!(preview::preview_alert_definition))
        .routes(routes!(raised::list_alerts))
        .routes(routes!(raised::get_alert))
        .routes(routes!(handling::acknowledge_alerts))
        .routes(routes!(handling::acknowledge_alert))
        .routes(routes!(handling::snooze_alert))
        .routes(routes!(handling::wake_alert))
        .routes(routes!(handling::assign_alert))
        .routes(routes!(handling::comment_on_alert))
        .routes(routes!(target_tests::test_alert_definition))
        .routes(routes!(target_tests::get_alert_test))
}
