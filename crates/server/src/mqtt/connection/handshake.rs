//! The start of a connection: CONNECT, authentication and the session.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use homeport_listen::REFUSAL_TIMEOUT;
use homeport_systems::api_keys::KeyId;
use homeport_systems::ids::UuidV4;
use homeport_systems::messages::{Message, check_topic};

use super::{Connection, delivery_of};
use crate::mqtt::access::{Access, Denied};
use crate::mqtt::broker::{Broker, ConnectedClient, OpenError, SessionRequest, Traffic};
use crate::mqtt::codec::{self, Connect, Reason, Refusal, Version, Welcome, Will};
use crate::mqtt::refusal_log::{Refused, RefusedClient};
use crate::mqtt::settings::{
    CLIENT_ID_LEN_MAX, FAREWELL_MAX, TOPIC_ALIASES_MAX, USER_PROPERTIES_MAX,
};
use crate::mqtt::transport::{Peer, Transport};

/// The expiry interval that means never.
const NEVER: u32 = u32::MAX;
/// Largest first packet, which is read before authentication.
const CONNECT_BYTES_MAX: usize = 128 * 1024;

/// Opens a connection; `None` if the client was refused or lost.
pub(super) async fn welcome(mut io: Transport, broker: &Broker, peer: Peer) -> Option<Connection> {
    let timeout = broker.settings().connect_timeout;
    let unknown = RefusedClient {
        address: peer.address,
        client_id: "",
        key_id: None,
    };
    let refuse = |client, refusal| {
        broker
            .refusals()
            .record(Refused::Connection(None), client, refusal);
    };
    let connect = match first_packet(&mut io, broker, timeout).await {
        Ok(connect) => connect?,
        Err(refusal) => {
            refuse(unknown, refusal);
            if refusal.reason == Reason::UNSUPPORTED_VERSION {
                turn_away(&mut io, Version::V3, refusal).await;
            }
            return None;
        }
    };
    let version = connect.version;
    let client_id = connect.client_id.clone();
    match admit(connect, broker, peer, &mut io).await {
        Ok(connection) => Some(connection.over(io)),
        Err(Rejected { refusal, key_id }) => {
            let client = RefusedClient {
                client_id: &client_id,
                key_id,
                ..unknown
            };
            refuse(client, refusal);
            turn_away(&mut io, version, refusal).await;
            None
        }
    }
}

/// Refuses a client because there are too many connections.
pub(super) async fn refuse_busy(mut io: Transport, broker: &Broker, client: IpAddr) {
    let refusal = Refusal::new(Reason::SERVER_BUSY, "too many connections; try again later");
    let client = RefusedClient {
        address: client,
        client_id: "",
        key_id: None,
    };
    broker
        .refusals()
        .record(Refused::Connection(None), client, refusal);
    if let Ok(Some(connect)) = first_packet(&mut io, broker, REFUSAL_TIMEOUT).await {
        turn_away(&mut io, connect.version, refusal).await;
    }
}

/// Why a client is not accepted, and its key if that is known.
struct Rejected {
    refusal: Refusal,
    key_id: Option<KeyId>,
}

/// A client without a valid key.
impl From<Refusal> for Rejected {
    fn from(refusal: Refusal) -> Self {
        Self {
            refusal,
            key_id: None,
        }
    }
}

/// An accepted client.
pub(super) struct Admitted {
    pub(super) broker: Broker,
    pub(super) client: Arc<ConnectedClient>,
    pub(super) attached: crate::mqtt::broker::Attached,
    pub(super) will: Option<Box<Will>>,
    pub(super) receive_maximum: u16,
    pub(super) maximum_packet_size: usize,
    pub(super) wants_reason_strings: bool,
}

async fn first_packet(
    io: &mut Transport,
    broker: &Broker,
    timeout: Duration,
) -> Result<Option<Connect>, Refusal> {
    let max = broker.settings().packet_bytes_max.min(CONNECT_BYTES_MAX);
    let read = async {
        loop {
            if let Some(connect) = codec::first(&mut io.read, max)? {
                return Ok(Some(connect));
            }
            match std::future::poll_fn(|context| io.poll_fill(context)).await {
                Ok(0) | Err(_) => return Ok(None),
                Ok(_) => {}
            }
        }
    };
    match tokio::time::timeout(timeout, read).await {
        Ok(outcome) => outcome,
        Err(_) => Err(Refusal::new(
            Reason::KEEP_ALIVE_TIMEOUT,
            "CONNECT did not arrive in time",
        )),
    }
}

async fn admit(
    connect: Connect,
    broker: &Broker,
    peer: Peer,
    io: &mut Transport,
) -> Result<Admitted, Rejected> {
    if connect.is_outdated {
        return Err(codec::unsupported_version().into());
    }
    if connect.has_authentication_method {
        return Err(Rejected::from(Refusal::new(
            Reason::BAD_AUTHENTICATION_METHOD,
            "unsupported authentication method; send a user name and password",
        )));
    }
    let access = broker
        .credentials()
        .verify(
            connect.user_name.as_deref(),
            connect.password.as_deref(),
            peer.address,
        )
        .await
        .map_err(denied)?;
    let key_id = access.key_id();
    let opened = open(connect, access, broker, peer, io).await;
    opened.map_err(|refusal| Rejected { refusal, key_id })
}

/// Opens the session of an authenticated client.
async fn open(
    connect: Connect,
    access: Access,
    broker: &Broker,
    peer: Peer,
    io: &mut Transport,
) -> Result<Admitted, Refusal> {
    let (client_id, is_assigned) = client_id(&connect)?;
    if let Some(will) = &connect.will {
        check_will(will, &access, broker)?;
    }
    let settings = broker.settings();
    let asked_expiry = match connect.version {
        Version::V3 if connect.clean_start => 0,
        Version::V3 => NEVER,
        Version::V5 => connect.session_expiry.unwrap_or_default(),
    };
    let expiry_secs = asked_expiry.min(settings.session_expiry_secs_max);
    let max = settings.keep_alive_secs_max;
    let is_too_seldom = connect.keep_alive_secs == 0 || connect.keep_alive_secs > max;
    let server_keep_alive = (connect.version == Version::V5 && is_too_seldom).then_some(max);
    let client = Arc::new(ConnectedClient {
        access,
        peer,
        version: connect.version,
        keep_alive_secs: server_keep_alive.unwrap_or(connect.keep_alive_secs),
        connected_at: broker.now(),
        received: Traffic::default(),
        sent: Traffic::default(),
    });
    let arrival = SessionRequest {
        client: Arc::clone(&client),
        client_id: &client_id,
        clean_start: connect.clean_start,
        expiry_secs,
    };
    let attached = broker.open(arrival).await.map_err(|error| match error {
        OpenError::TooMany => Refusal::new(Reason::QUOTA_EXCEEDED, "too many sessions"),
        OpenError::Store(error) => {
            tracing::warn!(%error, "cannot open an MQTT session");
            unavailable()
        }
    })?;
    let welcome = Welcome {
        session_present: attached.is_present,
        session_expiry: (expiry_secs != asked_expiry).then_some(expiry_secs),
        receive_maximum: settings.inflight_max,
        maximum_packet_size: u32::try_from(settings.packet_bytes_max).unwrap_or(u32::MAX),
        assigned_client_id: is_assigned.then_some(client_id.as_str()),
        topic_alias_maximum: TOPIC_ALIASES_MAX,
        keep_alive_secs: server_keep_alive,
    };
    codec::welcome(&mut io.write, connect.version, &welcome);
    let client_receives = connect.receive_maximum.unwrap_or(u16::MAX);
    let client_takes = connect.maximum_packet_size.unwrap_or(u32::MAX);
    Ok(Admitted {
        broker: broker.clone(),
        client,
        attached,
        will: connect.will,
        receive_maximum: client_receives.min(settings.inflight_max),
        maximum_packet_size: usize::try_from(client_takes).unwrap_or(usize::MAX),
        wants_reason_strings: connect.wants_reason_strings,
    })
}

fn client_id(connect: &Connect) -> Result<(String, bool), Refusal> {
    let invalid = |detail| Err(Refusal::new(Reason::CLIENT_ID_INVALID, detail));
    if connect.client_id.is_empty() {
        if connect.version == Version::V3 && !connect.clean_start {
            return invalid("a persistent session needs a client id");
        }
        return Ok((format!("auto-{}", UuidV4::random()), true));
    }
    if connect.client_id.len() > CLIENT_ID_LEN_MAX {
        return invalid("the client id is longer than 256 bytes");
    }
    if connect.client_id.chars().any(char::is_control) {
        return invalid("the client id has a control character");
    }
    Ok((connect.client_id.clone(), false))
}

fn check_will(will: &Will, access: &Access, broker: &Broker) -> Result<(), Refusal> {
    if will.qos > 1 {
        return Err(Refusal::new(
            Reason::QOS_NOT_SUPPORTED,
            "QoS 2 is not supported; use QoS 0 or 1",
        ));
    }
    if check_topic(&will.topic).is_err() {
        return Err(Refusal::new(
            Reason::TOPIC_INVALID,
            "the will's topic is invalid",
        ));
    }
    if !access.may_publish(&will.topic) {
        return Err(Refusal::new(
            Reason::NOT_AUTHORIZED,
            "the client may not publish on the will's topic",
        ));
    }
    let is_too_much = will.properties.user.len() > USER_PROPERTIES_MAX
        || will.retain && broker.is_retained_full(&will.topic);
    if is_too_much {
        return Err(Refusal::new(
            Reason::QUOTA_EXCEEDED,
            "the will exceeds a limit",
        ));
    }
    Ok(())
}

fn denied(denied: Denied) -> Rejected {
    let key_id = match denied {
        Denied::OtherSystem(key_id) => Some(key_id),
        _ => None,
    };
    let refusal = match denied {
        Denied::Wrong => Refusal::new(Reason::BAD_CREDENTIALS, "invalid user name or password"),
        Denied::TooMany => Refusal::new(
            Reason::CONNECTION_RATE_EXCEEDED,
            "too many wrong credentials were sent; try again later",
        ),
        Denied::OtherSystem(_) => Refusal::new(
            Reason::NOT_AUTHORIZED,
            "the API key belongs to another system; use a key of telemetry",
        ),
        Denied::Unknown(error) => {
            tracing::warn!(%error, "cannot check the credentials of an MQTT client");
            unavailable()
        }
    };
    Rejected { refusal, key_id }
}

fn unavailable() -> Refusal {
    Refusal::new(
        Reason::SERVER_UNAVAILABLE,
        "the store cannot be read now; try again later",
    )
}

async fn turn_away(io: &mut Transport, version: Version, refusal: Refusal) {
    codec::unwelcome(&mut io.write, version, refusal.reason, refusal.detail);
    let farewell = async {
        io.drain().await?;
        io.shut_down().await
    };
    // The client may be gone.
    let _ = tokio::time::timeout(FAREWELL_MAX, farewell).await;
}

impl Admitted {
    fn over(self, io: Transport) -> Connection {
        Connection::new(self, io)
    }

    /// How long the client may be silent: one and a half times its keep-alive.
    pub(super) fn silence_max(&self) -> Option<Duration> {
        let secs = u64::from(self.client.keep_alive_secs);
        (secs > 0).then(|| Duration::from_millis(secs * 1500))
    }
}

impl Will {
    /// The will as a message.
    pub(super) fn into_message(self, connection: &Connection) -> Message {
        Message {
            topic: self.topic,
            payload: self.payload,
            delivery: delivery_of(self.qos),
            retain: self.retain,
            publisher: connection.publisher.clone(),
            received_at: connection.broker.now(),
            properties: self.properties,
            hops: 0,
        }
    }
}
