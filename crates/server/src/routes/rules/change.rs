//! Making, changing, switching and deleting rules.

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use homeport_systems::rules::{NewRule, RuleDocument, RuleName};
use serde_json::{Map, Value};

use super::body::{RuleBody, Tagged, tagged};
use crate::auth::Admin;
use crate::body::JsonBody;
use crate::forms::rules::{IfMatch, NewRuleForm, RuleDocumentForm, RulePatchForm, RulePath};
use crate::problem::{Problem, ProblemBody};
use crate::state::AppState;
use crate::url::PathPart;

/// The version that `If-Match` asks for.
fn expected(headers: &HeaderMap) -> Result<Option<i64>, Problem> {
    let Some(value) = headers.get(header::IF_MATCH) else {
        return Ok(None);
    };
    let text = value.to_str().unwrap_or_default().trim();
    let version = text
        .strip_prefix('"')
        .and_then(|text| text.strip_suffix('"'))
        .filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()))
        .and_then(|text| text.parse().ok());
    version
        .map(Some)
        .ok_or_else(|| Problem::invalid("If-Match must be a version as ETag has it, like \"3\""))
}

/// Make a rule, as `aws iot create-topic-rule` takes it
#[utoipa::path(post, path = "/v1/rules", tag = "rules", security(("admin_token" = [])),
    request_body = NewRuleForm, responses(
    (status = 201, description = "The rule runs", body = RuleBody),
    (status = 400, description = "It cannot be a rule; the detail has the place", body = ProblemBody, content_type = "application/problem+json"),
    (status = 401, description = "No operator", body = ProblemBody, content_type = "application/problem+json"),
    (status = 409, description = "There is one of that name, or there are too many", body = ProblemBody, content_type = "application/problem+json"),
    (status = 503, description = "The store cannot answer", body = ProblemBody, content_type = "application/problem+json")
))]
pub(in crate::routes) async fn create_rule(
    _: Admin,
    State(state): State<AppState>,
    JsonBody(new): JsonBody<NewRule>,
) -> Result<(StatusCode, Tagged), Problem> {
    let view = state.rules.create(new).await?;
    Ok((StatusCode::CREATED, tagged(view)))
}

/// Make a rule or take the place of one; the body is AWS IoT's `TopicRulePayload`
#[utoipa::path(put, path = "/v1/rules/{name}", tag = "rules", security(("admin_token" = [])),
    params(RulePath, IfMatch), request_body = RuleDocumentForm, responses(
    (status = 200, description = "The rule as it runs now", body = RuleBody),
    (status = 201, description = "The rule is new and runs", body = RuleBody),
    (status = 400, description = "It cannot be a rule; the detail has the place", body = ProblemBody, content_type = "application/problem+json"),
    (status = 401, description = "No operator", body = ProblemBody, content_type = "application/problem+json"),
    (status = 404, description = "A version was asked for and there is no such rule", body = ProblemBody, content_type = "application/problem+json"),
    (status = 409, description = "It is in the server's file, or there are too many", body = ProblemBody, content_type = "application/problem+json"),
    (status = 412, description = "Another version is there", body = ProblemBody, content_type = "application/problem+json"),
    (status = 503, description = "The store cannot answer", body = ProblemBody, content_type = "application/problem+json")
))]
pub(in crate::routes) async fn put_rule(
    _: Admin,
    State(state): State<AppState>,
    PathPart(name): PathPart<RuleName>,
    headers: HeaderMap,
    JsonBody(document): JsonBody<RuleDocument>,
) -> Result<(StatusCode, Tagged), Problem> {
    let expected = expected(&headers)?;
    let (view, is_new) = state.rules.put(&name, document, expected).await?;
    let status = if is_new {
        StatusCode::CREATED
    } else {
        StatusCode::OK
    };
    Ok((status, tagged(view)))
}

/// Change members of a rule; null removes one
#[utoipa::path(patch, path = "/v1/rules/{name}", tag = "rules", security(("admin_token" = [])),
    params(RulePath, IfMatch), request_body = RulePatchForm, responses(
    (status = 200, description = "The rule as it runs now", body = RuleBody),
    (status = 400, description = "It cannot be a rule; the detail has the place", body = ProblemBody, content_type = "application/problem+json"),
    (status = 401, description = "No operator", body = ProblemBody, content_type = "application/problem+json"),
    (status = 404, description = "There is no such rule", body = ProblemBody, content_type = "application/problem+json"),
    (status = 409, description = "It is in the server's file", body = ProblemBody, content_type = "application/problem+json"),
    (status = 412, description = "Another version is there", body = ProblemBody, content_type = "application/problem+json"),
    (status = 503, description = "The store cannot answer", body = ProblemBody, content_type = "application/problem+json")
))]
pub(in crate::routes) async fn patch_rule(
    _: Admin,
    State(state): State<AppState>,
    PathPart(name): PathPart<RuleName>,
    headers: HeaderMap,
    JsonBody(changes): JsonBody<Map<String, Value>>,
) -> Result<Tagged, Problem> {
    let expected = expected(&headers)?;
    Ok(tagged(state.rules.patch(&name, changes, expected).await?))
}

/// Delete a rule; its versions stay readable
#[utoipa::path(delete, path = "/v1/rules/{name}", tag = "rules", security(("admin_token" = [])),
    params(RulePath, IfMatch), responses(
    (status = 204, description = "It is deleted"),
    (status = 400, description = "The name or the version is none", body = ProblemBody, content_type = "application/problem+json"),
    (status = 401, description = "No operator", body = ProblemBody, content_type = "application/problem+json"),
    (status = 404, description = "There is no such rule", body = ProblemBody, content_type = "application/problem+json"),
    (status = 409, description = "It is in the server's file", body = ProblemBody, content_type = "application/problem+json"),
    (status = 412, description = "Another version is there", body = ProblemBody, content_type = "application/problem+json"),
    (status = 503, description = "The store cannot answer", body = ProblemBody, content_type = "application/problem+json")
))]
pub(in crate::routes) async fn delete_rule(
    _: Admin,
    State(state): State<AppState>,
    PathPart(name): PathPart<RuleName>,
    headers: HeaderMap,
) -> Result<StatusCode, Problem> {
    let expected = expected(&headers)?;
    state.rules.delete(&name, expected).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Switch a rule on
#[utoipa::path(post, path = "/v1/rules/{name}/enable", tag = "rules", security(("admin_token" = [])),
    params(RulePath), responses(
    (status = 200, description = "The rule as it runs now", body = RuleBody),
    (status = 400, description = "The name is none", body = ProblemBody, content_type = "application/problem+json"),
    (status = 401, description = "No operator", body = ProblemBody, content_type = "application/problem+json"),
    (status = 404, description = "There is no such rule", body = ProblemBody, content_type = "application/problem+json"),
    (status = 409, description = "It is in the server's file", body = ProblemBody, content_type = "application/problem+json"),
    (status = 503, description = "The store cannot answer", body = ProblemBody, content_type = "application/problem+json")
))]
pub(in crate::routes) async fn enable_rule(
    _: Admin,
    State(state): State<AppState>,
    PathPart(name): PathPart<RuleName>,
) -> Result<Tagged, Problem> {
    Ok(tagged(state.rules.switch(&name, true).await?))
}

/// Switch a rule off
#[utoipa::path(post, path = "/v1/rules/{name}/disable", tag = "rules", security(("admin_token" = [])),
    params(RulePath), responses(
    (status = 200, description = "The rule, which does not run now", body = RuleBody),
    (status = 400, description = "The name is none", body = ProblemBody, content_type = "application/problem+json"),
    (status = 401, description = "No operator", body = ProblemBody, content_type = "application/problem+json"),
    (status = 404, description = "There is no such rule", body = ProblemBody, content_type = "application/problem+json"),
    (status = 409, description = "It is in the server's file", body = ProblemBody, content_type = "application/problem+json"),
    (status = 503, description = "The store cannot answer", body = ProblemBody, content_type = "application/problem+json")
))]
pub(in crate::routes) async fn disable_rule(
    _: Admin,
    State(state): State<AppState>,
    PathPart(name): PathPart<RuleName>,
) -> Result<Tagged, Problem> {
    Ok(tagged(state.rules.switch(&name, false).await?))
}
