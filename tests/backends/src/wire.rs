//! Our own protocol over an engine, in this process.

use std::sync::Arc;

use homeport_store::Clock;
use homeport_wire::Config;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

/// A served engine, until this is dropped.
pub(crate) struct Wire {
    pub(crate) url: String,
    _stop: oneshot::Sender<()>,
    _directory: tempfile::TempDir,
}

impl Wire {
    pub(crate) async fn start(clock: Arc<dyn Clock>) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let engine = crate::open_engine(directory.path(), clock);
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let (stop, stopped) = oneshot::channel::<()>();
        let service = homeport_wire::service(engine, Config::default());
        tokio::spawn(service.serve(listener, async {
            let _ = stopped.await;
        }));
        Self {
            url: format!("http://{address}"),
            _stop: stop,
            _directory: directory,
        }
    }
}
