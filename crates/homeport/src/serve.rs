//! `homeport serve`: open the store, listen, and stop cleanly when told to.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use homeport_engine::{Durability, Engine};

use crate::arguments::ServeSettings;
use crate::{http, secrets};

/// How long requests under way may take to finish when the server stops.
const FINISH_WITHIN: Duration = Duration::from_secs(10);

pub(crate) async fn serve(settings: ServeSettings) -> anyhow::Result<ExitCode> {
    // Listened for from the start, so that being stopped while opening is clean too.
    let stop = StopSignals::listen()?;
    let options = settings.engine_options();
    let relaxed = options.durability == Durability::Relaxed;
    let data_dir = settings.data.data_dir.clone();
    let engine = {
        let path = data_dir.clone();
        tokio::task::spawn_blocking(move || Engine::open(path, options)).await??
    };
    let pepper = secrets::load(settings.api_key_pepper.clone(), &data_dir, "api-key-pepper")?;
    let admin_token = secrets::load(settings.admin_token.clone(), &data_dir, "admin-token")?;
    let state = http::state(&engine, &settings, pepper, &admin_token).await?;
    println!(
        "data directory {}: {} tables",
        data_dir.display(),
        engine.table_names().len()
    );
    if relaxed {
        println!(
            "WARNING: durability is relaxed: a power cut may lose writes of the last 50 ms that were acknowledged"
        );
    }
    if admin_token.is_new {
        println!("admin token (shown this once): {}", admin_token.text);
    }
    let listener = tokio::net::TcpListener::bind(settings.http_listen)
        .await
        .with_context(|| format!("listening on {}", settings.http_listen))?;
    let config = settings.dynamodb.config();
    config.check_address(settings.dynamodb.dynamodb_listen)?;
    let dynamodb = tokio::net::TcpListener::bind(settings.dynamodb.dynamodb_listen)
        .await
        .with_context(|| format!("listening on {}", settings.dynamodb.dynamodb_listen))?;
    println!("DynamoDB's protocol on http://{}", dynamodb.local_addr()?);
    println!("listening on http://{}", listener.local_addr()?);
    let (stopping, stopped) = tokio::sync::watch::channel(false);
    let service = homeport_wire::service(engine.clone(), config);
    let dynamodb = tokio::spawn(service.serve(dynamodb, until(stopped.clone())));
    let server = tokio::spawn(
        axum::serve(listener, homeport_server::router(state))
            .with_graceful_shutdown(until(stopped))
            .into_future(),
    );
    let signal = stop.wait().await;
    println!("{signal}: finishing what was accepted");
    let _ = stopping.send(true);
    if tokio::time::timeout(FINISH_WITHIN, server).await.is_err() {
        println!("some connections did not end in time");
    }
    // It gives its own connections as long.
    dynamodb.await.context("ending DynamoDB's connections")?;
    tokio::task::spawn_blocking(move || drop(engine))
        .await
        .context("closing the store")?;
    println!("stopped");
    Ok(ExitCode::SUCCESS)
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
