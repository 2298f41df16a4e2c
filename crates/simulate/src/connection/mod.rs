//! How devices reach the server: HTTP requests, MQTT connections, and retries.

mod backoff;
mod http;
mod mqtt;
mod retry;

pub(crate) use self::backoff::Backoff;
pub(crate) use self::http::{CallFailure, Client, Credential};
pub use self::http::{ConnectHttp, HttpPool};
pub(crate) use self::mqtt::MqttConnection;
pub(crate) use self::retry::ask_until_answered;
