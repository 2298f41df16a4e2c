//! `/v1/me`: people see who they are, change their password and set up a second factor.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::request::Parts;
use homeport_systems::people::{Access, Password, PeopleError};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::bodies::{PersonBody, RoleBody};
use crate::auth::{Action, Authenticated, Caller, Forbidden, Myself, OwnSession, client_address};
use crate::openapi::schemas::people as schemas;
use crate::problem::Problem;
use crate::request::JsonBody;
use crate::state::AppState;

/// The caller.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Me {
    /// Name of the person; `admin` for the admin token
    name: String,
    /// Whether the caller used the admin token, which has no account
    is_admin_token: bool,
    roles: Vec<RoleBody>,
    /// What a personal access token is limited to
    #[serde(skip_serializing_if = "Option::is_none")]
    token_role: Option<RoleBody>,
    #[serde(flatten)]
    permissions: Permissions,
    /// The account; absent for the admin token
    #[serde(skip_serializing_if = "Option::is_none")]
    account: Option<PersonBody>,
    /// Recovery codes that were not used
    #[serde(skip_serializing_if = "Option::is_none")]
    recovery_codes_left: Option<usize>,
}

/// What a caller may do.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Permissions {
    /// Permissions that apply to something: to what the roles are limited to, or to the whole server
    #[schema(example = json!(["read", "command"]))]
    may: Vec<&'static str>,
    /// Permissions that apply to the whole server
    #[schema(example = json!(["read"]))]
    may_everywhere: Vec<&'static str>,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ChangePassword {
    #[schema(max_length = 1024)]
    old_password: String,
    /// 12 to 256 characters
    #[schema(schema_with = schemas::password)]
    new_password: String,
}

/// The caller's password, which is asked for again.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct OwnPassword {
    #[schema(max_length = 1024)]
    password: String,
}

/// A second factor to confirm; shown once.
#[derive(Serialize, ToSchema)]
pub(super) struct SecondFactorSecret {
    /// For authenticator apps into which it is typed
    #[schema(example = "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP")]
    secret: String,
    /// For authenticator apps that open links or scan QR codes
    uri: String,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ConfirmSecondFactor {
    /// The code that the authenticator app shows
    #[schema(max_length = 64, example = "287082")]
    code: String,
}

/// Recovery codes, each of which replaces a code of the app once; shown once.
#[derive(Serialize, ToSchema)]
pub(super) struct RecoveryCodeList {
    recovery_codes: Vec<String>,
}

impl Permissions {
    pub(super) fn of(caller: &Caller) -> Self {
        let names = |permits: &dyn Fn(Action) -> Result<(), Forbidden>| {
            let permitted = Action::ALL
                .iter()
                .filter(|action| permits(**action).is_ok());
            permitted.map(|action| action.name()).collect()
        };
        Self {
            may: names(&|action| caller.check_role(action)),
            may_everywhere: names(&|action| caller.check_everywhere(action)),
        }
    }
}

/// The person who makes a request.
pub(super) fn access(caller: &Caller) -> Result<&Access, Problem> {
    match caller {
        Caller::Person(access) => Ok(access),
        Caller::ApiKey(_) | Caller::User(_) => Err(Forbidden::OperatorsOnly.into()),
    }
}

/// Get the caller: name, roles and permissions
#[utoipa::path(get, path = "/v1/me", tag = "people", security(("admin_token" = [])), responses(
    (status = 200, description = "The caller", body = Me),
))]
pub(super) async fn get_me(
    caller: Authenticated<Myself>,
    State(state): State<AppState>,
) -> Result<Json<Me>, Problem> {
    let access = access(&caller)?;
    let account = match access.is_admin_token() {
        true => None,
        false => Some(state.people.account(access).await?),
    };
    Ok(Json(Me {
        name: access.name.clone(),
        is_admin_token: access.is_admin_token(),
        roles: access.roles().iter().map(RoleBody::from).collect(),
        token_role: access.token_role().map(RoleBody::from),
        permissions: Permissions::of(&caller),
        recovery_codes_left: (account.as_ref())
            .filter(|account| account.has_second_factor)
            .map(|account| account.recovery_codes_left),
        account: account.as_ref().map(PersonBody::from),
    }))
}

/// Change your password; your other sessions end
#[utoipa::path(put, path = "/v1/me/password", tag = "people", security(("console_session" = [])),
    request_body = ChangePassword, responses(
    (status = 204, description = "Changed"),
    (status = 403, description = "The old password is wrong, or this is not the session of a person"),
    (status = 429, description = "Too many wrong passwords"),
))]
pub(super) async fn change_password(
    caller: Authenticated<OwnSession>,
    State(state): State<AppState>,
    parts: Parts,
    JsonBody(body): JsonBody<ChangePassword>,
) -> Result<StatusCode, Problem> {
    let new = Password::new(body.new_password)?;
    let access = access(&caller)?;
    let changed = state
        .people
        .change_password(access, body.old_password, &new);
    limited(&state, &parts, access, changed).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Begin to set up a second factor; the secret is shown only once
///
/// Add it to an authenticator app, then confirm it with a code of the app. Until then it is not required.
#[utoipa::path(post, path = "/v1/me/second-factor", tag = "people", security(("console_session" = [])),
    request_body = OwnPassword, responses(
    (status = 200, description = "The secret", body = SecondFactorSecret),
    (status = 403, description = "The password is wrong, or this is not the session of a person"),
    (status = 409, description = "There is a second factor already"),
    (status = 429, description = "Too many wrong passwords"),
))]
pub(super) async fn begin_second_factor(
    caller: Authenticated<OwnSession>,
    State(state): State<AppState>,
    parts: Parts,
    JsonBody(body): JsonBody<OwnPassword>,
) -> Result<Json<SecondFactorSecret>, Problem> {
    let access = access(&caller)?;
    let begun = state.people.begin_second_factor(access, body.password);
    let enrolment = limited(&state, &parts, access, begun).await?;
    Ok(Json(SecondFactorSecret {
        secret: enrolment.secret,
        uri: enrolment.uri,
    }))
}

/// Confirm the second factor with a code; from now on it is required
#[utoipa::path(post, path = "/v1/me/second-factor/confirm", tag = "people", security(("console_session" = [])),
    request_body = ConfirmSecondFactor, responses(
    (status = 200, description = "Recovery codes", body = RecoveryCodeList),
    (status = 403, description = "The code is wrong, or this is not the session of a person"),
    (status = 409, description = "There is no second factor to confirm"),
    (status = 429, description = "Too many wrong codes"),
))]
pub(super) async fn confirm_second_factor(
    caller: Authenticated<OwnSession>,
    State(state): State<AppState>,
    parts: Parts,
    JsonBody(body): JsonBody<ConfirmSecondFactor>,
) -> Result<Json<RecoveryCodeList>, Problem> {
    let access = access(&caller)?;
    let confirmed = state.people.confirm_second_factor(access, &body.code);
    let codes = limited(&state, &parts, access, confirmed).await?;
    Ok(Json(RecoveryCodeList {
        recovery_codes: codes.0,
    }))
}

/// Remove your second factor
#[utoipa::path(post, path = "/v1/me/second-factor/remove", tag = "people", security(("console_session" = [])),
    request_body = OwnPassword, responses(
    (status = 204, description = "Removed"),
    (status = 403, description = "The password is wrong, or this is not the session of a person"),
    (status = 429, description = "Too many wrong passwords"),
))]
pub(super) async fn remove_second_factor(
    caller: Authenticated<OwnSession>,
    State(state): State<AppState>,
    parts: Parts,
    JsonBody(body): JsonBody<OwnPassword>,
) -> Result<StatusCode, Problem> {
    let access = access(&caller)?;
    let removed = state.people.remove_second_factor(access, body.password);
    limited(&state, &parts, access, removed).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Counts wrong passwords and codes like those of sign-ins. The session itself is valid, so they are not answered
/// with 401.
async fn limited<T>(
    state: &AppState,
    parts: &Parts,
    access: &Access,
    attempt: impl Future<Output = Result<T, PeopleError>>,
) -> Result<T, Problem> {
    let client = client_address(&parts.extensions);
    let attempted = state.sign_in_limits.attempt(client, &access.name, attempt);
    attempted.await.map_err(|problem| match problem.status() {
        StatusCode::UNAUTHORIZED => problem.with_status(StatusCode::FORBIDDEN),
        _ => problem,
    })
}
