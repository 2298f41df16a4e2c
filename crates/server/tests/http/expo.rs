//! Expo's client over real HTTP against the stand-in, which refuses what Expo refuses.

use std::sync::Arc;
use std::time::Duration;

use homeport_server::Expo;
use homeport_simulate::expo_stand_in::{ExpoStandIn, Fault, FaultKind, Outcome};
use homeport_store::ManualClock;
use homeport_systems::outbox::SendError;
use homeport_systems::push::{Envelope, Message, NewMessage, PushService as _, Receipt, Ticket};
use serde_json::{Map, Value, json};

use crate::support::{NOW_MS, serve_stand_in};

const ACCESS_TOKEN: &str = "access-token";

async fn start() -> (Expo, ExpoStandIn, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::at_ms(NOW_MS));
    let stand_in = ExpoStandIn::new(Arc::clone(&clock) as _, Some(ACCESS_TOKEN.to_owned()));
    let url = serve_stand_in(&stand_in).await;
    let expo = Expo::new(url, Some(ACCESS_TOKEN.to_owned())).with_timeout(Duration::from_secs(1));
    (expo, stand_in, clock)
}

fn token(name: &str) -> String {
    format!("ExpoPushToken[{name}]")
}

fn envelope(name: &str) -> Envelope {
    let message = Message::new(NewMessage {
        title: Some("Done".to_owned()),
        body: Some("Ready".to_owned()),
        ..NewMessage::default()
    });
    Envelope {
        to: token(name).parse().expect("a token"),
        message: message.expect("a message"),
    }
}

fn envelopes(count: usize) -> Vec<Envelope> {
    (0..count)
        .map(|number| envelope(&number.to_string()))
        .collect()
}

/// The only ticket of what was taken for a token.
fn ticket_of(stand_in: &ExpoStandIn, name: &str) -> String {
    let taken = stand_in.accepted_for(&token(name));
    assert_eq!(taken.len(), 1, "{taken:?}");
    taken[0].ticket_id.clone()
}

#[track_caller]
fn refused_with(answer: Result<Vec<Ticket>, SendError>, code: &str) {
    assert!(
        matches!(&answer, Err(SendError::Refused(reason)) if reason.contains(code)),
        "{answer:?}"
    );
}

#[tokio::test]
async fn messages_get_tickets_in_order() {
    let (expo, stand_in, _) = start().await;
    let gone = Outcome::TicketError("DeviceNotRegistered".to_owned());
    stand_in.set_outcome(&token("gone"), gone);
    let messages = ["a", "gone", "b"].map(envelope);
    let tickets = expo.send(&messages).await.expect("tickets");
    let ok = |name| Ticket::Ok {
        id: ticket_of(&stand_in, name),
    };
    assert_eq!((&tickets[0], &tickets[2]), (&ok("a"), &ok("b")));
    assert!(
        matches!(&tickets[1], Ticket::Error { code, .. } if code == "DeviceNotRegistered"),
        "{tickets:?}"
    );
    let said = json!({"title": "Done", "body": "Ready"});
    let said: Map<String, Value> = said.as_object().expect("an object").clone();
    assert_eq!(stand_in.accepted_for(&token("a"))[0].message, said);
    assert!(stand_in.accepted_for(&token("gone")).is_empty());
}

#[tokio::test]
async fn receipts_are_found_by_ticket() {
    let (expo, stand_in, _) = start().await;
    let too_big = Outcome::ReceiptError("MessageTooBig".to_owned());
    stand_in.set_outcome(&token("bad"), too_big);
    stand_in.set_outcome(&token("late"), Outcome::NoReceipt);
    let messages = ["good", "bad", "late"].map(envelope);
    expo.send(&messages).await.expect("tickets");
    let [good, bad, late] = ["good", "bad", "late"].map(|name| ticket_of(&stand_in, name));
    let asked = [
        good.clone(),
        bad.clone(),
        late.clone(),
        "unknown".to_owned(),
    ];
    let receipts = expo.receipts(&asked).await.expect("receipts");
    assert_eq!(receipts.len(), 2);
    assert_eq!(receipts[&good], Receipt::Ok);
    assert!(
        matches!(&receipts[&bad], Receipt::Error { code, .. } if code == "MessageTooBig"),
        "{receipts:?}"
    );
}

#[tokio::test]
async fn each_failure_has_a_retry_class() {
    let (expo, stand_in, _) = start().await;
    let busy = |secs: Option<u64>, status: u16| SendError::Busy {
        retry_after: secs.map(Duration::from_secs),
        reason: format!("{status} INJECTED: injected fault"),
    };
    let unanswered = |reason: &str| SendError::Unanswered(reason.to_owned());
    for (then, expected) in [
        (FaultKind::Status(429, Some(7)), busy(Some(7), 429)),
        (FaultKind::Status(500, None), busy(None, 500)),
        (FaultKind::Status(401, None), busy(None, 401)),
        (
            FaultKind::Status(504, None),
            unanswered("504 INJECTED: injected fault"),
        ),
        (
            FaultKind::Status(400, None),
            SendError::Refused("400 INJECTED: injected fault".to_owned()),
        ),
        (FaultKind::InvalidBody, unanswered("invalid response")),
        (FaultKind::NoResponse, unanswered("no response within 1s")),
    ] {
        stand_in.fail_next(Fault {
            accepts: false,
            kind: then,
        });
        assert_eq!(expo.send(&[envelope("a")]).await, Err(expected));
    }
    stand_in.fail_next(Fault {
        accepts: true,
        kind: FaultKind::Disconnect,
    });
    let broken = expo.send(&[envelope("a")]).await;
    assert!(
        matches!(broken, Err(SendError::Unanswered(_))),
        "{broken:?}"
    );
    assert_eq!(stand_in.accepted_count(), 1, "taken, and nobody was told");
}

#[tokio::test]
async fn stand_in_rejects_what_expo_rejects() {
    let (expo, stand_in, clock) = start().await;
    refused_with(
        expo.send(&envelopes(101)).await,
        "PUSH_TOO_MANY_NOTIFICATIONS",
    );
    refused_with(expo.send(&[]).await, "VALIDATION_ERROR");
    let receipts = vec!["ticket".to_owned(); 1001];
    let receipts = expo.receipts(&receipts).await.map(|_| Vec::new());
    refused_with(receipts, "PUSH_TOO_MANY_RECEIPTS");
    stand_in.set_project(&token("1"), "@someone/another-app");
    refused_with(
        expo.send(&envelopes(2)).await,
        "PUSH_TOO_MANY_EXPERIENCE_IDS",
    );
    assert!(expo.send(&envelopes(2)[1..]).await.is_ok(), "alone it goes");
    assert_eq!(stand_in.accepted_count(), 1);
    clock.advance_ms(1000);
    for _ in 0..6 {
        let hundred: Vec<_> = (0..100).map(|_| envelope("a")).collect();
        assert!(expo.send(&hundred).await.is_ok());
    }
    clock.advance_ms(999);
    let fast = expo.send(&[envelope("a")]).await;
    assert!(
        matches!(&fast, Err(SendError::Busy { reason, .. }) if reason.contains("TOO_MANY")),
        "{fast:?}"
    );
    clock.advance_ms(1);
    assert!(expo.send(&[envelope("a")]).await.is_ok());
}

#[tokio::test]
async fn stand_in_enforces_limits_and_token() {
    let (_, stand_in, _) = start().await;
    let url = serve_stand_in(&stand_in).await;
    let stranger = Expo::new(url.clone(), Some("another".to_owned()));
    let strange = stranger.send(&[envelope("a")]).await;
    assert!(
        matches!(&strange, Err(SendError::Busy { reason, .. }) if reason.contains("401")),
        "{strange:?}"
    );
    let message = |token: &str, body: &str| json!([{"to": token, "body": body}]).to_string();
    let right = message(&token("a"), "Ready");
    let long = message(&token("a"), &"x".repeat(5000));
    let huge = message(&token("a"), &"x".repeat(1024 * 1024));
    for (what, body, is_packed, expected) in [
        ("unpacked", right.clone(), false, (400, "VALIDATION_ERROR")),
        (
            "no token",
            message("abc", "Ready"),
            true,
            (400, "VALIDATION_ERROR"),
        ),
        ("no array", "{}".to_owned(), true, (400, "VALIDATION_ERROR")),
        (
            "an unknown member",
            json!([{"to": token("a"), "colour": "red"}]).to_string(),
            true,
            (400, "VALIDATION_ERROR"),
        ),
        ("too large", huge, true, (413, "PAYLOAD_TOO_LARGE")),
        ("right", right, true, (200, "\"ok\"")),
        ("a long message", long, true, (200, "MessageTooBig")),
    ] {
        let (status, said) = post_raw(&url, &body, is_packed).await;
        assert_eq!(status, expected.0, "{what}: {said}");
        assert!(said.contains(expected.1), "{what}: {said}");
    }
    assert_eq!(stand_in.accepted_count(), 1);
}

/// Sends a body without Expo's client, which would send nothing of the kind.
async fn post_raw(url: &str, body: &str, is_packed: bool) -> (u16, String) {
    use std::io::Write as _;
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(body.as_bytes()).expect("packed");
    let bytes = if is_packed {
        packed.finish().expect("packed")
    } else {
        body.as_bytes().to_vec()
    };
    let request = ureq::post(format!("{url}/--/api/v2/push/send"))
        .header("authorization", format!("Bearer {ACCESS_TOKEN}"))
        .header("content-type", "application/json");
    let request = if is_packed {
        request.header("content-encoding", "gzip")
    } else {
        request
    };
    let request = request.config().http_status_as_error(false).build();
    let asking = tokio::task::spawn_blocking(move || {
        let mut response = request.send(&bytes).expect("an answer");
        let said = response.body_mut().read_to_string().expect("text");
        (response.status().as_u16(), said)
    });
    asking.await.expect("no panic")
}

#[tokio::test]
async fn unreachable_service_accepted_nothing() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    drop(listener);
    let expo = Expo::new(format!("http://{address}"), None);
    let failed = expo.send(&[envelope("a")]).await;
    assert!(matches!(failed, Err(SendError::Busy { .. })), "{failed:?}");
}
