//! Packets from a client.

use std::task::Context;

use futures_util::future::BoxFuture;
use homeport_store::StoreError;
use homeport_systems::messages::{Message, Subscription, TopicFilter, check_topic};

use super::{Connection, End, Held, delivery_of};
use crate::mqtt::codec::{
    self, Packet, Publish, Reason, Refusal, Subscribe, SubscribeOptions, Unsubscribe, Version,
};
use crate::mqtt::refusal_log::Refused;
use crate::mqtt::settings::{TOPIC_ALIASES_MAX, USER_PROPERTIES_MAX, WRITE_BYTES_MAX};

/// Bytes of a SUBACK beside its codes and its reason string, at most.
const SUBACK_OVERHEAD_BYTES: usize = 16;

/// A change of subscriptions that is being stored. Nothing else is read meanwhile.
pub(super) type Change = BoxFuture<'static, Result<Changed, StoreError>>;

pub(super) enum Changed {
    Subscribed {
        packet_id: u16,
        codes: Vec<Reason>,
        /// Why the first refused filter was refused.
        detail: Option<&'static str>,
        /// The subscriptions that get retained messages.
        with_retained: Vec<(TopicFilter, Subscription)>,
    },
    Unsubscribed {
        packet_id: u16,
        codes: Vec<Reason>,
    },
}

impl Connection {
    /// Whether another packet may be processed now.
    pub(super) fn may_read(&self) -> bool {
        self.change.is_none()
            && self.held.is_none()
            && self.io.write.len() < WRITE_BYTES_MAX
            && self.pipeline.has_room(self.broker.settings().inflight_max)
    }

    /// Processes a packet.
    ///
    /// # Errors
    /// If the packet ends the connection.
    pub(super) fn handle(&mut self, packet: Packet) -> Result<(), End> {
        match packet {
            Packet::Publish(publish) => match self.broker.wait_of(&self.client.access) {
                None => self.handle_publish(*publish)?,
                Some(wait) => self.held = Some(Held::new(publish, wait)),
            },
            Packet::PubAck(packet_id) => self.acknowledged(packet_id),
            Packet::Subscribe(subscribe) => self.handle_subscribe(subscribe)?,
            Packet::Unsubscribe(unsubscribe) => self.handle_unsubscribe(&unsubscribe),
            Packet::PingReq => codec::pingresp(&mut self.io.write),
            Packet::Disconnect {
                reason,
                session_expiry,
            } => return Err(self.handle_disconnect(reason, session_expiry)?),
        }
        Ok(())
    }

    /// Continues with a message once its rate limit permits it; returns whether it does.
    pub(super) fn poll_held(&mut self, context: &mut Context<'_>) -> Result<bool, Refusal> {
        let Some(held) = &mut self.held else {
            return Ok(false);
        };
        if held.turn.as_mut().poll(context).is_pending() {
            return Ok(false);
        }
        match self.held.take() {
            Some(held) => self.handle_publish(*held.publish).map(|()| true),
            None => Ok(false),
        }
    }

    fn handle_publish(&mut self, mut publish: Publish) -> Result<(), Refusal> {
        if publish.qos > 1 {
            self.refused_topic = Some(publish.topic.into());
            return Err(Refusal::new(
                Reason::QOS_NOT_SUPPORTED,
                "QoS 2 is not supported; use QoS 0 or 1",
            ));
        }
        self.resolve_alias(&mut publish)?;
        if let Err(refusal) = self.check_publish(&publish) {
            // Only MQTT 5 can refuse a single message, and only with QoS 1.
            let Some(packet_id) = publish.packet_id.filter(|_| self.version == Version::V5) else {
                self.refused_topic = Some(publish.topic.into());
                return Err(refusal);
            };
            self.record_refusal(Refused::Publish(&publish.topic), refusal);
            self.pipeline.begin_refusal(packet_id, refusal.reason);
            return Ok(());
        }
        let message = Message {
            properties: publish.take_properties(),
            topic: publish.topic,
            payload: publish.payload,
            delivery: delivery_of(publish.qos),
            retain: publish.retain,
            publisher: self.publisher.clone(),
            received_at: self.broker.now(),
            hops: 0,
        };
        let is_answered = publish.packet_id.is_some();
        self.broker.meters().received[usize::from(is_answered)].increment(1);
        self.client.received.count(&message);
        self.pipeline
            .begin(&self.broker, message, publish.packet_id);
        Ok(())
    }

    fn check_publish(&self, publish: &Publish) -> Result<(), Refusal> {
        if check_topic(&publish.topic).is_err() {
            return Err(Refusal::new(Reason::TOPIC_INVALID, "invalid topic"));
        }
        if !self.client.access.may_publish(&publish.topic) {
            return Err(Refusal::new(
                Reason::NOT_AUTHORIZED,
                "the client may not publish on this topic",
            ));
        }
        if publish.properties.user.len() > USER_PROPERTIES_MAX {
            return Err(Refusal::new(
                Reason::QUOTA_EXCEEDED,
                "too many user properties",
            ));
        }
        let is_kept = publish.retain && !publish.payload.is_empty();
        if is_kept && self.broker.is_retained_full(&publish.topic) {
            return Err(Refusal::new(
                Reason::QUOTA_EXCEEDED,
                "too many retained messages",
            ));
        }
        Ok(())
    }

    /// Replaces a topic alias with its topic.
    fn resolve_alias(&mut self, publish: &mut Publish) -> Result<(), Refusal> {
        let invalid = |detail| Err(Refusal::new(Reason::TOPIC_ALIAS_INVALID, detail));
        let Some(alias) = publish.topic_alias else {
            return Ok(());
        };
        if alias == 0 || alias > TOPIC_ALIASES_MAX {
            return invalid("the topic alias is out of range");
        }
        if !publish.topic.is_empty() {
            self.aliases.insert(alias, publish.topic.clone());
            return Ok(());
        }
        match self.aliases.get(&alias) {
            Some(topic) => publish.topic.clone_from(topic),
            None => return invalid("the topic alias is not set"),
        }
        Ok(())
    }

    fn handle_subscribe(&mut self, subscribe: Subscribe) -> Result<(), Refusal> {
        let mut codes = Vec::with_capacity(subscribe.filters.len());
        let mut detail = None;
        let mut accepted: Vec<(TopicFilter, Subscription)> = Vec::new();
        let mut with_retained = Vec::new();
        for (text, options) in &subscribe.filters {
            let filter = match self.check_subscribe(text, *options, &accepted)? {
                Ok(filter) => filter,
                Err(refusal) => {
                    self.record_refusal(Refused::Subscription(text), refusal);
                    codes.push(refusal.reason);
                    detail = detail.or(Some(refusal.detail));
                    continue;
                }
            };
            let delivery = delivery_of(options.qos);
            codes.push(Reason(delivery.qos()));
            let how = Subscription {
                delivery,
                no_local: options.no_local,
                retain_as_published: options.retain_as_published,
                identifier: subscribe.identifier,
            };
            let is_new = !self.session.state().subscriptions.contains_key(&filter);
            let wants_retained = match options.retain_handling {
                0 => true,
                1 => is_new,
                _ => false,
            };
            if wants_retained && filter.group().is_none() {
                with_retained.push((filter.clone(), how));
            }
            accepted.push((filter, how));
        }
        let broker = self.broker.clone();
        let session = std::sync::Arc::clone(&self.session);
        self.change = Some(Box::pin(async move {
            broker.subscribe(&session, &accepted).await?;
            Ok(Changed::Subscribed {
                packet_id: subscribe.packet_id,
                codes,
                detail,
                with_retained,
            })
        }));
        Ok(())
    }

    /// Checks a subscription; the inner error refuses this filter only.
    fn check_subscribe(
        &self,
        text: &str,
        options: SubscribeOptions,
        accepted: &[(TopicFilter, Subscription)],
    ) -> Result<Result<TopicFilter, Refusal>, Refusal> {
        let refused = |reason, detail| Ok(Err(Refusal::new(reason, detail)));
        let Ok(filter) = text.parse::<TopicFilter>() else {
            return refused(Reason::FILTER_INVALID, "a topic filter is invalid");
        };
        if options.no_local && filter.group().is_some() {
            return Err(Refusal::new(
                Reason::PROTOCOL_ERROR,
                "a shared subscription cannot have the option No Local",
            ));
        }
        // Nobody publishes on these topics here, but a bridge may bring those of another broker.
        if filter.filter().starts_with('$') && !self.broker.settings().is_bridged {
            return refused(
                Reason::FILTER_INVALID,
                "topics that begin with $ do not exist here; there is no $SYS and no $aws",
            );
        }
        if !self.client.access.may_subscribe(&filter) {
            return refused(
                Reason::NOT_AUTHORIZED,
                "the client may not subscribe to a topic filter",
            );
        }
        let state = self.session.state();
        let has_filter = |filter| {
            state.subscriptions.contains_key(filter)
                || accepted.iter().any(|(other, _)| other == filter)
        };
        let len = state.subscriptions.len()
            + accepted
                .iter()
                .filter(|(other, _)| !state.subscriptions.contains_key(other))
                .count();
        if len >= self.broker.settings().subscriptions_max && !has_filter(&filter) {
            return refused(Reason::QUOTA_EXCEEDED, "too many subscriptions");
        }
        Ok(Ok(filter))
    }

    fn handle_unsubscribe(&mut self, unsubscribe: &Unsubscribe) {
        let filters = unsubscribe.filters.iter();
        let filters: Vec<_> = filters.map(|text| text.parse().ok()).collect();
        let broker = self.broker.clone();
        let session = std::sync::Arc::clone(&self.session);
        let packet_id = unsubscribe.packet_id;
        self.change = Some(Box::pin(async move {
            let were_there = broker.unsubscribe(&session, &filters).await?;
            let code = |(filter, was_there): (&Option<TopicFilter>, bool)| match (filter, was_there)
            {
                (None, _) => Reason::FILTER_INVALID,
                (Some(_), true) => Reason::SUCCESS,
                (Some(_), false) => Reason::NO_SUBSCRIPTION_EXISTED,
            };
            Ok(Changed::Unsubscribed {
                packet_id,
                codes: filters.iter().zip(were_there).map(code).collect(),
            })
        }));
    }

    /// Acknowledges a stored change.
    ///
    /// # Errors
    /// When it could not be stored: the client has to reconnect and try again.
    pub(super) fn finish_change(
        &mut self,
        outcome: Result<Changed, StoreError>,
    ) -> Result<(), Refusal> {
        match outcome {
            Ok(Changed::Subscribed {
                packet_id,
                codes,
                detail,
                with_retained,
            }) => {
                let fits = |detail: &&str| {
                    codes.len() + detail.len() + SUBACK_OVERHEAD_BYTES <= self.reasoned_suback_max
                };
                let detail = detail.filter(fits);
                codec::suback(&mut self.io.write, self.version, packet_id, &codes, detail);
                for (filter, how) in with_retained {
                    self.send_retained(filter, how);
                }
                Ok(())
            }
            Ok(Changed::Unsubscribed { packet_id, codes }) => {
                codec::unsuback(&mut self.io.write, self.version, packet_id, &codes);
                Ok(())
            }
            Err(error) => {
                tracing::warn!(%error, "cannot store the subscriptions of a session");
                Err(Refusal::new(
                    Reason::SERVER_BUSY,
                    "the store cannot store subscriptions now; try again",
                ))
            }
        }
    }

    fn handle_disconnect(
        &mut self,
        reason: Reason,
        session_expiry: Option<u32>,
    ) -> Result<End, Refusal> {
        if let Some(secs) = session_expiry {
            let is_durable = self.session.state().is_durable();
            if secs > 0 && !is_durable {
                return Err(Refusal::new(
                    Reason::PROTOCOL_ERROR,
                    "a session with expiry interval 0 cannot get another one at the end",
                ));
            }
            self.new_expiry = Some(secs.min(self.broker.settings().session_expiry_secs_max));
        }
        if reason == Reason::SUCCESS {
            self.will = None;
        }
        Ok(End::Left)
    }
}
