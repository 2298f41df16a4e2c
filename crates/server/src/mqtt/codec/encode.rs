//! Encodes packets for clients, at the end of a buffer.

use bytes::{BufMut as _, BytesMut};
use homeport_systems::messages::Message;

use super::reason::Reason;
use super::{Version, properties};

/// The contents of CONNACK for an accepted client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::mqtt) struct Welcome<'a> {
    pub(in crate::mqtt) session_present: bool,
    /// Set if it differs from the requested one.
    pub(in crate::mqtt) session_expiry: Option<u32>,
    pub(in crate::mqtt) receive_maximum: u16,
    pub(in crate::mqtt) maximum_packet_size: u32,
    pub(in crate::mqtt) assigned_client_id: Option<&'a str>,
    pub(in crate::mqtt) topic_alias_maximum: u16,
    /// Set if it differs from the requested one.
    pub(in crate::mqtt) keep_alive_secs: Option<u16>,
}

/// A message on its way to a subscriber.
#[derive(Debug, Clone, Copy)]
pub(in crate::mqtt) struct Sent<'a> {
    pub(in crate::mqtt) message: &'a Message,
    /// `None` with QoS 0.
    pub(in crate::mqtt) packet_id: Option<u16>,
    pub(in crate::mqtt) is_duplicate: bool,
    pub(in crate::mqtt) retain: bool,
    pub(in crate::mqtt) identifiers: &'a [u32],
    /// The remaining lifetime of the message.
    pub(in crate::mqtt) expires_after_secs: Option<u32>,
}

pub(in crate::mqtt) fn welcome(out: &mut BytesMut, version: Version, welcome: &Welcome<'_>) {
    let mut said = BytesMut::new();
    if version == Version::V5 {
        if let Some(secs) = welcome.session_expiry {
            said.put_u8(properties::SESSION_EXPIRY);
            said.put_u32(secs);
        }
        said.put_u8(properties::RECEIVE_MAXIMUM);
        said.put_u16(welcome.receive_maximum);
        said.put_u8(properties::MAXIMUM_QOS);
        said.put_u8(1);
        said.put_u8(properties::MAXIMUM_PACKET_SIZE);
        said.put_u32(welcome.maximum_packet_size);
        if let Some(id) = welcome.assigned_client_id {
            said.put_u8(properties::ASSIGNED_CLIENT_ID);
            put_text(&mut said, id);
        }
        said.put_u8(properties::TOPIC_ALIAS_MAXIMUM);
        said.put_u16(welcome.topic_alias_maximum);
        if let Some(secs) = welcome.keep_alive_secs {
            said.put_u8(properties::SERVER_KEEP_ALIVE);
            said.put_u16(secs);
        }
    }
    connack(out, version, welcome.session_present, 0, &said);
}

/// Writes CONNACK with a refusal, with the nearest code for MQTT 3.1.1.
pub(in crate::mqtt) fn unwelcome(
    out: &mut BytesMut,
    version: Version,
    reason: Reason,
    detail: &str,
) {
    let mut said = BytesMut::new();
    let code = match version {
        Version::V3 => reason.connect_code_v3(),
        Version::V5 => {
            said.put_u8(properties::REASON_STRING);
            put_text(&mut said, detail);
            reason.0
        }
    };
    connack(out, version, false, code, &said);
}

fn connack(out: &mut BytesMut, version: Version, is_present: bool, code: u8, said: &[u8]) {
    out.put_u8(0x20);
    match version {
        Version::V3 => put_variable(out, 2),
        Version::V5 => put_variable(out, 2 + variable_len(said.len()) + said.len()),
    }
    out.put_u8(is_present.into());
    out.put_u8(code);
    if version == Version::V5 {
        put_variable(out, said.len());
        out.extend_from_slice(said);
    }
}

pub(in crate::mqtt) fn publish(out: &mut BytesMut, version: Version, sent: &Sent<'_>) {
    let message = sent.message;
    let said_len = match version {
        Version::V3 => 0,
        Version::V5 => said_len(sent),
    };
    let len = body_len(version, sent, said_len);
    out.reserve(1 + variable_len(len) + len);
    let qos = u8::from(sent.packet_id.is_some());
    out.put_u8(0x30 | u8::from(sent.is_duplicate) << 3 | qos << 1 | u8::from(sent.retain));
    put_variable(out, len);
    put_text(out, &message.topic);
    if let Some(id) = sent.packet_id {
        out.put_u16(id);
    }
    if version == Version::V5 {
        put_variable(out, said_len);
        put_said(out, sent);
    }
    out.extend_from_slice(&message.payload);
}

/// The length of the packet that [`publish`] writes.
pub(in crate::mqtt) fn publish_len(version: Version, sent: &Sent<'_>) -> usize {
    let said_len = match version {
        Version::V3 => 0,
        Version::V5 => said_len(sent),
    };
    let len = body_len(version, sent, said_len);
    1 + variable_len(len) + len
}

fn body_len(version: Version, sent: &Sent<'_>, said_len: usize) -> usize {
    let message = sent.message;
    let said = match version {
        Version::V3 => 0,
        Version::V5 => variable_len(said_len) + said_len,
    };
    let id = if sent.packet_id.is_some() { 2 } else { 0 };
    2 + message.topic.len() + id + said + message.payload.len()
}

fn said_len(sent: &Sent<'_>) -> usize {
    let said = &sent.message.properties;
    let text = |text: &Option<String>| text.as_ref().map_or(0, |text| 3 + text.len());
    let user = said.user.iter();
    let identifiers = sent.identifiers.iter();
    usize::from(said.payload_is_text) * 2
        + sent.expires_after_secs.map_or(0, |_| 5)
        + text(&said.content_type)
        + text(&said.response_topic)
        + said
            .correlation_data
            .as_ref()
            .map_or(0, |data| 3 + data.len())
        + user
            .map(|(name, value)| 5 + name.len() + value.len())
            .sum::<usize>()
        + identifiers
            .map(|id| 1 + variable_len(*id as usize))
            .sum::<usize>()
}

fn put_said(out: &mut BytesMut, sent: &Sent<'_>) {
    let said = &sent.message.properties;
    if said.payload_is_text {
        out.put_u8(properties::PAYLOAD_FORMAT);
        out.put_u8(1);
    }
    if let Some(secs) = sent.expires_after_secs {
        out.put_u8(properties::MESSAGE_EXPIRY);
        out.put_u32(secs);
    }
    if let Some(text) = &said.content_type {
        out.put_u8(properties::CONTENT_TYPE);
        put_text(out, text);
    }
    if let Some(text) = &said.response_topic {
        out.put_u8(properties::RESPONSE_TOPIC);
        put_text(out, text);
    }
    if let Some(data) = &said.correlation_data {
        out.put_u8(properties::CORRELATION_DATA);
        put_binary(out, data);
    }
    for (name, value) in &said.user {
        out.put_u8(properties::USER);
        put_text(out, name);
        put_text(out, value);
    }
    for id in sent.identifiers {
        out.put_u8(properties::SUBSCRIPTION_IDENTIFIER);
        put_variable(out, *id as usize);
    }
}

pub(in crate::mqtt) fn puback(out: &mut BytesMut, version: Version, id: u16, reason: Reason) {
    out.put_u8(0x40);
    if version == Version::V5 && reason != Reason::SUCCESS {
        out.put_u8(3);
        out.put_u16(id);
        out.put_u8(reason.0);
    } else {
        out.put_u8(2);
        out.put_u16(id);
    }
}

/// Writes SUBACK. `codes` are those of MQTT 5; MQTT 3.1.1 clients get 0x80 for every failure and no `detail`.
pub(in crate::mqtt) fn suback(
    out: &mut BytesMut,
    version: Version,
    id: u16,
    codes: &[Reason],
    detail: Option<&str>,
) {
    let mut said = BytesMut::new();
    if let Some(detail) = detail {
        said.put_u8(properties::REASON_STRING);
        put_text(&mut said, detail);
    }
    out.put_u8(0x90);
    match version {
        Version::V3 => {
            put_variable(out, 2 + codes.len());
            out.put_u16(id);
        }
        Version::V5 => {
            put_variable(out, 2 + variable_len(said.len()) + said.len() + codes.len());
            out.put_u16(id);
            put_variable(out, said.len());
            out.extend_from_slice(&said);
        }
    }
    for code in codes {
        out.put_u8(match version {
            Version::V3 if code.is_failure() => 0x80,
            _ => code.0,
        });
    }
}

pub(in crate::mqtt) fn unsuback(out: &mut BytesMut, version: Version, id: u16, codes: &[Reason]) {
    out.put_u8(0xb0);
    match version {
        Version::V3 => {
            out.put_u8(2);
            out.put_u16(id);
        }
        Version::V5 => {
            put_variable(out, 3 + codes.len());
            out.put_u16(id);
            out.put_u8(0);
            codes.iter().for_each(|code| out.put_u8(code.0));
        }
    }
}

pub(in crate::mqtt) fn pingresp(out: &mut BytesMut) {
    out.extend_from_slice(&[0xd0, 0]);
}

/// Writes DISCONNECT with a reason, for MQTT 5 clients only.
pub(in crate::mqtt) fn disconnect(
    out: &mut BytesMut,
    version: Version,
    reason: Reason,
    detail: &str,
) {
    if version == Version::V3 {
        return;
    }
    let said_len = 3 + detail.len();
    out.put_u8(0xe0);
    put_variable(out, 1 + variable_len(said_len) + said_len);
    out.put_u8(reason.0);
    put_variable(out, said_len);
    out.put_u8(properties::REASON_STRING);
    put_text(out, detail);
}

pub(super) fn put_text(out: &mut BytesMut, text: &str) {
    put_binary(out, text.as_bytes());
}

/// Values from clients fit into the length field, and the server's own texts are short.
pub(super) fn put_binary(out: &mut BytesMut, bytes: &[u8]) {
    let len = u16::try_from(bytes.len()).unwrap_or(u16::MAX);
    out.put_u16(len);
    out.extend_from_slice(&bytes[..len.into()]);
}

pub(super) fn put_variable(out: &mut BytesMut, mut value: usize) {
    loop {
        let digit = (value & 0x7f) as u8;
        value >>= 7;
        if value == 0 {
            out.put_u8(digit);
            return;
        }
        out.put_u8(digit | 0x80);
    }
}

fn variable_len(value: usize) -> usize {
    match value {
        0..0x80 => 1,
        0x80..0x4000 => 2,
        0x4000..0x20_0000 => 3,
        _ => 4,
    }
}
