//! MQTT 3.1.1 and 5: QoS 0 and 1, sessions, retained messages and wills, over TCP, TLS and
//! WebSockets. Only `codec` knows MQTT's bytes, and only `broker` knows sessions; `connection` joins
//! them. `bridge` is a client of another broker.

pub(crate) mod access;
mod bridge;
mod broker;
mod codec;
mod connection;
mod listen;
mod measure;
mod pipeline;
mod refusal_log;
mod settings;
mod transport;
mod websocket;

pub use bridge::{Bridge, BridgeAddress, BridgeSettings, BridgeStatus, BridgeTls, BridgeTlsError};
pub use broker::{Broker, BrokerParts};
pub(crate) use broker::{
    ClientFilter, ClientProblem, ClientState, ClientView, ConnectedClient, NoClient, PublishRefusal,
};
pub use codec::Version as MqttVersion;
#[cfg(feature = "fuzzing")]
pub use codec::fuzzing::packets as fuzz_packets;
pub use listen::serve_mqtt;
pub use settings::MqttSettings;
pub(crate) use transport::TransportKind;
pub(crate) use websocket::{NoUpgrade, upgrade};
