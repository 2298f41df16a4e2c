//! The edges of Homeport: HTTP routes with their OpenAPI document, MQTT, authentication, metrics, and
//! requests to other services. Handlers are thin: they parse a request into the systems' types, call one
//! use case and write the response.

mod app;
mod auth;
mod console;
mod listen;
mod metrics;
mod mqtt;
mod openapi;
mod outbound;
mod problem;
mod request;
mod request_id;
mod routes;
mod state;
mod uplink_topics;

pub use self::app::{AppDeps, AppSettings, BuildError};
pub use self::metrics::{Gauges, drain_latencies_until, install_recorder};
pub use auth::{
    AdminToken, KeyVerifier, RateLimit, RateLimiter, UserAlgorithm, UserKeys, UserTokenSettings,
    UserTokens,
};
pub use console::{CommitTimes, Console, EXPORTS_MAX, SESSION_SECS_DEFAULT, Storage, StoredTable};
pub use listen::{
    AddressRanges, AllowedOrigins, Certificate, CertificateError, CertificateFiles,
    ConnectionLimits, Connections, ForwardedHeader, Limits, REFUSALS_MAX, Tls, TlsError,
    TlsProtocols, TlsVersion, TrustedProxies, certificates_of_file, serve, serve_redirects,
    tls_provider,
};
#[cfg(feature = "fuzzing")]
pub use mqtt::fuzz_packets;
pub use mqtt::{
    Bridge, BridgeAddress, BridgeSettings, BridgeStatus, BridgeTls, BridgeTlsError, Broker,
    BrokerParts, MqttSettings, MqttVersion, serve_mqtt,
};
pub use outbound::{
    Delivery, Expo, InvalidRequestSecret, SignedRequests, SmtpRelay, SmtpRelayError, SmtpTls,
};
pub use routes::api_keys::{ApiKeyBody, ApiKeyList, CreateApiKey, CreatedApiKey, RevokedApiKey};
pub use routes::people::{
    ChangePerson, CreatePerson, CreatedPerson, PersonBody, PersonList, ResetPassword, RoleBody,
};
pub use routes::push::{PushCheck, PushCleanup, PushDeviceCheck, PushLastNotification};
pub use routes::rules::{
    ChangeBody, DifferenceKind, ReplayBody, ReplayTotalsBody, ReplayedBody, RuleBody,
    WouldWriteBody,
};
pub use routes::time::TimeBody;
pub use routes::{openapi, router, with_hsts};
pub use state::{AppState, ClockState, Health, StoreClock};
