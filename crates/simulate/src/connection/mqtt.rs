//! A device's MQTT 3.1.1 connection with QoS 1. It uses the packets of another implementation than the server's.

use std::time::Duration;

use bytes::BytesMut;
use rumqttc::mqttbytes::v4::{Connect, ConnectReturnCode, Packet, Publish};
use rumqttc::mqttbytes::{Error, QoS};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::connection::{CallFailure, Credential};
use crate::fleets::{DeliveryResult, Publication};

const CONNECT_WITHIN: Duration = Duration::from_secs(10);
/// Longer than the server's own timeout for a message.
const ANSWER_WITHIN: Duration = Duration::from_secs(35);
/// Limit for packets from the broker, which are a few bytes to a publisher.
const PACKET_BYTES_MAX: usize = 1024;
/// EMFILE: the process has no free file descriptors.
const TOO_MANY_FILES: i32 = 24;

/// A connection that publishes and waits for acknowledgements.
pub(crate) struct MqttConnection {
    stream: TcpStream,
    read: BytesMut,
}

impl MqttConnection {
    /// Connects with the API key as the password.
    pub(crate) async fn open(
        address: &str,
        client_id: String,
        key: &Credential,
    ) -> Result<Self, CallFailure> {
        let connect = async {
            let stream = TcpStream::connect(address).await.map_err(not_connected)?;
            // Packets are written whole, so waiting to merge them only adds latency.
            let _ = stream.set_nodelay(true);
            let mut connection = Self {
                stream,
                read: BytesMut::new(),
            };
            connection.handshake(client_id, key).await?;
            Ok(connection)
        };
        match tokio::time::timeout(CONNECT_WITHIN, connect).await {
            Ok(outcome) => outcome,
            Err(_) => Err(retry("the connection timed out")),
        }
    }

    async fn handshake(&mut self, client_id: String, key: &Credential) -> Result<(), CallFailure> {
        let mut connect = Connect::new(client_id.clone());
        connect.keep_alive = 0;
        connect.clean_session = true;
        connect.set_login(client_id, key.secret());
        let mut out = BytesMut::new();
        connect.write(&mut out).map_err(|error| rejected(&error))?;
        self.write(&out).await?;
        match self.next().await? {
            Packet::ConnAck(answer) => match answer.code {
                ConnectReturnCode::Success => Ok(()),
                ConnectReturnCode::ServiceUnavailable => Err(retry("the broker is not ready")),
                code => Err(CallFailure::Rejected(format!("{code:?}"))),
            },
            other => Err(CallFailure::Rejected(format!(
                "expected CONNACK, got {other:?}"
            ))),
        }
    }

    /// Publishes messages and waits for their acknowledgements. Records each as it arrives, so those before a failure count.
    pub(crate) async fn publish(
        &mut self,
        messages: &[Publication],
        delivery_results: &mut [DeliveryResult],
    ) -> Result<(), CallFailure> {
        self.send(messages).await?;
        let mut open = messages.len();
        while open > 0 {
            let packet = tokio::time::timeout(ANSWER_WITHIN, self.next()).await;
            let packet = packet.map_err(|_| retry("no acknowledgement before the timeout"))??;
            let Packet::PubAck(acknowledged) = packet else {
                return Err(retry("the broker sent an unexpected packet"));
            };
            let at = usize::from(acknowledged.pkid).checked_sub(1);
            match at.and_then(|at| delivery_results.get_mut(at)) {
                Some(result) if *result == DeliveryResult::Unanswered => {
                    *result = DeliveryResult::Stored
                }
                _ => return Err(retry("the broker acknowledged a message that was not sent")),
            }
            open -= 1;
        }
        Ok(())
    }

    /// Sends messages with packet ids from 1. All earlier messages are acknowledged, so the ids are free.
    pub(crate) async fn send(&mut self, messages: &[Publication]) -> Result<(), CallFailure> {
        let mut out = BytesMut::new();
        for (id, message) in (1..).zip(messages) {
            let payload = message.payload.as_bytes();
            let mut publish = Publish::new(message.topic.as_str(), QoS::AtLeastOnce, payload);
            publish.pkid = id;
            publish.write(&mut out).map_err(|error| rejected(&error))?;
        }
        self.write(&out).await
    }

    async fn write(&mut self, bytes: &[u8]) -> Result<(), CallFailure> {
        let written = self.stream.write_all(bytes).await;
        written.map_err(|error| retry(&error.to_string()))
    }

    async fn next(&mut self) -> Result<Packet, CallFailure> {
        loop {
            match Packet::read(&mut self.read, PACKET_BYTES_MAX) {
                Ok(packet) => return Ok(packet),
                Err(Error::InsufficientBytes(_)) => {}
                Err(error) => return Err(retry(&error.to_string())),
            }
            match self.stream.read_buf(&mut self.read).await {
                Ok(0) => return Err(retry("the broker closed the connection")),
                Ok(_) => {}
                Err(error) => return Err(retry(&error.to_string())),
            }
        }
    }
}

fn not_connected(error: std::io::Error) -> CallFailure {
    if error.raw_os_error() == Some(TOO_MANY_FILES) {
        return CallFailure::Rejected(
            "too many open files on this machine; raise the limit with ulimit -n".to_owned(),
        );
    }
    retry(&error.to_string())
}

fn retry(why: &str) -> CallFailure {
    CallFailure::Retry(None, why.to_owned())
}

fn rejected(error: &Error) -> CallFailure {
    CallFailure::Rejected(error.to_string())
}
