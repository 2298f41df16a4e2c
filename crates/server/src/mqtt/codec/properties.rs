//! The properties of MQTT 5 packets from clients, and from brokers to the bridge. Each packet permits some
//! of them, most of them once.

use bytes::Bytes;
use homeport_systems::messages;

use super::fields::Fields;
use super::reason::Refusal;

pub(super) const PAYLOAD_FORMAT: u8 = 0x01;
pub(super) const MESSAGE_EXPIRY: u8 = 0x02;
pub(super) const CONTENT_TYPE: u8 = 0x03;
pub(super) const RESPONSE_TOPIC: u8 = 0x08;
pub(super) const CORRELATION_DATA: u8 = 0x09;
pub(super) const SUBSCRIPTION_IDENTIFIER: u8 = 0x0B;
pub(super) const SESSION_EXPIRY: u8 = 0x11;
pub(super) const ASSIGNED_CLIENT_ID: u8 = 0x12;
pub(super) const SERVER_KEEP_ALIVE: u8 = 0x13;
pub(super) const AUTHENTICATION_METHOD: u8 = 0x15;
pub(super) const AUTHENTICATION_DATA: u8 = 0x16;
pub(super) const REQUEST_PROBLEM_INFORMATION: u8 = 0x17;
pub(super) const WILL_DELAY: u8 = 0x18;
pub(super) const REQUEST_RESPONSE_INFORMATION: u8 = 0x19;
pub(super) const RESPONSE_INFORMATION: u8 = 0x1A;
pub(super) const SERVER_REFERENCE: u8 = 0x1C;
pub(super) const REASON_STRING: u8 = 0x1F;
pub(super) const RECEIVE_MAXIMUM: u8 = 0x21;
pub(super) const TOPIC_ALIAS_MAXIMUM: u8 = 0x22;
pub(super) const TOPIC_ALIAS: u8 = 0x23;
pub(super) const MAXIMUM_QOS: u8 = 0x24;
pub(super) const RETAIN_AVAILABLE: u8 = 0x25;
pub(super) const USER: u8 = 0x26;
pub(super) const MAXIMUM_PACKET_SIZE: u8 = 0x27;
pub(super) const WILDCARD_SUBSCRIPTIONS: u8 = 0x28;
pub(super) const SUBSCRIPTION_IDENTIFIERS: u8 = 0x29;
pub(super) const SHARED_SUBSCRIPTIONS: u8 = 0x2A;

pub(super) const OF_CONNECT: &[u8] = &[
    SESSION_EXPIRY,
    RECEIVE_MAXIMUM,
    MAXIMUM_PACKET_SIZE,
    TOPIC_ALIAS_MAXIMUM,
    REQUEST_RESPONSE_INFORMATION,
    REQUEST_PROBLEM_INFORMATION,
    USER,
    AUTHENTICATION_METHOD,
    AUTHENTICATION_DATA,
];
pub(super) const OF_WILL: &[u8] = &[
    WILL_DELAY,
    PAYLOAD_FORMAT,
    MESSAGE_EXPIRY,
    CONTENT_TYPE,
    RESPONSE_TOPIC,
    CORRELATION_DATA,
    USER,
];
pub(super) const OF_PUBLISH: &[u8] = &[
    PAYLOAD_FORMAT,
    MESSAGE_EXPIRY,
    TOPIC_ALIAS,
    RESPONSE_TOPIC,
    CORRELATION_DATA,
    USER,
    CONTENT_TYPE,
];
/// Permitted in a broker's PUBLISH.
pub(super) const OF_DELIVERY: &[u8] = &[
    PAYLOAD_FORMAT,
    MESSAGE_EXPIRY,
    RESPONSE_TOPIC,
    CORRELATION_DATA,
    USER,
    CONTENT_TYPE,
    SUBSCRIPTION_IDENTIFIER,
];
pub(super) const OF_CONNACK: &[u8] = &[
    SESSION_EXPIRY,
    RECEIVE_MAXIMUM,
    MAXIMUM_QOS,
    RETAIN_AVAILABLE,
    MAXIMUM_PACKET_SIZE,
    ASSIGNED_CLIENT_ID,
    TOPIC_ALIAS_MAXIMUM,
    REASON_STRING,
    USER,
    WILDCARD_SUBSCRIPTIONS,
    SUBSCRIPTION_IDENTIFIERS,
    SHARED_SUBSCRIPTIONS,
    SERVER_KEEP_ALIVE,
    RESPONSE_INFORMATION,
    SERVER_REFERENCE,
    AUTHENTICATION_METHOD,
    AUTHENTICATION_DATA,
];
pub(super) const OF_ACKNOWLEDGEMENT: &[u8] = &[REASON_STRING, USER];
pub(super) const OF_SUBSCRIBE: &[u8] = &[SUBSCRIPTION_IDENTIFIER, USER];
pub(super) const OF_UNSUBSCRIBE: &[u8] = &[USER];
pub(super) const OF_DISCONNECT: &[u8] = &[SESSION_EXPIRY, REASON_STRING, USER];
/// Permitted in a broker's DISCONNECT.
pub(super) const OF_GOODBYE: &[u8] = &[SESSION_EXPIRY, REASON_STRING, USER, SERVER_REFERENCE];

/// The properties of a packet.
#[derive(Default)]
pub(super) struct PacketProperties {
    pub(super) message: messages::Properties,
    pub(super) subscription_identifier: Option<u32>,
    pub(super) session_expiry: Option<u32>,
    pub(super) has_authentication_method: bool,
    pub(super) will_delay: Option<u32>,
    pub(super) receive_maximum: Option<u16>,
    pub(super) topic_alias: Option<u16>,
    pub(super) maximum_packet_size: Option<u32>,
    pub(super) server_keep_alive: Option<u16>,
    pub(super) problem_information: Option<bool>,
    has_authentication_data: bool,
    seen: u64,
}

/// Reads the properties of a packet; `allowed` are the permitted ones.
pub(super) fn read(fields: &mut Fields, allowed: &[u8]) -> Result<PacketProperties, Refusal> {
    let mut said = PacketProperties::default();
    let len = fields.variable()?;
    if len == 0 {
        return Ok(said);
    }
    let len =
        usize::try_from(len).map_err(|_| Refusal::malformed("the properties are too long"))?;
    let mut fields = Fields::new(fields.take(len)?);
    while !fields.is_empty() {
        let id = fields.u8()?;
        if !allowed.contains(&id) {
            return Err(Refusal::malformed(
                "a property is not permitted in its packet",
            ));
        }
        let bit = 1 << (id & 0x3f);
        let may_repeat = id == USER || id == SUBSCRIPTION_IDENTIFIER && allowed == OF_DELIVERY;
        if !may_repeat && said.seen & bit != 0 {
            return Err(Refusal::protocol("a property occurs twice"));
        }
        said.seen |= bit;
        read_one(&mut said, id, &mut fields)?;
    }
    if said.has_authentication_data && !said.has_authentication_method {
        return Err(Refusal::protocol(
            "authentication data requires an authentication method",
        ));
    }
    Ok(said)
}

fn read_one(said: &mut PacketProperties, id: u8, fields: &mut Fields) -> Result<(), Refusal> {
    match id {
        PAYLOAD_FORMAT => said.message.payload_is_text = flag(fields)?,
        MESSAGE_EXPIRY => said.message.expires_after_secs = Some(fields.u32()?),
        CONTENT_TYPE => said.message.content_type = Some(fields.text()?),
        RESPONSE_TOPIC => said.message.response_topic = Some(response_topic(fields)?),
        CORRELATION_DATA => {
            said.message.correlation_data = Some(Bytes::copy_from_slice(&fields.binary()?));
        }
        SUBSCRIPTION_IDENTIFIER => {
            said.subscription_identifier = Some(not_zero(fields.variable()?)?);
        }
        SESSION_EXPIRY => said.session_expiry = Some(fields.u32()?),
        AUTHENTICATION_METHOD => {
            fields.text()?;
            said.has_authentication_method = true;
        }
        AUTHENTICATION_DATA => {
            fields.binary()?;
            said.has_authentication_data = true;
        }
        REQUEST_PROBLEM_INFORMATION => said.problem_information = Some(flag(fields)?),
        WILL_DELAY => said.will_delay = Some(fields.u32()?),
        REASON_STRING | ASSIGNED_CLIENT_ID | RESPONSE_INFORMATION | SERVER_REFERENCE => {
            fields.text()?;
        }
        REQUEST_RESPONSE_INFORMATION
        | MAXIMUM_QOS
        | RETAIN_AVAILABLE
        | WILDCARD_SUBSCRIPTIONS
        | SUBSCRIPTION_IDENTIFIERS
        | SHARED_SUBSCRIPTIONS => {
            flag(fields)?;
        }
        SERVER_KEEP_ALIVE => said.server_keep_alive = Some(fields.u16()?),
        RECEIVE_MAXIMUM => said.receive_maximum = Some(not_zero(fields.u16()?)?),
        TOPIC_ALIAS_MAXIMUM => {
            fields.u16()?;
        }
        TOPIC_ALIAS => said.topic_alias = Some(fields.u16()?),
        USER => said.message.user.push((fields.text()?, fields.text()?)),
        MAXIMUM_PACKET_SIZE => said.maximum_packet_size = Some(not_zero(fields.u32()?)?),
        _ => return Err(Refusal::malformed("unknown property")),
    }
    Ok(())
}

fn flag(fields: &mut Fields) -> Result<bool, Refusal> {
    match fields.u8()? {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(Refusal::protocol("a flag is neither 0 nor 1")),
    }
}

fn not_zero<N: Default + PartialEq>(number: N) -> Result<N, Refusal> {
    if number == N::default() {
        return Err(Refusal::protocol("a property must not be 0"));
    }
    Ok(number)
}

fn response_topic(fields: &mut Fields) -> Result<String, Refusal> {
    let topic = fields.text()?;
    if topic.contains(['+', '#']) {
        return Err(Refusal::protocol(
            "a response topic must not have wildcards",
        ));
    }
    Ok(topic)
}
