//! The edges of Homeport: HTTP routes with their OpenAPI document, authentication, limits, metrics.
//! Handlers are thin: they parse a request into the systems' types, call one use case, and show the
//! answer.

mod auth;
mod body;
mod decimal;
mod deliver;
mod expo;
mod forms;
mod jwt;
mod limits;
mod listen;
mod measure;
mod object;
mod outbound;
mod problem;
mod public_address;
mod request_id;
mod routes;
mod state;
mod url;
mod whole;

pub use deliver::{Delivery, SmtpRelay, SmtpRelayError, SmtpTls};
pub use expo::Expo;
pub use jwt::{UserAlgorithm, UserKeys, UserTokenSettings, UserTokens};
pub use limits::{RateLimit, RateLimiter};
pub use listen::{Limits, serve};
pub use measure::{Gauges, install_recorder};
pub use routes::api_keys::{ApiKeyBody, ApiKeyList, CreateApiKey, CreatedApiKey, RevokedApiKey};
pub use routes::{openapi, router};
pub use state::{AdminToken, AppState, Health};
