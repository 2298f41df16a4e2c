//! Connection limits, timeouts and shutdown of the HTTP port.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use homeport_server::{ConnectionLimits, Connections, Limits, TrustedProxies};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, oneshot, watch};
use tokio::task::JoinHandle;

/// Timeout of every wait in these tests.
const PATIENCE: Duration = Duration::from_secs(30);
const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";

/// A port with one route, which responds when the test releases it.
struct Port {
    address: SocketAddr,
    served: JoinHandle<()>,
    stop: oneshot::Sender<()>,
    gate: Arc<Semaphore>,
    /// Requests so far, and the highest number of concurrent ones.
    entered: watch::Receiver<usize>,
    open_max: Arc<AtomicUsize>,
}

async fn open(connections_max: usize, header_timeout: Duration) -> Port {
    let limits = Limits {
        connections_max,
        connections: Connections::default(),
        header_timeout,
        idle_timeout: PATIENCE,
    };
    open_with(limits).await
}

/// Limits of one connection, in total or per address.
fn one_connection(limits: ConnectionLimits) -> Limits {
    Limits {
        connections_max: 16,
        connections: Connections::new(limits, TrustedProxies::default()),
        header_timeout: PATIENCE,
        idle_timeout: PATIENCE,
    }
}

async fn open_with(limits: Limits) -> Port {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let gate = Arc::new(Semaphore::new(0));
    let (entered_sender, entered) = watch::channel(0);
    let open_now = Arc::new(AtomicUsize::new(0));
    let open_max = Arc::new(AtomicUsize::new(0));
    let handler = {
        let (gate, open_max) = (Arc::clone(&gate), Arc::clone(&open_max));
        let entered = Arc::new(entered_sender);
        move || async move {
            let open = open_now.fetch_add(1, Ordering::SeqCst) + 1;
            open_max.fetch_max(open, Ordering::SeqCst);
            entered.send_modify(|count| *count += 1);
            gate.acquire().await.expect("open").forget();
            open_now.fetch_sub(1, Ordering::SeqCst);
            "done"
        }
    };
    let (stop, stopped) = oneshot::channel();
    let router = Router::new().route("/", get(handler));
    let served = tokio::spawn(homeport_server::serve(
        listener,
        None,
        limits,
        router,
        async {
            let _ = stopped.await;
        },
    ));
    Port {
        address,
        served,
        stop,
        gate,
        entered,
        open_max,
    }
}

impl Port {
    async fn send(&self, bytes: &[u8]) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).await.expect("connects");
        stream.write_all(bytes).await.expect("written");
        stream
    }

    /// Waits until that many requests have arrived.
    async fn entered(&self, count: usize) {
        let mut entered = self.entered.clone();
        let come_in = entered.wait_for(|entered| *entered >= count);
        let come_in = tokio::time::timeout(PATIENCE, come_in).await;
        come_in.expect("in time").expect("a server");
    }
}

/// Reads until the server closes the connection.
async fn rest(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let reading = stream.read_to_end(&mut bytes);
    // A reset counts as an end.
    let _ = tokio::time::timeout(PATIENCE, reading)
        .await
        .expect("closed in time");
    String::from_utf8_lossy(&bytes).into_owned()
}

#[tokio::test]
async fn unfinished_headers_close_the_connection() {
    let port = open(16, Duration::from_millis(200)).await;
    for begun in [
        "",
        // The beginnings of the HTTP/2 preface and of a POST.
        "P",
        "PRI * HTTP/2.0\r\n",
        "GET / HT",
        "GET / HTTP/1.1\r\nhost: x\r\n",
    ] {
        let mut stream = port.send(begun.as_bytes()).await;
        let answer = rest(&mut stream).await;
        assert!(!answer.contains("200"), "{begun:?}: {answer}");
    }
    assert_eq!(*port.entered.borrow(), 0);
}

#[tokio::test]
async fn slow_response_outlives_the_idle_timeout() {
    let limits = Limits {
        connections_max: 16,
        connections: Connections::default(),
        header_timeout: Duration::from_millis(100),
        idle_timeout: Duration::from_millis(100),
    };
    let port = open_with(limits).await;
    let mut stream = port.send(REQUEST).await;
    port.entered(1).await;
    // Another connection's end shows that the time has passed more than once.
    for _ in 0..3 {
        rest(&mut port.send(b"").await).await;
    }
    port.gate.add_permits(1);
    assert!(rest(&mut stream).await.ends_with("done"));
}

#[tokio::test]
async fn idle_connections_outlive_the_header_timeout() {
    let port = open(16, Duration::from_millis(100)).await;
    port.gate.add_permits(2);
    let keep_alive = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n";
    let mut stream = port.send(keep_alive).await;
    port.entered(1).await;
    // Another connection's end shows that the time has passed more than once.
    for _ in 0..3 {
        rest(&mut port.send(b"").await).await;
    }
    stream.write_all(REQUEST).await.expect("written");
    let answers = rest(&mut stream).await;
    assert_eq!(answers.matches("done").count(), 2, "{answers}");
}

#[tokio::test]
async fn connections_beyond_any_limit_get_503() {
    let total = ConnectionLimits {
        total_max: 1,
        ..ConnectionLimits::default()
    };
    let of_address = ConnectionLimits {
        per_address_max: 1,
        ..ConnectionLimits::default()
    };
    let of_port = Limits {
        connections_max: 1,
        ..one_connection(ConnectionLimits::default())
    };
    for limits in [one_connection(total), one_connection(of_address), of_port] {
        let port = open_with(limits).await;
        let mut first = port.send(REQUEST).await;
        port.entered(1).await;
        let refused = rest(&mut port.send(REQUEST).await).await;
        assert!(refused.starts_with("HTTP/1.1 503 "), "{refused}");
        assert!(refused.contains("\r\nretry-after: 5\r\n"), "{refused}");
        assert!(refused.contains("TOO_MANY_CONNECTIONS"), "{refused}");
        port.gate.add_permits(2);
        assert!(rest(&mut first).await.ends_with("done"));
        // The server may release a closed connection a moment later.
        let served =
            async { while !rest(&mut port.send(REQUEST).await).await.ends_with("done") {} };
        let served = tokio::time::timeout(PATIENCE, served).await;
        served.expect("there is room again");
        assert_eq!(port.open_max.load(Ordering::SeqCst), 1);
    }
}

#[tokio::test]
async fn exempt_addresses_are_not_limited() {
    let port = open_with(one_connection(ConnectionLimits {
        per_address_max: 1,
        exempt: "127.0.0.0/8".parse().expect("a range"),
        ..ConnectionLimits::default()
    }))
    .await;
    let _first = port.send(REQUEST).await;
    let _second = port.send(REQUEST).await;
    port.entered(2).await;
}

#[tokio::test]
async fn stop_finishes_accepted_requests() {
    let port = open(16, PATIENCE).await;
    let mut under_way = port.send(REQUEST).await;
    let mut idle = port.send(b"").await;
    port.entered(1).await;
    port.stop.send(()).expect("a server");
    // The server closes idle connections when it stops.
    assert_eq!(rest(&mut idle).await, "");
    assert!(TcpStream::connect(port.address).await.is_err());
    port.gate.add_permits(1);
    assert!(rest(&mut under_way).await.ends_with("done"));
    let ended = tokio::time::timeout(PATIENCE, port.served).await;
    ended.expect("in time").expect("no panic");
}
