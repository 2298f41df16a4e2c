//! One connection to a broker. Like a client's connection here it is one task that never waits for a
//! single thing: it reads while there is room, moves on what is on its way, and writes what is durable
//! back as acknowledged. What it has not acknowledged when it ends the broker delivers again, to the
//! next one: packet ids mean nothing beyond a connection, and so the messages in here die with it.

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use homeport_systems::messages::{Delivery, HOPS_MAX, Message, Publisher, check_topic};
use tokio::time::{Instant, Interval, MissedTickBehavior};

use super::settings::BridgeSettings;
use super::status::BridgeStatus;
use crate::mqtt::broker::Broker;
use crate::mqtt::codec::client::{self, Heard, Hello};
use crate::mqtt::codec::{self, Publish, Reason, Refusal, Version};
use crate::mqtt::pipeline::Pipeline;
use crate::mqtt::settings::{DRAIN_MAX, FAREWELL_MAX, USER_PROPERTIES_MAX, WRITE_BYTES_MAX};
use crate::mqtt::transport::{Io, Transport};

/// The largest packet that is read at all. What is larger than clients of ours may send is
/// acknowledged and dropped: a broker would deliver it again for ever.
const PACKET_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Filters in one packet; AWS IoT Core takes no more.
const FILTERS_AT_ONCE: usize = 8;
/// A user property that tells how many bridges of Homeport a message has crossed, so that two servers
/// that bridge each other do not pass it on for ever. MQTT 3.1.1 cannot carry it.
const BRIDGES_CROSSED: &str = "homeport-bridges";
/// Who publishes what a bridge brings, as far as rules may know.
const PRINCIPAL: &str = "bridge";

/// Why a connection is over.
pub(super) enum Ended {
    /// We are to stop.
    Stopped,
    Failed(String),
}

/// A connection whose subscriptions stand.
pub(super) struct Link {
    io: Transport,
    version: Version,
    inflight_max: u16,
    broker: Broker,
    status: Arc<BridgeStatus>,
    pipeline: Pipeline,
    heard_at: Instant,
    silence_max: Duration,
    pings: Interval,
}

impl Link {
    /// Introduces us and subscribes; why not, if the broker does not agree.
    pub(super) async fn open(
        io: Box<dyn Io>,
        settings: &BridgeSettings,
        broker: &Broker,
        status: &Arc<BridgeStatus>,
    ) -> Result<Self, String> {
        let version = settings.version();
        let mut io = Transport::new(io);
        let hello = Hello {
            client_id: &settings.client_id,
            user_name: settings.user.as_deref(),
            password: settings.password.as_deref().map(str::as_bytes),
            keep_alive_secs: settings.keep_alive_secs,
            session_expiry_secs: settings.session_expiry_secs,
            receive_maximum: settings.inflight_max,
            maximum_packet_size: u32::try_from(PACKET_BYTES_MAX).unwrap_or(u32::MAX),
        };
        client::hello(&mut io.write, version, &hello);
        send(&mut io).await?;
        let answered = match next(&mut io, version).await? {
            Heard::Answered(answered) => answered,
            _ => return Err("the broker does not answer as MQTT brokers do".to_owned()),
        };
        if answered.reason.is_failure() {
            return Err(format!("the broker refuses us: {}", answered.reason.name()));
        }
        let keep_alive_secs = answered.keep_alive_secs.unwrap_or(settings.keep_alive_secs);
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
            heard_at: Instant::now(),
            silence_max: keep_alive * 3 / 2,
            pings,
        };
        link.subscribe(settings).await?;
        Ok(link)
    }

    /// Asks for everything, also when the broker has our session: the filters may be others now.
    async fn subscribe(&mut self, settings: &BridgeSettings) -> Result<(), String> {
        let filters: Vec<_> = settings.filters.iter().map(ToString::to_string).collect();
        for (packet_id, filters) in (1..).zip(filters.chunks(FILTERS_AT_ONCE)) {
            let texts = filters.iter().map(String::as_str);
            client::subscribe(&mut self.io.write, self.version, packet_id, texts);
            send(&mut self.io).await?;
            let codes = self.until_subscribed(packet_id).await?;
            check_granted(filters, &codes)?;
        }
        Ok(())
    }

    /// The answer to a subscription. What waited for the session may come before it.
    async fn until_subscribed(&mut self, packet_id: u16) -> Result<Vec<Reason>, String> {
        loop {
            match next(&mut self.io, self.version).await? {
                Heard::Subscribed(id, codes) if id == packet_id => return Ok(codes),
                heard => self.handle(heard)?,
            }
            if !self.may_read() {
                std::future::poll_fn(|context| self.poll_room(context))
                    .await
                    .map_err(told)?;
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

    /// Takes messages until the connection fails or `stop` is done.
    pub(super) async fn run(mut self, stop: impl Future<Output = ()>) -> Ended {
        let running = std::future::poll_fn(|context| self.poll(context));
        let reason = tokio::select! {
            reason = running => Some(reason),
            () = stop => None,
        };
        if let Some(reason) = reason {
            return Ended::Failed(reason);
        }
        let drained = std::future::poll_fn(|context| self.poll_drain(context));
        if let Ok(Ok(())) = tokio::time::timeout(DRAIN_MAX, drained).await {
            client::goodbye(&mut self.io.write);
        }
        let farewell = async {
            self.io.drain().await?;
            self.io.shut_down().await
        };
        // A broker that does not take it delivers again what it was to hear of.
        let _ = tokio::time::timeout(FAREWELL_MAX, farewell).await;
        Ended::Stopped
    }

    /// Goes on as far as possible; ready with the reason when the connection is over.
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
        let mut has_moved = self.poll_pipeline(context).map_err(told)?;
        if let Poll::Ready(written) = self.io.poll_write(context) {
            written.map_err(|error| lost(&error))?;
            has_moved = true;
        }
        has_moved |= self.poll_read(context)?;
        has_moved |= self.poll_clock(context)?;
        Ok(has_moved)
    }

    /// Moves on what was delivered and acknowledges what is durable; whether anything moved.
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
            let heard = client::hear(&mut self.io.read, self.version, PACKET_BYTES_MAX);
            if let Some(heard) = heard.map_err(told)? {
                has_moved = true;
                self.heard_at = Instant::now();
                self.handle(heard)?;
                continue;
            }
            self.io.release_read();
            match self.io.poll_fill(context) {
                Poll::Ready(Ok(0)) => return Err("the broker closed the connection".to_owned()),
                Poll::Ready(Ok(_)) => has_moved = true,
                Poll::Ready(Err(error)) => return Err(lost(&error)),
                Poll::Pending => break,
            }
        }
        Ok(has_moved)
    }

    /// Shows that we live, and ends a connection on which nothing is heard any more; whether there is
    /// something to be written.
    fn poll_clock(&mut self, context: &mut Context<'_>) -> Result<bool, String> {
        if !self.may_read() {
            // It is not read because of us: what the broker says cannot be heard.
            self.heard_at = Instant::now();
        }
        if self.pings.poll_tick(context).is_pending() {
            return Ok(false);
        }
        if self.heard_at.elapsed() > self.silence_max {
            return Err("the broker has not been heard for too long".to_owned());
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

    fn handle(&mut self, heard: Heard) -> Result<(), String> {
        match heard {
            Heard::Publish(publish) => self.handle_publish(*publish),
            Heard::Pong => Ok(()),
            Heard::Disconnect(reason) => Err(format!("the broker ended it: {}", reason.name())),
            Heard::Answered(_) | Heard::Subscribed(..) => {
                Err("the broker answers what was not asked".to_owned())
            }
        }
    }

    fn handle_publish(&mut self, mut publish: Publish) -> Result<(), String> {
        if publish.qos > 1 {
            return Err("the broker delivers with QoS 2, which was not asked for".to_owned());
        }
        let packet_id = publish.packet_id;
        self.status.received[usize::from(packet_id.is_some())].increment(1);
        let crossed = bridges_crossed(&publish);
        let status = &self.status;
        let size = publish.topic.len() + publish.payload.len();
        let dropped = if publish.retain {
            // Only what a subscription calls up is marked so: it was delivered when it was new.
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
                // Acknowledged in its turn: delivered again, it would be dropped again.
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

/// How many bridges a message says to have crossed; what cannot be read has crossed too many.
fn bridges_crossed(publish: &Publish) -> u8 {
    let mut user = publish.properties.user.iter();
    let said = user.find(|(name, _)| name == BRIDGES_CROSSED);
    said.map_or(0, |(_, count)| count.parse().unwrap_or(HOPS_MAX))
}

fn check_granted(filters: &[String], codes: &[Reason]) -> Result<(), String> {
    if codes.len() != filters.len() {
        return Err("the broker answers other subscriptions than were asked for".to_owned());
    }
    for (filter, code) in filters.iter().zip(codes) {
        if code.is_failure() {
            let why = code.name();
            return Err(format!(
                "the broker refuses the subscription to {filter}: {why}"
            ));
        }
        if *code != Reason(1) {
            // With QoS 0 nothing could be delivered again.
            return Err(format!("the broker does not grant QoS 1 to {filter}"));
        }
    }
    Ok(())
}

async fn send(io: &mut Transport) -> Result<(), String> {
    io.drain().await.map_err(|error| lost(&error))
}

async fn next(io: &mut Transport, version: Version) -> Result<Heard, String> {
    loop {
        let heard = client::hear(&mut io.read, version, PACKET_BYTES_MAX);
        if let Some(heard) = heard.map_err(told)? {
            return Ok(heard);
        }
        match std::future::poll_fn(|context| io.poll_fill(context)).await {
            Ok(0) => return Err("the broker closed the connection".to_owned()),
            Ok(_) => {}
            Err(error) => return Err(lost(&error)),
        }
    }
}

fn lost(error: &std::io::Error) -> String {
    format!("the connection was lost: {error}")
}

fn told(refusal: Refusal) -> String {
    refusal.detail.to_owned()
}
