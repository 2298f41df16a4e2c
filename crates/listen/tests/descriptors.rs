//! Behavior without free file descriptors. A separate test program, because the limit is that of the process.

use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use homeport_listen::{Connections, Limits, serve};
use http_body_util::Full;
use hyper::Response;
use hyper::service::service_fn;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// Nothing here takes this long unless it is broken.
const PATIENCE: Duration = Duration::from_secs(30);

fn limit(count: u64) {
    let maximum = getrlimit(Resource::Nofile).maximum;
    let limit = Rlimit {
        current: Some(count),
        maximum,
    };
    setrlimit(Resource::Nofile, limit).expect("a limit");
}

#[tokio::test]
async fn port_survives_lack_of_descriptors() {
    let before = getrlimit(Resource::Nofile).current.expect("a limit");
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let limits = Limits {
        connections_max: 16,
        connections: Connections::default(),
        header_timeout: PATIENCE,
        idle_timeout: PATIENCE,
    };
    let answer =
        service_fn(|_| async { Ok::<_, Infallible>(Response::new(Full::<Bytes>::from("done"))) });
    tokio::spawn(serve(
        listener,
        None,
        limits,
        answer,
        std::future::pending(),
    ));
    // The client has its descriptor; none is left for the server.
    let waiting = std::net::TcpStream::connect(address).expect("connects");
    waiting.set_nonblocking(true).expect("set");
    let mut waiting = TcpStream::from_std(waiting).expect("a stream");
    limit(3);
    let request = b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
    waiting.write_all(request).await.expect("written");
    let mut text = String::new();
    // At least one pause between two attempts to accept passes.
    let early = tokio::time::timeout(
        Duration::from_millis(200),
        waiting.read_to_string(&mut text),
    );
    assert!(early.await.is_err(), "accepted without a descriptor");
    limit(before);
    let answered = waiting.read_to_string(&mut text);
    tokio::time::timeout(PATIENCE, answered)
        .await
        .expect("accepted again")
        .expect("an answer");
    assert!(text.ends_with("done"), "{text}");
}
