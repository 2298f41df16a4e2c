//! The edges of Homeport: HTTP routes with their OpenAPI document, MQTT, authentication, limits,
//! metrics.
//! Handlers are thin: they parse a request into the systems' types, call one use case, and show the
//! answer.

mod auth;
mod body;
mod console;
mod decimal;
mod deliver;
mod expo;
pub mod expo_stand_in;
mod forms;
mod jwt;
mod limits;
mod listen;
mod measure;
mod members;
mod mqtt;
mod object;
mod outbound;
mod problem;
mod public_address;
mod request_id;
mod routes;
mod signed_requests;
mod state;
mod url;
mod whole;

pub use auth::AdminToken;
pub use console::{
    CommitTimes, Console, EXPORTS_MAX, SESSION_SECS_DEFAULT, Sessions, Storage, StoredTable,
};
pub use deliver::{Delivery, SmtpRelay, SmtpRelayError, SmtpTls};
pub use expo::Expo;
pub use jwt::{UserAlgorithm, UserKeys, UserTokenSettings, UserTokens};
pub use limits::{RateLimit, RateLimiter};
pub use listen::{
    AddressRanges, AllowedOrigins, ConnectionLimits, Connections, ForwardedHeader, Limits,
    REFUSALS_MAX, TrustedProxies, serve,
};
pub use measure::{Gauges, install_recorder};
#[cfg(feature = "fuzzing")]
pub use mqtt::fuzz_packets;
pub use mqtt::{
    Bridge, BridgeAddress, BridgeProtocol, BridgeSettings, BridgeStatus, BridgeTls, BridgeTlsError,
    Broker, BrokerParts, MqttSettings, MqttTls, MqttTlsError, serve_mqtt,
};
pub use routes::api_keys::{ApiKeyBody, ApiKeyList, CreateApiKey, CreatedApiKey, RevokedApiKey};
pub use routes::rules::{
    ChangeBody, DifferenceWord, ReplayBody, ReplayTotalsBody, ReplayedBody, RuleBody,
    WouldWriteBody,
};
pub use routes::time::TimeBody;
pub use routes::{openapi, router};
pub use signed_requests::SignedRequests;
pub use state::{AppState, ClockState, Health, StoreClock};
