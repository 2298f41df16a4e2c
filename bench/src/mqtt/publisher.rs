//! A minimal publisher: MQTT 3.1.1 with QoS 1, and a window of unacknowledged messages.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// Unacknowledged messages per connection: the common limit of brokers and clients.
pub(super) const WINDOW: usize = 20;
/// Timeout for the last acknowledgements.
const DRAIN_MAX: Duration = Duration::from_secs(10);

const CONNACK: [u8; 4] = [0x20, 0x02, 0x00, 0x00];
const PUBACK: [u8; 2] = [0x40, 0x02];
const PUBACK_LEN: usize = 4;
const PUBLISH_QOS_1: u8 = 0x32;

/// The client id and credential of a connection.
#[derive(Debug, Clone)]
pub(super) struct Identity {
    pub(super) client_id: String,
    pub(super) user: &'static str,
    pub(super) password: &'static str,
}

pub(super) struct Publisher {
    stream: TcpStream,
    topic: String,
    /// Send time of the message under each packet id, from 1.
    sent_at: [Option<Instant>; WINDOW],
    out: Vec<u8>,
    /// Partially read acknowledgements.
    read: Vec<u8>,
}

impl Publisher {
    pub(super) async fn connect(
        address: SocketAddr,
        identity: &Identity,
        topic: String,
    ) -> anyhow::Result<Self> {
        let mut stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let mut body = Vec::new();
        push_text("MQTT", &mut body)?;
        // Protocol level 4, clean session, user name and password, no keep-alive.
        body.extend_from_slice(&[4, 0xC2, 0, 0]);
        for text in [
            identity.client_id.as_str(),
            identity.user,
            identity.password,
        ] {
            push_text(text, &mut body)?;
        }
        let mut packet = vec![0x10];
        push_len(body.len(), &mut packet);
        packet.extend_from_slice(&body);
        stream.write_all(&packet).await?;
        let mut answer = [0; CONNACK.len()];
        stream.read_exact(&mut answer).await.context("connecting")?;
        ensure!(answer == CONNACK, "not admitted: {answer:?}");
        Ok(Self {
            stream,
            topic,
            sent_at: [None; WINDOW],
            out: Vec::new(),
            read: Vec::new(),
        })
    }

    /// Publishes until the time is up, then waits for outstanding acknowledgements. Returns the latency of each message.
    pub(super) async fn publish(
        &mut self,
        until: Instant,
        mut payload: impl FnMut() -> String,
    ) -> anyhow::Result<Vec<Duration>> {
        let mut latencies = Vec::new();
        loop {
            let now = Instant::now();
            if now < until {
                self.fill_window(now, &mut payload)?;
                self.stream.write_all(&self.out).await?;
                self.out.clear();
            }
            if self.sent_at.iter().all(Option::is_none) {
                return Ok(latencies);
            }
            let reading = self.read_acknowledgements(&mut latencies);
            tokio::time::timeout(DRAIN_MAX, reading)
                .await
                .context("no acknowledgement")??;
        }
    }

    fn fill_window(
        &mut self,
        now: Instant,
        payload: &mut impl FnMut() -> String,
    ) -> anyhow::Result<()> {
        for (at, sent_at) in self.sent_at.iter_mut().enumerate() {
            if sent_at.is_some() {
                continue;
            }
            *sent_at = Some(now);
            let payload = payload();
            self.out.push(PUBLISH_QOS_1);
            push_len(2 + self.topic.len() + 2 + payload.len(), &mut self.out);
            push_text(&self.topic, &mut self.out)?;
            let packet_id = u16::try_from(at + 1)?;
            self.out.extend_from_slice(&packet_id.to_be_bytes());
            self.out.extend_from_slice(payload.as_bytes());
        }
        Ok(())
    }

    async fn read_acknowledgements(&mut self, latencies: &mut Vec<Duration>) -> anyhow::Result<()> {
        let read = self.stream.read_buf(&mut self.read).await?;
        ensure!(read > 0, "the broker closed the connection");
        let whole = self.read.len() / PUBACK_LEN * PUBACK_LEN;
        for packet in self.read[..whole].chunks_exact(PUBACK_LEN) {
            ensure!(packet[..2] == PUBACK, "no acknowledgement: {packet:?}");
            let packet_id = usize::from(u16::from_be_bytes([packet[2], packet[3]]));
            let sent_at = packet_id
                .checked_sub(1)
                .and_then(|at| self.sent_at.get_mut(at))
                .and_then(Option::take);
            let Some(sent_at) = sent_at else {
                bail!("acknowledgement of an unknown packet id: {packet_id}");
            };
            latencies.push(sent_at.elapsed());
        }
        self.read.drain(..whole);
        Ok(())
    }
}

fn push_text(text: &str, out: &mut Vec<u8>) -> anyhow::Result<()> {
    out.extend_from_slice(&u16::try_from(text.len())?.to_be_bytes());
    out.extend_from_slice(text.as_bytes());
    Ok(())
}

/// MQTT's variable-length integer: seven bits per byte, lowest first.
fn push_len(mut len: usize, out: &mut Vec<u8>) {
    while len >= 0x80 {
        out.push((len & 0x7F) as u8 | 0x80);
        len >>= 7;
    }
    out.push(len as u8);
}
