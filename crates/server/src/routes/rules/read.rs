//! Reads rules, their versions and their errors.

use axum::Json;
use axum::extract::{Path, State};
use homeport_systems::rules::{PAGE_MAX, RuleName};
use serde::Serialize;
use utoipa::ToSchema;

use super::body::{FailureBody, RuleBody, RuleWithEtag, VersionBody, with_etag};
use crate::auth::needs::Read;
use crate::auth::{Authenticated, Everywhere};
use crate::openapi::schemas::rules::{RulePath, RuleVersionPath};
use crate::problem::Problem;
use crate::request::{PageQuery, PathPart, parse_version};
use crate::state::AppState;

type Page = PageQuery<PAGE_MAX>;

#[derive(Debug, Serialize, ToSchema)]
pub(in crate::routes) struct RuleList {
    rules: Vec<RuleBody>,
    /// Cursor of the next page; absent on the last page
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(in crate::routes) struct RuleVersionList {
    /// Newest first
    versions: Vec<VersionBody>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(in crate::routes) struct RuleErrorList {
    /// Newest first
    errors: Vec<FailureBody>,
}

/// List rules by name
#[utoipa::path(get, path = "/v1/rules", tag = "rules", security(("admin_token" = [])),
    params(Page), responses(
    (status = 200, description = "A page of rules", body = RuleList),
))]
pub(in crate::routes) async fn list_rules(
    _: Authenticated<Everywhere<Read>>,
    State(state): State<AppState>,
    page: Page,
) -> Result<Json<RuleList>, Problem> {
    let page = state.rules.rules(page.limit, page.cursor)?;
    Ok(Json(RuleList {
        rules: page.items.into_iter().map(RuleBody::from).collect(),
        next_cursor: page.next.map(|cursor| cursor.encode()),
    }))
}

/// Get a rule
#[utoipa::path(get, path = "/v1/rules/{name}", tag = "rules", security(("admin_token" = [])),
    params(RulePath), responses(
    (status = 200, description = "The rule", body = RuleBody),
    (status = 404, description = "Rule not found")
))]
pub(in crate::routes) async fn get_rule(
    _: Authenticated<Everywhere<Read>>,
    State(state): State<AppState>,
    PathPart(name): PathPart<RuleName>,
) -> Result<RuleWithEtag, Problem> {
    Ok(with_etag(state.rules.rule(&name)?))
}

/// List the versions of a rule, even of a deleted one
#[utoipa::path(get, path = "/v1/rules/{name}/versions", tag = "rules", security(("admin_token" = [])),
    params(RulePath), responses(
    (status = 200, description = "The newest 100 versions", body = RuleVersionList),
    (status = 404, description = "Rule not found"),
    (status = 409, description = "The rule is in the server's rules file"),
))]
pub(in crate::routes) async fn list_rule_versions(
    _: Authenticated<Everywhere<Read>>,
    State(state): State<AppState>,
    PathPart(name): PathPart<RuleName>,
) -> Result<Json<RuleVersionList>, Problem> {
    let versions = state.rules.versions(&name).await?;
    Ok(Json(RuleVersionList {
        versions: versions.into_iter().map(VersionBody::from).collect(),
    }))
}

/// Get a version of a rule
#[utoipa::path(get, path = "/v1/rules/{name}/versions/{version}", tag = "rules", security(("admin_token" = [])),
    params(RuleVersionPath), responses(
    (status = 200, description = "The version", body = VersionBody),
    (status = 404, description = "Version not found"),
))]
pub(in crate::routes) async fn get_rule_version(
    _: Authenticated<Everywhere<Read>>,
    State(state): State<AppState>,
    Path((name, version)): Path<(String, String)>,
) -> Result<Json<VersionBody>, Problem> {
    let name: RuleName = name.parse()?;
    let version = state.rules.version(&name, parse_version(&version)?).await?;
    Ok(Json(version.into()))
}

/// List the latest errors of a rule in this process
#[utoipa::path(get, path = "/v1/rules/{name}/errors", tag = "rules", security(("admin_token" = [])),
    params(RulePath), responses(
    (status = 200, description = "At most 50 errors", body = RuleErrorList),
    (status = 404, description = "Rule not found")
))]
pub(in crate::routes) async fn list_rule_errors(
    _: Authenticated<Everywhere<Read>>,
    State(state): State<AppState>,
    PathPart(name): PathPart<RuleName>,
) -> Result<Json<RuleErrorList>, Problem> {
    let failures = state.rules.failures(&name)?;
    Ok(Json(RuleErrorList {
        errors: failures.into_iter().map(FailureBody::from).collect(),
    }))
}
