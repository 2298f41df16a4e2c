//! A server's limit on open files, ports that are switched off, and ports that other machines could reach.

mod support;

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, Instant};

use support::{Server, complaint, homeport, path};

const TOKEN: &str = "an admin token of the tests";
/// Limit for every wait.
const PATIENCE: Duration = Duration::from_secs(30);

/// Starts a server after `limit` ran in its shell.
fn start_limited(limit: &str, data_dir: &Path) -> Server {
    let server = homeport(&[]);
    let mut command = std::process::Command::new("sh");
    for (name, value) in server.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command
        .args(["-c", &format!("{limit} && exec \"$0\" \"$@\"")])
        .arg(server.get_program())
        .args(["serve", "--data-dir", path(data_dir)])
        .args(["--http-listen", "127.0.0.1:0"])
        .args(["--dynamodb-listen", "off"])
        .args(["--mqtt-listen", "127.0.0.1:0"])
        .env("HOMEPORT_ADMIN_TOKEN", TOKEN);
    Server::spawn(command)
}

fn connect(server: &Server) -> TcpStream {
    let stream = TcpStream::connect(server.url.trim_start_matches("http://")).expect("connects");
    stream.set_read_timeout(Some(PATIENCE)).expect("set");
    stream
}

/// Creates an API key over a connection. Returns the status, unless the connection closes without a response.
fn write(stream: &mut TcpStream) -> Option<String> {
    let body = r#"{"description":"of a test","all":true}"#;
    let request = format!(
        "POST /v1/api-keys HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {TOKEN}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).ok()?;
    let mut status = [0; 12];
    stream.read_exact(&mut status).ok()?;
    Some(String::from_utf8_lossy(&status).into_owned())
}

/// Creates keys over new connections until the status is as expected.
fn write_until(server: &Server, expected: &str) {
    let started = Instant::now();
    while write(&mut connect(server)).as_deref() != Some(expected) {
        assert!(started.elapsed() < PATIENCE, "never {expected}");
    }
}

#[test]
#[cfg(unix)]
fn idle_connections_leave_descriptors_for_the_store() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = start_limited("ulimit -n 256", directory.path());
    let mut first = connect(&server);
    let idle: Vec<_> = (0..400).map(|_| connect(&server)).collect();
    assert_eq!(write(&mut first).as_deref(), Some("HTTP/1.1 201"));
    write_until(&server, "HTTP/1.1 503");
    drop(idle);
    write_until(&server, "HTTP/1.1 201");
}

#[test]
#[cfg(target_os = "linux")]
fn soft_limit_on_open_files_is_raised() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = start_limited("ulimit -Sn 256", directory.path());
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", server.id()));
    let limits = limits.expect("the limits");
    let line = limits
        .lines()
        .find(|line| line.starts_with("Max open files"));
    let mut numbers = line.expect("a line").split_whitespace().skip(3);
    let (soft, hard) = (numbers.next(), numbers.next());
    assert!(soft.is_some() && soft == hard, "{limits}");
}

#[test]
fn dynamodb_port_can_be_switched_off() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = start_limited("true", directory.path());
    assert!(!directory.path().join("dynamodb-address").exists());
    let status = server.status(
        "/v1/api-keys",
        ("authorization", &format!("Bearer {TOKEN}")),
    );
    assert_eq!(status, 200);
}

#[test]
fn exposed_port_without_tls_creates_nothing() {
    let directory = tempfile::tempdir().expect("a directory");
    let data_dir = directory.path().join("data");
    for (flag, setting) in [
        ("--http-listen", "http.listen"),
        ("--dynamodb-listen", "dynamodb.listen"),
        ("--mqtt-listen", "mqtt.listen"),
    ] {
        let arguments = ["serve", "--data-dir", path(&data_dir), flag, "0.0.0.0:0"];
        let message = complaint(&arguments);
        assert!(message.contains(setting), "{message}");
        assert!(message.contains("--insecure"), "{message}");
        assert!(!data_dir.exists(), "{flag}");
    }
}

#[test]
fn insecure_server_listens_on_all_addresses() {
    let directory = tempfile::tempdir().expect("a directory");
    let data_dir = directory.path().join("data");
    let mut command = homeport(&["serve", "--data-dir", path(&data_dir), "--insecure"]);
    command
        .args(["--http-listen", "0.0.0.0:0", "--mqtt-listen", "0.0.0.0:0"])
        .args(["--dynamodb-listen", "off"]);
    let server = Server::spawn(command);
    assert!(server.url.starts_with("http://0.0.0.0:"), "{}", server.url);
}

#[test]
fn settings_of_tls_must_fit_together() {
    for (arguments, expected) in [
        (
            &["--tls-cert", "c"][..],
            "tls.cert and tls.key must be given together",
        ),
        (
            &["--tls-self-signed", "--tls-cert", "c", "--tls-key", "k"],
            "tls.self_signed cannot be used",
        ),
        (
            &["--tls-redirect-listen", "127.0.0.1:0"],
            "tls.redirect_listen needs",
        ),
        (
            &["--tls-self-signed", "--tls-hsts-max-age-secs", "1"],
            "tls.hsts_max_age_secs needs",
        ),
        (
            &["--mqtt-tls-key", "k"],
            "mqtt.tls_cert and mqtt.tls_key must be given together",
        ),
        (
            &["--mqtt-tls-listen", "127.0.0.1:0"],
            "mqtt.tls_listen needs a certificate",
        ),
        (&["--mqtt-tls-client-ca", "c"], "mqtt.tls_client_ca needs"),
    ] {
        let message = complaint(&[&["serve", "--data-dir", "/nowhere"], arguments].concat());
        assert!(message.contains(expected), "{arguments:?}: {message}");
    }
}
