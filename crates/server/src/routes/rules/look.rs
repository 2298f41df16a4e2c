//! Looking at rules, their versions and their errors.

use axum::Json;
use axum::extract::{Path, State};
use homeport_systems::rules::{PAGE_MAX, RuleName};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::body::{FailureBody, RuleBody, Tagged, VersionBody, tagged};
use crate::auth::Admin;
use crate::forms::rules::{RulePath, RuleVersionPath};
use crate::problem::{Problem, ProblemBody};
use crate::state::AppState;
use crate::url::{self, PathPart, UrlQuery};

#[derive(Debug, Serialize, ToSchema)]
pub(in crate::routes) struct RuleList {
    rules: Vec<RuleBody>,
    /// Absent on the last page
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(in crate::routes) struct RuleVersionList {
    /// The newest first
    versions: Vec<VersionBody>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(in crate::routes) struct RuleErrorList {
    /// The newest first
    errors: Vec<FailureBody>,
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(in crate::routes) struct ListQuery {
    /// Items of a page
    #[param(minimum = 1, maximum = 1000, default = 100)]
    limit: Option<usize>,
    /// Where the page before ended
    cursor: Option<String>,
}

/// Rules in the order of their names
#[utoipa::path(get, path = "/v1/rules", tag = "rules", security(("admin_token" = [])),
    params(ListQuery), responses(
    (status = 200, description = "A page of rules", body = RuleList),
    (status = 400, description = "The limit or the cursor is not right", body = ProblemBody, content_type = "application/problem+json"),
    (status = 401, description = "No operator", body = ProblemBody, content_type = "application/problem+json")
))]
pub(in crate::routes) async fn list_rules(
    _: Admin,
    State(state): State<AppState>,
    UrlQuery(query): UrlQuery<ListQuery>,
) -> Result<Json<RuleList>, Problem> {
    let limit = url::limit(query.limit, PAGE_MAX)?;
    let cursor = url::cursor(query.cursor.as_deref())?;
    let page = state.rules.rules(limit, cursor)?;
    Ok(Json(RuleList {
        rules: page.rules.into_iter().map(RuleBody::from).collect(),
        next_cursor: page.next.map(|cursor| cursor.encode()),
    }))
}

/// A rule as it runs
#[utoipa::path(get, path = "/v1/rules/{name}", tag = "rules", security(("admin_token" = [])),
    params(RulePath), responses(
    (status = 200, description = "The rule", body = RuleBody),
    (status = 400, description = "The name is none", body = ProblemBody, content_type = "application/problem+json"),
    (status = 401, description = "No operator", body = ProblemBody, content_type = "application/problem+json"),
    (status = 404, description = "There is no such rule", body = ProblemBody, content_type = "application/problem+json")
))]
pub(in crate::routes) async fn get_rule(
    _: Admin,
    State(state): State<AppState>,
    PathPart(name): PathPart<RuleName>,
) -> Result<Tagged, Problem> {
    Ok(tagged(state.rules.rule(&name)?))
}

/// The versions of a rule, also of one that was deleted
#[utoipa::path(get, path = "/v1/rules/{name}/versions", tag = "rules", security(("admin_token" = [])),
    params(RulePath), responses(
    (status = 200, description = "The newest 100 versions", body = RuleVersionList),
    (status = 400, description = "The name is none", body = ProblemBody, content_type = "application/problem+json"),
    (status = 401, description = "No operator", body = ProblemBody, content_type = "application/problem+json"),
    (status = 404, description = "There never was such a rule", body = ProblemBody, content_type = "application/problem+json"),
    (status = 409, description = "It is in the server's file", body = ProblemBody, content_type = "application/problem+json"),
    (status = 503, description = "The store cannot answer", body = ProblemBody, content_type = "application/problem+json")
))]
pub(in crate::routes) async fn list_rule_versions(
    _: Admin,
    State(state): State<AppState>,
    PathPart(name): PathPart<RuleName>,
) -> Result<Json<RuleVersionList>, Problem> {
    let versions = state.rules.versions(&name).await?;
    Ok(Json(RuleVersionList {
        versions: versions.into_iter().map(VersionBody::from).collect(),
    }))
}

/// One version of a rule
#[utoipa::path(get, path = "/v1/rules/{name}/versions/{version}", tag = "rules", security(("admin_token" = [])),
    params(RuleVersionPath), responses(
    (status = 200, description = "The version", body = VersionBody),
    (status = 400, description = "The name or the version is none", body = ProblemBody, content_type = "application/problem+json"),
    (status = 401, description = "No operator", body = ProblemBody, content_type = "application/problem+json"),
    (status = 404, description = "There is no such version", body = ProblemBody, content_type = "application/problem+json"),
    (status = 503, description = "The store cannot answer", body = ProblemBody, content_type = "application/problem+json")
))]
pub(in crate::routes) async fn get_rule_version(
    _: Admin,
    State(state): State<AppState>,
    Path((name, version)): Path<(String, String)>,
) -> Result<Json<VersionBody>, Problem> {
    let name: RuleName = name.parse()?;
    let version = version
        .parse::<i64>()
        .ok()
        .filter(|version| *version > 0)
        .ok_or_else(|| Problem::invalid("a version is a whole number from 1"))?;
    let version = state.rules.version(&name, version).await?;
    Ok(Json(version.into()))
}

/// The last errors of a rule in the process that answers
#[utoipa::path(get, path = "/v1/rules/{name}/errors", tag = "rules", security(("admin_token" = [])),
    params(RulePath), responses(
    (status = 200, description = "At most 50 errors", body = RuleErrorList),
    (status = 400, description = "The name is none", body = ProblemBody, content_type = "application/problem+json"),
    (status = 401, description = "No operator", body = ProblemBody, content_type = "application/problem+json"),
    (status = 404, description = "There is no such rule", body = ProblemBody, content_type = "application/problem+json")
))]
pub(in crate::routes) async fn list_rule_errors(
    _: Admin,
    State(state): State<AppState>,
    PathPart(name): PathPart<RuleName>,
) -> Result<Json<RuleErrorList>, Problem> {
    let failures = state.rules.failures(&name)?;
    Ok(Json(RuleErrorList {
        errors: failures.into_iter().map(FailureBody::from).collect(),
    }))
}
