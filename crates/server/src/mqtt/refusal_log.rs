//! Counts and logs refused connections, messages and subscriptions. The metric counts every refusal. Clients repeat
//! refused requests for hours, so log lines are limited by address and in total.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use homeport_listen::client_network;
use homeport_store::Clock;
use homeport_systems::api_keys::KeyId;
use metrics::counter;

use super::codec::{Reason, Refusal};
use crate::auth::{RateLimit, RateLimiter};

/// Lines about one address (IPv6: one /64).
const LINES_PER_ADDRESS: RateLimit = RateLimit {
    per_second: 0.1,
    burst: 10.0,
};
/// Lines about all addresses together.
const LINES_IN_TOTAL: RateLimit = RateLimit {
    per_second: 10.0,
    burst: 100.0,
};
/// Characters of a text of a client in a line.
const TEXT_CHARS_MAX: usize = 256;

/// Limits the lines about refusals.
pub(super) struct RefusalLog {
    by_network: RateLimiter<IpAddr>,
    in_total: RateLimiter<()>,
    /// Refusals since the last line.
    unlogged: AtomicU64,
}

/// A refused client, as far as it is known.
#[derive(Debug, Clone, Copy)]
pub(super) struct RefusedClient<'a> {
    pub(super) address: IpAddr,
    /// Empty before CONNECT is read.
    pub(super) client_id: &'a str,
    /// `None` for operators, and for clients that are not authenticated.
    pub(super) key_id: Option<KeyId>,
}

/// The part of a client's traffic that is refused.
#[derive(Debug, Clone, Copy)]
pub(super) enum Refused<'a> {
    /// The connection; the topic if a message ended it.
    Connection(Option<&'a str>),
    /// One message, on this topic.
    Publish(&'a str),
    /// One topic filter.
    Subscription(&'a str),
}

impl<'a> Refused<'a> {
    pub(super) fn kind_and_topic(self) -> (&'static str, Option<&'a str>) {
        match self {
            Self::Connection(topic) => ("connection", topic),
            Self::Publish(topic) => ("publish", Some(topic)),
            Self::Subscription(filter) => ("subscription", Some(filter)),
        }
    }
}

impl RefusalLog {
    pub(super) fn new(clock: &Arc<dyn Clock>) -> Self {
        Self {
            by_network: RateLimiter::new(LINES_PER_ADDRESS, Arc::clone(clock)),
            in_total: RateLimiter::new(LINES_IN_TOTAL, Arc::clone(clock)),
            unlogged: AtomicU64::new(0),
        }
    }

    /// Counts a refusal, and logs it within the limits.
    pub(super) fn record(&self, refused: Refused<'_>, client: RefusedClient<'_>, why: Refusal) {
        let reason = why.reason.name();
        let (kind, topic) = refused.kind_and_topic();
        counter!("homeport_mqtt_refused_total", "kind" => kind, "reason" => reason).increment(1);
        if is_ordinary_end(why.reason) {
            return;
        }
        let of_address = self.by_network.take(client_network(client.address));
        if of_address.and_then(|()| self.in_total.take(())).is_err() {
            self.unlogged.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let unlogged = self.unlogged.swap(0, Ordering::Relaxed);
        tracing::warn!(
            kind,
            client = %client.address,
            client_id = %Shortened(client.client_id),
            key_id = client.key_id.map(tracing::field::display),
            topic = topic.map(|topic| tracing::field::display(Shortened(topic))),
            reason,
            detail = why.detail,
            unlogged,
            "refused an MQTT client"
        );
    }
}

/// Whether connections end this way in ordinary operation. The metric is enough for these.
fn is_ordinary_end(reason: Reason) -> bool {
    matches!(
        reason,
        Reason::SHUTTING_DOWN
            | Reason::TAKEN_OVER
            | Reason::KEEP_ALIVE_TIMEOUT
            | Reason::ADMINISTRATIVE_ACTION
    )
}

/// The first characters of a text.
pub(super) struct Shortened<'a>(pub(super) &'a str);

impl fmt::Display for Shortened<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = self.0.char_indices().nth(TEXT_CHARS_MAX);
        formatter.write_str(end.map_or(self.0, |(end, _)| &self.0[..end]))
    }
}
