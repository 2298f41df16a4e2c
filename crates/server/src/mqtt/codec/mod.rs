//! Encodes and decodes packets of MQTT 3.1.1 and 5: those that a server needs, and those that the bridge
//! needs as a client of another broker (`client`). Invalid packets are refused with a reason. Nothing
//! here panics on input, keeps state or does I/O. No other module knows a byte of MQTT.

pub(super) mod client;
mod connect;
mod decode;
mod encode;
mod fields;
#[cfg(feature = "fuzzing")]
pub(super) mod fuzzing;
mod properties;
mod reason;
#[cfg(test)]
mod tests;

use bytes::Bytes;
use homeport_systems::messages;

pub(super) use connect::{Connect, Will, unsupported_version};
pub(super) use decode::{Packet, first, next};
pub(super) use encode::{
    Sent, Welcome, disconnect, pingresp, puback, publish, publish_len, suback, unsuback, unwelcome,
    welcome,
};
pub(super) use reason::{Reason, Refusal};

/// The version of MQTT.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// 3.1.1
    V3,
    V5,
}

/// The contents of PUBLISH.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Publish {
    pub(super) qos: u8,
    pub(super) retain: bool,
    /// Empty if an alias replaces it.
    pub(super) topic: String,
    pub(super) topic_alias: Option<u16>,
    /// `None` with QoS 0.
    pub(super) packet_id: Option<u16>,
    pub(super) payload: Bytes,
    pub(super) properties: messages::Properties,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Subscribe {
    pub(super) packet_id: u16,
    pub(super) identifier: Option<u32>,
    pub(super) filters: Vec<(String, SubscribeOptions)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SubscribeOptions {
    pub(super) qos: u8,
    pub(super) no_local: bool,
    pub(super) retain_as_published: bool,
    /// When retained messages are sent: 0 always, 1 if the subscription is new, 2 never.
    pub(super) retain_handling: u8,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Unsubscribe {
    pub(super) packet_id: u16,
    pub(super) filters: Vec<String>,
}
