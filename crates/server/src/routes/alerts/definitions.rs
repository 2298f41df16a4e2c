//! `/v1/alerts/definitions`: conditions that raise alerts.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use homeport_systems::alerts::{Definition, DefinitionId};
use homeport_systems::time::UtcMillis;
use serde::Serialize;
use utoipa::ToSchema;

use super::Page;
use super::definition_terms::{ShownTerms, TermsBody};
use crate::auth::needs::{ManageAlertRules, Read};
use crate::auth::{Authenticated, Everywhere};
use crate::openapi::schemas::alerts::{self as schemas, DefinitionPath};
use crate::problem::Problem;
use crate::request::{JsonBody, PathPart};
use crate::state::AppState;

/// An alert definition.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AlertDefinition)]
pub(super) struct DefinitionBody {
    #[schema(schema_with = schemas::timed_id)]
    definition_id: String,
    #[schema(example = "2027-01-15T08:00:00.000Z")]
    created_at: String,
    updated_at: String,
    /// Increases with every change
    revision: i64,
    #[serde(flatten)]
    terms: ShownTerms,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AlertDefinitionList)]
pub(super) struct DefinitionList {
    definitions: Vec<DefinitionBody>,
    /// Cursor of the next page; absent on the last page
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

impl From<Definition> for DefinitionBody {
    fn from(definition: Definition) -> Self {
        Self {
            definition_id: definition.id.to_string(),
            created_at: UtcMillis::new(definition.created_at).to_string(),
            updated_at: UtcMillis::new(definition.updated_at).to_string(),
            revision: definition.revision,
            terms: definition.terms.into(),
        }
    }
}

/// List alert definitions, the oldest first
#[utoipa::path(get, path = "/v1/alerts/definitions", tag = "alerts",
    security(("admin_token" = [])), params(Page), responses(
    (status = 200, description = "A page of alert definitions", body = DefinitionList),
))]
pub(super) async fn list_alert_definitions(
    _: Authenticated<Everywhere<Read>>,
    State(state): State<AppState>,
    page: Page,
) -> Result<Json<DefinitionList>, Problem> {
    let page = state.alerts.definitions(page.limit, page.cursor).await?;
    let definitions = page.items.into_iter();
    Ok(Json(DefinitionList {
        definitions: definitions.map(DefinitionBody::from).collect(),
        next_cursor: page.next.map(|cursor| cursor.encode()),
    }))
}

/// Create an alert definition; it applies to data stored from now on
#[utoipa::path(post, path = "/v1/alerts/definitions", tag = "alerts",
    security(("admin_token" = [])), request_body = TermsBody, responses(
    (status = 201, description = "The definition", body = DefinitionBody),
    (status = 409, description = "Too many definitions, or the server has no way to reach a target"),
))]
pub(super) async fn create_alert_definition(
    _: Authenticated<Everywhere<ManageAlertRules>>,
    State(state): State<AppState>,
    JsonBody(body): JsonBody<TermsBody>,
) -> Result<(StatusCode, Json<DefinitionBody>), Problem> {
    let definition = state.alerts.create(body.try_into()?).await?;
    Ok((StatusCode::CREATED, Json(definition.into())))
}

/// Get an alert definition
#[utoipa::path(get, path = "/v1/alerts/definitions/{definition_id}", tag = "alerts",
    security(("admin_token" = [])), params(DefinitionPath), responses(
    (status = 200, description = "The definition", body = DefinitionBody),
    (status = 404, description = "Alert definition not found"),
))]
pub(super) async fn get_alert_definition(
    _: Authenticated<Everywhere<Read>>,
    State(state): State<AppState>,
    PathPart(id): PathPart<DefinitionId>,
) -> Result<Json<DefinitionBody>, Problem> {
    Ok(Json(state.alerts.definition(&id).await?.into()))
}

/// Replace an alert definition
///
/// Open alerts stay open if source, devices and condition are unchanged for them. A webhook without a secret keeps
/// the secret that its URL had.
#[utoipa::path(put, path = "/v1/alerts/definitions/{definition_id}", tag = "alerts",
    security(("admin_token" = [])), params(DefinitionPath), request_body = TermsBody, responses(
    (status = 200, description = "The definition", body = DefinitionBody),
    (status = 404, description = "Alert definition not found"),
    (status = 409, description = "The server has no way to reach a target"),
))]
pub(super) async fn replace_alert_definition(
    _: Authenticated<Everywhere<ManageAlertRules>>,
    State(state): State<AppState>,
    PathPart(id): PathPart<DefinitionId>,
    JsonBody(body): JsonBody<TermsBody>,
) -> Result<Json<DefinitionBody>, Problem> {
    let definition = state.alerts.replace(&id, body.try_into()?).await?;
    Ok(Json(definition.into()))
}

/// Delete an alert definition; its open alerts are cleared
#[utoipa::path(delete, path = "/v1/alerts/definitions/{definition_id}", tag = "alerts",
    security(("admin_token" = [])), params(DefinitionPath), responses(
    (status = 204, description = "Deleted"),
    (status = 404, description = "Alert definition not found"),
))]
pub(super) async fn delete_alert_definition(
    _: Authenticated<Everywhere<ManageAlertRules>>,
    State(state): State<AppState>,
    PathPart(id): PathPart<DefinitionId>,
) -> Result<StatusCode, Problem> {
    state.alerts.delete(&id).await?;
    Ok(StatusCode::NO_CONTENT)
}
