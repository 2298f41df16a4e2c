//! Limits of MQTT.

use std::time::Duration;

/// Longest client id, in bytes.
pub(super) const CLIENT_ID_LEN_MAX: usize = 256;
/// User properties of a message.
pub(super) const USER_PROPERTIES_MAX: usize = 64;
/// Topic aliases of a client.
pub(super) const TOPIC_ALIASES_MAX: u16 = 16;
/// Bytes of the unacknowledged messages that a connection published; beyond it the connection is not
/// read.
pub(super) const WINDOW_BYTES_MAX: usize = 1024 * 1024;
/// Messages, and their bytes, that wait in memory for a subscriber.
pub(super) const MAILBOX_LEN_MAX: usize = 1000;
pub(super) const MAILBOX_BYTES_MAX: usize = 1024 * 1024;
/// Bytes that wait to be written to a client; beyond it the client gets no more and is not read.
pub(super) const WRITE_BYTES_MAX: usize = 64 * 1024;
/// How long a client may read nothing of what is written to it.
pub(super) const WRITE_STALL_MAX: Duration = Duration::from_secs(60);
/// How long messages of an ended connection may take to be processed.
pub(super) const DRAIN_MAX: Duration = Duration::from_secs(10);
/// How long writing the last bytes to a client may take.
pub(super) const FAREWELL_MAX: Duration = Duration::from_secs(2);
/// How long a connection may keep a session that another connection takes over.
pub(super) const TAKE_OVER_MAX: Duration = Duration::from_secs(5);

/// Limits that operators set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MqttSettings {
    /// Connections at a time; more are refused.
    pub connections_max: usize,
    /// Largest packet, in both directions.
    pub packet_bytes_max: usize,
    /// Unacknowledged messages of a connection, in each direction.
    pub inflight_max: u16,
    /// Messages in the queue of a session.
    pub queue_len_max: usize,
    /// Subscriptions of a client.
    pub subscriptions_max: usize,
    /// Sessions, with and without connections.
    pub sessions_max: usize,
    /// How long a session is kept without a connection.
    pub session_expiry_secs_max: u32,
    /// Retained messages.
    pub retained_max: usize,
    /// The longest keep-alive of MQTT 5 clients.
    pub keep_alive_secs_max: u16,
    /// How long a connection may take to send CONNECT.
    pub connect_timeout: Duration,
    /// How often the keys of connected clients are looked up, in case another process revoked them. A
    /// key revoked in this process ends its connections at once.
    pub key_check_every: Duration,
    /// Whether a bridge brings messages of things that are clients of another broker.
    pub is_bridged: bool,
}

impl Default for MqttSettings {
    fn default() -> Self {
        Self {
            connections_max: 20_000,
            packet_bytes_max: 256 * 1024,
            inflight_max: 256,
            queue_len_max: 1000,
            subscriptions_max: 100,
            sessions_max: 100_000,
            session_expiry_secs_max: 7 * 24 * 60 * 60,
            retained_max: 100_000,
            keep_alive_secs_max: 1200,
            connect_timeout: Duration::from_secs(10),
            key_check_every: Duration::from_secs(30),
            is_bridged: false,
        }
    }
}
