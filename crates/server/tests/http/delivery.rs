//! Webhooks and e-mail against strict receivers on this machine.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use homeport_server::{Delivery, SignedRequests, SmtpRelay, SmtpTls};
use homeport_systems::alerts::{Deliver as _, Email, WebhookCall};
use homeport_systems::outbox::SendError;
use homeport_systems::rules::{OutgoingRequest, RequestService as _};
use homeport_systems::time::EpochSeconds;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

const SECRET: [u8; 32] = [42; 32];

#[derive(Default)]
struct Receiver {
    bodies: Vec<String>,
    answer: Option<(StatusCode, Option<(&'static str, &'static str)>)>,
}

type Shared = Arc<Mutex<Receiver>>;

/// HMAC by its definition, computed from the hash function.
fn hmac_sha256(key: &[u8], message: &[u8]) -> Vec<u8> {
    use sha2::{Digest as _, Sha256};
    assert!(key.len() <= 64, "longer keys are hashed first");
    let mut block = [0; 64];
    block[..key.len()].copy_from_slice(key);
    let inner = Sha256::new()
        .chain_update(block.map(|byte| byte ^ 0x36))
        .chain_update(message);
    let outer = Sha256::new()
        .chain_update(block.map(|byte| byte ^ 0x5c))
        .chain_update(inner.finalize());
    outer.finalize().to_vec()
}

/// Accepts only requests whose signature follows the specification.
async fn hook(State(shared): State<Shared>, headers: HeaderMap, body: Bytes) -> Response {
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let (Some(id), Some(at), Some(signature)) = (
        header("webhook-id"),
        header("webhook-timestamp"),
        header("webhook-signature"),
    ) else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    let body = String::from_utf8(body.to_vec()).expect("text");
    let signed = hmac_sha256(&SECRET, format!("{id}.{at}.{body}").as_bytes());
    if signature != format!("v1,{}", STANDARD.encode(signed))
        || header("content-type") != Some("application/json")
    {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    let mut receiver = shared.lock().expect("no panic");
    receiver.bodies.push(body);
    match receiver.answer.take() {
        Some((status, Some((name, value)))) => (status, [(name, value)]).into_response(),
        Some((status, None)) => status.into_response(),
        None => StatusCode::NO_CONTENT.into_response(),
    }
}

async fn receiver() -> (String, Shared) {
    let shared = Shared::default();
    let router = Router::new()
        .route("/hook", post(hook))
        .with_state(Arc::clone(&shared));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}/hook", listener.local_addr().expect("an address"));
    tokio::spawn(async move { axum::serve(listener, router).await });
    (url, shared)
}

fn call(url: &str, secret: [u8; 32]) -> WebhookCall {
    let secret = format!("whsec_{}", STANDARD.encode(secret));
    WebhookCall {
        url: url.parse().expect("a URL"),
        secret: secret.try_into().expect("a secret"),
        id: "1800000000000-x-raised-0".to_owned(),
        at: EpochSeconds(1_800_000_000),
        body: r#"{"type":"alert.raised"}"#.to_owned(),
    }
}

#[tokio::test]
async fn webhook_signature_verifies() {
    let (url, shared) = receiver().await;
    let delivery = Delivery::new(true, None);
    assert_eq!(delivery.webhook(&call(&url, SECRET)).await, Ok(()));
    assert_eq!(
        shared.lock().expect("no panic").bodies,
        [r#"{"type":"alert.raised"}"#]
    );
    let other = delivery.webhook(&call(&url, [7; 32])).await;
    assert!(matches!(other, Err(SendError::Busy { reason, .. }) if reason == "status 401"));
}

#[tokio::test]
async fn rule_request_signature_verifies() {
    let (url, shared) = receiver().await;
    let request = OutgoingRequest {
        id: "msg_p5jXN8AQM9LWM0D4loKWxJek".to_owned(),
        timestamp_secs: 1_800_000_000,
        url,
        headers: Vec::new(),
        body: r#"{"volts":11.5}"#.into(),
    };
    let secret = format!("whsec_{}", STANDARD.encode(SECRET));
    let requests = SignedRequests::new(&secret, true).expect("a secret");
    assert_eq!(requests.post(&request).await, Ok(()));
    assert_eq!(
        shared.lock().expect("no panic").bodies,
        [r#"{"volts":11.5}"#]
    );
    // A text without the prefix signs as its bytes.
    let text = std::str::from_utf8(&SECRET).expect("ASCII");
    let requests = SignedRequests::new(text, true).expect("a secret");
    assert_eq!(requests.post(&request).await, Ok(()));
    let other = SignedRequests::new(&"x".repeat(32), true).expect("a secret");
    let refused = other.post(&request).await;
    assert!(matches!(refused, Err(SendError::Busy { reason, .. }) if reason == "status 401"));
}

#[tokio::test]
async fn private_addresses_need_permission() {
    let (url, shared) = receiver().await;
    let delivery = Delivery::new(false, None);
    let named = url.replace("127.0.0.1", "localhost");
    for url in [
        url.as_str(),
        named.as_str(),
        "http://[::1]:9/",
        "http://2130706433/",
    ] {
        let refused = delivery.webhook(&call(url, SECRET)).await;
        let Err(SendError::Refused(reason)) = refused else {
            panic!("{url}: {refused:?}");
        };
        assert!(reason.contains("not a public address"), "{url}: {reason}");
    }
    assert!(shared.lock().expect("no panic").bodies.is_empty());
}

#[tokio::test]
async fn webhook_status_decides_about_retries() {
    let (url, shared) = receiver().await;
    let delivery = Delivery::new(true, None);
    let busy = |reason: &str, retry_after| SendError::Busy {
        retry_after,
        reason: reason.to_owned(),
    };
    let refused = |reason: &str| SendError::Refused(reason.to_owned());
    for (answer, expected) in [
        (
            (StatusCode::SERVICE_UNAVAILABLE, None),
            busy("status 503", None),
        ),
        (
            (StatusCode::TOO_MANY_REQUESTS, Some(("retry-after", "7"))),
            busy("status 429", Some(Duration::from_secs(7))),
        ),
        ((StatusCode::NOT_FOUND, None), busy("status 404", None)),
        ((StatusCode::GONE, None), refused("status 410")),
        // Redirects are not followed.
        (
            (StatusCode::FOUND, Some(("location", "/hook"))),
            refused("status 302: redirects are not followed"),
        ),
    ] {
        shared.lock().expect("no panic").answer = Some(answer);
        let answered = delivery.webhook(&call(&url, SECRET)).await;
        assert_eq!(answered, Err(expected));
    }
    assert_eq!(shared.lock().expect("no panic").bodies.len(), 5);
    // No server listens on this port.
    let free = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let nobody = format!("http://{}/", free.local_addr().expect("an address"));
    drop(free);
    let answered = delivery.webhook(&call(&nobody, SECRET)).await;
    assert!(
        matches!(answered, Err(SendError::Busy { .. })),
        "{answered:?}"
    );
}

/// One SMTP conversation of a relay with one user and one domain.
async fn converse(stream: TcpStream, mails: Arc<Mutex<Vec<String>>>) -> Option<()> {
    let mut stream = BufReader::new(stream);
    let say = async |stream: &mut BufReader<TcpStream>, text: &str| {
        stream
            .write_all(format!("{text}\r\n").as_bytes())
            .await
            .ok()
    };
    say(&mut stream, "220 stand-in ESMTP").await?;
    let (mut is_known, mut sender, mut recipient) = (false, false, false);
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).await.ok()? == 0 {
            return Some(());
        }
        let line = line.trim_end().to_owned();
        let command = line.to_ascii_uppercase();
        // \0user\0password
        let right = format!("AUTH PLAIN {}", STANDARD.encode("\0homeport\0hush"));
        let answer = if command.starts_with("EHLO ") {
            "250-stand-in\r\n250-8BITMIME\r\n250 AUTH PLAIN"
        } else if line == right {
            is_known = true;
            "235 2.7.0 welcome"
        } else if command.starts_with("AUTH ") {
            "535 5.7.8 unknown"
        } else if !is_known {
            "530 5.7.0 who are you"
        } else if command.starts_with("MAIL FROM:<HOMEPORT@EXAMPLE.COM>") {
            sender = true;
            "250 2.1.0 ok"
        } else if command.starts_with("RCPT TO:<BUSY@EXAMPLE.COM>") && sender {
            "451 4.3.0 later"
        } else if command.starts_with("RCPT TO:<ANNA@EXAMPLE.COM>") && sender {
            recipient = true;
            "250 2.1.5 ok"
        } else if command.starts_with("RCPT TO:") {
            "550 5.1.1 nobody of that name"
        } else if command == "DATA" && recipient {
            say(&mut stream, "354 go on").await?;
            let mut mail = String::new();
            loop {
                let mut line = String::new();
                stream.read_line(&mut line).await.ok()?;
                if line == ".\r\n" {
                    break;
                }
                mail.push_str(line.strip_prefix('.').unwrap_or(&line));
            }
            mails.lock().expect("no panic").push(mail);
            "250 2.0.0 taken"
        } else if command == "QUIT" {
            say(&mut stream, "221 2.0.0 bye").await?;
            return Some(());
        } else {
            "503 5.5.1 not now"
        };
        say(&mut stream, answer).await?;
    }
}

async fn relay(password: &str) -> (Delivery, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let mails = Arc::<Mutex<Vec<String>>>::default();
    let taken = Arc::clone(&mails);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(converse(stream, Arc::clone(&taken)));
        }
    });
    let credentials = Some(("homeport".to_owned(), password.to_owned()));
    let from = "Homeport <homeport@example.com>";
    let relay = SmtpRelay::new("127.0.0.1", port, SmtpTls::None, credentials, from);
    (Delivery::new(false, Some(relay.expect("a relay"))), mails)
}

fn email(to: &str) -> Email {
    Email {
        to: to.parse().expect("an address"),
        id: "1800000000000-x-raised-0".to_owned(),
        subject: "Alert: Kälte (van-1)".to_owned(),
        text: "volts is 11.5, below 12\n.\nDevice: van-1\n".to_owned(),
    }
}

#[tokio::test]
async fn email_authenticates_to_the_relay() {
    let (delivery, mails) = relay("hush").await;
    assert_eq!(delivery.email(&email("anna@example.com")).await, Ok(()));
    let mail = mails.lock().expect("no panic")[0].clone();
    let (head, body) = mail.split_once("\r\n\r\n").expect("a head and a body");
    for header in [
        "From: Homeport <homeport@example.com>",
        "To: anna@example.com",
        "Message-ID: <1800000000000-x-raised-0@homeport>",
    ] {
        assert!(head.lines().any(|line| line == header), "{header}\n{head}");
    }
    // A subject with other characters than ASCII is encoded.
    assert!(head.contains("Subject: Alert: =?utf-8?b?"), "{head}");
    assert!(head.contains("Date: "), "{head}");
    // A line with only a dot does not end the text.
    assert_eq!(
        body.trim_end(),
        "volts is 11.5, below 12\r\n.\r\nDevice: van-1"
    );
}

#[tokio::test]
async fn relay_response_decides_about_retries() {
    let (delivery, mails) = relay("hush").await;
    let refused = delivery.email(&email("nobody@example.com")).await;
    assert!(matches!(refused, Err(SendError::Refused(_))), "{refused:?}");
    let busy = delivery.email(&email("busy@example.com")).await;
    assert!(matches!(busy, Err(SendError::Busy { .. })), "{busy:?}");
    let (delivery, others) = relay("wrong").await;
    let unknown = delivery.email(&email("anna@example.com")).await;
    assert!(matches!(unknown, Err(SendError::Refused(_))), "{unknown:?}");
    assert!(mails.lock().expect("no panic").is_empty());
    assert!(others.lock().expect("no panic").is_empty());
    let none = Delivery::new(false, None)
        .email(&email("anna@example.com"))
        .await;
    assert!(matches!(none, Err(SendError::Refused(_))), "{none:?}");
}

#[tokio::test]
async fn missing_starttls_prevents_sending() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let mails = Arc::<Mutex<Vec<String>>>::default();
    let taken = Arc::clone(&mails);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(converse(stream, Arc::clone(&taken)));
        }
    });
    let credentials = Some(("homeport".to_owned(), "hush".to_owned()));
    let from = "homeport@example.com";
    let relay = SmtpRelay::new("127.0.0.1", port, SmtpTls::Starttls, credentials, from);
    let delivery = Delivery::new(false, Some(relay.expect("a relay")));
    let sent = delivery.email(&email("anna@example.com")).await;
    assert!(sent.is_err(), "{sent:?}");
    assert!(mails.lock().expect("no panic").is_empty());
}
