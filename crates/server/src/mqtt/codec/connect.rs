//! CONNECT, the first packet, which sets the version of all others.

use bytes::Bytes;
use homeport_systems::messages;

use super::Version;
use super::fields::Fields;
use super::properties;
use super::reason::{Reason, Refusal};

const USER_NAME: u8 = 0x80;
const PASSWORD: u8 = 0x40;
const WILL_RETAIN: u8 = 0x20;
const WILL_QOS: u8 = 0x18;
const WILL: u8 = 0x04;
const CLEAN_START: u8 = 0x02;
const RESERVED: u8 = 0x01;

/// The contents of CONNECT.
pub(in crate::mqtt) struct Connect {
    pub(in crate::mqtt) version: Version,
    pub(in crate::mqtt) clean_start: bool,
    pub(in crate::mqtt) keep_alive_secs: u16,
    pub(in crate::mqtt) client_id: String,
    pub(in crate::mqtt) will: Option<Box<Will>>,
    pub(in crate::mqtt) user_name: Option<String>,
    pub(in crate::mqtt) password: Option<Bytes>,
    pub(in crate::mqtt) session_expiry: Option<u32>,
    pub(in crate::mqtt) receive_maximum: Option<u16>,
    pub(in crate::mqtt) maximum_packet_size: Option<u32>,
    pub(in crate::mqtt) has_authentication_method: bool,
    /// Whether reason strings may be in packets other than CONNACK and DISCONNECT.
    pub(in crate::mqtt) wants_reason_strings: bool,
    /// Whether the client speaks MQTT 3.1, which is refused. Only the client id is read.
    pub(in crate::mqtt) is_outdated: bool,
}

/// The message to publish when the client is lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::mqtt) struct Will {
    pub(in crate::mqtt) topic: String,
    pub(in crate::mqtt) payload: Bytes,
    pub(in crate::mqtt) qos: u8,
    pub(in crate::mqtt) retain: bool,
    pub(in crate::mqtt) delay_secs: u32,
    pub(in crate::mqtt) properties: messages::Properties,
}

impl std::fmt::Debug for Connect {
    /// Omits the password.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Connect")
            .field("version", &self.version)
            .field("client_id", &self.client_id)
            .finish_non_exhaustive()
    }
}

pub(super) fn read(mut fields: Fields) -> Result<Connect, Refusal> {
    let protocol = fields.text()?;
    let level = fields.u8()?;
    let version = match (protocol.as_str(), level) {
        ("MQTT", 4) => Version::V3,
        ("MQTT", 5) => Version::V5,
        ("MQIsdp", 3) => return Ok(read_outdated(fields)),
        ("MQTT" | "MQIsdp", _) => return Err(unsupported_version()),
        _ => return Err(Refusal::malformed("the first packet is not MQTT")),
    };
    let flags = fields.u8()?;
    check_flags(version, flags)?;
    let keep_alive_secs = fields.u16()?;
    let said = match version {
        Version::V3 => properties::PacketProperties::default(),
        Version::V5 => properties::read(&mut fields, properties::OF_CONNECT)?,
    };
    let client_id = fields.text()?;
    let will = (flags & WILL != 0)
        .then(|| read_will(version, flags, &mut fields))
        .transpose()?;
    let user_name = (flags & USER_NAME != 0)
        .then(|| fields.text())
        .transpose()?;
    let password = (flags & PASSWORD != 0)
        .then(|| fields.binary())
        .transpose()?;
    fields.end()?;
    Ok(Connect {
        version,
        clean_start: flags & CLEAN_START != 0,
        keep_alive_secs,
        client_id,
        will: will.map(Box::new),
        user_name,
        password,
        session_expiry: said.session_expiry,
        receive_maximum: said.receive_maximum,
        maximum_packet_size: said.maximum_packet_size,
        has_authentication_method: said.has_authentication_method,
        wants_reason_strings: said.problem_information.unwrap_or(true),
        is_outdated: false,
    })
}

/// The refusal of another version than 3.1.1 and 5.
pub(in crate::mqtt) fn unsupported_version() -> Refusal {
    Refusal::new(
        Reason::UNSUPPORTED_VERSION,
        "unsupported protocol version; use MQTT 3.1.1 or 5",
    )
}

/// Reads CONNECT of MQTT 3.1 as far as the client id, for the log.
fn read_outdated(mut fields: Fields) -> Connect {
    let mut client_id = || {
        fields.u8()?;
        fields.u16()?;
        fields.text()
    };
    Connect {
        version: Version::V3,
        clean_start: true,
        keep_alive_secs: 0,
        client_id: client_id().unwrap_or_default(),
        will: None,
        user_name: None,
        password: None,
        session_expiry: None,
        receive_maximum: None,
        maximum_packet_size: None,
        has_authentication_method: false,
        wants_reason_strings: false,
        is_outdated: true,
    }
}

fn check_flags(version: Version, flags: u8) -> Result<(), Refusal> {
    if flags & RESERVED != 0 {
        return Err(Refusal::malformed("a reserved flag is set"));
    }
    if flags & WILL == 0 && flags & (WILL_QOS | WILL_RETAIN) != 0 {
        return Err(Refusal::malformed("flags of a will are set without a will"));
    }
    if flags & WILL_QOS == WILL_QOS {
        return Err(Refusal::malformed("invalid QoS 3"));
    }
    if version == Version::V3 && flags & PASSWORD != 0 && flags & USER_NAME == 0 {
        return Err(Refusal::malformed("a password requires a user name"));
    }
    Ok(())
}

fn read_will(version: Version, flags: u8, fields: &mut Fields) -> Result<Will, Refusal> {
    let said = match version {
        Version::V3 => properties::PacketProperties::default(),
        Version::V5 => properties::read(fields, properties::OF_WILL)?,
    };
    Ok(Will {
        topic: fields.text()?,
        payload: Bytes::copy_from_slice(&fields.binary()?),
        qos: (flags & WILL_QOS) >> 3,
        retain: flags & WILL_RETAIN != 0,
        delay_secs: said.will_delay.unwrap_or_default(),
        properties: said.message,
    })
}
