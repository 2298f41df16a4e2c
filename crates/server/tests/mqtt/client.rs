//! Clients on a socket, with the packets of rumqttc.

use std::fmt::Debug;
use std::marker::PhantomData;

use bytes::BytesMut;
use rumqttc::mqttbytes::v4;
use rumqttc::v5::mqttbytes::QoS as QoS5;
use rumqttc::v5::mqttbytes::v5;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::world::{ADMIN, PATIENCE, World};

/// The packets of a version.
pub(crate) trait Codec {
    type Packet: Debug + PartialEq + Clone;

    fn write(packet: &Self::Packet, out: &mut BytesMut);

    /// The first packet, if it is complete.
    fn read(bytes: &mut BytesMut) -> Option<Self::Packet>;
}

pub(crate) struct V3;
pub(crate) struct V5;

impl Codec for V3 {
    type Packet = v4::Packet;

    fn write(packet: &v4::Packet, out: &mut BytesMut) {
        packet.write(out, usize::MAX).expect("written");
    }

    fn read(bytes: &mut BytesMut) -> Option<v4::Packet> {
        match v4::Packet::read(bytes, usize::MAX) {
            Ok(packet) => Some(packet),
            Err(rumqttc::mqttbytes::Error::InsufficientBytes(_)) => None,
            Err(error) => panic!("the server sent what is no packet: {error} {bytes:?}"),
        }
    }
}

impl Codec for V5 {
    type Packet = v5::Packet;

    fn write(packet: &v5::Packet, out: &mut BytesMut) {
        packet.write(out, None).expect("written");
    }

    fn read(bytes: &mut BytesMut) -> Option<v5::Packet> {
        match v5::Packet::read(bytes, None) {
            Ok(packet) => Some(packet),
            Err(rumqttc::v5::mqttbytes::Error::InsufficientBytes(_)) => None,
            Err(error) => panic!("the server sent what is no packet: {error} {bytes:?}"),
        }
    }
}

pub(crate) struct Client<C> {
    pub(crate) stream: TcpStream,
    buffer: BytesMut,
    codec: PhantomData<C>,
}

impl<C: Codec> Client<C> {
    pub(crate) async fn open(world: &World) -> Self {
        let stream = TcpStream::connect(world.address).await.expect("connected");
        Self {
            stream,
            buffer: BytesMut::new(),
            codec: PhantomData,
        }
    }

    pub(crate) async fn send(&mut self, packet: &C::Packet) {
        let mut bytes = BytesMut::new();
        C::write(packet, &mut bytes);
        self.send_bytes(&bytes).await;
    }

    pub(crate) async fn send_bytes(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.expect("sent");
    }

    /// The next packet; `None` if the server closed the connection.
    pub(crate) async fn next(&mut self) -> Option<C::Packet> {
        let read = async {
            loop {
                if let Some(packet) = C::read(&mut self.buffer) {
                    return Some(packet);
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

    pub(crate) async fn receive(&mut self) -> C::Packet {
        self.next().await.expect("a packet")
    }

    pub(crate) async fn expect(&mut self, packet: C::Packet) {
        let got = self.receive().await;
        // A payload may be long.
        let (shown, wanted) = (format!("{got:?}"), format!("{packet:?}"));
        assert!(got == packet, "{shown:.300} in place of {wanted:.300}");
    }

    pub(crate) async fn expect_end(&mut self) {
        assert_eq!(self.next().await, None);
    }
}

/// How an MQTT 5 client connects.
pub(crate) struct Options5 {
    pub(crate) clean_start: bool,
    pub(crate) keep_alive: u16,
    pub(crate) properties: v5::ConnectProperties,
    pub(crate) will: Option<v5::LastWill>,
}

impl Default for Options5 {
    fn default() -> Self {
        Self {
            clean_start: true,
            keep_alive: 60,
            properties: v5::ConnectProperties::new(),
            will: None,
        }
    }
}

impl Options5 {
    /// A persistent session.
    pub(crate) fn kept(clean_start: bool) -> Self {
        let mut options = Self {
            clean_start,
            ..Self::default()
        };
        options.properties.session_expiry_interval = Some(3600);
        options
    }
}

impl Client<V5> {
    /// Connects; returns CONNACK.
    pub(crate) async fn try_connect(
        world: &World,
        id: &str,
        login: (&str, &str),
        options: Options5,
    ) -> (Self, v5::ConnAck) {
        let mut client = Self::open(world).await;
        let connect = v5::Connect {
            keep_alive: options.keep_alive,
            client_id: id.to_owned(),
            clean_start: options.clean_start,
            properties: Some(options.properties),
        };
        let login = v5::Login::new(login.0, login.1);
        let packet = v5::Packet::Connect(connect, options.will, Some(login));
        client.send(&packet).await;
        match client.receive().await {
            v5::Packet::ConnAck(answer) => (client, answer),
            other => panic!("{other:?}"),
        }
    }

    pub(crate) async fn connect_with(
        world: &World,
        id: &str,
        key: &str,
        options: Options5,
    ) -> (Self, v5::ConnAck) {
        let (client, answer) = Self::try_connect(world, id, ("device", key), options).await;
        assert_eq!(answer.code, v5::ConnectReturnCode::Success, "{answer:?}");
        (client, answer)
    }

    pub(crate) async fn connect(world: &World, id: &str, key: &str) -> Self {
        Self::connect_with(world, id, key, Options5::default())
            .await
            .0
    }

    pub(crate) async fn operator(world: &World, id: &str) -> Self {
        let options = Options5::default();
        let (client, answer) = Self::try_connect(world, id, ("admin", ADMIN), options).await;
        assert_eq!(answer.code, v5::ConnectReturnCode::Success);
        client
    }

    /// Subscribes with QoS 1; returns the reason code.
    pub(crate) async fn subscribe(&mut self, filter: &str) -> v5::SubscribeReasonCode {
        let filter = v5::Filter::new(filter, QoS5::AtLeastOnce);
        self.subscribe_with(filter, None).await
    }

    pub(crate) async fn subscribe_with(
        &mut self,
        filter: v5::Filter,
        identifier: Option<usize>,
    ) -> v5::SubscribeReasonCode {
        self.suback_of(filter, identifier).await.return_codes[0]
    }

    /// Subscribes with QoS 1 and returns the whole SUBACK.
    pub(crate) async fn subscribe_answer(&mut self, filter: &str) -> v5::SubAck {
        let filter = v5::Filter::new(filter, QoS5::AtLeastOnce);
        self.suback_of(filter, None).await
    }

    async fn suback_of(&mut self, filter: v5::Filter, identifier: Option<usize>) -> v5::SubAck {
        let properties = identifier.map(|id| v5::SubscribeProperties {
            id: Some(id),
            user_properties: Vec::new(),
        });
        let mut subscribe = v5::Subscribe::new(filter, properties);
        subscribe.pkid = 77;
        self.send(&v5::Packet::Subscribe(subscribe)).await;
        match self.receive().await {
            v5::Packet::SubAck(answer) => {
                assert_eq!(answer.pkid, 77);
                answer
            }
            other => panic!("{other:?}"),
        }
    }

    /// Publishes with QoS 1 under a packet id, without waiting.
    pub(crate) async fn publish(&mut self, topic: &str, payload: &str, id: u16) {
        self.send(&v5::Packet::Publish(message(topic, payload, id)))
            .await;
    }

    /// Publishes with QoS 1 and waits for PUBACK.
    pub(crate) async fn publish_and_wait(&mut self, topic: &str, payload: &str) {
        self.publish(topic, payload, 9).await;
        self.expect(acknowledged(9)).await;
    }

    pub(crate) async fn receive_publish(&mut self) -> v5::Publish {
        match self.receive().await {
            v5::Packet::Publish(publish) => publish,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) async fn acknowledge(&mut self, id: u16) {
        self.send(&acknowledged(id)).await;
    }

    /// Receives a message, acknowledges it if it has QoS 1, and returns its payload.
    pub(crate) async fn take(&mut self) -> String {
        let publish = self.receive_publish().await;
        if publish.qos == QoS5::AtLeastOnce {
            self.acknowledge(publish.pkid).await;
        }
        String::from_utf8_lossy(&publish.payload).into_owned()
    }

    /// Waits until the server has processed everything that was sent; nothing else may arrive.
    pub(crate) async fn ping(&mut self) {
        self.send(&v5::Packet::PingReq(v5::PingReq)).await;
        self.expect(v5::Packet::PingResp(v5::PingResp)).await;
    }

    pub(crate) async fn disconnect(mut self) {
        let reason = v5::DisconnectReasonCode::NormalDisconnection;
        self.send(&v5::Packet::Disconnect(v5::Disconnect::new(reason)))
            .await;
        self.expect_end().await;
    }

    pub(crate) async fn expect_disconnect(&mut self, reason: v5::DisconnectReasonCode) {
        match self.receive().await {
            v5::Packet::Disconnect(said) => assert_eq!(said.reason_code, reason),
            other => panic!("{other:?}"),
        }
        self.expect_end().await;
    }
}

pub(crate) fn message(topic: &str, payload: &str, id: u16) -> v5::Publish {
    let mut publish = v5::Publish::new(topic, QoS5::AtLeastOnce, payload.to_owned(), None);
    publish.pkid = id;
    publish
}

pub(crate) fn acknowledged(id: u16) -> v5::Packet {
    v5::Packet::PubAck(v5::PubAck::new(id, None))
}

impl Client<V3> {
    pub(crate) async fn try_connect(
        world: &World,
        id: &str,
        key: &str,
        clean: bool,
    ) -> (Self, v4::ConnAck) {
        let mut client = Self::open(world).await;
        let mut connect = v4::Connect::new(id);
        connect.clean_session = clean;
        connect.set_login("device", key);
        client.send(&v4::Packet::Connect(connect)).await;
        match client.receive().await {
            v4::Packet::ConnAck(answer) => (client, answer),
            other => panic!("{other:?}"),
        }
    }

    pub(crate) async fn connect(world: &World, id: &str, key: &str) -> Self {
        let (client, answer) = Self::try_connect(world, id, key, true).await;
        assert_eq!(answer.code, v4::ConnectReturnCode::Success);
        client
    }
}
