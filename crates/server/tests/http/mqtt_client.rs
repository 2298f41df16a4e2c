//! An MQTT 5 client on a socket, with the packets of rumqttc.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::BytesMut;
use rumqttc::v5::mqttbytes::v5;
use rumqttc::v5::mqttbytes::{Error, QoS};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// The limit of every wait.
const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) struct MqttClient {
    stream: TcpStream,
    buffer: BytesMut,
}

impl MqttClient {
    /// Connects; with `expiry_secs` the session outlives the connection.
    pub(crate) async fn connect(
        address: SocketAddr,
        client_id: &str,
        login: (&str, &str),
        expiry_secs: Option<u32>,
        will: Option<v5::LastWill>,
    ) -> Self {
        let (client, answer) =
            Self::try_connect(address, client_id, login, expiry_secs, will).await;
        assert_eq!(answer.code, v5::ConnectReturnCode::Success, "{answer:?}");
        client
    }

    pub(crate) async fn try_connect(
        address: SocketAddr,
        client_id: &str,
        (user, password): (&str, &str),
        expiry_secs: Option<u32>,
        will: Option<v5::LastWill>,
    ) -> (Self, v5::ConnAck) {
        let stream = TcpStream::connect(address).await.expect("connected");
        let buffer = BytesMut::new();
        let mut client = Self { stream, buffer };
        let mut properties = v5::ConnectProperties::new();
        properties.session_expiry_interval = expiry_secs;
        let connect = v5::Connect {
            keep_alive: 60,
            client_id: client_id.to_owned(),
            clean_start: false,
            properties: Some(properties),
        };
        let login = v5::Login::new(user, password);
        let packet = v5::Packet::Connect(connect, will, Some(login));
        client.send(&packet).await;
        match client.receive().await {
            v5::Packet::ConnAck(answer) => (client, answer),
            other => panic!("{other:?}"),
        }
    }

    pub(crate) async fn send(&mut self, packet: &v5::Packet) {
        let mut bytes = BytesMut::new();
        packet.write(&mut bytes, None).expect("written");
        self.stream.write_all(&bytes).await.expect("sent");
    }

    pub(crate) async fn receive(&mut self) -> v5::Packet {
        self.next().await.expect("a packet")
    }

    /// The next packet; `None` if the server closed the connection.
    pub(crate) async fn next(&mut self) -> Option<v5::Packet> {
        let read = async {
            loop {
                match v5::Packet::read(&mut self.buffer, None) {
                    Ok(packet) => return Some(packet),
                    Err(Error::InsufficientBytes(_)) => {}
                    Err(error) => panic!("the server sent no packet: {error}"),
                }
                match self.stream.read_buf(&mut self.buffer).await {
                    Ok(0) | Err(_) => return None,
                    Ok(_) => {}
                }
            }
        };
        let outcome = tokio::time::timeout(PATIENCE, read).await;
        outcome.expect("a packet or the end in time")
    }

    /// Subscribes with QoS 1.
    pub(crate) async fn subscribe(&mut self, filter: &str) -> v5::SubscribeReasonCode {
        let filter = v5::Filter::new(filter, QoS::AtLeastOnce);
        let mut subscribe = v5::Subscribe::new(filter, None);
        subscribe.pkid = 7;
        self.send(&v5::Packet::Subscribe(subscribe)).await;
        match self.receive().await {
            v5::Packet::SubAck(answer) => answer.return_codes[0],
            other => panic!("{other:?}"),
        }
    }

    /// Publishes with QoS 1 and waits for PUBACK.
    pub(crate) async fn publish(&mut self, topic: &str, payload: &str) {
        let mut publish = v5::Publish::new(topic, QoS::AtLeastOnce, payload.to_owned(), None);
        publish.pkid = 9;
        self.send(&v5::Packet::Publish(publish)).await;
        match self.receive().await {
            v5::Packet::PubAck(answer) => assert_eq!(answer.pkid, 9),
            other => panic!("{other:?}"),
        }
    }

    pub(crate) async fn receive_payload(&mut self) -> String {
        match self.receive().await {
            v5::Packet::Publish(publish) => String::from_utf8_lossy(&publish.payload).into_owned(),
            other => panic!("{other:?}"),
        }
    }
}
