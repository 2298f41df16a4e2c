//! Property tests of the codec. Tests with the packets of another implementation are in `tests/mqtt`.

use bytes::{Bytes, BytesMut};
use homeport_systems::messages::{Delivery, Message, Properties, Publisher};
use homeport_systems::time::EpochMillis;
use proptest::prelude::*;

use super::*;

const MAX: usize = 1024 * 1024;

fn text() -> impl Strategy<Value = String> {
    "[a-zé/]{0,40}"
}

fn properties() -> impl Strategy<Value = Properties> {
    (
        proptest::option::of(text()),
        proptest::option::of(text()),
        proptest::option::of(proptest::collection::vec(any::<u8>(), 0..50)),
        any::<bool>(),
        proptest::collection::vec((text(), text()), 0..4),
    )
        .prop_map(
            |(content_type, response_topic, data, is_text, user)| Properties {
                content_type,
                response_topic,
                correlation_data: data.map(Bytes::from),
                payload_is_text: is_text,
                expires_after_secs: None,
                user,
            },
        )
}

fn message() -> impl Strategy<Value = Message> {
    let payload = proptest::collection::vec(any::<u8>(), 0..20_000);
    (text(), payload, properties(), any::<bool>()).prop_map(
        |(topic, payload, properties, retain)| Message {
            topic,
            payload: payload.into(),
            delivery: Delivery::AtLeastOnce,
            retain,
            publisher: Publisher::default(),
            received_at: EpochMillis(0),
            properties,
            hops: 0,
        },
    )
}

fn version() -> impl Strategy<Value = Version> {
    prop_oneof![Just(Version::V3), Just(Version::V5)]
}

proptest! {
    #[test]
    fn no_bytes_make_the_decoder_panic(
        bytes in proptest::collection::vec(any::<u8>(), 0..300),
        version in version(),
    ) {
        let mut buffer = BytesMut::from(&bytes[..]);
        let _ = first(&mut buffer, MAX);
        // A valid first byte and length reach the rest of the decoder.
        for head in [0x10_u8, 0x30, 0x32, 0x40, 0x82, 0xa2, 0xe0] {
            let len = u8::try_from(bytes.len().min(127)).expect("small");
            let mut framed = BytesMut::from(&[head, len][..]);
            framed.extend_from_slice(&bytes[..len.into()]);
            let _ = first(&mut framed.clone(), MAX);
            while let Ok(Some(_)) = next(&mut framed, version, MAX) {}
        }
    }

    #[test]
    fn a_message_is_the_same_at_the_other_end_however_its_bytes_arrive(
        message in message(),
        version in version(),
        packet_id in proptest::option::of(1_u16..),
        expires_after_secs in proptest::option::of(any::<u32>()),
        cut in any::<prop::sample::Index>(),
    ) {
        let sent = Sent {
            message: &message,
            packet_id,
            is_duplicate: false,
            retain: message.retain,
            identifiers: &[],
            expires_after_secs,
        };
        let mut bytes = BytesMut::new();
        publish(&mut bytes, version, &sent);
        prop_assert_eq!(bytes.len(), publish_len(version, &sent));
        let late = bytes.split_off(cut.index(bytes.len()));
        prop_assert_eq!(next(&mut bytes, version, MAX), Ok(None));
        bytes.extend_from_slice(&late);
        let expected = Publish {
            qos: u8::from(packet_id.is_some()),
            retain: message.retain,
            topic: message.topic.clone(),
            topic_alias: None,
            packet_id,
            payload: message.payload.clone(),
            properties: match version {
                Version::V3 => Properties::default(),
                Version::V5 => Properties { expires_after_secs, ..message.properties.clone() },
            },
        };
        prop_assert_eq!(
            next(&mut bytes, version, MAX),
            Ok(Some(Packet::Publish(Box::new(expected))))
        );
        prop_assert!(bytes.is_empty());
    }
}

#[test]
fn lengths_take_as_few_bytes_as_they_can() {
    for (payload, head) in [
        (0, &[0x30, 3][..]),
        (124, &[0x30, 127]),
        (125, &[0x30, 0x80, 1]),
        (16_380, &[0x30, 0xff, 0x7f]),
        (16_381, &[0x30, 0x80, 0x80, 1]),
    ] {
        let message = Message {
            topic: "x".to_owned(),
            payload: vec![0; payload].into(),
            delivery: Delivery::AtMostOnce,
            retain: false,
            publisher: Publisher::default(),
            received_at: EpochMillis(0),
            properties: Properties::default(),
            hops: 0,
        };
        let sent = Sent {
            message: &message,
            packet_id: None,
            is_duplicate: false,
            retain: false,
            identifiers: &[],
            expires_after_secs: None,
        };
        let mut bytes = BytesMut::new();
        publish(&mut bytes, Version::V3, &sent);
        assert!(bytes.starts_with(head), "{payload}");
    }
}

#[test]
fn a_password_does_not_print() {
    let hello = b"\x10\x18\x00\x04MQTT\x04\xc2\x00\x00\x00\x01c\x00\x01u\x00\x06secret";
    let mut bytes = BytesMut::from(&hello[..]);
    bytes[1] = u8::try_from(hello.len() - 2).expect("small");
    let connect = first(&mut bytes, MAX).expect("a packet").expect("whole");
    assert_eq!(connect.password.as_deref(), Some(&b"secret"[..]));
    assert!(!format!("{connect:?}").contains("secret"));
}
