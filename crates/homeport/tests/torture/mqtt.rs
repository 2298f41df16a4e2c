//! A client's MQTT 3.1.1 connection with QoS 1, with the packets of another implementation than the server's.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::BytesMut;
use rumqttc::mqttbytes::v4::{
    Connect, ConnectReturnCode, Packet, PubAck, Publish, Subscribe, SubscribeReasonCode,
};
use rumqttc::mqttbytes::{Error, QoS};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

const ANSWER_MAX: Duration = Duration::from_secs(20);
const PACKET_BYTES_MAX: usize = 256 * 1024;

pub(crate) struct Connection {
    stream: TcpStream,
    read: BytesMut,
}

#[derive(Debug)]
pub(crate) struct Message {
    id: u16,
    pub(crate) topic: String,
    pub(crate) payload: Vec<u8>,
}

impl Connection {
    /// Connects. Returns whether the server had a session of this client.
    pub(crate) async fn open(
        address: SocketAddr,
        client_id: &str,
        login: (&str, &str),
        is_clean: bool,
    ) -> Result<(Self, bool), String> {
        let stream = timeout(ANSWER_MAX, TcpStream::connect(address)).await;
        let stream = stream.map_err(text)?.map_err(text)?;
        let mut connection = Self {
            stream,
            read: BytesMut::new(),
        };
        let mut connect = Connect::new(client_id);
        connect.keep_alive = 0;
        connect.clean_session = is_clean;
        connect.set_login(login.0, login.1);
        let mut out = BytesMut::new();
        connect.write(&mut out).map_err(text)?;
        connection.write(&out).await?;
        match connection.next(ANSWER_MAX).await? {
            Some(Packet::ConnAck(answer)) if answer.code == ConnectReturnCode::Success => {
                Ok((connection, answer.session_present))
            }
            other => Err(format!("{other:?} instead of a connection")),
        }
    }

    pub(crate) async fn subscribe(&mut self, filter: &str) -> Result<(), String> {
        let mut subscribe = Subscribe::new(filter, QoS::AtLeastOnce);
        subscribe.pkid = 1;
        let mut out = BytesMut::new();
        subscribe.write(&mut out).map_err(text)?;
        self.write(&out).await?;
        match self.next(ANSWER_MAX).await? {
            Some(Packet::SubAck(answer))
                if answer.return_codes == [SubscribeReasonCode::Success(QoS::AtLeastOnce)] =>
            {
                Ok(())
            }
            other => Err(format!("{other:?} instead of a subscription")),
        }
    }

    /// Publishes messages. Returns the positions of the acknowledged ones.
    pub(crate) async fn publish(&mut self, topic: &str, payloads: &[String]) -> Vec<usize> {
        let mut out = BytesMut::new();
        for (id, payload) in (1..).zip(payloads) {
            let mut publish = Publish::new(topic, QoS::AtLeastOnce, payload.as_bytes());
            publish.pkid = id;
            if publish.write(&mut out).is_err() {
                return Vec::new();
            }
        }
        let mut acknowledged = Vec::new();
        if self.write(&out).await.is_err() {
            return acknowledged;
        }
        while acknowledged.len() < payloads.len() {
            match self.next(ANSWER_MAX).await {
                Ok(Some(Packet::PubAck(answer))) => match usize::from(answer.pkid).checked_sub(1) {
                    Some(at) if at < payloads.len() => acknowledged.push(at),
                    _ => return acknowledged,
                },
                _ => return acknowledged,
            }
        }
        acknowledged
    }

    /// The next message; `None` after a timeout.
    pub(crate) async fn receive(&mut self, within: Duration) -> Result<Option<Message>, String> {
        match self.next(within).await? {
            Some(Packet::Publish(publish)) => Ok(Some(Message {
                id: publish.pkid,
                topic: publish.topic,
                payload: publish.payload.to_vec(),
            })),
            Some(_) | None => Ok(None),
        }
    }

    pub(crate) async fn acknowledge(&mut self, message: &Message) -> Result<(), String> {
        let mut out = BytesMut::new();
        PubAck::new(message.id).write(&mut out).map_err(text)?;
        self.write(&out).await
    }

    async fn write(&mut self, bytes: &[u8]) -> Result<(), String> {
        let written = timeout(ANSWER_MAX, self.stream.write_all(bytes)).await;
        written.map_err(text)?.map_err(text)
    }

    /// The next packet; `None` after a timeout.
    async fn next(&mut self, within: Duration) -> Result<Option<Packet>, String> {
        loop {
            match Packet::read(&mut self.read, PACKET_BYTES_MAX) {
                Ok(packet) => return Ok(Some(packet)),
                Err(Error::InsufficientBytes(_)) => {}
                Err(error) => return Err(error.to_string()),
            }
            match timeout(within, self.stream.read_buf(&mut self.read)).await {
                Ok(Ok(0)) => return Err("the server closed the connection".to_owned()),
                Ok(Ok(_)) => {}
                Ok(Err(error)) => return Err(error.to_string()),
                Err(_) => return Ok(None),
            }
        }
    }
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}
