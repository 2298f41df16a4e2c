//! The packets that a client of another broker sends and receives, as far as receiving messages needs
//! them. Nothing is published to another broker.

use bytes::{BufMut as _, BytesMut};

use super::decode::{self, frame};
use super::encode::{put_binary, put_text, put_variable};
use super::fields::Fields;
use super::reason::{Reason, Refusal};
use super::{Publish, Version, properties};

const USER_NAME: u8 = 0x80;
const PASSWORD: u8 = 0x40;
/// MQTT 5: QoS 1, without retained messages.
const SUBSCRIBE_OPTIONS_V5: u8 = 0x21;
const SUBSCRIBE_OPTIONS_V3: u8 = 0x01;

/// The contents of CONNECT. The session is always persistent.
pub(in crate::mqtt) struct ConnectOptions<'a> {
    pub(in crate::mqtt) client_id: &'a str,
    pub(in crate::mqtt) user_name: Option<&'a str>,
    pub(in crate::mqtt) password: Option<&'a [u8]>,
    pub(in crate::mqtt) keep_alive_secs: u16,
    /// MQTT 5 only; with 3.1.1 the broker decides.
    pub(in crate::mqtt) session_expiry_secs: u32,
    /// MQTT 5 only.
    pub(in crate::mqtt) receive_maximum: u16,
    /// MQTT 5 only.
    pub(in crate::mqtt) maximum_packet_size: u32,
}

/// The contents of CONNACK.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::mqtt) struct Connack {
    pub(in crate::mqtt) session_present: bool,
    /// Codes of MQTT 3.1.1 are translated to those of MQTT 5.
    pub(in crate::mqtt) reason: Reason,
    /// Set if it differs from the requested one.
    pub(in crate::mqtt) keep_alive_secs: Option<u16>,
}

/// A packet from a broker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::mqtt) enum BrokerPacket {
    Connack(Connack),
    Publish(Box<Publish>),
    Suback(u16, Vec<Reason>),
    Pingresp,
    Disconnect(Reason),
}

pub(in crate::mqtt) fn connect(out: &mut BytesMut, version: Version, options: &ConnectOptions<'_>) {
    let mut body = BytesMut::new();
    put_text(&mut body, "MQTT");
    body.put_u8(match version {
        Version::V3 => 4,
        Version::V5 => 5,
    });
    // No clean start: the queued messages of the session are wanted.
    let mut flags = 0;
    if options.user_name.is_some() {
        flags |= USER_NAME;
    }
    if options.password.is_some() {
        flags |= PASSWORD;
    }
    body.put_u8(flags);
    body.put_u16(options.keep_alive_secs);
    if version == Version::V5 {
        let mut said = BytesMut::new();
        said.put_u8(properties::SESSION_EXPIRY);
        said.put_u32(options.session_expiry_secs);
        said.put_u8(properties::RECEIVE_MAXIMUM);
        said.put_u16(options.receive_maximum);
        said.put_u8(properties::MAXIMUM_PACKET_SIZE);
        said.put_u32(options.maximum_packet_size);
        put_variable(&mut body, said.len());
        body.extend_from_slice(&said);
    }
    put_text(&mut body, options.client_id);
    if let Some(name) = options.user_name {
        put_text(&mut body, name);
    }
    if let Some(password) = options.password {
        put_binary(&mut body, password);
    }
    out.put_u8(0x10);
    put_variable(out, body.len());
    out.extend_from_slice(&body);
}

/// Writes SUBSCRIBE for these filters with QoS 1.
pub(in crate::mqtt) fn subscribe<'a>(
    out: &mut BytesMut,
    version: Version,
    packet_id: u16,
    filters: impl Iterator<Item = &'a str>,
) {
    let (said, options): (&[u8], u8) = match version {
        Version::V3 => (&[], SUBSCRIBE_OPTIONS_V3),
        Version::V5 => (&[0], SUBSCRIBE_OPTIONS_V5),
    };
    let mut body = BytesMut::new();
    for filter in filters {
        put_text(&mut body, filter);
        body.put_u8(options);
    }
    out.put_u8(0x82);
    put_variable(out, 2 + said.len() + body.len());
    out.put_u16(packet_id);
    out.extend_from_slice(said);
    out.extend_from_slice(&body);
}

pub(in crate::mqtt) fn pingreq(out: &mut BytesMut) {
    out.extend_from_slice(&[0xc0, 0]);
}

/// Writes DISCONNECT; the session stays.
pub(in crate::mqtt) fn disconnect(out: &mut BytesMut) {
    out.extend_from_slice(&[0xe0, 0]);
}

/// The next packet of a broker, once it is complete.
///
/// # Errors
/// When it is malformed or longer than `max` bytes.
pub(in crate::mqtt) fn next(
    buffer: &mut BytesMut,
    version: Version,
    max: usize,
) -> Result<Option<BrokerPacket>, Refusal> {
    let Some((head, body)) = frame(buffer, max)? else {
        return Ok(None);
    };
    let fields = Fields::new(body);
    let flags = head & 0x0f;
    let packet = match (head >> 4, flags) {
        (2, 0) => BrokerPacket::Connack(connack(version, fields)?),
        (3, _) => {
            let allowed = properties::OF_DELIVERY;
            BrokerPacket::Publish(Box::new(decode::publish(flags, version, fields, allowed)?))
        }
        (9, 0) => suback(version, fields)?,
        (13, 0) => {
            fields.end()?;
            BrokerPacket::Pingresp
        }
        (14, 0) if version == Version::V5 => decode_disconnect(fields)?,
        _ => {
            return Err(Refusal::malformed(
                "the broker sent a packet of a type that brokers do not send",
            ));
        }
    };
    Ok(Some(packet))
}

fn connack(version: Version, mut fields: Fields) -> Result<Connack, Refusal> {
    let session_present = fields.u8()? & 1 != 0;
    let code = fields.u8()?;
    let (reason, keep_alive_secs) = match version {
        Version::V3 => (Reason::of_connect_code_v3(code), None),
        Version::V5 => {
            let said = properties::read(&mut fields, properties::OF_CONNACK)?;
            (Reason(code), said.server_keep_alive)
        }
    };
    fields.end()?;
    Ok(Connack {
        session_present,
        reason,
        keep_alive_secs,
    })
}

fn suback(version: Version, mut fields: Fields) -> Result<BrokerPacket, Refusal> {
    let packet_id = fields.packet_id()?;
    if version == Version::V5 {
        properties::read(&mut fields, properties::OF_ACKNOWLEDGEMENT)?;
    }
    let codes = fields.rest().iter().map(|code| Reason(*code)).collect();
    Ok(BrokerPacket::Suback(packet_id, codes))
}

fn decode_disconnect(mut fields: Fields) -> Result<BrokerPacket, Refusal> {
    if fields.is_empty() {
        return Ok(BrokerPacket::Disconnect(Reason::SUCCESS));
    }
    let reason = Reason(fields.u8()?);
    if !fields.is_empty() {
        properties::read(&mut fields, properties::OF_GOODBYE)?;
    }
    fields.end()?;
    Ok(BrokerPacket::Disconnect(reason))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MAX: usize = 64 * 1024;

    fn version() -> impl Strategy<Value = Version> {
        prop_oneof![Just(Version::V3), Just(Version::V5)]
    }

    proptest! {
        #[test]
        fn decoder_never_panics_on_broker_packets(
            bytes in proptest::collection::vec(any::<u8>(), 0..200),
            version in version(),
        ) {
            for head in [0x20_u8, 0x30, 0x32, 0x3b, 0x90, 0xd0, 0xe0] {
                let len = u8::try_from(bytes.len().min(127)).expect("small");
                let mut framed = BytesMut::from(&[head, len][..]);
                framed.extend_from_slice(&bytes[..len.into()]);
                while let Ok(Some(_)) = next(&mut framed, version, MAX) {}
            }
        }

        #[test]
        fn server_decodes_client_packets(
            version in version(),
            client_id in "[a-z]{1,20}",
            keep_alive_secs in any::<u16>(),
            has_password in any::<bool>(),
        ) {
            let mut out = BytesMut::new();
            connect(&mut out, version, &ConnectOptions {
                client_id: &client_id,
                user_name: has_password.then_some("user"),
                password: has_password.then_some(b"secret"),
                keep_alive_secs,
                session_expiry_secs: 7,
                receive_maximum: 9,
                maximum_packet_size: 11,
            });
            let connect = super::super::first(&mut out, MAX).expect("a packet").expect("whole");
            prop_assert!(!connect.clean_start);
            prop_assert_eq!(connect.version, version);
            prop_assert_eq!(connect.client_id, client_id);
            prop_assert_eq!(connect.keep_alive_secs, keep_alive_secs);
            prop_assert_eq!(connect.user_name.is_some(), has_password);
            prop_assert_eq!(connect.password.is_some(), has_password);
            let is_v5 = version == Version::V5;
            prop_assert_eq!(connect.session_expiry, is_v5.then_some(7));
            prop_assert_eq!(connect.receive_maximum, is_v5.then_some(9));
            prop_assert_eq!(connect.maximum_packet_size, is_v5.then_some(11));
            subscribe(&mut out, version, 3, ["a/+", "$share/g/b/#"].into_iter());
            let packet = super::super::next(&mut out, version, MAX).expect("a packet");
            let Some(super::super::Packet::Subscribe(subscribe)) = packet else {
                panic!("no subscription");
            };
            prop_assert_eq!(subscribe.packet_id, 3);
            let filters = subscribe.filters.iter();
            let filters: Vec<_> = filters.map(|(filter, options)| (&**filter, options.qos)).collect();
            prop_assert_eq!(filters, [("a/+", 1), ("$share/g/b/#", 1)]);
            prop_assert!(out.is_empty());
        }
    }

    #[test]
    fn mqtt_3_return_codes_become_reasons() {
        for (code, reason) in [
            (0, Reason::SUCCESS),
            (2, Reason::CLIENT_ID_INVALID),
            (4, Reason::BAD_CREDENTIALS),
            (5, Reason::NOT_AUTHORIZED),
        ] {
            let mut bytes = BytesMut::from(&[0x20, 2, 1, code][..]);
            let packet = next(&mut bytes, Version::V3, MAX).expect("a packet");
            let expected = Connack {
                session_present: true,
                reason,
                keep_alive_secs: None,
            };
            assert_eq!(packet, Some(BrokerPacket::Connack(expected)));
        }
    }
}
