//! `/v1/live` over HTTP.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;

use crate::console_session::{cookie, sign_in};
use crate::support::{ADMIN, NOW_MS, Server};

const PATIENCE: Duration = Duration::from_secs(30);

/// A client of the stream.
pub(crate) struct Listener(BufReader<TcpStream>);

/// A received event.
#[derive(Debug, Default)]
pub(crate) struct Heard {
    id: Option<String>,
    event: String,
    pub(crate) data: Value,
}

impl Listener {
    pub(crate) async fn open(server: &Server, query: &str, last: Option<&str>) -> Self {
        let last = last.map_or_else(String::new, |last| format!("Last-Event-ID: {last}\r\n"));
        let headers = format!("Authorization: Bearer {ADMIN}\r\n{last}");
        Self::open_with(server, query, &headers).await
    }

    async fn open_with(server: &Server, query: &str, headers: &str) -> Self {
        let mut stream = TcpStream::connect(server.host())
            .await
            .expect("a connection");
        let request = format!(
            "GET /v1/live{query} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{headers}\r\n"
        );
        stream.write_all(request.as_bytes()).await.expect("sent");
        let mut listener = Self(BufReader::new(stream));
        // The stream has a position once the first lines have arrived.
        let hello = listener.next().await;
        assert!(hello.id.is_some(), "{hello:?}");
        listener
    }

    /// Reads until the stream ends and returns the text.
    async fn read_to_end(mut self) -> String {
        let mut text = String::new();
        let reading = self.0.read_to_string(&mut text);
        let outcome = tokio::time::timeout(PATIENCE, reading).await;
        outcome.expect("the end in time").expect("text");
        text
    }

    /// The next event. Skips the lines of the chunked encoding.
    pub(crate) async fn next(&mut self) -> Heard {
        let mut heard = Heard::default();
        let reading = async {
            loop {
                let mut line = String::new();
                let read = self.0.read_line(&mut line).await.expect("a line");
                assert!(read > 0, "the stream has ended");
                let line = line.trim_end();
                if let Some(id) = line.strip_prefix("id: ") {
                    heard.id = Some(id.to_owned());
                    // The first lines carry no data.
                    if heard.event.is_empty() && self.0.buffer().starts_with(b"\n") {
                        return;
                    }
                } else if let Some(event) = line.strip_prefix("event: ") {
                    heard.event = event.to_owned();
                } else if let Some(data) = line.strip_prefix("data: ") {
                    heard.data = serde_json::from_str(data).expect("JSON");
                    return;
                }
            }
        };
        tokio::time::timeout(PATIENCE, reading)
            .await
            .expect("an event in time");
        heard
    }
}

async fn publish(server: &Server, thing: &str, number: i64) {
    let payload = json!({ "number": number }).to_string();
    server
        .take(&format!("van/{thing}/telemetry"), &payload)
        .await;
}

fn number(heard: &Heard) -> i64 {
    let number = heard.data["item"]["number"]["N"].as_str();
    number
        .unwrap_or_else(|| panic!("{heard:?}"))
        .parse()
        .expect("whole")
}

#[tokio::test]
async fn live_change_equals_the_timeline_entry() {
    let server = Server::start().await;
    let mut listener = Listener::open(&server, "", None).await;
    publish(&server, "van-1", 7).await;
    let heard = listener.next().await;
    assert_eq!(heard.event, "change");
    let data = &heard.data;
    assert_eq!(
        (
            &data["system"],
            &data["device"],
            &data["kind"],
            &data["type"]
        ),
        (
            &json!("telemetry"),
            &json!("van-1"),
            &json!("insert"),
            &json!("telemetry")
        )
    );
    assert_eq!(data["title"], "telemetry: number 7");
    let path = "/v1/devices/telemetry/van-1/timeline";
    let timeline = server.as_admin("GET", path, Value::Null).await.body;
    for name in ["id", "at", "type", "title", "table", "item"] {
        assert_eq!(timeline["entries"][0][name], data[name], "{name}");
    }
}

#[tokio::test]
async fn reconnected_reader_misses_nothing() {
    let server = Server::start().await;
    let mut listener = Listener::open(&server, "?system=telemetry", None).await;
    publish(&server, "van-1", 1).await;
    let heard = listener.next().await;
    assert_eq!(number(&heard), 1);
    drop(listener);
    for at in 2..5 {
        publish(&server, "van-1", at).await;
    }
    let mut listener = Listener::open(&server, "?system=telemetry", heard.id.as_deref()).await;
    for at in 2..5 {
        assert_eq!(number(&listener.next().await), at);
    }
}

#[tokio::test]
async fn live_filters_select_changes() {
    let server = Server::start().await;
    let mut one = Listener::open(&server, "?device=van-2", None).await;
    let mut kind = Listener::open(&server, "?types=state,alert", None).await;
    let mut system = Listener::open(&server, "?system=chargers", None).await;
    publish(&server, "van-1", 1).await;
    publish(&server, "van-2", 2).await;
    server.take("van/van-3/status", r#"{"number": 3}"#).await;
    let event = json!({
        "wireless_device_id": "b319d001-6b08-4d88-b4ca-4d2d98a6d43c", "event_type": "telemetry",
        "occurred_at": NOW_MS, "data": {"number": 4},
    });
    server.as_admin("POST", "/v1/chargers/events", event).await;
    assert_eq!(number(&one.next().await), 2);
    assert_eq!(number(&kind.next().await), 3);
    assert_eq!(system.next().await.data["device"], "SC-C014EA63");
}

#[tokio::test]
async fn live_reports_operator_state_changes_only() {
    let server = Server::start().await;
    let event = json!({
        "wireless_device_id": "b319d001-6b08-4d88-b4ca-4d2d98a6d43c", "event_type": "telemetry",
        "occurred_at": NOW_MS, "data": {"current_ma": 4},
    });
    server
        .as_admin("POST", "/v1/chargers/events", event.clone())
        .await;
    let mut listener = Listener::open(&server, "?types=ota,scheduler,state", None).await;
    let mut later = event;
    later["occurred_at"] = json!(NOW_MS + 1000);
    server.as_admin("POST", "/v1/chargers/events", later).await;
    let patch = json!({"ota_version": "2.0"});
    let path = "/v1/chargers/SC-C014EA63/state";
    let answer = server.as_admin("PATCH", path, patch).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let heard = listener.next().await;
    assert_eq!(heard.data["type"], "ota");
    assert_eq!(heard.data["kind"], "modify");
}

#[tokio::test]
async fn slow_reader_gets_a_gap() {
    let server = Server::start().await;
    let mut listener = Listener::open(&server, "?system=telemetry", None).await;
    publish(&server, "van-1", 1).await;
    let last = listener.next().await.id;
    drop(listener);
    // More changes than one read returns, and older than the reader's window.
    for at in 0..250 {
        publish(&server, &format!("van-{at}"), at).await;
    }
    server.clock.advance_ms(60_000);
    let mut listener = Listener::open(&server, "?system=telemetry", last.as_deref()).await;
    let heard = listener.next().await;
    assert_eq!((heard.event.as_str(), heard.id.is_some()), ("gap", true));
    publish(&server, "van-9", 999).await;
    assert_eq!(number(&listener.next().await), 999);
}

#[tokio::test]
async fn invalid_positions_and_excess_readers_are_rejected() {
    let server = Server::start().await;
    let token = format!("Bearer {ADMIN}");
    let headers = [
        ("authorization", token.as_str()),
        ("last-event-id", "nonsense"),
    ];
    let answer = server.send("GET", "/v1/live", &headers, None).await;
    assert_eq!(answer.problem(), (400, "INVALID_POSITION"));
    let mut listeners = Vec::new();
    for _ in 0..64 {
        listeners.push(Listener::open(&server, "?system=push", None).await);
    }
    let answer = server.as_admin("GET", "/v1/live", Value::Null).await;
    assert_eq!(answer.problem(), (503, "TOO_MANY_READERS"));
    assert!(answer.header("retry-after").is_some());
}

#[tokio::test]
async fn sign_out_ends_the_live_stream() {
    let server = Server::start().await;
    let session = cookie(&sign_in(&server, ADMIN).await);
    let other = cookie(&sign_in(&server, ADMIN).await);
    let open = async |session: &str| {
        let headers = format!("Cookie: {session}\r\n");
        Listener::open_with(&server, "?system=telemetry", &headers).await
    };
    let signed_out = open(&session).await;
    let mut signed_in = open(&other).await;
    let headers = [
        ("cookie", session.as_str()),
        ("sec-fetch-site", "same-origin"),
        ("x-homeport-console", "1"),
    ];
    let answer = server.send("DELETE", "/v1/session", &headers, None).await;
    assert_eq!(answer.status, 204);
    signed_out.read_to_end().await;
    publish(&server, "van-1", 7).await;
    assert_eq!(number(&signed_in.next().await), 7);
}

#[tokio::test]
async fn session_expiry_ends_the_live_stream() {
    let server = Server::start().await;
    let session = cookie(&sign_in(&server, ADMIN).await);
    let headers = format!("Cookie: {session}\r\n");
    let listener = Listener::open_with(&server, "", &headers).await;
    server.clock.advance_ms(12 * 60 * 60 * 1000);
    publish(&server, "van-1", 7).await;
    let text = listener.read_to_end().await;
    assert!(!text.contains("event: change"), "{text}");
}
