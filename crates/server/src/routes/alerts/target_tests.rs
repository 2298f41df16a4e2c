//! `/v1/alerts/definitions/{definition_id}/tests`: test notifications to the targets of a definition.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use homeport_systems::alerts::{AlertId, DefinitionId, NotificationResult};
use serde::Serialize;
use utoipa::ToSchema;

use super::notifications::NotificationBody;
use crate::auth::needs::ManageAlertRules;
use crate::auth::{Authenticated, Everywhere};
use crate::openapi::schemas::alerts::{self as schemas, DefinitionPath, TestPath};
use crate::problem::Problem;
use crate::request::PathPart;
use crate::state::AppState;

/// A test of the targets of a definition.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AlertTest)]
pub(super) struct TestBody {
    #[schema(schema_with = schemas::timed_id)]
    test_id: String,
    #[schema(schema_with = schemas::timed_id)]
    definition_id: String,
    /// One for each target
    notifications: Vec<NotificationBody>,
}

impl TestBody {
    fn new(id: DefinitionId, test_id: AlertId, results: Vec<NotificationResult>) -> Self {
        Self {
            test_id: test_id.into(),
            definition_id: id.into(),
            notifications: results.into_iter().map(NotificationBody::from).collect(),
        }
    }
}

/// Send a test notification to every target of an alert definition
///
/// The messages are marked as tests and are sent through the same outbox as those of alerts, at once, also in quiet
/// hours and for a disabled definition. Read the test again to see what became of them.
#[utoipa::path(post, path = "/v1/alerts/definitions/{definition_id}/test", tag = "alerts",
    security(("admin_token" = [])), params(DefinitionPath), responses(
    (status = 202, description = "Queued durably", body = TestBody),
    (status = 404, description = "Alert definition not found"),
    (status = 409, description = "The definition has no targets"),
))]
pub(super) async fn test_alert_definition(
    _: Authenticated<Everywhere<ManageAlertRules>>,
    State(state): State<AppState>,
    PathPart(id): PathPart<DefinitionId>,
) -> Result<(StatusCode, Json<TestBody>), Problem> {
    let test_id = state.alerts.test_targets(&id).await?;
    let results = state.alerts.test_results(&id, &test_id).await?;
    let body = TestBody::new(id, test_id, results);
    Ok((StatusCode::ACCEPTED, Json(body)))
}

/// Get a test with the results of its notifications; it is kept for a week
#[utoipa::path(get, path = "/v1/alerts/definitions/{definition_id}/tests/{test_id}", tag = "alerts",
    security(("admin_token" = [])), params(TestPath), responses(
    (status = 200, description = "The test", body = TestBody),
    (status = 404, description = "Test not found"),
))]
pub(super) async fn get_alert_test(
    _: Authenticated<Everywhere<ManageAlertRules>>,
    State(state): State<AppState>,
    Path((id, test_id)): Path<(String, String)>,
) -> Result<Json<TestBody>, Problem> {
    let (id, test_id): (DefinitionId, AlertId) = (id.parse()?, test_id.parse()?);
    let results = state.alerts.test_results(&id, &test_id).await?;
    Ok(Json(TestBody::new(id, test_id, results)))
}
