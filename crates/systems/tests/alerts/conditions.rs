//! Conditions on states, in the forms that the systems store: events of chargers, readings of sensors.

use homeport_item::{Item, Map, Value};
use homeport_store::{Get, Put};
use homeport_systems::alerts::{
    AlertFilter, Condition, DefinitionTerms, Equality, EqualityOperator, Fault, Filter, Severity,
    StateFilter, ValueChange, WantedValue,
};
use homeport_systems::chargers;
use homeport_systems::fleet::SystemName;

use crate::support::NOW_MS;
use crate::world::{TELEMETRY, VAN, World, low_battery, terms};

const CHARGER: &str = "SC-A1B2C3D4";

fn of_chargers(condition: Condition) -> DefinitionTerms {
    DefinitionTerms {
        source: SystemName::new("chargers"),
        ..terms(condition)
    }
}

fn fault(attribute: &str) -> Condition {
    Condition::Fault(Fault {
        attribute: attribute.parse().expect("a path"),
        min_secs: 0,
        min_count: 1,
    })
}

/// Stores an event of a charger and judges it.
async fn event(world: &World, secs: i64, event_type: &str, data: &[(&str, Value)]) {
    let data = data
        .iter()
        .map(|(name, value)| ((*name).to_owned(), value.clone()));
    let event = Item::new()
        .with("device_id", CHARGER)
        .with("timestamp_mt", format!("2027-01-15 01:00:{secs:02}.000"))
        .with("timestamp_utc_ms", NOW_MS + secs * 1000)
        .with("event_type", event_type)
        .with("data", Value::M(data.collect::<Map>()));
    let put = Put::new(chargers::schema::EVENTS, event);
    world.fixture.store.put(put).await.expect("stored");
    world.judge("chargers").await;
}

async fn reasons(world: &World, state: StateFilter) -> Vec<String> {
    let alerts = world.list(state).await.into_iter();
    alerts.map(|alert| alert.reason).collect()
}

#[tokio::test]
async fn charger_state_raises_when_it_equals() {
    let world = World::new().await;
    let is_error = Condition::Equality(Equality {
        attribute: "data.j1772_state".parse().expect("a path"),
        operator: EqualityOperator::Equals,
        value: WantedValue::Text("F".parse().expect("a text")),
        min_secs: 0,
        min_count: 1,
    });
    world.create(of_chargers(is_error)).await;
    event(&world, 1, "telemetry", &[("j1772_state", "C".into())]).await;
    assert_eq!(world.counts().await, (0, 0));
    event(&world, 2, "telemetry", &[("j1772_state", "F".into())]).await;
    assert_eq!(
        reasons(&world, StateFilter::Open).await,
        ["data.j1772_state is \"F\""]
    );
    event(&world, 3, "telemetry", &[("current_ma", 3.into())]).await;
    assert_eq!(world.counts().await, (1, 0));
    event(&world, 4, "telemetry", &[("j1772_state", "A".into())]).await;
    assert_eq!(world.counts().await, (0, 1));
}

#[tokio::test]
async fn charger_fault_flags_raise_one_alert() {
    let world = World::new().await;
    world.create(of_chargers(fault("data.fault_*"))).await;
    event(&world, 1, "telemetry", &[("fault_interlock", false.into())]).await;
    event(&world, 2, "telemetry", &[("fault_interlock", true.into())]).await;
    event(&world, 3, "telemetry", &[("fault_sensor", true.into())]).await;
    event(&world, 4, "telemetry", &[("fault_interlock", false.into())]).await;
    // The flag of the sensor is only in the stored watch.
    let world = world.reopen().await;
    assert_eq!(
        reasons(&world, StateFilter::Open).await,
        ["data.fault_interlock is true"]
    );
    event(&world, 5, "telemetry", &[("fault_sensor", false.into())]).await;
    assert_eq!(world.counts().await, (0, 1));
}

#[tokio::test]
async fn fault_event_of_charger_raises_until_resolved() {
    let world = World::new().await;
    let filter = Filter {
        attribute: "event_type".parse().expect("a path"),
        equals: "fault".parse().expect("a text"),
    };
    world
        .create(DefinitionTerms {
            filter: Some(filter),
            ..of_chargers(fault("data.code"))
        })
        .await;
    event(&world, 1, "fault", &[("code", "GFCI".into())]).await;
    assert_eq!(
        reasons(&world, StateFilter::Open).await,
        ["data.code is \"GFCI\""]
    );
    event(&world, 2, "telemetry", &[("code", "none".into())]).await;
    assert_eq!(world.counts().await, (1, 0));
    event(&world, 3, "fault", &[("code", "none".into())]).await;
    assert_eq!(world.counts().await, (0, 1));
}

#[tokio::test]
async fn changed_firmware_survives_a_restart() {
    let world = World::new().await;
    let change = Condition::Change(ValueChange {
        attribute: "firmware".parse().expect("a path"),
        clear_after_secs: 60,
    });
    world.create(terms(change)).await;
    let firmware = async |world: &World, secs: i64, version: &str| {
        let item = Item::new()
            .with("thing_name", VAN)
            .with("timestamp", NOW_MS + secs * 1000)
            .with("firmware", version);
        let put = Put::new(TELEMETRY, item);
        world.fixture.store.put(put).await.expect("stored");
        world.judge_telemetry().await;
    };
    firmware(&world, 1, "1.0").await;
    let world = world.reopen().await;
    firmware(&world, 2, "1.1").await;
    let changed = "firmware changed from \"1.0\" to \"1.1\"";
    assert_eq!(reasons(&world, StateFilter::Open).await, [changed]);
    let world = world.reopen().await;
    firmware(&world, 61, "1.1").await;
    assert_eq!(world.counts().await, (1, 0));
    firmware(&world, 62, "1.1").await;
    assert_eq!(world.counts().await, (0, 1));
}

#[tokio::test]
async fn severity_is_kept_filtered_and_sent() {
    let world = World::new().await;
    for severity in [Severity::Critical, Severity::Warning] {
        world
            .create(DefinitionTerms {
                severity,
                ..low_battery()
            })
            .await;
    }
    world.judged_volts(VAN, 1, "11").await;
    let of = async |severity| {
        let filter = AlertFilter {
            severity: Some(severity),
            ..AlertFilter::default()
        };
        world
            .alerts
            .alerts(&filter, 10, None)
            .await
            .expect("a page")
            .items
    };
    let critical = of(Severity::Critical).await;
    assert_eq!(critical.len(), 1);
    assert_eq!(critical[0].severity, Severity::Critical);
    assert_eq!(of(Severity::Info).await.len(), 0);
    // An alert that was stored before there were severities counts as a warning.
    let key = Item::new().with("alert_id", critical[0].id.as_str());
    let get = Get::new("homeport-alerts", key);
    let mut item = world
        .fixture
        .store
        .get(get)
        .await
        .expect("read")
        .expect("an alert");
    item.remove("severity");
    let put = Put::new("homeport-alerts", item);
    world.fixture.store.put(put).await.expect("stored");
    assert_eq!(of(Severity::Critical).await.len(), 0);
    assert_eq!(of(Severity::Warning).await.len(), 2);
    world.turn().await;
    let calls = world.outside.calls.lock().expect("no panic");
    assert_eq!(calls.len(), 2);
    for call in calls.iter() {
        let body: serde_json::Value = serde_json::from_str(&call.body).expect("JSON");
        assert_eq!(body["data"]["severity"], "warning");
    }
}

#[tokio::test]
async fn definition_stored_without_severity_is_a_warning() {
    let world = World::new().await;
    let terms = DefinitionTerms {
        severity: Severity::Critical,
        ..low_battery()
    };
    let definition = world.create(terms).await;
    let key = Item::new()
        .with("shelf", "definitions")
        .with("definition_id", definition.id.as_str());
    let get = Get::new("homeport-alert-definitions", key);
    let mut item = world
        .fixture
        .store
        .get(get)
        .await
        .expect("read")
        .expect("a definition");
    let terms = item
        .get("definition")
        .and_then(Value::as_str)
        .expect("terms");
    let without = terms.replace("\"severity\":\"critical\",", "");
    assert_ne!(terms, without);
    item.insert("definition", without);
    let put = Put::new("homeport-alert-definitions", item);
    world.fixture.store.put(put).await.expect("stored");
    let read = world
        .alerts
        .definition(&definition.id)
        .await
        .expect("a definition");
    assert_eq!(read.terms.severity, Severity::Warning);
}
