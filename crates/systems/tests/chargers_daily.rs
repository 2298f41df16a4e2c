//! Daily statistics of chargers in a store: counted from events, recounted, rebuilt.

mod support;

use std::collections::BTreeSet;
use std::sync::Arc;

use homeport_item::expression::KeyCondition;
use homeport_item::{Item, Map, Value};
use homeport_store::{Delete, Put, Query, Scan, Store};
use homeport_systems::chargers::{
    Chargers, ChargersError, EventData, EventDevice, MountainDay, NewEvent, ScId, WirelessDeviceId,
    affected_days, schema,
};
use homeport_systems::time::EpochMillis;
use support::{Fixture, NOW_MS};

const MINUTE_MS: i64 = 60_000;

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

fn day(text: &str) -> MountainDay {
    text.parse().expect("a day")
}

fn report(device: u8, at_ms: i64, state: &str) -> NewEvent {
    let members = [
        ("j1772_state", Value::from(state)),
        ("current_ma", 16_000.into()),
    ];
    let members = members.into_iter();
    let members: Map = members
        .map(|(name, value)| (name.to_owned(), value))
        .collect();
    NewEvent {
        device: EventDevice::Wireless(wireless(device)),
        event_type: "telemetry".parse().expect("a type"),
        occurred_at: Some(EpochMillis(at_ms)),
        sequence: None,
        data: EventData::new(members).expect("data"),
        uplink: None,
    }
}

async fn stats(chargers: &Chargers, device: u8) -> Vec<Item> {
    let page = chargers.daily(&sc_id(device), None, None, 100, None).await;
    page.expect("a page").items
}

async fn affected(store: &dyn Store) -> BTreeSet<(ScId, MountainDay)> {
    let events = store
        .scan(Scan::new("evse-events"))
        .await
        .expect("a scan")
        .items;
    events.iter().flat_map(affected_days).collect()
}

/// The events of a device, by key.
async fn items_of(store: &dyn Store, device: u8) -> Vec<Item> {
    let condition = KeyCondition::new("device_id", &sc_id(device));
    let page = store.query(Query::new("evse-events", condition)).await;
    page.expect("a page").items
}

fn number(item: &Item, name: &str) -> String {
    let number = item.get(name).and_then(Value::as_number);
    number.expect(name).to_string()
}

#[test]
fn event_affects_its_day_and_the_next() {
    let item = |key: &str, utc_ms: i64| {
        Item::new()
            .with("device_id", &sc_id(1))
            .with("timestamp_mt", key)
            .with("timestamp_utc_ms", utc_ms)
    };
    let days = affected_days(&item("2027-01-15 01:00:00.000", NOW_MS));
    let expected = ["2027-01-15", "2027-01-16"].map(|text| (sc_id(1), day(text)));
    assert_eq!(days, BTreeSet::from(expected));
    // An event whose key moved past midnight counts on the day on which it happened.
    let midnight = day("2027-01-16").start().0;
    let days = affected_days(&item("2027-01-16 00:00:00.000", midnight - 1));
    assert!(days.contains(&(sc_id(1), day("2027-01-15"))));
    assert_eq!(
        affected_days(&Item::new().with("device_id", "x")),
        BTreeSet::new()
    );
}

#[tokio::test]
async fn incremental_counts_equal_a_rebuild() {
    let (chargers, fixture) = chargers().await;
    let midnight = day("2027-01-14").start().0;
    // Charging over midnight, then idle.
    let sent = (-20..=20).map(|n: i64| {
        let state = if n < 2 { "C" } else { "B" };
        report(1, midnight + n * 15 * MINUTE_MS, state)
    });
    for event in sent {
        chargers.ingest(vec![event]).await.expect("ingests");
        chargers
            .recount(&affected(&*fixture.store).await)
            .await
            .expect("counts");
    }
    let kept_up = stats(&chargers, 1).await;
    assert_eq!(kept_up.len(), 2);
    assert_eq!(number(&kept_up[0], "event_count"), "20");
    assert_eq!(number(&kept_up[0], "charge_session_count"), "1");
    assert_eq!(number(&kept_up[0], "charge_duration_min"), "300");
    assert_eq!(number(&kept_up[0], "total_kwh"), "19.2");
    assert_eq!(number(&kept_up[1], "event_count"), "21");
    assert_eq!(number(&kept_up[1], "charge_session_count"), "0");
    assert_eq!(number(&kept_up[1], "charge_duration_min"), "30");
    assert_eq!(number(&kept_up[1], "longest_gap_minutes"), "15");
    let rebuilt = chargers
        .rebuild(None, day("2027-01-01"), day("2027-01-31"), 1000, None)
        .await
        .expect("rebuilds");
    assert_eq!((rebuilt.days, rebuilt.next), (2, None));
    assert_eq!(stats(&chargers, 1).await, kept_up);
}

#[tokio::test]
async fn late_event_corrects_its_day_and_the_next() {
    let (chargers, fixture) = chargers().await;
    let midnight = day("2027-01-14").start().0;
    let before = vec![
        report(1, midnight - 120 * MINUTE_MS, "B"),
        report(1, midnight + 60 * MINUTE_MS, "B"),
    ];
    chargers.ingest(before).await.expect("ingests");
    chargers
        .recount(&affected(&*fixture.store).await)
        .await
        .expect("counts");
    assert_eq!(
        number(&stats(&chargers, 1).await[1], "longest_gap_minutes"),
        "180"
    );
    chargers
        .ingest(vec![report(1, midnight - 30 * MINUTE_MS, "C")])
        .await
        .expect("ingests late");
    let late = BTreeSet::from([(sc_id(1), day("2027-01-13")), (sc_id(1), day("2027-01-14"))]);
    assert_eq!(chargers.recount(&late).await.expect("counts"), 2);
    let days = stats(&chargers, 1).await;
    assert_eq!(number(&days[0], "event_count"), "2");
    assert_eq!(number(&days[0], "charge_session_count"), "1");
    assert_eq!(number(&days[0], "longest_gap_minutes"), "1320");
    assert_eq!(number(&days[1], "longest_gap_minutes"), "90");
}

#[tokio::test]
async fn counting_is_idempotent_and_skips_empty_days() {
    let (chargers, fixture) = chargers().await;
    chargers
        .ingest(vec![report(1, NOW_MS, "B")])
        .await
        .expect("ingests");
    let days = affected(&*fixture.store).await;
    assert_eq!(chargers.recount(&days).await.expect("counts"), 1);
    let first = stats(&chargers, 1).await;
    assert_eq!(chargers.recount(&days).await.expect("counts"), 1);
    assert_eq!(stats(&chargers, 1).await, first);
    assert_eq!(first.len(), 1);
}

#[tokio::test]
async fn older_view_does_not_replace_newer_statistics() {
    let (chargers, fixture) = chargers().await;
    chargers
        .ingest(vec![report(1, NOW_MS, "B")])
        .await
        .expect("ingests");
    let newer = Item::new()
        .with("device_id", &sc_id(1))
        .with("date", "2027-01-15")
        .with("event_count", 5);
    fixture
        .store
        .put(Put::new("evse-daily-stats", newer.clone()))
        .await
        .expect("a put");
    let today = BTreeSet::from([(sc_id(1), day("2027-01-15"))]);
    chargers.recount(&today).await.expect("counts");
    assert_eq!(stats(&chargers, 1).await, [newer]);
    let (from, to) = (day("2027-01-15"), day("2027-01-15"));
    chargers
        .rebuild(Some(&sc_id(1)), from, to, 10, None)
        .await
        .expect("rebuilds");
    assert_eq!(number(&stats(&chargers, 1).await[0], "event_count"), "1");
}

#[tokio::test]
async fn rebuild_removes_days_without_events() {
    let (chargers, fixture) = chargers().await;
    let sent = vec![report(1, NOW_MS, "B"), report(2, NOW_MS, "B")];
    chargers.ingest(sent).await.expect("ingests");
    let counted = affected(&*fixture.store).await;
    chargers.recount(&counted).await.expect("counts");
    let migrated = |number, date: &str| {
        Item::new()
            .with("device_id", &sc_id(number))
            .with("date", date)
            .with("migrated_from", "daily-aggregates")
            .with("total_kwh", 7)
    };
    // Two days that were only migrated, one of them with a late event.
    for day in ["2027-01-13", "2027-01-14"] {
        let put = Put::new("evse-daily-stats", migrated(1, day));
        fixture.store.put(put).await.expect("a put");
    }
    let late = report(1, day("2027-01-14").start().0 + MINUTE_MS, "B");
    chargers.ingest(vec![late]).await.expect("ingests");
    let event = items_of(&*fixture.store, 1).await.remove(1);
    let key = Item::new().with("device_id", &sc_id(1)).with(
        "timestamp_mt",
        event.get("timestamp_mt").expect("a key").clone(),
    );
    let delete = Delete::new("evse-events", key);
    fixture.store.delete(delete).await.expect("deletes");
    let (from, to) = (day("2027-01-01"), day("2027-01-31"));
    chargers
        .rebuild(None, from, to, 1000, None)
        .await
        .expect("rebuilds");
    let kept = [migrated(1, "2027-01-13"), migrated(1, "2027-01-14")];
    assert_eq!(stats(&chargers, 1).await, kept);
    assert_eq!(stats(&chargers, 2).await.len(), 1);
}

#[tokio::test]
async fn days_of_23_and_25_hours_are_counted_whole() {
    let (chargers, _fixture) = chargers().await;
    for (text, reports) in [("2026-03-08", 92), ("2026-11-01", 100)] {
        let start = day(text).start().0;
        let sent: Vec<NewEvent> = (0..reports)
            .map(|n| report(1, start + n * 15 * MINUTE_MS, "C"))
            .collect();
        chargers.ingest(sent).await.expect("ingests");
        let today = BTreeSet::from([(sc_id(1), day(text))]);
        chargers.recount(&today).await.expect("counts");
        let page = chargers
            .daily(&sc_id(1), Some(day(text)), Some(day(text)), 5, None)
            .await;
        let days = page.expect("a page").items;
        assert_eq!(number(&days[0], "event_count"), reports.to_string());
        assert_eq!(number(&days[0], "availability_pct"), "100");
        assert_eq!(
            number(&days[0], "charge_duration_min"),
            (reports * 15).to_string()
        );
    }
}

#[tokio::test]
async fn rebuild_continues_where_it_stopped() {
    let (chargers, _fixture) = chargers().await;
    let sent = (0..60).map(|device| report(device, NOW_MS, "B"));
    chargers.ingest(sent.collect()).await.expect("ingests");
    let (mut days, mut requests, mut cursor) = (0, 0, None);
    loop {
        let rebuilt = chargers
            .rebuild(None, day("2027-01-14"), day("2027-01-15"), 20, cursor)
            .await;
        let rebuilt = rebuilt.expect("rebuilds");
        days += rebuilt.days;
        requests += 1;
        cursor = rebuilt.next;
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(days, 60);
    assert!(requests >= 5, "{requests}");
    for device in 0..60 {
        assert_eq!(stats(&chargers, device).await.len(), 1, "{device}");
    }
    let wrong = chargers
        .rebuild(None, day("2027-01-15"), day("2027-01-14"), 20, None)
        .await;
    assert!(matches!(wrong, Err(ChargersError::Invalid(_))));
}

#[tokio::test]
async fn daily_statistics_are_listed_by_day() {
    let (chargers, fixture) = chargers().await;
    let sent = (0..10).map(|n| report(1, NOW_MS - n * 24 * 60 * MINUTE_MS, "B"));
    chargers.ingest(sent.collect()).await.expect("ingests");
    chargers
        .recount(&affected(&*fixture.store).await)
        .await
        .expect("counts");
    let (from, to) = (Some(day("2027-01-08")), Some(day("2027-01-13")));
    let mut seen = Vec::new();
    let mut cursor = None;
    loop {
        let page = chargers
            .daily(&sc_id(1), from, to, 4, cursor)
            .await
            .expect("a page");
        let dates = page
            .items
            .iter()
            .filter_map(|item| item.get("date")?.as_str().map(str::to_owned));
        seen.extend(dates);
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    let expected: Vec<String> = (8..=13).map(|day| format!("2027-01-{day:02}")).collect();
    assert_eq!(seen, expected);
    let none = chargers
        .daily(&sc_id(1), to, from, 4, None)
        .await
        .expect("a page");
    assert!(none.items.is_empty());
}
