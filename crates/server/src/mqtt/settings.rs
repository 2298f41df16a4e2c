//! What the MQTT listener allows.

use std::time::Duration;

/// Client ids may have as many bytes.
pub(super) const CLIENT_ID_LEN_MAX: usize = 256;
/// User properties that one message may have.
pub(super) const USER_PROPERTIES_MAX: usize = 64;
/// Topic aliases that a client may set up.
pub(super) const TOPIC_ALIASES_MAX: u16 = 16;
/// What the messages of one connection that are being taken in may count for; beyond it the
/// connection is not read.
pub(super) const WINDOW_BYTES_MAX: usize = 1024 * 1024;
/// Messages, and their bytes, that wait in memory for one subscriber.
pub(super) const MAILBOX_LEN_MAX: usize = 1000;
pub(super) const MAILBOX_BYTES_MAX: usize = 1024 * 1024;
/// Once so many bytes wait to be written to a client, it gets no more and is not read.
pub(super) const WRITE_BYTES_MAX: usize = 64 * 1024;
/// How long a client may take nothing of what is written to it.
pub(super) const WRITE_STALL_MAX: Duration = Duration::from_secs(60);
/// How long what a connection published may take to its end once the connection is over.
pub(super) const DRAIN_MAX: Duration = Duration::from_secs(10);
/// How long the last bytes to a client may take.
pub(super) const FAREWELL_MAX: Duration = Duration::from_secs(2);
/// How long a connection whose session is taken over may take to let go.
pub(super) const TAKE_OVER_MAX: Duration = Duration::from_secs(5);

/// The limits that operators set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MqttSettings {
    /// Connections at one time; more are refused.
    pub connections_max: usize,
    /// Largest packet, in both directions.
    pub packet_bytes_max: usize,
    /// Messages of one connection that are being taken in, and messages sent to it that it has not
    /// acknowledged.
    pub inflight_max: u16,
    /// Messages that wait in the store for one session.
    pub queue_len_max: usize,
    /// Subscriptions of one client.
    pub subscriptions_max: usize,
    /// Sessions at one time, connected and not.
    pub sessions_max: usize,
    /// How long a session may live without a connection.
    pub session_expiry_secs_max: u32,
    /// Topics with a retained message.
    pub retained_max: usize,
    /// MQTT 5 clients are told to speak at least so often.
    pub keep_alive_secs_max: u16,
    /// How long a connection may take to say who it is.
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
