//! What is kept of messages: sessions, queues, retained messages.

mod support;

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use homeport_systems::messages::{
    Delivery, Message, NewQueued, Properties, Publisher, QueueTable, Queued, RetainedTable,
    SessionTable, StoredSession, Subscription, schema,
};
use homeport_systems::time::{EpochMillis, EpochSeconds};
use support::NOW_MS;

const NOW: EpochSeconds = EpochSeconds(NOW_MS / 1000);

fn message(topic: &str, payload: &str) -> Message {
    Message {
        topic: topic.to_owned(),
        payload: Bytes::copy_from_slice(payload.as_bytes()),
        delivery: Delivery::AtLeastOnce,
        retain: true,
        publisher: Publisher::default(),
        received_at: EpochMillis(NOW_MS),
        properties: Properties::default(),
        hops: 0,
    }
}

fn queued(queue_id: &str, sequence: u64) -> NewQueued {
    NewQueued {
        queue_id: queue_id.into(),
        queued: Queued {
            sequence,
            message: Arc::new(message("van/v1/x", &sequence.to_string())),
            delivery: Delivery::AtLeastOnce,
            retain: false,
            identifiers: vec![1, 268_435_455],
        },
        expires_at: NOW.plus_secs(100),
    }
}

#[tokio::test]
async fn session_round_trips() {
    let fixture = support::fixture(&schema::tables()).await;
    let table = SessionTable::new(Arc::clone(&fixture.store));
    let how = Subscription {
        delivery: Delivery::AtLeastOnce,
        no_local: true,
        retain_as_published: false,
        identifier: Some(7),
    };
    let other = Subscription {
        delivery: Delivery::AtMostOnce,
        no_local: false,
        retain_as_published: true,
        identifier: None,
    };
    let session = StoredSession {
        owner: "any".to_owned(),
        client_id: "c".to_owned(),
        queue_id: "q".to_owned(),
        expiry_secs: 60,
        expires_at: None,
        subscriptions: BTreeMap::from([
            ("van/+/x".parse().expect("a filter"), how),
            ("$share/g/van/#".parse().expect("a filter"), other),
        ]),
    };
    table.put(&session).await.expect("stored");
    assert_eq!(table.load().await, Ok(vec![session.clone()]));
    let leaving = StoredSession {
        expires_at: Some(NOW.plus_secs(60)),
        ..session
    };
    table.put(&leaving).await.expect("stored");
    assert_eq!(table.load().await, Ok(vec![leaving.clone()]));
    fixture.clock.advance_ms(61_000);
    assert_eq!(table.load().await, Ok(vec![]));
    table.remove("any", "c").await.expect("removed");
}

#[tokio::test]
async fn each_start_has_a_higher_number() {
    let fixture = support::fixture(&schema::tables()).await;
    let table = SessionTable::new(Arc::clone(&fixture.store));
    assert_eq!(table.begin_run().await, Ok(1));
    assert_eq!(table.begin_run().await, Ok(2));
    assert_eq!(table.load().await, Ok(vec![]), "the counter is no session");
    drop(table);
    let fixture = fixture.reopen().await;
    let table = SessionTable::new(Arc::clone(&fixture.store));
    assert_eq!(table.begin_run().await, Ok(3));
}

#[tokio::test]
async fn queue_keeps_messages_until_removed() {
    let fixture = support::fixture(&schema::tables()).await;
    let table = QueueTable::new(Arc::clone(&fixture.store));
    let mut new: Vec<_> = (0..60)
        .rev()
        .map(|sequence| queued("a", sequence))
        .collect();
    new.push(queued("b", 1));
    table.add(&new).await.expect("added");
    assert_eq!(table.count("a").await, Ok(60));
    let page = table.first("a", 10).await.expect("a page");
    assert!(page.has_more);
    let expected: Vec<_> = (0..10)
        .map(|sequence| queued("a", sequence).queued)
        .collect();
    assert_eq!(page.queued, expected);
    let first: Vec<_> = (0..30).collect();
    table.remove("a", &first).await.expect("removed");
    let page = table.first("a", 100).await.expect("a page");
    let left: Vec<_> = page.queued.iter().map(|one| one.sequence).collect();
    assert_eq!(left, (30..60).collect::<Vec<_>>());
    assert!(!page.has_more);
    table.clear("a").await.expect("cleared");
    assert_eq!(table.count("a").await, Ok(0));
    assert_eq!(table.count("b").await, Ok(1));
    fixture.clock.advance_ms(101_000);
    assert_eq!(table.count("b").await, Ok(0), "it has expired");
}

#[tokio::test]
async fn late_message_does_not_replace_a_retained_one() {
    let fixture = support::fixture(&schema::tables()).await;
    let table = RetainedTable::new(Arc::clone(&fixture.store));
    let topic: Arc<str> = "van/v1/status".into();
    let keep = async |payload: &str, sequence| {
        let kept = table.keep(&message(&topic, payload), sequence, NOW).await;
        kept.expect("kept");
        let found = table.get(&[Arc::clone(&topic)]).await.expect("messages");
        let payloads = found
            .iter()
            .map(|one| String::from_utf8_lossy(&one.payload).into_owned());
        payloads.collect::<Vec<_>>()
    };
    assert_eq!(keep("2", 2).await, ["2"]);
    assert_eq!(keep("1", 1).await, ["2"]);
    assert_eq!(keep("3", 3).await, ["3"]);
    assert!(keep("", 5).await.is_empty());
    assert!(
        keep("4", 4).await.is_empty(),
        "it was taken away after this"
    );
    assert_eq!(table.topics().await.expect("topics"), []);
    assert_eq!(keep("6", 6).await, ["6"]);
    let topics = table.topics().await.expect("topics");
    assert_eq!((topics.len(), topics[0].sequence), (1, 6));
    assert_eq!(
        (topics[0].topic.as_str(), topics[0].expires_at),
        (&*topic, None)
    );
}

#[tokio::test]
async fn expired_retained_messages_are_not_found() {
    let fixture = support::fixture(&schema::tables()).await;
    let table = RetainedTable::new(Arc::clone(&fixture.store));
    let topics: Vec<Arc<str>> = (0..120).map(|n| format!("van/v{n}/x").into()).collect();
    for (sequence, topic) in topics.iter().enumerate() {
        let mut message = message(topic, "1");
        message.properties.expires_after_secs = Some(if sequence < 20 { 10 } else { 1000 });
        let kept = table.keep(&message, sequence as u64, NOW).await;
        kept.expect("kept");
    }
    assert_eq!(table.get(&topics).await.expect("messages").len(), 120);
    fixture.clock.advance_ms(11_000);
    assert_eq!(table.get(&topics).await.expect("messages").len(), 100);
    let topics = table.topics().await.expect("topics");
    assert_eq!(topics.len(), 100);
    assert_eq!(topics[0].expires_at, Some(NOW.plus_secs(1000)));
}
