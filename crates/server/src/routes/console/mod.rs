//! What the console is made of: its page, and the routes that it asks beside those of the systems.

mod page;
mod session;

use axum::Router;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::state::AppState;

pub(super) fn documented() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(
        session::begin_session,
        session::get_session,
        session::end_session
    ))
}

/// The page and what it loads.
pub(super) fn page() -> Router<AppState> {
    page::router()
}
