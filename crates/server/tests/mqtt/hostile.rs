//! Invalid bytes: the listener neither panics nor hangs, and serves other clients.

use std::time::Duration;

use bytes::BytesMut;
use rumqttc::v5::mqttbytes::v5::{
    Connect, DisconnectReasonCode, Filter, Login, Packet, PingReq, Subscribe,
};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::client::{Client, V5, message};
use crate::world::{PATIENCE, World};

/// Rounds with random and with mutated bytes.
const ROUNDS: u64 = 400;

/// A seeded generator, so that failures can be repeated.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end as u64).expect("small")
    }
}

fn connect(key: &str) -> Packet {
    let connect = Connect {
        keep_alive: 1,
        client_id: "fuzz".to_owned(),
        clean_start: true,
        properties: None,
    };
    Packet::Connect(connect, None, Some(Login::new("x", key)))
}

/// The bytes of an ordinary client.
fn conversation(key: &str) -> (Vec<u8>, Vec<u8>) {
    let write = |packets: &[Packet]| {
        let mut bytes = BytesMut::new();
        for packet in packets {
            packet.write(&mut bytes, None).expect("written");
        }
        bytes.to_vec()
    };
    let mut subscribe = Subscribe::new(
        Filter::new("van/+/x", rumqttc::v5::mqttbytes::QoS::AtLeastOnce),
        None,
    );
    subscribe.pkid = 1;
    let rest = [
        Packet::Subscribe(subscribe),
        Packet::Publish(message("van/v1/x", "payload", 2)),
        Packet::PingReq(PingReq),
    ];
    (write(&[connect(key)]), write(&rest))
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_bytes_do_not_stop_the_listener() {
    let world = World::start().await;
    let key = world.key([]).await;
    let (hello, rest) = conversation(&key);
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    for round in 0..ROUNDS {
        let mut bytes = match round % 3 {
            0 => (0..dice.below(64)).map(|_| dice.next() as u8).collect(),
            1 => [hello.clone(), rest.clone()].concat(),
            _ => rest.clone(),
        };
        let mutations = dice.below(4) + usize::from(round % 3 > 0);
        for _ in 0..mutations {
            if bytes.is_empty() {
                break;
            }
            let at = dice.below(bytes.len());
            match dice.below(4) {
                0 => bytes[at] = dice.next() as u8,
                1 => bytes[at] ^= 1 << dice.below(8),
                2 => bytes.truncate(at),
                _ => bytes.insert(at, dice.next() as u8),
            }
        }
        if round % 3 == 2 {
            bytes = [hello.clone(), bytes].concat();
        }
        let mut stream = TcpStream::connect(world.address).await.expect("connected");
        // The server may have closed the connection already.
        let _ = stream.write_all(&bytes).await;
        let _ = stream.shutdown().await;
        let mut answer = Vec::new();
        let read = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut answer)).await;
        assert!(read.is_ok(), "round {round} hangs: {bytes:?}");
    }
    let mut client = Client::<V5>::connect(&world, "c", &key).await;
    client.ping().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn protocol_violations_are_refused_with_a_reason() {
    let world = World::start().await;
    let key = world.key([]).await;
    let malformed = DisconnectReasonCode::MalformedPacket;
    let protocol = DisconnectReasonCode::ProtocolError;
    for (bytes, reason) in [
        (&[0x00, 0x00][..], malformed),
        (&[0x30, 0xff, 0xff, 0xff, 0xff, 0x7f], malformed),
        (&[0x36, 0x00], malformed),
        (&[0x38, 0x04, 0, 1, b'a', 0], malformed),
        (&[0x32, 0x06, 0, 1, b'a', 0, 0, 0], malformed),
        (&[0x30, 0x04, 0, 9, b'a', 0], malformed),
        (&[0x30, 0x04, 0, 1, 0xff, 0], malformed),
        (&[0x30, 0x04, 0, 1, 0x00, 0], malformed),
        (&[0x80, 0x07, 0, 1, 0, 0, 1, b'a', 0], malformed),
        (&[0x82, 0x03, 0, 1, 0], protocol),
        (&[0x82, 0x07, 0, 1, 0, 0, 1, b'a', 0x03], malformed),
        (&[0x82, 0x07, 0, 1, 0, 0, 1, b'a', 0x30], protocol),
        (&[0xa2, 0x03, 0, 1, 0], protocol),
        (&[0xc0, 0x01, 0], malformed),
        (&[0x10, 0x00], protocol),
        (&[0x50, 0x02, 0, 1], protocol),
        (&[0x62, 0x02, 0, 1], protocol),
        (&[0x70, 0x02, 0, 1], protocol),
        (&[0xf0, 0x00], protocol),
        (&[0x20, 0x02, 0, 0], malformed),
        // A repeated property, one of another packet, and an unknown one.
        (&[0x30, 0x08, 0, 1, b'a', 4, 1, 0, 1, 0], protocol),
        (&[0x30, 0x06, 0, 1, b'a', 2, 0x0b, 1], malformed),
        (&[0x30, 0x06, 0, 1, b'a', 2, 0x7f, 1], malformed),
        (&[0xe0, 0x07, 0, 5, 0x11, 0, 0, 0, 9], protocol),
    ] {
        let mut client = Client::<V5>::connect(&world, "c", &key).await;
        client.send_bytes(bytes).await;
        match client.receive().await {
            Packet::Disconnect(said) => assert_eq!(said.reason_code, reason, "{bytes:?}"),
            other => panic!("{bytes:?} {other:?}"),
        }
        client.expect_end().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn first_packet_must_be_connect() {
    let world = World::start().await;
    for bytes in [
        &b"GET / HTTP/1.1\r\n\r\n"[..],
        &[0xc0, 0x00],
        &[
            0x10, 0x0c, 0, 4, b'M', b'Q', b'T', b'T', 4, 0x03, 0, 0, 0, 0,
        ],
        &[
            0x10, 0x0c, 0, 4, b'M', b'Q', b'X', b'T', 4, 0x02, 0, 0, 0, 0,
        ],
    ] {
        let mut client = Client::<V5>::open(&world).await;
        client.send_bytes(bytes).await;
        client.expect_end().await;
    }
    // An unsupported protocol version gets its own error.
    let mut old = TcpStream::connect(world.address).await.expect("connected");
    let hello = [
        0x10, 0x0e, 0, 6, b'M', b'Q', b'I', b's', b'd', b'p', 3, 2, 0, 0, 0, 0,
    ];
    old.write_all(&hello).await.expect("sent");
    let mut answer = Vec::new();
    let read = tokio::time::timeout(Duration::from_secs(20), old.read_to_end(&mut answer)).await;
    read.expect("in time").expect("read");
    assert_eq!(answer, [0x20, 2, 0, 1]);
}
