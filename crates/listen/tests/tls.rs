//! TLS on an HTTP port: handshakes within limits, plain HTTP, versions, and certificates that are replaced under load.

use std::convert::Infallible;
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use homeport_listen::{
    Certificate, CertificateFiles, Connection, ConnectionLimits, Connections, Limits, Tls,
    TlsProtocols, TlsVersion, TrustedProxies, certificates_of_file, provider, serve,
};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response};
use rcgen::{CertificateParams, KeyPair};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore, version};

/// Nothing here takes this long unless it is broken.
const PATIENCE: Duration = Duration::from_secs(30);
const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n";

struct Port {
    address: SocketAddr,
    certificate: Certificate,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
    serving: tokio::task::JoinHandle<()>,
    _directory: TempDir,
}

/// Writes a new self-signed certificate and its key.
fn write_pair(files: &CertificateFiles) {
    let key = KeyPair::generate().expect("a key");
    let params = CertificateParams::new(["localhost".to_owned()]).expect("a name");
    let certificate = params.self_signed(&key).expect("a certificate");
    fs::write(&files.certificate, certificate.pem()).expect("written");
    fs::write(&files.key, key.serialize_pem()).expect("written");
}

fn limits() -> Limits {
    Limits {
        connections_max: 64,
        connections: Connections::default(),
        header_timeout: PATIENCE,
        idle_timeout: PATIENCE,
    }
}

async fn open(limits: Limits, min_version: TlsVersion) -> Port {
    let directory = tempfile::tempdir().expect("a directory");
    let files = CertificateFiles {
        certificate: directory.path().join("cert.pem"),
        key: directory.path().join("key.pem"),
    };
    write_pair(&files);
    let certificate = Certificate::load(files).expect("a certificate");
    let tls = Tls::new(&certificate, min_version, TlsProtocols::Http, None).expect("TLS");
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let answer = service_fn(|request: Request<Incoming>| async move {
        let connection = request.extensions().get::<Connection>();
        let text = match connection.is_some_and(Connection::is_tls) {
            true => "over TLS",
            false => "in plain text",
        };
        Ok::<_, Infallible>(Response::new(Full::<Bytes>::from(text)))
    });
    let (stop, stopped) = tokio::sync::oneshot::channel();
    let serving = tokio::spawn(serve(listener, Some(tls), limits, answer, async {
        let _ = stopped.await;
    }));
    Port {
        address,
        certificate,
        stop: Some(stop),
        serving,
        _directory: directory,
    }
}

impl Port {
    /// A client that trusts the certificate that is in the file now.
    fn client(&self, is_old: bool) -> TlsConnector {
        let mut roots = RootCertStore::empty();
        for trusted in certificates_of_file(&self.certificate.files().certificate).expect("read") {
            roots.add(trusted).expect("a root");
        }
        let versions = match is_old {
            true => vec![&version::TLS12],
            false => vec![&version::TLS12, &version::TLS13],
        };
        let config = ClientConfig::builder_with_provider(provider())
            .with_protocol_versions(&versions)
            .expect("versions")
            .with_root_certificates(roots)
            .with_no_client_auth();
        TlsConnector::from(Arc::new(config))
    }

    async fn connect(&self, client: &TlsConnector) -> io::Result<TlsStream<TcpStream>> {
        let stream = TcpStream::connect(self.address).await?;
        let name = ServerName::try_from("localhost").expect("a name");
        client.connect(name, stream).await
    }
}

/// Sends a request and reads the response.
async fn ask(stream: &mut TlsStream<TcpStream>) -> io::Result<String> {
    stream.write_all(REQUEST).await?;
    let mut text = Vec::new();
    while !text.ends_with(b"over TLS") {
        if stream.read_buf(&mut text).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(String::from_utf8_lossy(&text).into_owned())
}

async fn within<T>(future: impl Future<Output = T>) -> T {
    let outcome = tokio::time::timeout(PATIENCE, future).await;
    outcome.expect("in time")
}

#[tokio::test]
async fn plain_http_gets_a_readable_answer() {
    let port = open(limits(), TlsVersion::V1_2).await;
    let mut stream = TcpStream::connect(port.address).await.expect("connects");
    stream.write_all(REQUEST).await.expect("written");
    let mut text = String::new();
    within(stream.read_to_string(&mut text))
        .await
        .expect("text");
    assert!(text.starts_with("HTTP/1.1 400 "), "{text}");
    assert!(text.contains("https://"), "{text}");
}

#[tokio::test]
async fn requests_know_that_they_came_over_tls() {
    let port = open(limits(), TlsVersion::V1_2).await;
    for is_old in [false, true] {
        let mut stream = port.connect(&port.client(is_old)).await.expect("connects");
        let answer = within(ask(&mut stream)).await.expect("an answer");
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    }
}

#[tokio::test]
async fn minimum_version_refuses_older_clients() {
    let port = open(limits(), TlsVersion::V1_3).await;
    port.connect(&port.client(true)).await.expect_err("refused");
    let mut stream = port.connect(&port.client(false)).await.expect("connects");
    within(ask(&mut stream)).await.expect("an answer");
}

#[tokio::test]
async fn unfinished_handshakes_time_out() {
    let header_timeout = Duration::from_millis(300);
    let port = open(
        Limits {
            header_timeout,
            ..limits()
        },
        TlsVersion::V1_2,
    )
    .await;
    // Nothing, the start of a first message, and a completed handshake without a request.
    for begun in [&b""[..], b"\x16\x03\x01\x02\x00\x01"] {
        let mut stream = TcpStream::connect(port.address).await.expect("connects");
        stream.write_all(begun).await.expect("written");
        let started = Instant::now();
        let end = within(stream.read_to_end(&mut Vec::new())).await;
        assert!(end.is_ok(), "{end:?}");
        assert!(started.elapsed() < PATIENCE / 2, "{begun:?}");
    }
    let mut stream = port.connect(&port.client(false)).await.expect("connects");
    // The end comes without a message of TLS.
    let _ = within(stream.read_to_end(&mut Vec::new())).await;
}

#[tokio::test]
async fn unfinished_handshakes_count_as_connections() {
    let one = ConnectionLimits {
        total_max: 1,
        ..ConnectionLimits::default()
    };
    let connections = Connections::new(one, TrustedProxies::default());
    let port = open(
        Limits {
            connections,
            ..limits()
        },
        TlsVersion::V1_2,
    )
    .await;
    let client = port.client(false);
    let unfinished = TcpStream::connect(port.address).await.expect("connects");
    port.connect(&client).await.expect_err("no room");
    drop(unfinished);
    within(async { while port.connect(&client).await.is_err() {} }).await;
}

#[tokio::test]
async fn stopping_ends_unfinished_handshakes() {
    let mut port = open(limits(), TlsVersion::V1_2).await;
    let mut unfinished = TcpStream::connect(port.address).await.expect("connects");
    // Accepted: connections are accepted in their order.
    let mut stream = port.connect(&port.client(false)).await.expect("connects");
    within(ask(&mut stream)).await.expect("an answer");
    drop(stream);
    let started = Instant::now();
    port.stop
        .take()
        .expect("not stopped")
        .send(())
        .expect("serving");
    within(port.serving).await.expect("no panic");
    assert!(started.elapsed() < Duration::from_secs(5));
    assert_eq!(unfinished.read(&mut [0]).await.expect("closed"), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn certificate_is_replaced_under_load() {
    let port = Arc::new(open(limits(), TlsVersion::V1_2).await);
    let old = port.certificate.der();
    let before = port.client(false);
    write_pair(port.certificate.files());
    let both = {
        // Clients trust both certificates, as those of one issuer.
        let mut roots = RootCertStore::empty();
        roots.add(old.clone()).expect("a root");
        let new = certificates_of_file(&port.certificate.files().certificate);
        roots.add(new.expect("read")[0].clone()).expect("a root");
        let config = ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_root_certificates(roots)
            .with_no_client_auth();
        TlsConnector::from(Arc::new(config))
    };
    let is_over = Arc::new(AtomicBool::new(false));
    let answered = Arc::new(AtomicUsize::new(0));
    // Connections that are kept, and new ones for each request.
    let clients: Vec<_> = [true, true, false, false]
        .map(|is_kept| {
            let (port, both) = (Arc::clone(&port), both.clone());
            let (is_over, answered) = (Arc::clone(&is_over), Arc::clone(&answered));
            tokio::spawn(async move {
                let mut kept = port.connect(&both).await.expect("connects");
                while !is_over.load(Ordering::Relaxed) {
                    if !is_kept {
                        kept = port.connect(&both).await.expect("connects");
                    }
                    within(ask(&mut kept)).await.expect("an answer");
                    answered.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .into_iter()
        .collect();
    let answers = async |more: usize| {
        let until = answered.load(Ordering::Relaxed) + more;
        within(async {
            while answered.load(Ordering::Relaxed) < until {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        })
        .await;
    };
    answers(50).await;
    assert!(port.certificate.reload().expect("usable"));
    answers(50).await;
    is_over.store(true, Ordering::Relaxed);
    for client in clients {
        client.await.expect("no request failed");
    }
    assert_ne!(port.certificate.der(), old);
    // New connections get the new certificate, which a client of the old one does not trust. It resumes no session either.
    port.connect(&before)
        .await
        .expect_err("another certificate");
}
