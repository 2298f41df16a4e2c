//! The outbox: each alert is notified once, through refusals, missing answers and restarts.

use std::time::Duration;

use homeport_item::{Item, Map, Value};
use homeport_store::Put;
use homeport_systems::alerts::{DefinitionTerms, Settings, StateFilter, Target};
use homeport_systems::outbox::{DeliveryState, SendError};
use homeport_systems::push::{self, UserId};

use crate::support::NOW_MS;
use crate::world::{VAN, World, low_battery, settings};

fn busy() -> Option<SendError> {
    Some(SendError::Busy {
        retry_after: None,
        reason: "503".to_owned(),
    })
}

async fn trace(world: &World) -> Vec<String> {
    let id = world.list(StateFilter::All).await[0].id.clone();
    let notifications = world.alerts.notifications(&id).await.expect("a trace");
    let raised = notifications
        .iter()
        .find(|one| one.event.as_str() == "raised")
        .expect("one");
    let steps = raised.delivery.steps.iter();
    steps.map(|step| step.what.clone()).collect()
}

#[tokio::test]
async fn queued_notifications_survive_a_restart() {
    let world = World::new().await;
    world.create(low_battery()).await;
    world.judged_volts(VAN, 1, "11").await;
    let world = world.reopen().await;
    assert_eq!(world.turn().await.sent, 1);
    assert_eq!(world.turn().await.sent, 0);
    assert_eq!(world.outside.told(), ["alert.raised"]);
    let world = world.reopen().await;
    assert_eq!(world.turn().await.sent, 0);
    assert_eq!(
        trace(&world).await,
        [
            "webhook https://example.com/hook",
            "sending, attempt 1",
            "sent"
        ]
    );
}

#[tokio::test]
async fn every_kind_of_target_is_notified() {
    let world = World::new().await;
    let to = "anna@example.com".parse().expect("an address");
    let terms = DefinitionTerms {
        targets: vec![
            crate::world::webhook(),
            Target::Email { to },
            Target::Mqtt { topic: None },
            Target::Push {
                user_id: "anna".to_owned(),
            },
        ],
        ..low_battery()
    };
    world.create(terms).await;
    world.judged_volts(VAN, 1, "11.5").await;
    assert_eq!(world.turn().await.sent, 4);
    let alert = world.list(StateFilter::Open).await.remove(0);
    let call = world.outside.calls.lock().expect("no panic")[0].clone();
    assert_eq!(call.id, format!("{}-raised-0", alert.id));
    let body: serde_json::Value = serde_json::from_str(&call.body).expect("JSON");
    assert_eq!(
        body,
        serde_json::json!({
            "type": "alert.raised", "timestamp": "2027-01-15T08:00:00.000Z",
            "data": {
                "alert_id": alert.id.as_str(), "definition_id": alert.definition_id.as_str(),
                "definition_name": "Battery", "source": "telemetry", "severity": "warning", "device": "van-1",
                "reason": "volts is 11.5, below 12", "value": 11.5,
                "observed_at": "2027-01-15T08:00:01.000Z", "raised_at": "2027-01-15T08:00:00.000Z",
            },
        })
    );
    {
        let emails = world.outside.emails.lock().expect("no panic");
        assert_eq!(emails[0].subject, "Warning: Battery (van-1)");
        assert!(emails[0].text.starts_with("volts is 11.5, below 12\n"));
        assert!(emails[0].text.contains("\nSeverity: warning\n"));
        let messages = world.topics.0.lock().expect("no panic");
        assert_eq!(messages[0].topic, "alerts/van-1");
        assert_eq!(messages[0].payload, call.body.as_bytes());
    }
    let user: UserId = "anna".parse().expect("a user");
    let sent = world
        .push()
        .notifications(&user, 10, None)
        .await
        .expect("a page");
    assert_eq!(sent.items.len(), 1);
    assert_eq!(
        sent.items[0].message.members()["data"]["alert_id"],
        alert.id.as_str()
    );
    assert_eq!(
        sent.items[0].message.members()["data"]["severity"],
        "warning"
    );
    world.judged_volts(VAN, 2, "13").await;
    // Push cannot reach a user without devices, so nobody is notified there that the alert was cleared.
    assert_eq!(world.turn().await.sent, 3);
    assert_eq!(world.outside.told(), ["alert.raised", "alert.cleared"]);
    world.advance_secs(1);
    world.turn().await;
    assert_eq!(world.alerts_waiting().await, 0);
}

#[tokio::test]
async fn value_keeps_every_digit_in_messages() {
    let world = World::new().await;
    let terms = DefinitionTerms {
        targets: vec![crate::world::webhook(), Target::Mqtt { topic: None }],
        ..low_battery()
    };
    world.create(terms).await;
    let value = "11.123456789012345678901234567890123456";
    world.judged_volts(VAN, 1, value).await;
    world.turn().await;
    let call = world.outside.calls.lock().expect("no panic")[0].clone();
    let member = format!("\"value\":{value},");
    assert!(call.body.contains(&member), "{}", call.body);
    let messages = world.topics.0.lock().expect("no panic");
    assert_eq!(messages[0].payload, call.body.as_bytes());
}

#[tokio::test]
async fn busy_target_is_retried_with_growing_pauses() {
    let world = World::new().await;
    world.create(low_battery()).await;
    let asked = SendError::Busy {
        retry_after: Some(Duration::from_secs(30)),
        reason: "429".to_owned(),
    };
    world.outside.answer([busy(), busy(), Some(asked)]);
    world.judged_volts(VAN, 1, "11").await;
    for pause_secs in [2, 4, 30] {
        assert_eq!(world.turn().await.sent, 1);
        world.advance_secs(pause_secs - 1);
        assert_eq!(world.turn().await.sent, 0, "{pause_secs}");
        world.advance_secs(1);
    }
    assert_eq!(world.turn().await.sent, 1);
    let trace = trace(&world).await;
    assert_eq!(trace[2], "not taken: 503; next attempt in 2000 ms");
    assert_eq!(trace.last().map(String::as_str), Some("sent"));
    let calls = world.outside.calls.lock().expect("no panic");
    assert!(calls.iter().all(|call| call.id == calls[0].id));
}

#[tokio::test]
async fn undelivered_alert_sends_no_cleared_notification() {
    let world = World::new().await;
    world.create(low_battery()).await;
    world.outside.answer((0..60).map(|_| busy()));
    world.judged_volts(VAN, 1, "11").await;
    for _ in 0..62 {
        world.turn().await;
        world.advance_secs(1800);
    }
    assert_eq!(world.outside.told().len(), 60);
    let last = trace(&world).await.pop().expect("a step");
    assert_eq!(last, "failed: not taken: 503; given up after 60 attempts");
    world.judged_volts(VAN, 2, "13").await;
    world.turn().await;
    assert_eq!(world.outside.told().len(), 60);
    assert_eq!(world.alerts_waiting().await, 0);
}

#[tokio::test]
async fn refused_notification_is_not_retried() {
    let world = World::new().await;
    world.create(low_battery()).await;
    world
        .outside
        .answer([Some(SendError::Refused("410".to_owned()))]);
    world.judged_volts(VAN, 1, "11").await;
    world.turn().await;
    world.advance_secs(3600);
    assert_eq!(world.turn().await.sent, 0);
    assert_eq!(trace(&world).await[2], "failed: refused: 410");
}

#[tokio::test]
async fn expired_claim_is_sent_again() {
    let world = World::new().await;
    world.create(low_battery()).await;
    world.outside.answer([None]);
    world.judged_volts(VAN, 1, "11").await;
    let mut worker = world.worker();
    let turn = tokio::spawn(async move { worker.turn().await });
    let outside = std::sync::Arc::clone(&world.outside);
    let wait = async {
        while outside.told().is_empty() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    let wait = tokio::time::timeout(Duration::from_secs(30), wait);
    wait.await.expect("in time");
    turn.abort();
    let _ = turn.await;
    let world = world.reopen().await;
    world.advance_secs(60);
    assert_eq!(world.turn().await.sent, 0);
    world.advance_secs(60);
    assert_eq!(world.turn().await.sent, 1);
    assert_eq!(world.outside.told(), ["alert.raised", "alert.raised"]);
    let trace = trace(&world).await;
    assert!(trace[2].contains("it may have arrived"), "{trace:?}");
    assert_eq!(trace.last().map(String::as_str), Some("sent"));
}

#[tokio::test]
async fn full_outbox_does_not_block_alerts() {
    let world = World::with(Settings {
        outbox_max: 1,
        ..settings()
    })
    .await;
    world.create(low_battery()).await;
    world.volts("van-1", 1, "11").await;
    world.volts("van-2", 1, "11").await;
    world.judge_telemetry().await;
    assert_eq!(world.counts().await, (2, 0));
    let mut fates = Vec::new();
    for alert in world.list(StateFilter::Open).await {
        fates.extend(world.fates(&alert.id).await.into_iter().map(|fate| fate.1));
    }
    fates.sort_unstable_by_key(|state| state.as_str());
    assert_eq!(fates, [DeliveryState::Failed, DeliveryState::Queued]);
    world.turn().await;
    assert_eq!(world.outside.told().len(), 1);
    // There is room again.
    world.judged_volts("van-3", 1, "11").await;
    world.turn().await;
    assert_eq!(world.outside.told().len(), 2);
}

#[tokio::test]
async fn stored_claim_of_earlier_version_is_delivered() {
    let world = World::new().await;
    world.create(low_battery()).await;
    world.judged_volts(VAN, 1, "11").await;
    let alert = world.list(StateFilter::Open).await.remove(0);
    let step = [
        ("at", "2027-01-15T08:00:00.000Z"),
        ("step", "sending, attempt 1"),
    ];
    let step = step.map(|(name, text)| (name.to_owned(), Value::from(text)));
    let claimed = Item::new()
        .with("alert_id", alert.id.as_str())
        .with("notification", "raised#00")
        .with("definition_id", alert.definition_id.as_str())
        .with(
            "target",
            r#"{"webhook":{"url":"https://example.com/hook","secret":null}}"#,
        )
        .with("state", "sending")
        .with("attempts", 1)
        .with("unanswered", 0)
        .with("version", 2)
        .with("steps", Value::L(vec![Value::M(Map::from(step))]))
        .with("work", "due")
        .with("due_at_ms", NOW_MS);
    let put = Put::new("homeport-alert-outbox", claimed);
    world.fixture.store.put(put).await.expect("stored");
    assert_eq!(world.turn().await.sent, 1);
    assert_eq!(world.outside.told(), ["alert.raised"]);
    assert_eq!(trace(&world).await.last().map(String::as_str), Some("sent"));
    assert_eq!(world.alerts_waiting().await, 0);
}

#[tokio::test]
async fn full_push_outbox_delays_the_notification() {
    let world = World::new().await;
    let user: UserId = "anna".parse().expect("a user");
    let device = push::NewDevice {
        user_id: user.clone(),
        device_id: "phone".parse().expect("a device"),
        expo_push_token: "ExpoPushToken[a]".parse().expect("a token"),
        platform: push::Platform::Ios,
    };
    world.push().register(device).await.expect("registered");
    let count = |open: i64| {
        let counter = Item::new()
            .with("pk", "outbox")
            .with("sk", "outbox")
            .with("open", open);
        Put::new("homeport-notifications", counter)
    };
    let store = &world.fixture.store;
    store.put(count(100_000)).await.expect("stored");
    let target = Target::Push {
        user_id: "anna".to_owned(),
    };
    world
        .create(DefinitionTerms {
            targets: vec![target],
            ..low_battery()
        })
        .await;
    world.judged_volts(VAN, 1, "11").await;
    assert_eq!(world.turn().await.sent, 0);
    assert_eq!(world.alerts_waiting().await, 1);
    store.put(count(0)).await.expect("stored");
    world.advance_secs(2);
    assert_eq!(world.turn().await.sent, 1);
    let page = world.push().notifications(&user, 10, None).await;
    assert_eq!(page.expect("a page").items.len(), 1);
    assert_eq!(
        trace(&world).await.last().map(String::as_str),
        Some("handed over to the outbox of push")
    );
}
