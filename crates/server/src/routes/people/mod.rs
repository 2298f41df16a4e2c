//! People: `/v1/session` signs them in and out, `/v1/setup` creates the first administrator, `/v1/me` is for their own
//! account, and `/v1/people` for administrators.

mod account;
mod bodies;
mod credentials;
mod manage;
mod session;

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::state::AppState;

pub use bodies::{
    ChangePerson, CreatePerson, CreatedPerson, PersonBody, PersonList, ResetPassword, RoleBody,
};

pub(super) fn documented() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(
            session::begin_session,
            session::get_session,
            session::end_session
        ))
        .routes(routes!(session::set_up))
        .routes(routes!(account::get_me))
        .routes(routes!(account::change_password))
        .routes(routes!(account::begin_second_factor))
        .routes(routes!(account::confirm_second_factor))
        .routes(routes!(account::remove_second_factor))
        .routes(routes!(credentials::list_sessions))
        .routes(routes!(credentials::end_other_session))
        .routes(routes!(credentials::create_token, credentials::list_tokens))
        .routes(routes!(credentials::revoke_token))
        .routes(routes!(manage::create_person, manage::list_people))
        .routes(routes!(
            manage::get_person,
            manage::change_person,
            manage::delete_person
        ))
        .routes(routes!(manage::reset_password))
        .routes(routes!(manage::reset_second_factor))
        .routes(routes!(
            credentials::list_sessions_of_person,
            credentials::end_sessions_of_person
        ))
        .routes(routes!(credentials::end_session_of_person))
        .routes(routes!(credentials::list_tokens_of_person))
        .routes(routes!(credentials::revoke_token_of_person))
}

/// Whether a page of another site could use the routes at a path with a browser's help.
pub(super) fn is_for_own_pages(path: &str) -> bool {
    matches!(path, "/v1/session" | "/v1/setup")
}
