//! The rules of storing events of chargers, one test each.

mod support;

use std::collections::BTreeMap;
use std::sync::Arc;

use homeport_item::{Item, Map, Value};
use homeport_store::{Get, Put, Scan, Store};
use homeport_systems::chargers::{
    Chargers, ChargersError, EventData, EventDevice, EventOutcome, MOVES_MAX, NewEvent,
    RECENT_UPLINKS_MS, REPORTED_MAX, Rejection, ScId, StatePatch, WirelessDeviceId, schema,
};
use homeport_systems::time::EpochMillis;
use support::{Fixture, NOW_MS};

/// Two UUIDs with one SC-ID, found by search.
const COLLIDING: [&str; 2] = [
    "54cdc5dc-66d8-487c-86ec-2d23278927f0",
    "5ccd847d-4605-490f-a990-b15986fd40ec",
];

async fn chargers() -> (Chargers, Fixture) {
    let fixture = support::fixture(&schema::tables()).await;
    let clock = Arc::clone(&fixture.clock) as _;
    let chargers = Chargers::new(Arc::clone(&fixture.store), clock);
    (chargers, fixture)
}

fn wireless(number: u8) -> WirelessDeviceId {
    format!("b319d001-6b08-4d88-b4ca-4d2d98a6d4{number:02x}")
        .parse()
        .expect("a UUID")
}

fn sc_id(number: u8) -> ScId {
    ScId::of(wireless(number))
}

fn event(device: u8, minutes_ago: i64, members: &[(&str, Value)]) -> NewEvent {
    let members = members.iter().cloned();
    let members: Map = members
        .map(|(name, value)| (name.to_owned(), value))
        .collect();
    NewEvent {
        device: EventDevice::Wireless(wireless(device)),
        event_type: "telemetry".parse().expect("a type"),
        occurred_at: Some(EpochMillis(NOW_MS - minutes_ago * 60_000)),
        sequence: None,
        data: EventData::new(members).expect("data"),
        uplink: None,
    }
}

async fn items(store: &dyn Store, table: &str) -> Vec<Item> {
    store.scan(Scan::new(table)).await.expect("a scan").items
}

async fn item(store: &dyn Store, table: &str, device_id: &ScId) -> Option<Item> {
    let key = Item::new().with("device_id", device_id);
    store.get(Get::new(table, key)).await.expect("a get")
}

async fn state(store: &dyn Store, number: u8) -> Item {
    let state = item(store, "evse-device-state", &sc_id(number)).await;
    state.expect("a state")
}

fn patch(changes: &[(&str, Option<Value>)]) -> StatePatch {
    let changes = changes.iter().cloned();
    let changes = changes.map(|(name, value)| (name.to_owned(), value));
    StatePatch::new(changes.collect()).expect("a patch")
}

fn is_stored(outcome: &EventOutcome) -> bool {
    matches!(outcome, EventOutcome::Stored { .. })
}

/// The key under which an event is stored.
fn key_of(outcome: &EventOutcome) -> String {
    match outcome {
        EventOutcome::Stored { timestamp_mt, .. }
        | EventOutcome::Duplicate { timestamp_mt, .. } => timestamp_mt.to_string(),
        EventOutcome::Rejected(rejection) => panic!("{rejection}"),
    }
}

fn is_duplicate(outcome: &EventOutcome) -> bool {
    matches!(outcome, EventOutcome::Duplicate { .. })
}

#[tokio::test]
async fn stored_event_has_the_documented_form() {
    let (chargers, fixture) = chargers().await;
    let sent = event(1, 0, &[("current_ma", 16_000.into())]);
    let outcomes = chargers.ingest(vec![sent]).await.expect("ingests");
    assert_eq!(
        outcomes,
        [EventOutcome::Stored {
            device_id: sc_id(1),
            timestamp_mt: "2027-01-15 01:00:00.000".parse().expect("a wall clock"),
            timestamp_utc: EpochMillis(NOW_MS),
            not_in_state: Vec::new(),
        }]
    );
    let stored = items(&*fixture.store, "evse-events").await;
    let uplink_id = stored[0].get("uplink_id").and_then(Value::as_str);
    assert_eq!(
        serde_json::to_value(&stored[0]).expect("json"),
        serde_json::json!({
            "device_id": {"S": sc_id(1).as_str()},
            "timestamp_mt": {"S": "2027-01-15 01:00:00.000"},
            "event_type": {"S": "telemetry"},
            "timestamp_utc_ms": {"N": NOW_MS.to_string()},
            "wireless_device_id": {"S": wireless(1).to_string()},
            "data": {"M": {"current_ma": {"N": "16000"}}},
            "received_at": {"S": "2027-01-15T08:00:00Z"},
            "uplink_id": {"S": uplink_id.expect("an id")},
        })
    );
}

#[tokio::test]
async fn first_event_registers_the_device() {
    let (chargers, fixture) = chargers().await;
    chargers
        .ingest(vec![event(1, 5, &[])])
        .await
        .expect("ingests");
    fixture.clock.advance_ms(60_000);
    chargers
        .ingest(vec![event(1, 4, &[])])
        .await
        .expect("ingests");
    assert_eq!(
        items(&*fixture.store, "evse-devices").await,
        [Item::new()
            .with("device_id", &sc_id(1))
            .with("wireless_device_id", &wireless(1))
            .with("provisioned_at", "2027-01-15T08:00:00Z")]
    );
}

#[tokio::test]
async fn only_registered_device_may_use_its_sc_id() {
    let (chargers, fixture) = chargers().await;
    let short = |minutes_ago| NewEvent {
        device: EventDevice::ScId(sc_id(1)),
        ..event(1, minutes_ago, &[])
    };
    let outcomes = chargers.ingest(vec![short(1)]).await.expect("ingests");
    let unknown = Rejection::UnknownDevice(sc_id(1));
    assert_eq!(outcomes, [EventOutcome::Rejected(unknown)]);
    assert!(items(&*fixture.store, "evse-events").await.is_empty());
    chargers
        .ingest(vec![event(1, 2, &[])])
        .await
        .expect("ingests");
    let outcomes = chargers
        .ingest(vec![short(1), short(2)])
        .await
        .expect("ingests");
    assert!(is_stored(&outcomes[0]), "{outcomes:?}");
    // The same uplink, with either name of the device.
    assert!(is_duplicate(&outcomes[1]), "{outcomes:?}");
    for stored in items(&*fixture.store, "evse-events").await {
        assert_eq!(
            stored.get("wireless_device_id"),
            Some(&(&wireless(1)).into())
        );
    }
}

#[tokio::test]
async fn second_uuid_with_same_sc_id_is_rejected() {
    let (chargers, fixture) = chargers().await;
    let of = |uuid: &str, minutes_ago| NewEvent {
        device: EventDevice::Wireless(uuid.parse().expect("a UUID")),
        ..event(1, minutes_ago, &[("current_ma", minutes_ago.into())])
    };
    let shared = ScId::of(COLLIDING[0].parse().expect("a UUID"));
    assert_eq!(shared, ScId::of(COLLIDING[1].parse().expect("a UUID")));
    chargers
        .ingest(vec![of(COLLIDING[0], 9)])
        .await
        .expect("ingests");
    let before = item(&*fixture.store, "evse-device-state", &shared).await;
    let outcomes = chargers
        .ingest(vec![of(COLLIDING[1], 8), event(2, 0, &[])])
        .await
        .expect("ingests");
    let EventOutcome::Rejected(rejection) = &outcomes[0] else {
        panic!("{outcomes:?}");
    };
    let text = rejection.to_string();
    assert!(
        text.contains(COLLIDING[0])
            && text.contains(COLLIDING[1])
            && text.contains(shared.as_str()),
        "{text}"
    );
    assert!(is_stored(&outcomes[1]));
    assert_eq!(
        item(&*fixture.store, "evse-device-state", &shared).await,
        before
    );
    let device = item(&*fixture.store, "evse-devices", &shared)
        .await
        .expect("a device");
    assert_eq!(device.get("wireless_device_id"), Some(&COLLIDING[0].into()));
}

#[tokio::test]
async fn colliding_uuids_in_one_request_store_one() {
    let (chargers, fixture) = chargers().await;
    let of = |uuid: &str| NewEvent {
        device: EventDevice::Wireless(uuid.parse().expect("a UUID")),
        ..event(1, 5, &[])
    };
    let outcomes = chargers
        .ingest(COLLIDING.map(of).to_vec())
        .await
        .expect("ingests");
    let stored = outcomes.iter().filter(|outcome| is_stored(outcome)).count();
    let collided = outcomes.iter().filter(|outcome| {
        matches!(
            outcome,
            EventOutcome::Rejected(Rejection::ScIdCollision { .. })
        )
    });
    assert_eq!((stored, collided.count()), (1, 1), "{outcomes:?}");
    assert_eq!(items(&*fixture.store, "evse-events").await.len(), 1);
}

#[tokio::test]
async fn repeated_uplink_changes_nothing() {
    let (chargers, fixture) = chargers().await;
    let sent = event(1, 5, &[("current_ma", 16_000.into())]);
    chargers.ingest(vec![sent.clone()]).await.expect("ingests");
    let before = state(&*fixture.store, 1).await;
    fixture.clock.advance_ms(90_000);
    for _ in 0..3 {
        let outcomes = chargers.ingest(vec![sent.clone()]).await.expect("ingests");
        assert!(is_duplicate(&outcomes[0]), "{outcomes:?}");
    }
    assert_eq!(items(&*fixture.store, "evse-events").await.len(), 1);
    assert_eq!(state(&*fixture.store, 1).await, before);
}

#[tokio::test]
async fn repeat_within_a_request_is_stored_once() {
    let (chargers, fixture) = chargers().await;
    let sent = event(1, 5, &[]);
    let outcomes = chargers
        .ingest(vec![sent.clone(), sent])
        .await
        .expect("ingests");
    assert!(
        is_stored(&outcomes[0]) && is_duplicate(&outcomes[1]),
        "{outcomes:?}"
    );
    assert_eq!(items(&*fixture.store, "evse-events").await.len(), 1);
}

#[tokio::test]
async fn sequence_number_identifies_uplink_for_a_day() {
    let (chargers, fixture) = chargers().await;
    let numbered = |sequence| NewEvent {
        occurred_at: None,
        sequence: Some(sequence),
        ..event(1, 0, &[("current_ma", 1.into())])
    };
    assert!(is_stored(
        &chargers.ingest(vec![numbered(7)]).await.expect("ingests")[0]
    ));
    fixture.clock.advance_ms(5_000);
    assert!(is_duplicate(
        &chargers.ingest(vec![numbered(7)]).await.expect("ingests")[0]
    ));
    assert!(is_stored(
        &chargers.ingest(vec![numbered(8)]).await.expect("ingests")[0]
    ));
    // A restarted device counts from the beginning.
    fixture.clock.advance_ms(RECENT_UPLINKS_MS);
    assert!(is_stored(
        &chargers.ingest(vec![numbered(9)]).await.expect("ingests")[0]
    ));
    assert!(is_stored(
        &chargers.ingest(vec![numbered(7)]).await.expect("ingests")[0]
    ));
    assert_eq!(items(&*fixture.store, "evse-events").await.len(), 4);
}

#[tokio::test]
async fn duplicate_answers_with_the_stored_key() {
    let (chargers, fixture) = chargers().await;
    let numbered = |sequence| NewEvent {
        occurred_at: None,
        sequence: Some(sequence),
        ..event(1, 0, &[])
    };
    // All three have the same time, so the keys of the later ones move forward.
    let sent = vec![event(1, 0, &[]), numbered(1), numbered(2)];
    let stored = chargers.ingest(sent.clone()).await.expect("ingests");
    assert!(stored.iter().all(is_stored), "{stored:?}");
    fixture.clock.advance_ms(60_000);
    let again = chargers.ingest(sent.clone()).await.expect("ingests");
    assert!(again.iter().all(is_duplicate), "{again:?}");
    let keys = |outcomes: &[EventOutcome]| outcomes.iter().map(key_of).collect::<Vec<_>>();
    assert_eq!(keys(&again), keys(&stored));
    let within = vec![numbered(3), numbered(3)];
    let within = chargers.ingest(within).await.expect("ingests");
    assert!(is_duplicate(&within[1]), "{within:?}");
    assert_eq!(key_of(&within[1]), key_of(&within[0]));
}

#[tokio::test]
async fn uplink_without_time_and_number_is_never_repeated() {
    let (chargers, fixture) = chargers().await;
    let plain = NewEvent {
        occurred_at: None,
        ..event(1, 0, &[])
    };
    let outcomes = chargers
        .ingest(vec![plain.clone(), plain])
        .await
        .expect("ingests");
    assert!(outcomes.iter().all(is_stored), "{outcomes:?}");
    assert_eq!(items(&*fixture.store, "evse-events").await.len(), 2);
}

#[tokio::test]
async fn event_on_occupied_key_moves_by_a_millisecond() {
    let (chargers, fixture) = chargers().await;
    let numbered = |number: i64| event(1, 5, &[("n", number.into())]);
    for number in 0..3 {
        let outcomes = chargers
            .ingest(vec![numbered(number)])
            .await
            .expect("ingests");
        let EventOutcome::Stored {
            timestamp_mt,
            timestamp_utc,
            ..
        } = &outcomes[0]
        else {
            panic!("{outcomes:?}");
        };
        assert_eq!(
            timestamp_mt.to_string(),
            format!("2027-01-15 00:55:00.00{number}")
        );
        assert_eq!(timestamp_utc.0, NOW_MS - 300_000);
    }
    for number in 0..3 {
        let outcomes = chargers
            .ingest(vec![numbered(number)])
            .await
            .expect("ingests");
        assert!(is_duplicate(&outcomes[0]), "{outcomes:?}");
    }
    assert_eq!(items(&*fixture.store, "evse-events").await.len(), 3);
}

#[tokio::test]
async fn hundred_events_of_one_millisecond_are_kept() {
    let (chargers, fixture) = chargers().await;
    let request: Vec<NewEvent> = (0..100)
        .map(|n: i64| event(1, 5, &[("n", n.into())]))
        .collect();
    let outcomes = chargers.ingest(request.clone()).await.expect("ingests");
    assert!(outcomes.iter().all(is_stored));
    assert_eq!(items(&*fixture.store, "evse-events").await.len(), 100);
    let outcomes = chargers.ingest(request).await.expect("ingests");
    assert!(outcomes.iter().all(is_duplicate));
}

#[tokio::test]
async fn too_many_events_at_one_time_are_rejected() {
    let (chargers, fixture) = chargers().await;
    let base = NOW_MS - 300_000;
    for moved in 0..MOVES_MAX {
        let wall = homeport_systems::chargers::MountainTime::of(EpochMillis(base + moved));
        let item = Item::new()
            .with("device_id", &sc_id(1))
            .with("timestamp_mt", wall);
        fixture
            .store
            .put(Put::new("evse-events", item))
            .await
            .expect("a put");
    }
    let request = vec![event(1, 5, &[]), event(1, 4, &[])];
    let outcomes = chargers.ingest(request).await.expect("ingests");
    assert_eq!(
        outcomes[0],
        EventOutcome::Rejected(Rejection::TooManyAtOnce)
    );
    assert!(is_stored(&outcomes[1]));
}

#[tokio::test]
async fn event_and_state_are_one_transaction() {
    let (chargers, fixture) = chargers().await;
    chargers
        .ingest(vec![event(1, 5, &[("a", 1.into())])])
        .await
        .expect("ingests");
    let state = state(&*fixture.store, 1).await;
    assert_eq!(
        state.get("last_seen_mt"),
        Some(&"2027-01-15 00:55:00.000".into())
    );
    assert_eq!(state.get("last_event_type"), Some(&"telemetry".into()));
    assert_eq!(state.get("revision"), Some(&1.into()));
    // A transaction has at most fifty events and one update of the state.
    let request = (10..110).map(|ago| event(1, ago, &[("a", ago.into())]));
    chargers.ingest(request.collect()).await.expect("ingests");
    let state = item(&*fixture.store, "evse-device-state", &sc_id(1))
        .await
        .expect("a state");
    assert_eq!(state.get("a"), Some(&1.into()));
}

#[tokio::test]
async fn uplink_keeps_attributes_that_it_lacks() {
    let (chargers, fixture) = chargers().await;
    chargers
        .ingest(vec![event(
            1,
            9,
            &[("current_ma", 16_000.into()), ("firmware", "1.2".into())],
        )])
        .await
        .expect("ingests");
    let set = patch(&[
        ("scheduler_paused", Some(true.into())),
        ("ota_session", Some("s1".into())),
        ("time_sync_at", Some(7.into())),
        ("divergence_count", Some(2.into())),
    ]);
    chargers
        .patch_state(&sc_id(1).into(), set)
        .await
        .expect("sets");
    // The uplink tries to change attributes of operators, which it must not.
    let members = [
        ("current_ma", 0.into()),
        ("scheduler_paused", false.into()),
        ("device_id", "SC-00000000".into()),
        ("revision", 99.into()),
    ];
    chargers
        .ingest(vec![event(1, 8, &members)])
        .await
        .expect("ingests");
    let state = state(&*fixture.store, 1).await;
    for (name, value) in [
        ("scheduler_paused", Value::from(true)),
        ("ota_session", "s1".into()),
        ("time_sync_at", 7.into()),
        ("divergence_count", 2.into()),
        ("firmware", "1.2".into()),
        ("current_ma", 0.into()),
        ("device_id", (&sc_id(1)).into()),
        ("revision", 2.into()),
    ] {
        assert_eq!(state.get(name), Some(&value), "{name}");
    }
}

#[tokio::test]
async fn older_event_only_adds_new_attributes() {
    let (chargers, fixture) = chargers().await;
    chargers
        .ingest(vec![event(1, 5, &[("current_ma", 5.into())])])
        .await
        .expect("ingests");
    let late = event(
        1,
        50,
        &[("current_ma", 50.into()), ("firmware", "1.2".into())],
    );
    chargers.ingest(vec![late]).await.expect("ingests");
    let state = state(&*fixture.store, 1).await;
    assert_eq!(state.get("current_ma"), Some(&5.into()));
    assert_eq!(state.get("firmware"), Some(&"1.2".into()));
    assert_eq!(
        state.get("last_seen_utc_ms"),
        Some(&(NOW_MS - 300_000).into())
    );
}

#[tokio::test]
async fn order_of_arrival_does_not_change_the_state() {
    // Every order of four events, one by one and in pairs, each on its own device.
    let (chargers, fixture) = chargers().await;
    let sent = |device| {
        [
            event(device, 40, &[("a", 1.into()), ("b", 1.into())]),
            event(device, 30, &[("b", 2.into()), ("c", 2.into())]),
            event(device, 20, &[("a", 3.into())]),
            event(device, 10, &[("d", 4.into())]),
        ]
    };
    let mut seen: Option<Item> = None;
    for order in 0..48_u8 {
        let mut left: Vec<NewEvent> = sent(order).to_vec();
        let mut shuffled = Vec::new();
        let mut code = usize::from(order / 2);
        for size in (1..=4).rev() {
            shuffled.push(left.remove(code % size));
            code /= size;
        }
        for request in shuffled.chunks(1 + usize::from(order % 2)) {
            chargers.ingest(request.to_vec()).await.expect("ingests");
        }
        let mut state = state(&*fixture.store, order).await;
        for own in ["revision", "device_id", "wireless_device_id"] {
            state.remove(own);
        }
        assert_eq!(*seen.get_or_insert_with(|| state.clone()), state, "{order}");
    }
    let state = seen.expect("a state");
    for (name, value) in [("a", 3), ("b", 2), ("c", 2), ("d", 4)] {
        assert_eq!(state.get(name), Some(&value.into()), "{name}");
    }
}

#[tokio::test]
async fn state_size_is_bounded() {
    let (chargers, fixture) = chargers().await;
    for request in 0..4 {
        let names: Vec<String> = (0..60).map(|n| format!("m{request}_{n}")).collect();
        let members: Vec<(&str, Value)> =
            names.iter().map(|name| (name.as_str(), 1.into())).collect();
        let outcomes = chargers
            .ingest(vec![event(1, request, &members)])
            .await
            .expect("ingests");
        assert!(is_stored(&outcomes[0]));
    }
    let state = state(&*fixture.store, 1).await;
    let reported = state
        .get("reported_utc_ms")
        .and_then(Value::as_map)
        .expect("times");
    assert_eq!(reported.len(), REPORTED_MAX);
}

#[tokio::test(flavor = "multi_thread")]
async fn racing_first_events_register_one_device() {
    let (chargers, fixture) = chargers().await;
    let racers = (0..8).map(|number: i64| {
        let chargers = chargers.clone();
        let name = format!("m{number}");
        tokio::spawn(async move {
            let sent = event(1, number, &[(name.as_str(), number.into())]);
            chargers.ingest(vec![sent]).await
        })
    });
    for racer in racers.collect::<Vec<_>>() {
        let outcomes = racer.await.expect("no panic").expect("ingests");
        assert!(is_stored(&outcomes[0]), "{outcomes:?}");
    }
    assert_eq!(items(&*fixture.store, "evse-devices").await.len(), 1);
    assert_eq!(items(&*fixture.store, "evse-events").await.len(), 8);
    let state = state(&*fixture.store, 1).await;
    for number in 0..8_i64 {
        assert_eq!(state.get(&format!("m{number}")), Some(&number.into()));
    }
    assert_eq!(state.get("last_seen_utc_ms"), Some(&NOW_MS.into()));
}

#[tokio::test(flavor = "multi_thread")]
async fn same_uplink_over_many_connections_is_stored_once() {
    let (chargers, fixture) = chargers().await;
    let timeless = NewEvent {
        occurred_at: None,
        sequence: Some(3),
        ..event(1, 0, &[])
    };
    let senders = (0..8).map(|_| {
        let chargers = chargers.clone();
        let request = vec![
            event(1, 5, &[("n", 1.into())]),
            event(1, 5, &[("n", 2.into())]),
            timeless.clone(),
        ];
        tokio::spawn(async move { chargers.ingest(request).await })
    });
    let mut stored = 0;
    for sender in senders.collect::<Vec<_>>() {
        let outcomes = sender.await.expect("no panic").expect("ingests");
        assert!(
            outcomes
                .iter()
                .all(|outcome| is_stored(outcome) || is_duplicate(outcome))
        );
        stored += outcomes.iter().filter(|outcome| is_stored(outcome)).count();
    }
    assert_eq!(stored, 3);
    assert_eq!(items(&*fixture.store, "evse-events").await.len(), 3);
}

#[tokio::test]
async fn operators_set_and_remove_attributes() {
    let (chargers, _fixture) = chargers().await;
    let missing = chargers
        .patch_state(&sc_id(1).into(), patch(&[("ota_a", Some(1.into()))]))
        .await;
    assert_eq!(missing, Err(ChargersError::DeviceMissing(sc_id(1).into())));
    chargers
        .ingest(vec![event(1, 5, &[])])
        .await
        .expect("ingests");
    let set = patch(&[("ota_a", Some(1.into())), ("scheduler_b", Some("x".into()))]);
    chargers
        .patch_state(&sc_id(1).into(), set)
        .await
        .expect("sets");
    let shown = chargers
        .patch_state(
            &sc_id(1).into(),
            patch(&[("ota_a", None), ("ota_none", None)]),
        )
        .await
        .expect("removes");
    assert_eq!(shown.get("ota_a"), None);
    assert_eq!(shown.get("scheduler_b"), Some(&"x".into()));
    assert_eq!(chargers.state(&sc_id(1)).await, Ok(shown.clone()));
    for ours in ["revision", "reported_utc_ms", "recent_uplinks"] {
        assert_eq!(shown.get(ours), None, "{ours}");
    }
    for name in ["current_ma", "device_id", "ota", "scheduler_ x", ""] {
        let changes = BTreeMap::from([(name.to_owned(), Some(Value::from(1)))]);
        assert!(StatePatch::new(changes).is_err(), "{name}");
    }
}

#[tokio::test]
async fn operator_attributes_are_bounded() {
    let (chargers, _fixture) = chargers().await;
    chargers
        .ingest(vec![event(1, 5, &[])])
        .await
        .expect("ingests");
    let many = |prefix: &str| {
        let changes = (0..100).map(|n| (format!("{prefix}{n}"), Some(Value::from(n))));
        StatePatch::new(changes.collect()).expect("a patch")
    };
    chargers
        .patch_state(&sc_id(1).into(), many("ota_"))
        .await
        .expect("sets");
    chargers
        .patch_state(&sc_id(1).into(), many("ota_"))
        .await
        .expect("sets again");
    let over = chargers
        .patch_state(&sc_id(1).into(), many("scheduler_"))
        .await;
    assert!(matches!(over, Err(ChargersError::Invalid(_))), "{over:?}");
}
