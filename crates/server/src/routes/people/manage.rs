//! `/v1/people`: administrators create, list, change and delete people.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use homeport_systems::people::{PAGE_MAX, PersonName};

use super::bodies::{
    ChangePerson, CreatePerson, CreatedPerson, PersonBody, PersonList, ResetPassword,
};
use crate::auth::needs::ManagePeople;
use crate::auth::{Authenticated, Everywhere};
use crate::openapi::schemas::people::PersonPath;
use crate::problem::Problem;
use crate::request::{JsonBody, PageQuery, PathPart};
use crate::state::AppState;

type Page = PageQuery<PAGE_MAX>;

/// Create a person; a generated password is shown only once
#[utoipa::path(post, path = "/v1/people", tag = "people", security(("admin_token" = [])),
    request_body = CreatePerson, responses(
    (status = 201, description = "The person", body = CreatedPerson),
    (status = 409, description = "The name is taken, or there are too many people"),
))]
pub(super) async fn create_person(
    _: Authenticated<Everywhere<ManagePeople>>,
    State(state): State<AppState>,
    JsonBody(body): JsonBody<CreatePerson>,
) -> Result<(StatusCode, Json<CreatedPerson>), Problem> {
    let (new, generated) = body.parse()?;
    let person = state.people.create(new).await?;
    Ok((
        StatusCode::CREATED,
        Json(CreatedPerson::new(&person, generated)),
    ))
}

/// List people by name
#[utoipa::path(get, path = "/v1/people", tag = "people", security(("admin_token" = [])),
    params(Page), responses(
    (status = 200, description = "A page of people", body = PersonList),
))]
pub(super) async fn list_people(
    _: Authenticated<Everywhere<ManagePeople>>,
    State(state): State<AppState>,
    page: Page,
) -> Result<Json<PersonList>, Problem> {
    let page = state.people.list(page.limit, page.cursor).await?;
    Ok(Json(PersonList::from(&page)))
}

/// Get a person
#[utoipa::path(get, path = "/v1/people/{name}", tag = "people", security(("admin_token" = [])),
    params(PersonPath), responses(
    (status = 200, description = "The person", body = PersonBody),
    (status = 404, description = "Person not found"),
))]
pub(super) async fn get_person(
    _: Authenticated<Everywhere<ManagePeople>>,
    State(state): State<AppState>,
    PathPart(name): PathPart<PersonName>,
) -> Result<Json<PersonBody>, Problem> {
    Ok(Json((&state.people.get(&name).await?).into()))
}

/// Change the roles of a person, or enable or disable a person
#[utoipa::path(patch, path = "/v1/people/{name}", tag = "people", security(("admin_token" = [])),
    params(PersonPath), request_body = ChangePerson, responses(
    (status = 200, description = "The changed person", body = PersonBody),
    (status = 404, description = "Person not found"),
    (status = 409, description = "This is the last administrator who is enabled"),
))]
pub(super) async fn change_person(
    _: Authenticated<Everywhere<ManagePeople>>,
    State(state): State<AppState>,
    PathPart(name): PathPart<PersonName>,
    JsonBody(body): JsonBody<ChangePerson>,
) -> Result<Json<PersonBody>, Problem> {
    let changed = state.people.change(&name, body.try_into()?).await?;
    Ok(Json((&changed).into()))
}

/// Delete a person with all sessions and tokens
#[utoipa::path(delete, path = "/v1/people/{name}", tag = "people", security(("admin_token" = [])),
    params(PersonPath), responses(
    (status = 204, description = "Deleted"),
    (status = 404, description = "Person not found"),
    (status = 409, description = "This is the last administrator who is enabled"),
))]
pub(super) async fn delete_person(
    _: Authenticated<Everywhere<ManagePeople>>,
    State(state): State<AppState>,
    PathPart(name): PathPart<PersonName>,
) -> Result<StatusCode, Problem> {
    state.people.delete(&name).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Set another password for a person; all sessions end and all tokens are revoked
#[utoipa::path(post, path = "/v1/people/{name}/reset-password", tag = "people", security(("admin_token" = [])),
    params(PersonPath), request_body = ResetPassword, responses(
    (status = 200, description = "The person", body = CreatedPerson),
    (status = 404, description = "Person not found"),
))]
pub(super) async fn reset_password(
    _: Authenticated<Everywhere<ManagePeople>>,
    State(state): State<AppState>,
    PathPart(name): PathPart<PersonName>,
    JsonBody(body): JsonBody<ResetPassword>,
) -> Result<Json<CreatedPerson>, Problem> {
    let (password, generated) = body.parse()?;
    let person = state.people.reset_password(&name, &password).await?;
    Ok(Json(CreatedPerson::new(&person, generated)))
}

/// Remove the second factor of a person who has lost it
#[utoipa::path(post, path = "/v1/people/{name}/reset-second-factor", tag = "people", security(("admin_token" = [])),
    params(PersonPath), responses(
    (status = 200, description = "The person", body = PersonBody),
    (status = 404, description = "Person not found"),
))]
pub(super) async fn reset_second_factor(
    _: Authenticated<Everywhere<ManagePeople>>,
    State(state): State<AppState>,
    PathPart(name): PathPart<PersonName>,
) -> Result<Json<PersonBody>, Problem> {
    let person = state.people.reset_second_factor(&name).await?;
    Ok(Json((&person).into()))
}
