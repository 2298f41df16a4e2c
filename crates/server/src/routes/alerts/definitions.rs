//! `/v1/alerts/definitions`: what is watched for, changed while the server runs.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use homeport_systems::alerts::{Definition, DefinitionId, PAGE_MAX};
use homeport_systems::time::UtcMillis;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::terms::{ShownTerms, TermsBody};
use crate::auth::Admin;
use crate::body::JsonBody;
use crate::forms::alerts::{self as forms, DefinitionPath};
use crate::problem::{Problem, ProblemBody};
use crate::state::AppState;
use crate::url::{self, PathPart, UrlQuery};

/// A definition.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AlertDefinition)]
pub(super) struct DefinitionBody {
    #[schema(schema_with = forms::timed_id)]
    definition_id: String,
    #[schema(example = "2027-01-15T08:00:00.000Z")]
    created_at: String,
    updated_at: String,
    /// Grows with every change
    revision: i64,
    #[serde(flatten)]
    terms: ShownTerms,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AlertDefinitionList)]
pub(super) struct DefinitionList {
    definitions: Vec<DefinitionBody>,
    /// Absent on the last page
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct ListQuery {
    /// Items of a page
    #[param(minimum = 1, maximum = 100, default = 100)]
    limit: Option<usize>,
    /// Where the page before ended
    cursor: Option<String>,
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

/// The definitions, the oldest first
#[utoipa::path(get, path = "/v1/alerts/definitions", tag = "alerts",
    security(("admin_token" = [])), params(ListQuery), responses(
    (status = 200, description = "A page of definitions", body = DefinitionList),
    (status = 400, description = "The limit or the cursor is not right", body = ProblemBody, content_type = "application/problem+json"),
    (status = 401, description = "Not an operator", body = ProblemBody, content_type = "application/problem+json"),
    (status = 503, description = "The store cannot answer", body = ProblemBody, content_type = "application/problem+json")
))]
pub(super) async fn list_alert_definitions(
    _: Admin,
    State(state): State<AppState>,
    UrlQuery(query): UrlQuery<ListQuery>,
) -> Result<Json<DefinitionList>, Problem> {
    let limit = url::limit(query.limit, PAGE_MAX)?;
    let cursor = url::cursor(query.cursor.as_deref())?;
    let page = state.alerts.definitions(limit, cursor).await?;
    let definitions = page.definitions.into_iter();
    Ok(Json(DefinitionList {
        definitions: definitions.map(DefinitionBody::from).collect(),
        next_cursor: page.next.map(|cursor| cursor.encode()),
    }))
}

/// Make a definition; what is stored from now on is judged by it
#[utoipa::path(post, path = "/v1/alerts/definitions", tag = "alerts",
    security(("admin_token" = [])), request_body = TermsBody, responses(
    (status = 201, description = "It is in force", body = DefinitionBody),
    (status = 400, description = "Something is not as it should be", body = ProblemBody, content_type = "application/problem+json"),
    (status = 401, description = "Not an operator", body = ProblemBody, content_type = "application/problem+json"),
    (status = 409, description = "There are too many, or this server cannot reach such a target", body = ProblemBody, content_type = "application/problem+json"),
    (status = 503, description = "The store cannot answer", body = ProblemBody, content_type = "application/problem+json")
))]
pub(super) async fn create_alert_definition(
    _: Admin,
    State(state): State<AppState>,
    JsonBody(body): JsonBody<TermsBody>,
) -> Result<(StatusCode, Json<DefinitionBody>), Problem> {
    let definition = state.alerts.create(body.try_into()?).await?;
    Ok((StatusCode::CREATED, Json(definition.into())))
}

/// One definition
#[utoipa::path(get, path = "/v1/alerts/definitions/{definition_id}", tag = "alerts",
    security(("admin_token" = [])), params(DefinitionPath), responses(
    (status = 200, description = "The definition", body = DefinitionBody),
    (status = 400, description = "The id is none", body = ProblemBody, content_type = "application/problem+json"),
    (status = 401, description = "Not an operator", body = ProblemBody, content_type = "application/problem+json"),
    (status = 404, description = "There is no such definition", body = ProblemBody, content_type = "application/problem+json"),
    (status = 503, description = "The store cannot answer", body = ProblemBody, content_type = "application/problem+json")
))]
pub(super) async fn get_alert_definition(
    _: Admin,
    State(state): State<AppState>,
    PathPart(id): PathPart<DefinitionId>,
) -> Result<Json<DefinitionBody>, Problem> {
    Ok(Json(state.alerts.definition(&id).await?.into()))
}

/// Replace a definition; alerts stay only where the same is watched in the same way, and a webhook
/// without a secret keeps the one that its address had
#[utoipa::path(put, path = "/v1/alerts/definitions/{definition_id}", tag = "alerts",
    security(("admin_token" = [])), params(DefinitionPath), request_body = TermsBody, responses(
    (status = 200, description = "It is in force", body = DefinitionBody),
    (status = 400, description = "Something is not as it should be", body = ProblemBody, content_type = "application/problem+json"),
    (status = 401, description = "Not an operator", body = ProblemBody, content_type = "application/problem+json"),
    (status = 404, description = "There is no such definition", body = ProblemBody, content_type = "application/problem+json"),
    (status = 409, description = "This server cannot reach such a target", body = ProblemBody, content_type = "application/problem+json"),
    (status = 503, description = "The store cannot answer", body = ProblemBody, content_type = "application/problem+json")
))]
pub(super) async fn replace_alert_definition(
    _: Admin,
    State(state): State<AppState>,
    PathPart(id): PathPart<DefinitionId>,
    JsonBody(body): JsonBody<TermsBody>,
) -> Result<Json<DefinitionBody>, Problem> {
    let definition = state.alerts.replace(&id, body.try_into()?).await?;
    Ok(Json(definition.into()))
}

/// Delete a definition; its open alerts are cleared
#[utoipa::path(delete, path = "/v1/alerts/definitions/{definition_id}", tag = "alerts",
    security(("admin_token" = [])), params(DefinitionPath), responses(
    (status = 204, description = "It is gone"),
    (status = 400, description = "The id is none", body = ProblemBody, content_type = "application/problem+json"),
    (status = 401, description = "Not an operator", body = ProblemBody, content_type = "application/problem+json"),
    (status = 404, description = "There is no such definition", body = ProblemBody, content_type = "application/problem+json"),
    (status = 503, description = "The store cannot answer", body = ProblemBody, content_type = "application/problem+json")
))]
pub(super) async fn delete_alert_definition(
    _: Admin,
    State(state): State<AppState>,
    PathPart(id): PathPart<DefinitionId>,
) -> Result<StatusCode, Problem> {
    state.alerts.delete(&id).await?;
    Ok(StatusCode::NO_CONTENT)
}
