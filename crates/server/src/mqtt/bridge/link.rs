//! One connection to another broker. Like a client's connection it is one task that polls everything: it
//! reads while the window has room, processes messages, and acknowledges durable ones. When it ends, its
//! unacknowledged messages are dropped with it, because packet ids are only valid on one connection. The
//! broker delivers them again on the next one.

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use homeport_listen::ByteStream;
use homeport_systems::messages::{Delivery, HOPS_MAX, Message, Publisher, check_topic};
use tokio::time::{Instant, Interval, MissedTickBehavior};

use super::settings::BridgeSettings;
use super::status::BridgeStatus;
use crate::mqtt::broker::Broker;
use crate::mqtt::codec::client::{self, BrokerPacket, ConnectOptions};
use crate::mqtt::codec::{self, Publish, Reason, Refusal, Version};
use crate::mqtt::pipeline::Pipeline;
use crate::mqtt::settings::{DRAIN_MAX, FAREWELL_MAX, USER_PROPERTIES_MAX, WRITE_BYTES_MAX};
use crate::mqtt::transport::Transport;

/// The largest packet that is read. Messages above the limit for clients are acknowledged and dropped,
/// because the broker would deliver them again forever.
const PACKET_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Filters in a packet; the limit of AWS IoT Core.
const FILTERS_AT_ONCE: usize = 8;
/// The user property that counts the Homeport bridges that a message has crossed, so that two servers
/// that bridge each other do not forward it forever. MQTT 3.1.1 has no user properties.
const BRIDGES_CROSSED: &str = "homeport-bridges";
/// The publisher of messages from a bridge, as rules see it.
const PRINCIPAL: &str = "bridge";

/// Why a connection ended.
pub(super) enum LinkEnd {
    /// The bridge was stopped.
    Stopped,
    Failed(String),
}

/// A connection with its subscriptions.
pub(super) struct Link {
    io: Transport,
    version: Version,
    inflight_max: u16,
    broker: Broker,
    status: Arc<BridgeStatus>,
    pipeline: Pipeline,
    received_at: Instant,
    silence_max: Duration,
    pings: Interval,
}

impl Link {
    /// Connects and subscribes; the error is the reason of a failure.
    pub(super) async fn open(
        io: Box<dyn ByteStream>,
        settings: &BridgeSettings,
        broker: &Broker,
        status: &Arc<BridgeStatus>,
    ) -> Result<Self, String> {
        let version = settings.version;
        let mut io = Transport::new(io);
        let options = ConnectOptions {
            client_id: &settings.client_id,
            user_name: settings.user.as_deref(),
            password: settings.password.as_deref().map(str::as_bytes),
            keep_alive_secs: settings.keep_alive_secs,
            session_expiry_secs: settings.session_expiry_secs,
            receive_maximum: settings.inflight_max,
            maximum_packet_size: u32::try_from(PACKET_BYTES_MAX).unwrap_or(u32::MAX),
        };
        client::connect(&mut io.write, version, &options);
        send(&mut io).await?;
        let connack = match next(&mut io, version).await? {
            BrokerPacket::Connack(connack) => connack,
            _ => return Err("the broker did not answer CONNECT with CONNACK".to_owned()),
        };
        if connack.reason.is_failure() {
            return Err(format!(
                "the broker refused the connection: {}",
                connack.reason.name()
            ));
        }
        let keep_alive_secs = connack.keep_alive_secs.unwrap_or(settings.keep_alive_secs);
        let keep_alive = Duration::from_secs(keep_alive_secs.max(1).into());
        let mut pings = tokio::time::interval(keep_alive / 2);
        pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut link = Self {
            io,
            version,
            inflight_max: settings.inflight_max,
            broker: broker.clone(),
            status: Arc::clone(status),
            pipeline: Pipeline::default(),
            received_at: Instant::now(),
            silence_max: keep_alive * 3 / 2,
            pings,
        };
        link.subscribe(settings).await?;
        Ok(link)
    }

    /// Subscribes, also if the broker has the session: the filters may have changed.
    async fn subscribe(&mut self, settings: &BridgeSettings) -> Result<(), String> {
        let filters: Vec<_> = settings.filters.iter().map(ToString::to_string).collect();
        for (packet_id, filters) in (1..).zip(filters.chunks(FILTERS_AT_ONCE)) {
            let texts = filters.iter().map(String::as_str);
            client::subscribe(&mut self.io.write, self.version, packet_id, texts);
            send(&mut self.io).await?;
            let codes = self.wait_for_suback(packet_id).await?;
            check_granted(filters, &codes)?;
        }
        Ok(())
    }

    /// Waits for SUBACK. Queued messages of the session may arrive before it.
    async fn wait_for_suback(&mut self, packet_id: u16) -> Result<Vec<Reason>, String> {
        loop {
            match next(&mut self.io, self.version).await? {
                BrokerPacket::Suback(id, codes) if id == packet_id => return Ok(codes),
                packet => self.handle(packet)?,
            }
            if !self.may_read() {
                std::future::poll_fn(|context| self.poll_room(context))
                    .await
                    .map_err(detail_of)?;
                send(&mut self.io).await?;
            }
        }
    }

    fn poll_room(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Refusal>> {
        self.poll_pipeline(context)?;
        match self.pipeline.has_room(self.inflight_max) {
            true => Poll::Ready(Ok(())),
            false => Poll::Pending,
        }
    }

    /// Receives messages until the connection fails or `stop` completes.
    pub(super) async fn run(mut self, stop: impl Future<Output = ()>) -> LinkEnd {
        let running = std::future::poll_fn(|context| self.poll(context));
        let reason = tokio::select! {
            reason = running => Some(reason),
            () = stop => None,
        };
        if let Some(reason) = reason {
            return LinkEnd::Failed(reason);
        }
        let drained = std::future::poll_fn(|context| self.poll_drain(context));
        if let Ok(Ok(())) = tokio::time::timeout(DRAIN_MAX, drained).await {
            client::disconnect(&mut self.io.write);
        }
        let farewell = async {
            self.io.drain().await?;
            self.io.shut_down().await
        };
        // If it fails, the broker delivers again what was not acknowledged.
        let _ = tokio::time::timeout(FAREWELL_MAX, farewell).await;
        LinkEnd::Stopped
    }

    /// Makes progress as far as possible; ready with the reason when the connection has failed.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<String> {
        loop {
            match self.step(context) {
                Ok(true) => {}
                Ok(false) => return Poll::Pending,
                Err(reason) => return Poll::Ready(reason),
            }
        }
    }

    fn step(&mut self, context: &mut Context<'_>) -> Result<bool, String> {
        let mut has_moved = self.poll_pipeline(context).map_err(detail_of)?;
        if let Poll::Ready(written) = self.io.poll_write(context) {
            written.map_err(|error| connection_lost(&error))?;
            has_moved = true;
        }
        has_moved |= self.poll_read(context)?;
        has_moved |= self.poll_clock(context)?;
        Ok(has_moved)
    }

    /// Processes delivered messages and acknowledges durable ones; returns whether there was progress.
    fn poll_pipeline(&mut self, context: &mut Context<'_>) -> Result<bool, Refusal> {
        let (write, version, status) = (&mut self.io.write, self.version, &self.status);
        self.pipeline
            .poll(context, &self.broker, None, |packet_id, reason| {
                status.acknowledged.increment(1);
                codec::puback(write, version, packet_id, reason);
            })
    }

    fn may_read(&self) -> bool {
        self.pipeline.has_room(self.inflight_max) && self.io.write.len() < WRITE_BYTES_MAX
    }

    fn poll_read(&mut self, context: &mut Context<'_>) -> Result<bool, String> {
        let mut has_moved = false;
        while self.may_read() {
            let packet = client::next(&mut self.io.read, self.version, PACKET_BYTES_MAX);
            if let Some(packet) = packet.map_err(detail_of)? {
                has_moved = true;
                self.received_at = Instant::now();
                self.handle(packet)?;
                continue;
            }
            self.io.release_read();
            match self.io.poll_fill(context) {
                Poll::Ready(Ok(0)) => return Err("the broker closed the connection".to_owned()),
                Poll::Ready(Ok(_)) => has_moved = true,
                Poll::Ready(Err(error)) => return Err(connection_lost(&error)),
                Poll::Pending => break,
            }
        }
        Ok(has_moved)
    }

    /// Sends pings, and fails if the broker has been silent for too long; returns whether a ping has to be
    /// written.
    fn poll_clock(&mut self, context: &mut Context<'_>) -> Result<bool, String> {
        if !self.may_read() {
            // The connection is not being read, so silence proves nothing.
            self.received_at = Instant::now();
        }
        if self.pings.poll_tick(context).is_pending() {
            return Ok(false);
        }
        if self.received_at.elapsed() > self.silence_max {
            return Err("the broker sent nothing for too long".to_owned());
        }
        client::pingreq(&mut self.io.write);
        Ok(true)
    }

    fn poll_drain(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Refusal>> {
        self.poll_pipeline(context)?;
        match self.pipeline.is_empty() {
            true => Poll::Ready(Ok(())),
            false => Poll::Pending,
        }
    }

    fn handle(&mut self, packet: BrokerPacket) -> Result<(), String> {
        match packet {
            BrokerPacket::Publish(publish) => self.handle_publish(*publish),
            BrokerPacket::Pingresp => Ok(()),
            BrokerPacket::Disconnect(reason) => {
                Err(format!("the broker disconnected: {}", reason.name()))
            }
            BrokerPacket::Connack(_) | BrokerPacket::Suback(..) => {
                Err("the broker answered a packet that was not sent".to_owned())
            }
        }
    }

    fn handle_publish(&mut self, mut publish: Publish) -> Result<(), String> {
        if publish.qos > 1 {
            return Err(
                "the broker delivered a message with QoS 2, which was not requested".to_owned(),
            );
        }
        let packet_id = publish.packet_id;
        self.status.received[usize::from(packet_id.is_some())].increment(1);
        let crossed = bridges_crossed(&publish);
        let status = &self.status;
        let size = publish.topic.len() + publish.payload.len();
        let dropped = if publish.retain {
            // The broker sends it because of a new subscription; it was delivered when it was new.
            Some(&status.dropped_retained)
        } else if check_topic(&publish.topic).is_err()
            || publish.properties.user.len() > USER_PROPERTIES_MAX
        {
            Some(&status.dropped_invalid)
        } else if size > self.broker.settings().packet_bytes_max {
            Some(&status.dropped_too_large)
        } else if crossed >= HOPS_MAX {
            Some(&status.dropped_circle)
        } else {
            None
        };
        if let Some(dropped) = dropped {
            dropped.increment(1);
            if let Some(packet_id) = packet_id {
                // Acknowledged, because it would be dropped again if it were delivered again.
                self.pipeline.begin_refusal(packet_id, Reason::SUCCESS);
            }
            return Ok(());
        }
        let mut properties = publish.take_properties();
        properties.user.retain(|(name, _)| name != BRIDGES_CROSSED);
        let crossed = (crossed + 1).to_string();
        properties.user.push((BRIDGES_CROSSED.to_owned(), crossed));
        let message = Message {
            topic: publish.topic,
            payload: publish.payload,
            delivery: match publish.qos {
                0 => Delivery::AtMostOnce,
                _ => Delivery::AtLeastOnce,
            },
            retain: false,
            publisher: Publisher {
                client_id: None,
                principal: Some(PRINCIPAL.to_owned()),
            },
            received_at: self.broker.now(),
            properties,
            hops: 0,
        };
        self.pipeline.begin(&self.broker, message, packet_id);
        Ok(())
    }
}

/// The number of bridges that a message has crossed. An unreadable number counts as too many.
fn bridges_crossed(publish: &Publish) -> u8 {
    let mut user = publish.properties.user.iter();
    let said = user.find(|(name, _)| name == BRIDGES_CROSSED);
    said.map_or(0, |(_, count)| count.parse().unwrap_or(HOPS_MAX))
}

fn check_granted(filters: &[String], codes: &[Reason]) -> Result<(), String> {
    if codes.len() != filters.len() {
        return Err("the broker answered with a wrong number of subscriptions".to_owned());
    }
    for (filter, code) in filters.iter().zip(codes) {
        if code.is_failure() {
            let why = code.name();
            return Err(format!(
                "the broker refused the subscription to {filter}: {why}"
            ));
        }
        if *code != Reason(1) {
            // With QoS 0 the broker would never deliver a message again.
            return Err(format!("the broker did not grant QoS 1 for {filter}"));
        }
    }
    Ok(())
}

async fn send(io: &mut Transport) -> Result<(), String> {
    io.drain().await.map_err(|error| connection_lost(&error))
}

async fn next(io: &mut Transport, version: Version) -> Result<BrokerPacket, String> {
    loop {
        let packet = client::next(&mut io.read, version, PACKET_BYTES_MAX);
        if let Some(packet) = packet.map_err(detail_of)? {
            return Ok(packet);
        }
        match std::future::poll_fn(|context| io.poll_fill(context)).await {
            Ok(0) => return Err("the broker closed the connection".to_owned()),
            Ok(_) => {}
            Err(error) => return Err(connection_lost(&error)),
        }
    }
}

fn connection_lost(error: &std::io::Error) -> String {
    format!("the connection was lost: {error}")
}

fn detail_of(refusal: Refusal) -> String {
    refusal.detail.to_owned()
}
