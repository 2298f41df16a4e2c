//! The documented tables and query patterns of chargers, and timelines in true order, also during the repeated
//! hour.

mod support;

use std::sync::Arc;

use homeport_item::expression::{KeyCondition, Path};
use homeport_item::schema::IndexProjection;
use homeport_item::{Item, KeyKind, Map, Value};
use homeport_store::{Put, Query, Scan};
use homeport_systems::chargers::{
    Chargers, ChargersError, Event, EventData, EventDevice, EventOutcome, EventRange, MountainTime,
    NewEvent, Order, ScId, WirelessDeviceId, schema,
};
use homeport_systems::cursor::Cursor;
use homeport_systems::time::EpochMillis;
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use support::{Fixture, NOW_MS};

const HOUR_MS: i64 = 3_600_000;
const MINUTE_MS: i64 = 60_000;
/// 2026-11-01T08:00:00Z, when 01:59:59.999 is followed by 01:00:00.000.
const FALL_BACK_MS: i64 = 1_793_520_000_000;
/// 2026-03-08T09:00:00Z, when 01:59:59.999 is followed by 03:00:00.000.
const SPRING_FORWARD_MS: i64 = 1_772_960_400_000;

async fn chargers() -> (Chargers, Fixture) {
    let fixture = support::fixture(&schema::tables()).await;
    let clock = Arc::clone(&fixture.clock) as _;
    let chargers = Chargers::new(Arc::clone(&fixture.store), clock);
    (chargers, fixture)
}

fn wireless(number: u16) -> WirelessDeviceId {
    format!("b319d001-6b08-4d88-b4ca-4d2d98a6{number:04x}")
        .parse()
        .expect("a UUID")
}

fn sc_id(number: u16) -> ScId {
    ScId::of(wireless(number))
}

fn event(device: u16, at_ms: i64, event_type: &str, number: i64) -> NewEvent {
    let members = Map::from([("n".to_owned(), Value::from(number))]);
    NewEvent {
        device: EventDevice::Wireless(wireless(device)),
        event_type: event_type.parse().expect("a type"),
        occurred_at: Some(EpochMillis(at_ms)),
        sequence: None,
        data: EventData::new(members).expect("data"),
        uplink: None,
    }
}

async fn store_all(chargers: &Chargers, events: Vec<NewEvent>) {
    for request in events.chunks(100) {
        let outcomes = chargers.ingest(request.to_vec()).await.expect("ingests");
        let is_stored = |outcome: &EventOutcome| matches!(outcome, EventOutcome::Stored { .. });
        assert!(outcomes.iter().all(is_stored), "{outcomes:?}");
    }
}

fn range(from: i64, to: i64, order: Order) -> EventRange {
    EventRange {
        from: Some(EpochMillis(from)),
        to: Some(EpochMillis(to)),
        order,
    }
}

/// All pages of a device's timeline.
async fn timeline(chargers: &Chargers, device: u16, range: EventRange, limit: usize) -> Vec<Event> {
    let mut events = Vec::new();
    let mut cursor = None;
    loop {
        let page = chargers
            .events(&sc_id(device), None, range, limit, cursor)
            .await;
        let page = page.expect("a page");
        assert!(page.items.len() == limit || page.next.is_none());
        events.extend(page.items);
        match page.next {
            // As a client sends it back.
            Some(next) => cursor = Some(Cursor::decode(&next.encode()).expect("a cursor")),
            None => return events,
        }
    }
}

fn times(events: &[Event]) -> Vec<i64> {
    events.iter().map(|event| event.timestamp_utc.0).collect()
}

fn numbers(events: &[Event]) -> Vec<i64> {
    let number = |event: &Event| event.data.members().get("n")?.as_number()?.to_i64();
    events.iter().filter_map(number).collect()
}

#[test]
fn tables_have_the_documented_schema() {
    let tables = schema::tables();
    let names: Vec<&str> = tables.iter().map(|table| table.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "evse-events",
            "evse-device-state",
            "evse-devices",
            "evse-daily-stats",
            "homeport-charger-decoders",
        ]
    );
    // The document has the first four.
    for table in &tables[..4] {
        assert_eq!(table.key.partition.name, "device_id", "{}", table.name);
        assert_eq!(table.key.partition.kind, KeyKind::S);
        assert_eq!(table.ttl_attribute, None, "no TTL");
    }
    let sort = |at: usize| {
        tables[at]
            .key
            .sort
            .as_ref()
            .map(|key| (key.name.as_str(), key.kind))
    };
    assert_eq!(sort(0), Some(("timestamp_mt", KeyKind::S)));
    assert_eq!(sort(1), None);
    assert_eq!(sort(2), None);
    assert_eq!(sort(3), Some(("date", KeyKind::S)));
    let indexes = &tables[0].indexes;
    assert_eq!(indexes.len(), 1);
    assert_eq!(indexes[0].name, "event-type-index");
    assert!(!indexes[0].local);
    assert_eq!(indexes[0].projection, IndexProjection::All);
    assert_eq!(indexes[0].key.partition.name, "event_type");
    assert_eq!(
        indexes[0].key.sort.as_ref().map(|key| key.name.as_str()),
        Some("timestamp_mt")
    );
    assert!(tables[1..].iter().all(|table| table.indexes.is_empty()));
    assert_eq!(
        schema::STATE_PREFIXES,
        ["scheduler_", "ota_", "time_sync_", "divergence_"]
    );
    assert_eq!(schema::WIRELESS_DEVICE_ID, "wireless_device_id");
}

#[tokio::test]
async fn pattern_interleaved_timeline_of_one_device() {
    let (chargers, _fixture) = chargers().await;
    let story = [
        "scheduler_pause",
        "telemetry",
        "ota_start",
        "interlock_trip",
    ];
    let sent = (0..)
        .zip(story)
        .map(|(n, kind)| event(1, NOW_MS + n * MINUTE_MS, kind, n));
    store_all(&chargers, sent.collect()).await;
    let all = EventRange {
        order: Order::OldestFirst,
        ..EventRange::default()
    };
    let events = timeline(&chargers, 1, all, 10).await;
    let kinds: Vec<&str> = events
        .iter()
        .map(|event| event.event_type.as_str())
        .collect();
    assert_eq!(kinds, story);
}

#[tokio::test]
async fn pattern_one_type_of_one_device_by_filter() {
    let (chargers, fixture) = chargers().await;
    let kind = |n: i64| {
        if n % 100 == 0 {
            "ota_start"
        } else {
            "telemetry"
        }
    };
    let sent = (0..1000).map(|n| event(1, NOW_MS - n * MINUTE_MS, kind(n), n));
    store_all(&chargers, sent.collect()).await;
    let ota = "ota_start".parse().expect("a type");
    let page = chargers
        .events(&sc_id(1), Some(&ota), EventRange::default(), 7, None)
        .await
        .expect("a page");
    // The page is full although most items that were read do not match.
    assert_eq!(numbers(&page.items), [0, 100, 200, 300, 400, 500, 600]);
    let rest = chargers
        .events(&sc_id(1), Some(&ota), EventRange::default(), 7, page.next)
        .await
        .expect("a page");
    assert_eq!(numbers(&rest.items), [700, 800, 900]);
    assert_eq!(rest.next, None);
    // The query as the document writes it.
    let condition = KeyCondition::new("device_id", &sc_id(1));
    let query =
        Query::new("evse-events", condition).filter(Path::new("event_type").equals("ota_start"));
    assert_eq!(fixture.store.query(query).await.expect("a page").count, 10);
}

#[tokio::test]
async fn pattern_all_events_of_a_type_across_the_fleet_newest_first() {
    let (chargers, fixture) = chargers().await;
    let sent = (0..30).map(|n| {
        let kind = if n % 3 == 0 { "ota_start" } else { "telemetry" };
        let device = u16::try_from(n % 7).expect("small");
        // Including several devices at one time.
        event(device, NOW_MS - (n / 6) * MINUTE_MS, kind, n)
    });
    store_all(&chargers, sent.collect()).await;
    let ota = "ota_start".parse().expect("a type");
    let mut found = Vec::new();
    let mut cursor = None;
    loop {
        let page = chargers
            .fleet_events(&ota, EventRange::default(), 3, cursor)
            .await;
        let page = page.expect("a page");
        found.extend(page.items);
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    assert!(times(&found).is_sorted_by(|one, two| one >= two));
    let mut seen = numbers(&found);
    seen.sort_unstable();
    assert_eq!(seen, (0..30).step_by(3).collect::<Vec<i64>>());
    let condition = KeyCondition::new("event_type", "ota_start");
    let query = Query::new("evse-events", condition)
        .on_index("event-type-index")
        .descending();
    assert_eq!(fixture.store.query(query).await.expect("a page").count, 10);
}

#[tokio::test]
async fn pattern_fleet_overview_is_one_scan_of_states() {
    let (chargers, fixture) = chargers().await;
    let sent = (0..25).map(|n| event(n, NOW_MS, "telemetry", n.into()));
    store_all(&chargers, sent.collect()).await;
    let mut seen = Vec::new();
    let mut cursor = None;
    loop {
        let page = chargers.fleet(10, cursor).await.expect("a page");
        for charger in &page.items {
            let uuid = charger
                .registration
                .get("wireless_device_id")
                .and_then(Value::as_str);
            let uuid: WirelessDeviceId = uuid.expect("joined").parse().expect("a UUID");
            assert_eq!(ScId::of(uuid), charger.device_id);
            assert_eq!(
                charger.state.get("last_event_type"),
                Some(&"telemetry".into())
            );
        }
        seen.extend(page.items.into_iter().map(|charger| charger.device_id));
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    seen.sort();
    let mut expected: Vec<ScId> = (0..25).map(sc_id).collect();
    expected.sort();
    assert_eq!(seen, expected);
    let scan = fixture.store.scan(Scan::new("evse-device-state")).await;
    assert_eq!(scan.expect("a scan").count, 25);
}

#[tokio::test]
async fn pattern_one_key_for_all_tables() {
    let (chargers, _fixture) = chargers().await;
    store_all(&chargers, vec![event(1, NOW_MS, "telemetry", 1)]).await;
    let charger = chargers.charger(&sc_id(1)).await.expect("a charger");
    for item in [&charger.registration, &charger.state] {
        assert_eq!(item.get("device_id"), Some(&(&sc_id(1)).into()));
        assert_eq!(item.get("wireless_device_id"), Some(&(&wireless(1)).into()));
    }
    let missing = chargers.charger(&sc_id(2)).await;
    assert_eq!(missing, Err(ChargersError::DeviceMissing(sc_id(2).into())));
}

#[tokio::test]
async fn repeated_hour_comes_in_true_order() {
    let (chargers, _fixture) = chargers().await;
    let (first, second) = (FALL_BACK_MS - HOUR_MS / 2, FALL_BACK_MS + HOUR_MS / 2);
    // The second one arrives first, and 01:45 of the first pass is between them.
    let sent = [
        event(1, second, "telemetry", 2),
        event(1, first, "telemetry", 1),
        event(1, first + 15 * MINUTE_MS, "telemetry", 15),
        event(1, second - 15 * MINUTE_MS, "telemetry", 20),
    ];
    store_all(&chargers, sent.to_vec()).await;
    for limit in [1, 2, 10] {
        let up = timeline(
            &chargers,
            1,
            range(first, second, Order::OldestFirst),
            limit,
        )
        .await;
        assert_eq!(numbers(&up), [1, 15, 20, 2], "{limit}");
        let down = timeline(
            &chargers,
            1,
            range(first, second, Order::NewestFirst),
            limit,
        )
        .await;
        assert_eq!(numbers(&down), [2, 20, 15, 1], "{limit}");
    }
    let events = timeline(&chargers, 1, EventRange::default(), 10).await;
    assert_eq!(
        events[0].timestamp_utc.0 - events[3].timestamp_utc.0,
        HOUR_MS
    );
    let keys: Vec<String> = events
        .iter()
        .map(|event| event.timestamp_mt.to_string())
        .collect();
    // The event on an occupied key moved by a millisecond.
    assert_eq!(
        keys,
        [
            "2026-11-01 01:30:00.000",
            "2026-11-01 01:15:00.000",
            "2026-11-01 01:45:00.000",
            "2026-11-01 01:30:00.001",
        ]
    );
}

#[tokio::test]
async fn range_within_repeated_hour_has_one_pass() {
    let (chargers, _fixture) = chargers().await;
    let quarter = HOUR_MS / 4;
    let sent = (-8..8).map(|n| event(1, FALL_BACK_MS + n * quarter, "telemetry", n));
    store_all(&chargers, sent.collect()).await;
    for (from, to) in [(-2, -1), (-2, 2), (1, 3), (-8, 1), (2, 7), (-4, 3)] {
        for order in [Order::OldestFirst, Order::NewestFirst] {
            let (start, end) = (FALL_BACK_MS + from * quarter, FALL_BACK_MS + to * quarter);
            let events = timeline(&chargers, 1, range(start, end, order), 3).await;
            let mut expected: Vec<i64> = (from..=to).collect();
            if order == Order::NewestFirst {
                expected.reverse();
            }
            assert_eq!(numbers(&events), expected, "{from} {to} {order:?}");
        }
    }
}

#[tokio::test]
async fn busy_repeated_hour_pages_in_true_order() {
    // One report a minute, and several devices for the view of the fleet: far more than is read at once.
    let (chargers, _fixture) = chargers().await;
    for device in [1, 2] {
        let sent = (-90..90).map(|n| event(device, FALL_BACK_MS + n * MINUTE_MS, "telemetry", n));
        store_all(&chargers, sent.collect()).await;
    }
    for order in [Order::OldestFirst, Order::NewestFirst] {
        let all = range(
            FALL_BACK_MS - 80 * MINUTE_MS,
            FALL_BACK_MS + 80 * MINUTE_MS,
            order,
        );
        let mut expected: Vec<i64> = (-80..=80).collect();
        if order == Order::NewestFirst {
            expected.reverse();
        }
        for limit in [3, 40, 100] {
            let events = timeline(&chargers, 1, all, limit).await;
            assert_eq!(numbers(&events), expected, "{order:?} {limit}");
        }
        let telemetry = "telemetry".parse().expect("a type");
        let (mut fleet, mut cursor) = (Vec::new(), None);
        loop {
            let page = chargers
                .fleet_events(&telemetry, all, 25, cursor)
                .await
                .expect("a page");
            fleet.extend(page.items);
            cursor = page.next;
            if cursor.is_none() {
                break;
            }
        }
        let twice: Vec<i64> = expected.iter().flat_map(|n| [*n, *n]).collect();
        assert_eq!(numbers(&fleet), twice, "{order:?}");
    }
}

#[tokio::test]
async fn skipped_hour_leaves_no_gap() {
    let (chargers, _fixture) = chargers().await;
    let sent = (-4..4).map(|n| event(1, SPRING_FORWARD_MS + n * 30 * MINUTE_MS, "telemetry", n));
    store_all(&chargers, sent.collect()).await;
    let span = range(
        SPRING_FORWARD_MS - 60 * MINUTE_MS,
        SPRING_FORWARD_MS + 60 * MINUTE_MS,
        Order::OldestFirst,
    );
    let events = timeline(&chargers, 1, span, 2).await;
    assert_eq!(numbers(&events), [-2, -1, 0, 1, 2]);
    let keys: Vec<String> = events
        .iter()
        .map(|event| event.timestamp_mt.to_string())
        .collect();
    assert_eq!(keys[1], "2026-03-08 01:30:00.000");
    assert_eq!(keys[2], "2026-03-08 03:00:00.000");
}

#[tokio::test]
async fn moved_event_is_found_by_its_own_time() {
    let (chargers, _fixture) = chargers().await;
    // The next millisecond is taken, so the second event of NOW is stored two milliseconds later.
    let sent = [
        event(1, NOW_MS + 1, "telemetry", 3),
        event(1, NOW_MS, "telemetry", 1),
        event(1, NOW_MS, "telemetry", 2),
    ];
    for sent in sent {
        store_all(&chargers, vec![sent]).await;
    }
    for limit in [1, 2, 3] {
        let all = range(NOW_MS, NOW_MS + 1, Order::OldestFirst);
        assert_eq!(
            numbers(&timeline(&chargers, 1, all, limit).await),
            [1, 2, 3]
        );
        let only = range(NOW_MS, NOW_MS, Order::NewestFirst);
        assert_eq!(numbers(&timeline(&chargers, 1, only, limit).await), [2, 1]);
    }
}

#[tokio::test]
async fn items_of_other_programs_hide_nothing() {
    let (chargers, fixture) = chargers().await;
    store_all(&chargers, vec![event(1, NOW_MS, "telemetry", 1)]).await;
    let foreign = |key: &str| {
        let item = Item::new()
            .with("device_id", &sc_id(1))
            .with("timestamp_mt", key);
        Put::new("evse-events", item.with("n", 2))
    };
    // Without timestamp_utc_ms the wall clock gives the time: 2027-01-14, with nonsense in between.
    fixture
        .store
        .put(foreign("2027-01-14 12:00:00.000"))
        .await
        .expect("a put");
    fixture
        .store
        .put(foreign("2027-01-14 99"))
        .await
        .expect("a put");
    let events = timeline(&chargers, 1, EventRange::default(), 10).await;
    assert_eq!(numbers(&events), [1, 2]);
    assert_eq!(events[1].timestamp_utc, EpochMillis(1_799_953_200_000));
}

#[tokio::test]
async fn cursor_of_another_timeline_is_rejected() {
    let (chargers, _fixture) = chargers().await;
    let sent = (0..3).map(|n| event(1, NOW_MS + n, "telemetry", n));
    store_all(&chargers, sent.collect()).await;
    let page = chargers
        .events(&sc_id(1), None, EventRange::default(), 1, None)
        .await;
    let next = page.expect("a page").next;
    let other = chargers
        .events(&sc_id(2), None, EventRange::default(), 1, next.clone())
        .await;
    assert!(matches!(other, Err(ChargersError::Cursor(_))));
    let telemetry = "telemetry".parse().expect("a type");
    let filtered = chargers
        .events(&sc_id(1), Some(&telemetry), EventRange::default(), 1, next)
        .await;
    assert!(matches!(filtered, Err(ChargersError::Cursor(_))));
}

#[tokio::test]
async fn ten_years_of_timelines_come_in_true_order() {
    // 2020 to 2030, half of the events within hours of a clock change, many at one time.
    let (chargers, _fixture) = chargers().await;
    let near = |change: i64| (-8_i64..8).prop_map(move |n| change + n * HOUR_MS / 4);
    let changes: Vec<i64> = (2020..2030).flat_map(changes_of).collect();
    let anywhere = 1_577_836_800_000_i64..1_893_456_000_000;
    let moment = prop_oneof![
        proptest::sample::select(changes).prop_flat_map(near),
        anywhere.prop_map(|ms| ms - ms % MINUTE_MS),
    ];
    let moments = proptest::collection::vec(moment, 1..60);
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    for device in 0..40_u16 {
        let mut drawn = moments.new_tree(&mut runner).expect("a value").current();
        let sent = (0_i64..)
            .zip(&drawn)
            .map(|(n, ms)| event(device, *ms, "telemetry", n));
        store_all(&chargers, sent.collect()).await;
        drawn.sort_unstable();
        let limit = 1 + usize::from(device % 9);
        for order in [Order::OldestFirst, Order::NewestFirst] {
            let all = EventRange {
                order,
                ..EventRange::default()
            };
            let events = timeline(&chargers, device, all, limit).await;
            let mut expected = drawn.clone();
            if order == Order::NewestFirst {
                expected.reverse();
            }
            assert_eq!(times(&events), expected, "{device}");
            for event in &events {
                // The key is a wall clock of the instant or of one slightly later.
                let key: MountainTime = event.timestamp_mt.to_string().parse().expect("a key");
                let moved = [key.earliest(), key.latest()].map(|at| at.0 - event.timestamp_utc.0);
                assert!(
                    moved.iter().any(|moved| (0..100).contains(moved)),
                    "{event:?}"
                );
            }
            let (from, to) = (drawn.len() / 4, drawn.len() * 3 / 4);
            let span = range(drawn[from], drawn[to.min(drawn.len() - 1)], order);
            let within = times(&timeline(&chargers, device, span, limit).await);
            let (start, end) = (span.from.expect("given"), span.to.expect("given"));
            expected.retain(|ms| (start.0..=end.0).contains(ms));
            assert_eq!(within, expected, "{device}");
        }
    }
}

/// The instants of a year's clock changes: the second Sunday of March and the first Sunday of November, both at
/// two o'clock.
fn changes_of(year: i16) -> [i64; 2] {
    let day = |month: i8, nth: i8| {
        let first = jiff::civil::date(year, month, 1);
        let sunday = first.nth_weekday_of_month(nth, jiff::civil::Weekday::Sunday);
        sunday.expect("a Sunday").at(2, 0, 0, 0)
    };
    let ms = |at: jiff::civil::DateTime, hours: i8| {
        let at = jiff::tz::offset(hours)
            .to_timestamp(at)
            .expect("an instant");
        at.as_millisecond()
    };
    [ms(day(3, 2), -7), ms(day(11, 1), -6)]
}
