//! `homeport serve`: open the store, listen, and stop cleanly when told to.

use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use homeport_engine::Engine;
use homeport_server::Connections;
use homeport_wire::Config;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::backend::Backend;
use crate::background::{Background, BoxFuture};
use crate::config::{DurabilityWord, Settings};
use crate::descriptors::DescriptorLimit;
use crate::mqtt::Mqtt;
use crate::tasks::Tasks;
use crate::{address, bridge, dynamodb_credentials, http, network, secrets};

pub(crate) async fn serve(settings: Settings) -> anyhow::Result<ExitCode> {
    // Listened for from the start, so that being stopped while opening is clean too.
    let stop = StopSignals::listen()?;
    let descriptors = DescriptorLimit::raise();
    let connections_max = network::connections_max(&settings.network, descriptors);
    let connections = network::connections(&settings.network, connections_max);
    let backend = Backend::open(&settings).await?;
    let data_dir = &settings.data.dir;
    address::forget(data_dir)?;
    let pepper = secrets::pepper(&settings)?;
    let admin_token = secrets::admin_token(&settings)?;
    let is_new_pepper = pepper.is_new;
    let tasks = Tasks::default();
    let (state, bridge_status) =
        http::state(&backend, &settings, pepper, &admin_token, &tasks).await?;
    say!(
        "connections: up to {connections_max} at one time, with a limit of {} open files",
        descriptors.count()
    );
    match &backend.engine {
        Some(engine) => say!(
            "data directory {}: {} tables",
            data_dir.display(),
            engine.table_names().len()
        ),
        None => say!("tables in Amazon DynamoDB"),
    }
    if backend.engine.is_some() && settings.store.durability == DurabilityWord::Relaxed {
        say!(
            "WARNING: durability is relaxed: a power cut may lose writes of the last 50 ms that were acknowledged"
        );
    }
    if is_new_pepper && !state.api_keys.list(1, None).await?.keys.is_empty() {
        say!("WARNING: {}", secrets::PEPPER_ELSEWHERE);
    }
    if admin_token.is_new {
        say!("admin token (shown this once): {}", admin_token.text);
    }
    let listener = bind(settings.http.listen).await?;
    let (stopping, stopped) = tokio::sync::watch::channel(false);
    let dynamodb = match (&backend.engine, settings.dynamodb.listen.0) {
        (Some(engine), Some(address)) => {
            let stop = until(stopped.clone());
            let config = dynamodb_config(&settings, &connections)?;
            let (address, task) = serve_dynamodb(engine, address, config, stop).await?;
            warn_unwritten(address::write_dynamodb(data_dir, address));
            Some(task)
        }
        _ => None,
    };
    let listening = listener.local_addr()?;
    let limits = network::http_limits(&settings.http, &settings.network, &connections);
    let background = Background::start(&backend, &state, &settings, &tasks, || {
        Box::pin(until(stopped.clone()))
    })?;
    let stop_mqtt = || Box::pin(until(stopped.clone())) as BoxFuture;
    let bridge = bridge::bridge(&settings.bridge, &state.broker, &bridge_status)?;
    let mqtt = Mqtt::start(
        &state.broker,
        &settings.mqtt,
        bridge,
        &connections,
        &tasks,
        stop_mqtt,
    )
    .await?;
    let live = state.console.live.clone();
    let router = homeport_server::router(state);
    let server = tokio::spawn(homeport_server::serve(
        listener,
        limits,
        router,
        until(stopped),
    ));
    warn_unwritten(address::write(data_dir, listening));
    say!("listening on http://{listening}");
    let signal = stop.wait().await;
    say!("{signal}: finishing what was accepted");
    // Commands are not to ask a server that is going.
    address::forget(data_dir)?;
    let _ = stopping.send(true);
    // Whoever follows the live feed would never end by themselves.
    live.stop();
    // Each gives its connections a bounded time.
    server.await.context("ending HTTP's connections")?;
    if let Some(dynamodb) = dynamodb {
        dynamodb.await.context("ending DynamoDB's connections")?;
    }
    mqtt.end().await?;
    background.end().await?;
    backend.close().await?;
    say!("stopped");
    Ok(ExitCode::SUCCESS)
}

/// The address helps other commands to find the server. A disk without room for it is no reason not to
/// serve.
fn warn_unwritten(written: anyhow::Result<()>) {
    if let Err(error) = written {
        say!("WARNING: other commands will not find this server by its data directory: {error:#}");
    }
}

pub(crate) async fn bind(address: SocketAddr) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address)
        .await
        .with_context(|| format!("listening on {address}"))
}

/// Serves DynamoDB's protocol, which only the embedded store needs.
async fn serve_dynamodb(
    engine: &Engine,
    address: SocketAddr,
    config: Config,
    stop: impl Future<Output = ()> + Send + 'static,
) -> anyhow::Result<(SocketAddr, JoinHandle<()>)> {
    config.check_address(address)?;
    let listener = bind(address).await?;
    let address = listener.local_addr()?;
    say!("DynamoDB's protocol on http://{address}");
    let service = homeport_wire::service(engine.clone(), config);
    Ok((address, tokio::spawn(service.serve(listener, stop))))
}

fn dynamodb_config(settings: &Settings, connections: &Connections) -> anyhow::Result<Config> {
    let dynamodb = &settings.dynamodb;
    Ok(Config {
        region: dynamodb.region.clone(),
        credentials: dynamodb_credentials::of(dynamodb)?,
        connections_max: dynamodb.connections.count(),
        connections: connections.clone(),
        allowed_origins: settings.network.allowed_origins.clone(),
        header_timeout: network::header_timeout(&settings.network),
        idle_timeout: Duration::from_secs(dynamodb.idle_timeout_secs.get()),
        buckets: dynamodb.buckets.clone(),
        ..Config::default()
    })
}

async fn until(mut stopped: tokio::sync::watch::Receiver<bool>) {
    // An error means that the sender is gone, which is a reason to stop as well.
    let _ = stopped.wait_for(|stopping| *stopping).await;
}

/// The ways in which people and service managers ask a program to stop.
struct StopSignals {
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
}

impl StopSignals {
    #[cfg(unix)]
    fn listen() -> anyhow::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    #[cfg(unix)]
    async fn wait(mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "terminated",
            _ = self.interrupt.recv() => "interrupted",
        }
    }

    #[cfg(not(unix))]
    fn listen() -> anyhow::Result<Self> {
        Ok(Self {})
    }

    #[cfg(not(unix))]
    async fn wait(self) -> &'static str {
        // Without a way to be told, only the process's end stops it.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
        "interrupted"
    }
}
