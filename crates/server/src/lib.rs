//! The edges of Homeport: HTTP routes with their OpenAPI document, authentication, limits, metrics.
//! Handlers are thin: they parse a request into the systems' types, call one use case, and show the
//! answer.

mod auth;
mod body;
mod limits;
mod measure;
mod problem;
mod request_id;
mod routes;
mod state;
mod url;

pub use limits::{RateLimit, RateLimiter};
pub use measure::{Gauges, install_recorder};
pub use routes::{openapi, router};
pub use state::{AdminToken, AppState, Health};
