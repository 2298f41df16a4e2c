//! `homeport serve`: opens the store, listens, and stops cleanly on a signal.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use homeport_engine::Engine;
use homeport_server::{Connections, Tls};
use homeport_systems::people::People;
use homeport_wire::Config;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::app::background::{Background, BoxFuture};
use crate::app::bridge;
use crate::app::dynamodb_credentials;
use crate::app::exposure;
use crate::app::mqtt::Mqtt;
use crate::app::network;
use crate::app::state;
use crate::app::tasks::Tasks;
use crate::app::tls::ServerTls;
use crate::client::address::{self, ServerUrl};
use crate::config::{DurabilitySetting, Settings};
use crate::storage::backend::Backend;
use crate::storage::descriptors::DescriptorLimit;
use crate::storage::secrets;

pub(crate) async fn serve(settings: Settings) -> anyhow::Result<ExitCode> {
    // Installed first, so that a signal during opening also stops cleanly.
    let stop = StopSignals::listen()?;
    // Before anything is created.
    exposure::check(&settings)?;
    let descriptors = DescriptorLimit::raise();
    let connections_max = network::connections_max(&settings.network, descriptors);
    let connections = network::connections(&settings.network, connections_max);
    let backend = Backend::open(&settings).await?;
    let data_dir = &settings.data.dir;
    address::forget(data_dir)?;
    let tls = ServerTls::prepare(&settings).context("preparing TLS")?;
    let pepper = secrets::pepper(&settings, &backend.store).await?;
    let admin_token = secrets::admin_token(&settings)?;
    let tasks = Tasks::default();
    let (state, bridge_status) = state::state(
        &backend,
        &settings,
        pepper,
        &admin_token,
        &tasks,
        &tls.expiry,
    )
    .await?;
    print_line!(
        "connections: up to {connections_max} at one time, with a limit of {} open files",
        descriptors.count()
    );
    match &backend.engine {
        Some(engine) => print_line!(
            "data directory {}: {} tables",
            data_dir.display(),
            engine.table_names().len()
        ),
        None => print_line!("tables in Amazon DynamoDB"),
    }
    if backend.engine.is_some() && settings.store.durability == DurabilitySetting::Relaxed {
        print_line!(
            "WARNING: durability is relaxed: a power cut may lose writes of the last 50 ms that were acknowledged"
        );
    }
    if admin_token.is_new {
        print_line!("admin token (shown this once): {}", admin_token.text);
    }
    let listener = bind(settings.http.listen, "http-listen").await?;
    let (stopping, stopped) = tokio::sync::watch::channel(false);
    warn_unwritten(tls.renewal.write_certificate());
    let dynamodb = match (&backend.engine, settings.dynamodb.listen.0) {
        (Some(engine), Some(address)) => {
            let stop = until(stopped.clone());
            let config = dynamodb_config(&settings, &connections, tls.http.clone())?;
            let (url, task) = serve_dynamodb(engine, address, config, stop).await?;
            warn_unwritten(address::write_dynamodb(data_dir, &url));
            Some(task)
        }
        _ => None,
    };
    let listening = listener.local_addr()?;
    let url = ServerUrl::new(listening, tls.http.is_some());
    let limits = network::http_limits(&settings.http, &settings.network, &connections);
    let background = Background::start(&backend, &state, &settings, &tasks, || {
        Box::pin(until(stopped.clone()))
    })?;
    let stop_mqtt = || Box::pin(until(stopped.clone())) as BoxFuture;
    let bridge = bridge::bridge(&settings.bridge, &state.broker, &bridge_status)?;
    let mqtt = Mqtt::start(
        &state.broker,
        &settings.mqtt,
        tls.mqtt,
        bridge,
        &connections,
        &tasks,
        stop_mqtt,
    )
    .await?;
    let live = state.console.live.clone();
    print_setup_link(&state.people, listening, tls.http.is_some()).await;
    let mut router = homeport_server::router(state);
    let hsts_secs = settings.tls.hsts_max_age_secs.get();
    if hsts_secs > 0 {
        router = homeport_server::with_hsts(router, hsts_secs);
    }
    let redirects = match settings.tls.redirect_listen {
        Some(address) => {
            let redirects = bind(address, "tls-redirect-listen").await?;
            print_line!("redirects from http://{}", redirects.local_addr()?);
            let (limits, stop) = (limits.clone(), until(stopped.clone()));
            let serving =
                homeport_server::serve_redirects(redirects, limits, listening.port(), stop);
            Some(tokio::spawn(serving))
        }
        None => None,
    };
    let renewal = tls.renewal.run_until(until(stopped.clone()));
    let renewal = tasks.spawn("TLS certificates", renewal);
    let server = tokio::spawn(homeport_server::serve(
        listener,
        tls.http,
        limits,
        router,
        until(stopped),
    ));
    warn_unwritten(address::write(data_dir, &url));
    if let Some(self_signed) = &tls.self_signed {
        self_signed.print_usage(&url);
    }
    print_line!("listening on {url}");
    let signal = stop.wait().await;
    print_line!("{signal}: finishing accepted requests");
    // Removed first, so that commands do not contact a server that is stopping.
    address::forget(data_dir)?;
    let _ = stopping.send(true);
    // Live feeds would never end by themselves.
    live.stop();
    // Each port gives its connections a bounded time.
    server
        .await
        .context("waiting for HTTP connections to close")?;
    if let Some(dynamodb) = dynamodb {
        dynamodb
            .await
            .context("waiting for DynamoDB connections to close")?;
    }
    if let Some(redirects) = redirects {
        redirects
            .await
            .context("waiting for the redirects to end")?;
    }
    renewal
        .await
        .context("waiting for the check of certificates to end")?;
    mqtt.end().await?;
    background.end().await?;
    backend.close().await?;
    print_line!("stopped");
    Ok(ExitCode::SUCCESS)
}

/// Prints the link that sets up the first administrator, while there are no people. Its token is after a `#`, so that
/// browsers do not send it in a request's address. A store that cannot be written must not keep the server from
/// starting.
async fn print_setup_link(people: &People, listening: SocketAddr, is_tls: bool) {
    let host = match listening.ip().is_unspecified() {
        true => format!("localhost:{}", listening.port()),
        false => listening.to_string(),
    };
    let scheme = if is_tls { "https" } else { "http" };
    match people.begin_setup().await {
        Ok(Some(token)) => print_line!(
            "set up the first administrator (works once, for an hour): {scheme}://{host}/#/setup?token={token}"
        ),
        Ok(None) => {}
        Err(error) => print_line!(
            "WARNING: no link to set up the first administrator: {error}; use the admin token, or restart later"
        ),
    }
}

/// Prints a warning if the address file, by which other commands find the server, cannot be written. A full disk must not
/// keep the server from starting.
fn warn_unwritten(written: anyhow::Result<()>) {
    if let Err(error) = written {
        print_line!(
            "WARNING: other commands cannot find this server by its data directory; give them --url: {error:#}"
        );
    }
}

/// Listens on an address that `flag` sets.
pub(crate) async fn bind(address: SocketAddr, flag: &str) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address)
        .await
        .map_err(|error| match error.kind() {
            ErrorKind::AddrInUse => anyhow!(
                "port {} is already in use; choose another with --{flag}",
                address.port()
            ),
            ErrorKind::AddrNotAvailable => anyhow!(
                "{} is not an address of this machine; choose another with --{flag}",
                address.ip()
            ),
            ErrorKind::PermissionDenied => anyhow!(
                "no permission to listen on port {}; choose another with --{flag}, or grant the process CAP_NET_BIND_SERVICE",
                address.port()
            ),
            _ => anyhow::Error::new(error).context(format!("listening on {address} (--{flag})")),
        })
}

/// Serves DynamoDB's protocol, which only the embedded store supports.
async fn serve_dynamodb(
    engine: &Engine,
    address: SocketAddr,
    config: Config,
    stop: impl Future<Output = ()> + Send + 'static,
) -> anyhow::Result<(ServerUrl, JoinHandle<()>)> {
    config.check_address(address)?;
    let listener = bind(address, "dynamodb-listen").await?;
    let url = ServerUrl::new(listener.local_addr()?, config.tls.is_some());
    print_line!("DynamoDB's protocol on {url}");
    let service = homeport_wire::service(engine.clone(), config);
    Ok((url, tokio::spawn(service.serve(listener, stop))))
}

fn dynamodb_config(
    settings: &Settings,
    connections: &Connections,
    tls: Option<Tls>,
) -> anyhow::Result<Config> {
    let dynamodb = &settings.dynamodb;
    Ok(Config {
        region: dynamodb.region.clone(),
        credentials: dynamodb_credentials::of(dynamodb)?,
        connections_max: dynamodb.connections.count(),
        connections: connections.clone(),
        tls,
        allowed_origins: settings.network.allowed_origins.clone(),
        header_timeout: network::header_timeout(&settings.network),
        idle_timeout: Duration::from_secs(dynamodb.idle_timeout_secs.get()),
        buckets: dynamodb.buckets.clone(),
        ..Config::default()
    })
}

async fn until(mut stopped: tokio::sync::watch::Receiver<bool>) {
    // An error means that the sender is gone, which also means to stop.
    let _ = stopped.wait_for(|stopping| *stopping).await;
}

/// The signals by which people and service managers stop a program.
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
        // Without this signal, only killing the process stops it.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
        "interrupted"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn used_port_names_the_flag_to_change() {
        let address = SocketAddr::from(([127, 0, 0, 1], 0));
        let first = bind(address, "http-listen").await.expect("a free port");
        let used = first.local_addr().expect("an address");
        let error = bind(used, "http-listen").await.expect_err("in use");
        assert_eq!(
            error.to_string(),
            format!(
                "port {} is already in use; choose another with --http-listen",
                used.port()
            )
        );
    }
}
