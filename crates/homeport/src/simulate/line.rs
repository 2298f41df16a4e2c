//! A device's connection to a broker: MQTT 3.1.1 with QoS 1, spoken with the packets of an
//! implementation that is not the server's.

use std::time::Duration;

use bytes::BytesMut;
use rumqttc::mqttbytes::v4::{Connect, ConnectReturnCode, Packet, Publish};
use rumqttc::mqttbytes::{Error, QoS};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::client::{CallFailure, Credential};
use super::fleet::{Fate, Publication};

const CONNECT_WITHIN: Duration = Duration::from_secs(10);
/// Longer than the server itself lets a message take.
const ANSWER_WITHIN: Duration = Duration::from_secs(35);
/// A broker answers a publisher with a few bytes.
const PACKET_BYTES_MAX: usize = 1024;
/// No more files may be opened, as the operating system says it.
const TOO_MANY_FILES: i32 = 24;

/// A connection on which everything that was published is acknowledged.
pub(super) struct Line {
    stream: TcpStream,
    read: BytesMut,
}

impl Line {
    /// Connects as a client whose password is its key.
    pub(super) async fn open(
        address: &str,
        client_id: String,
        key: &Credential,
    ) -> Result<Self, CallFailure> {
        let connect = async {
            let stream = TcpStream::connect(address).await.map_err(not_connected)?;
            // A packet is sent when it is whole, and is not to wait for another.
            let _ = stream.set_nodelay(true);
            let mut line = Self {
                stream,
                read: BytesMut::new(),
            };
            line.introduce(client_id, key).await?;
            Ok(line)
        };
        match tokio::time::timeout(CONNECT_WITHIN, connect).await {
            Ok(outcome) => outcome,
            Err(_) => Err(again("no connection in time")),
        }
    }

    async fn introduce(&mut self, client_id: String, key: &Credential) -> Result<(), CallFailure> {
        let mut connect = Connect::new(client_id.clone());
        connect.keep_alive = 0;
        connect.clean_session = true;
        connect.set_login(client_id, key.secret());
        let mut out = BytesMut::new();
        connect.write(&mut out).map_err(|error| refused(&error))?;
        self.write(&out).await?;
        match self.next().await? {
            Packet::ConnAck(answer) => match answer.code {
                ConnectReturnCode::Success => Ok(()),
                ConnectReturnCode::ServiceUnavailable => Err(again("the broker is not ready")),
                code => Err(CallFailure::Refused(format!("{code:?}"))),
            },
            other => Err(CallFailure::Refused(format!("{other:?} for an answer"))),
        }
    }

    /// Publishes messages and waits for their acknowledgements, each of which is noted as it comes:
    /// those that came before a failure count.
    pub(super) async fn publish(
        &mut self,
        messages: &[Publication],
        fates: &mut [Fate],
    ) -> Result<(), CallFailure> {
        self.send(messages).await?;
        let mut open = messages.len();
        while open > 0 {
            let packet = tokio::time::timeout(ANSWER_WITHIN, self.next()).await;
            let packet = packet.map_err(|_| again("no acknowledgement in time"))??;
            let Packet::PubAck(acknowledged) = packet else {
                return Err(again("the broker says what was not asked"));
            };
            let at = usize::from(acknowledged.pkid).checked_sub(1);
            match at.and_then(|at| fates.get_mut(at)) {
                Some(fate) if *fate == Fate::Unanswered => *fate = Fate::Stored,
                _ => return Err(again("the broker acknowledges what was not sent")),
            }
            open -= 1;
        }
        Ok(())
    }

    /// Sends messages whose packet ids count from 1: all others have been acknowledged.
    pub(super) async fn send(&mut self, messages: &[Publication]) -> Result<(), CallFailure> {
        let mut out = BytesMut::new();
        for (id, message) in (1..).zip(messages) {
            let payload = message.payload.as_bytes();
            let mut publish = Publish::new(message.topic.as_str(), QoS::AtLeastOnce, payload);
            publish.pkid = id;
            publish.write(&mut out).map_err(|error| refused(&error))?;
        }
        self.write(&out).await
    }

    async fn write(&mut self, bytes: &[u8]) -> Result<(), CallFailure> {
        let written = self.stream.write_all(bytes).await;
        written.map_err(|error| again(&error.to_string()))
    }

    async fn next(&mut self) -> Result<Packet, CallFailure> {
        loop {
            match Packet::read(&mut self.read, PACKET_BYTES_MAX) {
                Ok(packet) => return Ok(packet),
                Err(Error::InsufficientBytes(_)) => {}
                Err(error) => return Err(again(&error.to_string())),
            }
            match self.stream.read_buf(&mut self.read).await {
                Ok(0) => return Err(again("the broker closed the connection")),
                Ok(_) => {}
                Err(error) => return Err(again(&error.to_string())),
            }
        }
    }
}

fn not_connected(error: std::io::Error) -> CallFailure {
    if error.raw_os_error() == Some(TOO_MANY_FILES) {
        return CallFailure::Refused(
            "no more connections can be opened here: raise the limit of open files (ulimit -n)"
                .to_owned(),
        );
    }
    again(&error.to_string())
}

fn again(why: &str) -> CallFailure {
    CallFailure::Again(None, why.to_owned())
}

fn refused(error: &Error) -> CallFailure {
    CallFailure::Refused(error.to_string())
}
