//! Builds the MQTT bridge from the settings.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use homeport_server::{Bridge, BridgeSettings, BridgeStatus, BridgeTls, Broker, MqttVersion};

use crate::config::{self, BridgeProtocolSetting};

/// Limit for connecting and subscribing.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);

/// The bridge, if the settings name a broker. Prints its address.
pub(crate) fn bridge(
    settings: &config::Bridge,
    broker: &Broker,
    status: &Arc<BridgeStatus>,
) -> anyhow::Result<Option<Bridge>> {
    let (Some(address), Some(filters)) = (&settings.url, &settings.filters) else {
        return Ok(None);
    };
    let client = settings.tls_cert.clone().zip(settings.tls_key.clone());
    let wanted = BridgeSettings {
        address: address.clone(),
        tls: BridgeTls {
            ca: settings.tls_ca.clone(),
            client,
        },
        version: match settings.protocol {
            BridgeProtocolSetting::V5 => MqttVersion::V5,
            BridgeProtocolSetting::V3 => MqttVersion::V3,
        },
        client_id: settings.client_id.clone(),
        user: settings.user.clone(),
        password: (settings.password.as_ref()).map(|password| password.reveal().to_owned()),
        filters: filters.0.clone(),
        inflight_max: u16::try_from(settings.inflight_max.get())?,
        keep_alive_secs: u16::try_from(settings.keep_alive_secs.get())?,
        session_expiry_secs: u32::try_from(settings.session_expiry_secs.get())?,
        connect_timeout: CONNECT_TIMEOUT,
    };
    let bridge = Bridge::new(wanted, broker.clone(), Arc::clone(status));
    let bridge = bridge.context("preparing the bridge")?;
    print_line!("bridge to {address}");
    Ok(Some(bridge))
}
