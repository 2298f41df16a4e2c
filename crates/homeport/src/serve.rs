//! `homeport serve`: open the store, listen, and stop cleanly when told to.

use std::process::ExitCode;

use anyhow::Context as _;
use homeport_engine::{Durability, Engine};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use crate::arguments::ServeSettings;

pub(crate) async fn serve(settings: ServeSettings) -> anyhow::Result<ExitCode> {
    // Listened for from the start, so that being stopped while opening is clean too.
    let stop = StopSignals::listen()?;
    let options = settings.engine_options();
    let relaxed = options.durability == Durability::Relaxed;
    let data_dir = settings.data.data_dir;
    let engine = {
        let path = data_dir.clone();
        tokio::task::spawn_blocking(move || Engine::open(path, options)).await??
    };
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
    let config = settings.dynamodb.config();
    config.check_address(settings.dynamodb.dynamodb_listen)?;
    let listener = TcpListener::bind(settings.dynamodb.dynamodb_listen)
        .await
        .with_context(|| format!("listening on {}", settings.dynamodb.dynamodb_listen))?;
    println!(
        "DynamoDB's protocol on http://{}; press Ctrl-C to stop",
        listener.local_addr()?
    );
    let (stopping, stopped) = oneshot::channel::<()>();
    let service = homeport_wire::service(engine.clone(), config);
    let serving = tokio::spawn(service.serve(listener, async {
        // However the other side ends, it is time to stop.
        let _ = stopped.await;
    }));
    let signal = stop.wait().await;
    println!("{signal}: stopping");
    drop(stopping);
    serving.await.context("ending the connections")?;
    tokio::task::spawn_blocking(move || drop(engine))
        .await
        .context("closing the store")?;
    println!("stopped");
    Ok(ExitCode::SUCCESS)
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
