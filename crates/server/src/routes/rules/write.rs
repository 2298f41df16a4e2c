//! Creates, changes, enables, disables and deletes rules.

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use homeport_systems::rules::{NewRule, RuleDocument, RuleName};
use serde_json::{Map, Value};

use super::body::{RuleBody, RuleWithEtag, with_etag};
use crate::auth::needs::ManageRules;
use crate::auth::{Authenticated, Everywhere};
use crate::openapi::schemas::rules::{
    IfMatch, NewRuleSchema, RuleDocumentSchema, RulePatchSchema, RulePath,
};
use crate::problem::Problem;
use crate::request::{JsonBody, PathPart, expected_version};
use crate::state::AppState;

/// Create a rule; the body is that of `aws iot create-topic-rule`
#[utoipa::path(post, path = "/v1/rules", tag = "rules", security(("admin_token" = [])),
    request_body = NewRuleSchema, responses(
    (status = 201, description = "The new rule", body = RuleBody),
    (status = 400, description = "Invalid rule; the detail names the position"),
    (status = 409, description = "A rule with this name exists, or there are too many rules"),
))]
pub(in crate::routes) async fn create_rule(
    _: Authenticated<Everywhere<ManageRules>>,
    State(state): State<AppState>,
    JsonBody(new): JsonBody<NewRule>,
) -> Result<(StatusCode, RuleWithEtag), Problem> {
    let view = state.rules.create(new).await?;
    Ok((StatusCode::CREATED, with_etag(view)))
}

/// Create or replace a rule; the body is AWS IoT's `TopicRulePayload`
#[utoipa::path(put, path = "/v1/rules/{name}", tag = "rules", security(("admin_token" = [])),
    params(RulePath, IfMatch), request_body = RuleDocumentSchema, responses(
    (status = 200, description = "The rule", body = RuleBody),
    (status = 201, description = "The new rule", body = RuleBody),
    (status = 400, description = "Invalid rule; the detail names the position"),
    (status = 404, description = "Rule not found; only with `If-Match`"),
    (status = 409, description = "The rule is in the server's rules file, or there are too many rules"),
    (status = 412, description = "The rule has another version"),
))]
pub(in crate::routes) async fn put_rule(
    _: Authenticated<Everywhere<ManageRules>>,
    State(state): State<AppState>,
    PathPart(name): PathPart<RuleName>,
    headers: HeaderMap,
    JsonBody(document): JsonBody<RuleDocument>,
) -> Result<(StatusCode, RuleWithEtag), Problem> {
    let expected = expected_version(&headers)?;
    let (view, is_new) = state.rules.put(&name, document, expected).await?;
    let status = if is_new {
        StatusCode::CREATED
    } else {
        StatusCode::OK
    };
    Ok((status, with_etag(view)))
}

/// Change members of a rule; null removes one
#[utoipa::path(patch, path = "/v1/rules/{name}", tag = "rules", security(("admin_token" = [])),
    params(RulePath, IfMatch), request_body = RulePatchSchema, responses(
    (status = 200, description = "The rule", body = RuleBody),
    (status = 400, description = "Invalid rule; the detail names the position"),
    (status = 404, description = "Rule not found"),
    (status = 409, description = "The rule is in the server's rules file"),
    (status = 412, description = "The rule has another version"),
))]
pub(in crate::routes) async fn patch_rule(
    _: Authenticated<Everywhere<ManageRules>>,
    State(state): State<AppState>,
    PathPart(name): PathPart<RuleName>,
    headers: HeaderMap,
    JsonBody(changes): JsonBody<Map<String, Value>>,
) -> Result<RuleWithEtag, Problem> {
    let expected = expected_version(&headers)?;
    Ok(with_etag(
        state.rules.patch(&name, changes, expected).await?,
    ))
}

/// Delete a rule; its versions stay readable
#[utoipa::path(delete, path = "/v1/rules/{name}", tag = "rules", security(("admin_token" = [])),
    params(RulePath, IfMatch), responses(
    (status = 204, description = "Deleted"),
    (status = 404, description = "Rule not found"),
    (status = 409, description = "The rule is in the server's rules file"),
    (status = 412, description = "The rule has another version"),
))]
pub(in crate::routes) async fn delete_rule(
    _: Authenticated<Everywhere<ManageRules>>,
    State(state): State<AppState>,
    PathPart(name): PathPart<RuleName>,
    headers: HeaderMap,
) -> Result<StatusCode, Problem> {
    let expected = expected_version(&headers)?;
    state.rules.delete(&name, expected).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Enable a rule
#[utoipa::path(post, path = "/v1/rules/{name}/enable", tag = "rules", security(("admin_token" = [])),
    params(RulePath), responses(
    (status = 200, description = "The rule", body = RuleBody),
    (status = 404, description = "Rule not found"),
    (status = 409, description = "The rule is in the server's rules file"),
))]
pub(in crate::routes) async fn enable_rule(
    _: Authenticated<Everywhere<ManageRules>>,
    State(state): State<AppState>,
    PathPart(name): PathPart<RuleName>,
) -> Result<RuleWithEtag, Problem> {
    Ok(with_etag(state.rules.switch(&name, true).await?))
}

/// Disable a rule
#[utoipa::path(post, path = "/v1/rules/{name}/disable", tag = "rules", security(("admin_token" = [])),
    params(RulePath), responses(
    (status = 200, description = "The disabled rule", body = RuleBody),
    (status = 404, description = "Rule not found"),
    (status = 409, description = "The rule is in the server's rules file"),
))]
pub(in crate::routes) async fn disable_rule(
    _: Authenticated<Everywhere<ManageRules>>,
    State(state): State<AppState>,
    PathPart(name): PathPart<RuleName>,
) -> Result<RuleWithEtag, Problem> {
    Ok(with_etag(state.rules.switch(&name, false).await?))
}
