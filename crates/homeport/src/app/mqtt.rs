//! Starts MQTT: the broker, its ports, and the bridge to another broker.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Context as _;
use homeport_server::{Bridge, Broker, Connections, MqttSettings, Tls, serve_mqtt};
use tokio::task::{JoinHandle, JoinSet};

use crate::app::background::BoxFuture;
use crate::app::serve::bind;
use crate::app::tasks::Tasks;
use crate::config;

/// Running MQTT tasks.
pub(crate) struct Mqtt {
    listeners: JoinSet<()>,
    broker: JoinHandle<()>,
    bridge: Option<JoinHandle<()>>,
}

pub(crate) fn settings(settings: &config::Mqtt) -> anyhow::Result<MqttSettings> {
    Ok(MqttSettings {
        connections_max: settings.connections.count(),
        packet_bytes_max: settings.packet_bytes_max.count(),
        inflight_max: u16::try_from(settings.inflight_max.get())?,
        queue_len_max: settings.queue_max.count(),
        subscriptions_max: settings.subscriptions_max.count(),
        sessions_max: settings.sessions_max.count(),
        session_expiry_secs_max: u32::try_from(settings.session_expiry_max_secs.get())?,
        retained_max: settings.retained_max.count(),
        keep_alive_secs_max: u16::try_from(settings.keep_alive_max_secs.get())?,
        connect_timeout: Duration::from_secs(settings.connect_timeout_secs.get()),
        ..MqttSettings::default()
    })
}

impl Mqtt {
    /// Listens on the configured ports, prints their addresses, and starts the bridge if there is one.
    pub(crate) async fn start(
        broker: &Broker,
        settings: &config::Mqtt,
        tls: Option<(SocketAddr, Tls)>,
        bridge: Option<Bridge>,
        connections: &Connections,
        tasks: &Tasks,
        stop: impl Fn() -> BoxFuture,
    ) -> anyhow::Result<Self> {
        let mut listeners = JoinSet::new();
        let serve =
            |listener, tls| serve_mqtt(listener, tls, broker.clone(), connections.clone(), stop());
        if let Some(address) = settings.listen.0 {
            let listener = bind(address, "mqtt-listen").await?;
            print_line!("MQTT on mqtt://{}", listener.local_addr()?);
            listeners.spawn(serve(listener, None));
        }
        if let Some((address, tls)) = tls {
            let listener = bind(address, "mqtt-tls-listen").await?;
            print_line!("MQTT with TLS on mqtts://{}", listener.local_addr()?);
            listeners.spawn(serve(listener, Some(tls)));
        }
        Ok(Self {
            listeners,
            broker: tasks.spawn("MQTT", broker.clone().run_until(stop())),
            bridge: bridge.map(|bridge| tasks.spawn("bridge", bridge.run_until(stop()))),
        })
    }

    /// Waits until all connections have finished their work and closed.
    pub(crate) async fn end(mut self) -> anyhow::Result<()> {
        while let Some(listener) = self.listeners.join_next().await {
            listener.context("waiting for the MQTT ports to close")?;
        }
        if let Some(bridge) = self.bridge {
            bridge.await.context("waiting for the bridge to end")?;
        }
        self.broker
            .await
            .context("waiting for MQTT connections to close")
    }
}
