//! Decodes packets of clients.

use bytes::{Buf as _, Bytes, BytesMut};
use homeport_systems::messages;

use super::connect::{self, Connect};
use super::fields::{Fields, VARIABLE_LEN_MAX};
use super::properties;
use super::reason::{Reason, Refusal};
use super::{Publish, Subscribe, SubscribeOptions, Unsubscribe, Version};

/// Filters in a packet.
const FILTERS_MAX: usize = 1000;
/// Smaller payloads are copied, because a slice of the read buffer would keep all of it in memory.
const COPIED_BELOW_BYTES: usize = 4096;

/// A packet of a connected client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::mqtt) enum Packet {
    Publish(Box<Publish>),
    PubAck(u16),
    Subscribe(Subscribe),
    Unsubscribe(Unsubscribe),
    PingReq,
    Disconnect {
        reason: Reason,
        session_expiry: Option<u32>,
    },
}

/// The first packet, once it is complete.
///
/// # Errors
/// When it is not CONNECT, is malformed or is longer than `max` bytes.
pub(in crate::mqtt) fn first(
    buffer: &mut BytesMut,
    max: usize,
) -> Result<Option<Connect>, Refusal> {
    let Some((head, body)) = frame(buffer, max)? else {
        return Ok(None);
    };
    if head != 0x10 {
        return Err(Refusal::protocol("the first packet must be CONNECT"));
    }
    connect::read(Fields::new(body)).map(Some)
}

/// The next packet, once it is complete.
///
/// # Errors
/// When it is malformed or longer than `max` bytes.
pub(in crate::mqtt) fn next(
    buffer: &mut BytesMut,
    version: Version,
    max: usize,
) -> Result<Option<Packet>, Refusal> {
    let Some((head, body)) = frame(buffer, max)? else {
        return Ok(None);
    };
    let fields = Fields::new(body);
    let flags = head & 0x0f;
    let packet = match (head >> 4, flags) {
        (3, _) => {
            let allowed = properties::OF_PUBLISH;
            Packet::Publish(Box::new(publish(flags, version, fields, allowed)?))
        }
        (4, 0) => Packet::PubAck(acknowledgement(version, fields)?),
        (8, 2) => Packet::Subscribe(subscribe(version, fields)?),
        (10, 2) => Packet::Unsubscribe(unsubscribe(version, fields)?),
        (12, 0) => {
            fields.end()?;
            Packet::PingReq
        }
        (14, 0) => disconnect(version, fields)?,
        (1, 0) => return Err(Refusal::protocol("CONNECT was sent twice")),
        (5 | 7, 0) | (6, 2) => {
            return Err(Refusal::protocol("unexpected acknowledgement of QoS 2"));
        }
        (15, 0) if version == Version::V5 => {
            return Err(Refusal::protocol("AUTH without an authentication method"));
        }
        (4..=8 | 10 | 12 | 14, _) => return Err(Refusal::malformed("invalid packet flags")),
        _ => return Err(Refusal::malformed("invalid packet type")),
    };
    Ok(Some(packet))
}

/// The first byte of a packet, and its body.
pub(super) fn frame(buffer: &mut BytesMut, max: usize) -> Result<Option<(u8, Bytes)>, Refusal> {
    let Some((&head, rest)) = buffer.split_first() else {
        return Ok(None);
    };
    let mut len = 0_usize;
    let mut digits = 0;
    loop {
        let Some(&byte) = rest.get(digits) else {
            return Ok(None);
        };
        len |= usize::from(byte & 0x7f) << (7 * digits);
        digits += 1;
        if byte & 0x80 == 0 {
            break;
        }
        if digits == VARIABLE_LEN_MAX {
            return Err(Refusal::malformed(
                "the packet length has more than four bytes",
            ));
        }
    }
    let total = 1 + digits + len;
    if total > max {
        return Err(Refusal::new(
            Reason::PACKET_TOO_LARGE,
            "the packet is larger than the server accepts",
        ));
    }
    // No memory is reserved in advance: a length alone must not cost memory.
    if buffer.len() < total {
        return Ok(None);
    }
    let mut packet = buffer.split_to(total);
    packet.advance(1 + digits);
    Ok(Some((head, packet.freeze())))
}

/// Decodes PUBLISH; `allowed` are its permitted properties.
pub(super) fn publish(
    flags: u8,
    version: Version,
    mut fields: Fields,
    allowed: &[u8],
) -> Result<Publish, Refusal> {
    let qos = (flags >> 1) & 3;
    let is_duplicate = flags & 8 != 0;
    if qos == 3 {
        return Err(Refusal::malformed("invalid QoS 3"));
    }
    if is_duplicate && qos == 0 {
        return Err(Refusal::malformed("the DUP flag is set with QoS 0"));
    }
    let topic = fields.text()?;
    let packet_id = (qos > 0).then(|| fields.packet_id()).transpose()?;
    let said = match version {
        Version::V3 => properties::PacketProperties::default(),
        Version::V5 => properties::read(&mut fields, allowed)?,
    };
    let payload = fields.rest();
    Ok(Publish {
        qos,
        retain: flags & 1 != 0,
        topic,
        topic_alias: said.topic_alias,
        packet_id,
        payload: if payload.len() < COPIED_BELOW_BYTES {
            Bytes::copy_from_slice(&payload)
        } else {
            payload
        },
        properties: said.message,
    })
}

fn acknowledgement(version: Version, mut fields: Fields) -> Result<u16, Refusal> {
    let packet_id = fields.packet_id()?;
    if version == Version::V5 && !fields.is_empty() {
        // Whatever reason the subscriber gives, it has the message.
        fields.u8()?;
        if !fields.is_empty() {
            properties::read(&mut fields, properties::OF_ACKNOWLEDGEMENT)?;
        }
    }
    fields.end()?;
    Ok(packet_id)
}

fn subscribe(version: Version, mut fields: Fields) -> Result<Subscribe, Refusal> {
    let packet_id = fields.packet_id()?;
    let identifier = match version {
        Version::V3 => None,
        Version::V5 => {
            properties::read(&mut fields, properties::OF_SUBSCRIBE)?.subscription_identifier
        }
    };
    let mut filters = Vec::new();
    while !fields.is_empty() {
        check_filters(filters.len())?;
        let filter = fields.text()?;
        filters.push((filter, options(version, fields.u8()?)?));
    }
    if filters.is_empty() {
        return Err(Refusal::protocol("SUBSCRIBE without a filter"));
    }
    Ok(Subscribe {
        packet_id,
        identifier,
        filters,
    })
}

fn options(version: Version, bits: u8) -> Result<SubscribeOptions, Refusal> {
    let qos = bits & 3;
    let reserved = match version {
        Version::V3 => bits & 0xfc,
        Version::V5 => bits & 0xc0,
    };
    if qos == 3 || reserved != 0 {
        return Err(Refusal::malformed("invalid subscription options"));
    }
    let retain_handling = (bits >> 4) & 3;
    if retain_handling == 3 {
        return Err(Refusal::protocol("invalid retain handling 3"));
    }
    Ok(SubscribeOptions {
        qos,
        no_local: bits & 4 != 0,
        retain_as_published: bits & 8 != 0,
        retain_handling,
    })
}

fn unsubscribe(version: Version, mut fields: Fields) -> Result<Unsubscribe, Refusal> {
    let packet_id = fields.packet_id()?;
    if version == Version::V5 {
        properties::read(&mut fields, properties::OF_UNSUBSCRIBE)?;
    }
    let mut filters = Vec::new();
    while !fields.is_empty() {
        check_filters(filters.len())?;
        filters.push(fields.text()?);
    }
    if filters.is_empty() {
        return Err(Refusal::protocol("UNSUBSCRIBE without a filter"));
    }
    Ok(Unsubscribe { packet_id, filters })
}

fn check_filters(len: usize) -> Result<(), Refusal> {
    if len == FILTERS_MAX {
        return Err(Refusal::new(
            Reason::QUOTA_EXCEEDED,
            "too many filters in a packet",
        ));
    }
    Ok(())
}

fn disconnect(version: Version, mut fields: Fields) -> Result<Packet, Refusal> {
    let mut reason = Reason::SUCCESS;
    let mut session_expiry = None;
    if version == Version::V5 && !fields.is_empty() {
        reason = Reason(fields.u8()?);
        if !fields.is_empty() {
            let said = properties::read(&mut fields, properties::OF_DISCONNECT)?;
            session_expiry = said.session_expiry;
        }
    }
    fields.end()?;
    Ok(Packet::Disconnect {
        reason,
        session_expiry,
    })
}

impl Publish {
    /// The properties of the message.
    pub(in crate::mqtt) fn take_properties(&mut self) -> messages::Properties {
        std::mem::take(&mut self.properties)
    }
}
