//! The operations that the systems are said to use are those that they use: rights are granted from
//! that list, so that one too few breaks a server and one too many is a right that nobody needs.

#[path = "../support/mod.rs"]
mod support;

mod recording_store;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use homeport_item::{Item, Map, Value};
use homeport_store::{
    Change, ChangeFeed, ChangeKind, ChangePage, Clock as _, ManualClock, Position, Put, Store,
    StoreError,
};
use homeport_systems::alerts::{self, Alerts};
use homeport_systems::api_keys::{ApiKeys, NewApiKey, Pepper};
use homeport_systems::chargers::{
    Chargers, DailyReaction, EventData, EventDevice, EventRange, MountainDay, NewEvent, ScId,
    StatePatch, Uplink, WirelessDeviceId,
};
use homeport_systems::fleet::{
    self, DeviceFilter, DeviceRef, Expectations, Fleet, SYSTEMS, SourceDeps, Sources, TimelineRange,
};
use homeport_systems::messages::{
    self, Delivery, Intake as _, Properties, Publish, Publisher, QueueTable, RetainedTable,
    SessionTable, StoredSession,
};
use homeport_systems::outbox::SendError;
use homeport_systems::push::{
    self, Accepted, Envelope, Message, NewMessage, Push, PushService, Receipt, Ticket, Worker,
};
use homeport_systems::reactions::{Reaction as _, Reactions};
use homeport_systems::records::{
    self, Attributes, DeviceChange, GroupChange, GroupReaction, NewDevice, NewGroup, NewJournal,
    NewRecord, RecordRange, RecordValue, Records,
};
use homeport_systems::removal::{OPEN_MS_MIN, Removals};
use homeport_systems::rules::{
    OutgoingRequest, ReplayRange, RequestService, RequestWorker, RuleEngine, RuleEngineDeps,
};
use homeport_systems::schema::{TableNames, systems, tables};
use homeport_systems::sensors::{
    Capabilities, HardwareId, NameChange, Named, Reading, ReadingRange, Registration, Sensors,
    Settings,
};
use homeport_systems::severity::Severity;
use homeport_systems::telemetry::{self, FleetSelection, HistoryRange, Telemetry};
use homeport_systems::time::{EpochMillis, FutureLimit};
use recording_store::{RecordingStore, Used};
use support::{Fixture, NOW_MS};

#[tokio::test]
async fn systems_use_what_they_are_said_to_use() {
    let names = TableNames {
        broadcast_index: true,
        ..TableNames::default()
    };
    let fixture = support::fixture(&tables(&names)).await;
    let noting = Arc::new(RecordingStore {
        store: Arc::clone(&fixture.store),
        used: Mutex::default(),
    });
    let clock = Arc::clone(&fixture.clock);
    let store = Arc::clone(&noting) as Arc<dyn Store>;
    let sensors = Sensors::new(
        Arc::clone(&store),
        Arc::clone(&clock) as _,
        Settings::default(),
    );
    use_sensors(&sensors, &fixture).await;
    let chargers = Chargers::new(Arc::clone(&store), Arc::clone(&clock) as _);
    use_chargers(&chargers).await;
    use_decoders(&chargers).await;
    use_reactions(&store, &clock).await;
    let push = Push::new(
        Arc::clone(&store),
        Arc::clone(&clock) as _,
        push::Settings {
            broadcast_index: true,
            ..push::Settings::default()
        },
    );
    use_push(&push, &clock).await;
    use_telemetry_and_rules(&store, &clock, &push).await;
    use_alerts(&store, &clock, &push).await;
    use_fleet(&store, &clock).await;
    let settings = records::Settings::default();
    use_records(&Records::new(
        Arc::clone(&store),
        Arc::clone(&clock) as _,
        settings,
    ))
    .await;
    use_messages(&store).await;
    let process = || {
        let pepper = Pepper::new("pepper".to_owned());
        ApiKeys::new(Arc::clone(&store), Arc::clone(&clock) as _, pepper)
    };
    use_api_keys(&process(), &process()).await;
    use_people(&store, &clock).await;
    use_removals(&store, &fixture, &sensors, &chargers).await;

    let mut declared = Used::new();
    for table in systems(&names).into_iter().flat_map(|system| system.tables) {
        let name = &table.schema.name;
        declared.extend(
            table
                .operations
                .iter()
                .map(|one| (name.clone(), None, *one)),
        );
        for index in &table.schema.indexes {
            let used = table.index_operations.iter();
            declared.extend(used.map(|one| (name.clone(), Some(index.name.clone()), *one)));
        }
    }
    assert_eq!(*noting.used.lock().expect("no panic"), declared);
}

/// A link, a session that is used, and a person who is deleted.
async fn use_people(store: &Arc<dyn Store>, clock: &Arc<ManualClock>) {
    use homeport_systems::people::{
        CredentialKind, Grant, NewPerson, Password, People, Role, SessionClient, Settings,
    };
    let settings = Settings {
        session_secs: 3600,
        admin_generation: 1,
    };
    let people = People::new(Arc::clone(store), Arc::clone(clock) as _, settings);
    let link = people.begin_setup().await.expect("begun").expect("a link");
    let password = Password::new("correct horse battery".to_owned()).expect("a password");
    let client = SessionClient::default();
    let name = "anna".parse().expect("a name");
    let session = people.complete_setup(&link, name, password, client).await;
    let session = session.expect("signed in").raw.reveal();
    let found = people.verify(&session, CredentialKind::Session).await;
    let found = found.expect("verified").expect("a session");
    people
        .end_sessions(found.person, None)
        .await
        .expect("ended");
    let new = NewPerson {
        name: "bert".parse().expect("a name"),
        password: None,
        roles: vec![Grant::everywhere(Role::Viewer)],
    };
    let bert = people.create(new).await.expect("created");
    people.delete(&bert.name).await.expect("deleted");
}

/// Every use case, the paths of new and of known devices alike.
async fn use_sensors(sensors: &Sensors, fixture: &support::Fixture) {
    let device: HardwareId = "AA:BB:CC:DD:EE:01".parse().expect("a MAC address");
    let boot_id = "7c9e6679-7425-40de-944b-e07fc1f90ae7";
    let registration = Registration {
        hardware_id: device.clone(),
        boot_id: boot_id.parse().expect("a UUID"),
        firmware_version: "1.0.16".parse().expect("a version"),
        friendly_name: NameChange::Keep,
        capabilities: Capabilities::new(vec!["bme280".parse().expect("a name")], BTreeMap::new())
            .expect("few"),
    };
    let reading = |device: &HardwareId, batch_id: &str| Reading {
        batch_id: batch_id.parse().expect("a batch id"),
        hardware_id: device.clone(),
        boot_id: boot_id.parse().expect("a UUID"),
        firmware_version: "1.0.16".parse().expect("a version"),
        timestamp: EpochMillis(NOW_MS),
        sensors: Named::from([(
            "bme280_temp_c".parse().expect("a name"),
            "22.5".parse().expect("a number"),
        )]),
        sensor_status: Named::default(),
        friendly_name: None,
    };
    sensors.register(registration.clone()).await.expect("new");
    sensors.register(registration).await.expect("known");
    let unknown: HardwareId = "AA:BB:CC:DD:EE:02".parse().expect("a MAC address");
    for (device, batch_id) in [
        (&device, "a"),
        (&device, "a"),
        (&unknown, "a"),
        (&unknown, "b"),
    ] {
        fixture.clock.advance_ms(3_600_000);
        let outcomes = sensors.ingest(vec![reading(device, batch_id)]).await;
        outcomes.expect("outcomes");
    }
    let of_two = vec![reading(&device, "c"), reading(&unknown, "d")];
    sensors.ingest(of_two).await.expect("outcomes");
    let name = NameChange::Set("roof".parse().expect("a name"));
    sensors.rename_device(&device, name).await.expect("renamed");
    sensors.device(&device).await.expect("a device");
    sensors.list_devices(10, None).await.expect("devices");
    sensors.latest_reading(&device).await.expect("a reading");
    let range = ReadingRange::default();
    let page = sensors.readings(&device, range, 10, None).await;
    assert_eq!(page.expect("readings").items.len(), 2);
}

/// Deletes a reading, an event, a sensor and a charger.
async fn use_removals(
    store: &Arc<dyn Store>,
    fixture: &Fixture,
    sensors: &Sensors,
    chargers: &Chargers,
) {
    let sensor: HardwareId = "AA:BB:CC:DD:EE:01".parse().expect("a MAC address");
    let latest = sensors.latest_reading(&sensor).await.expect("a reading");
    let deleted = sensors.delete_reading(&sensor, latest.timestamp, &latest.batch_id);
    deleted.await.expect("deleted");
    sensors.decommission(&sensor).await.expect("removed");
    let charger = chargers
        .fleet(10, None)
        .await
        .expect("the fleet")
        .items
        .remove(0);
    let name = charger.device_id.clone().into();
    let range = EventRange::default();
    let page = chargers
        .events(&charger.device_id, None, range, 10, None)
        .await;
    let event = page.expect("events").items.remove(0);
    let deleted = chargers.delete_event(&name, event.timestamp_mt).await;
    deleted.expect("deleted");
    let empty = MountainDay::of(EpochMillis(NOW_MS)).next();
    let rebuilt = chargers
        .rebuild(Some(&charger.device_id), empty, empty, 10, None)
        .await;
    rebuilt.expect("counted again");
    chargers
        .rename(&name, NameChange::Remove)
        .await
        .expect("renamed");
    chargers.decommission(&name).await.expect("removed");
    // A request that had begun before may still write a state.
    let late = Item::new().with("device_id", &charger.device_id);
    let late = Put::new("evse-device-state", late);
    fixture.store.put(late).await.expect("a put");
    fixture.clock.advance_ms(OPEN_MS_MIN);
    let removals = Removals::new(Arc::clone(store), Arc::clone(&fixture.clock) as _);
    let swept = removals.continue_all(100).await;
    assert!(swept.expect("swept").is_finished);
}

async fn use_decoders(chargers: &Chargers) {
    let decoders = chargers.decoders();
    let name = "evse".parse().expect("a name");
    let document = || serde_json::from_str(r#"{"fields": []}"#).expect("a decoder");
    decoders.put(&name, document(), None).await.expect("stored");
    decoders.put(&name, document(), None).await.expect("stored");
    decoders.list(10, None).await.expect("a list");
    decoders.versions(&name).await.expect("versions");
    decoders.version(&name, 1).await.expect("a version");
    let message =
        br#"{"WirelessDeviceId": "b319d001-6b08-4d88-b4ca-4d2d98a6d43c", "PayloadData": "",
        "WirelessMetadata": {"Sidewalk": {}}}"#;
    let uplink = Uplink::parse(message).expect("an uplink");
    let outcomes = chargers.ingest_uplinks(vec![uplink]).await;
    outcomes.expect("outcomes");
    decoders.delete(&name, None).await.expect("deleted");
}

/// Two events of a charger, one of them in a day that is counted and then empty.
async fn use_chargers(chargers: &Chargers) {
    let wireless: WirelessDeviceId = "b319d001-6b08-4d88-b4ca-4d2d98a6d43c"
        .parse()
        .expect("a UUID");
    let device = ScId::of(wireless);
    let event = |at_ms| NewEvent {
        device: EventDevice::Wireless(wireless),
        event_type: "telemetry".parse().expect("a type"),
        occurred_at: Some(EpochMillis(at_ms)),
        sequence: None,
        data: EventData::new(Map::new()).expect("data"),
        uplink: None,
    };
    for events in [vec![event(NOW_MS)], vec![event(NOW_MS), event(NOW_MS - 1)]] {
        chargers.ingest(events).await.expect("outcomes");
    }
    let paused = BTreeMap::from([("scheduler_paused".to_owned(), Some(Value::Bool(true)))]);
    let patch = StatePatch::new(paused).expect("a patch");
    chargers
        .patch_state(&device.clone().into(), patch)
        .await
        .expect("patched");
    chargers.charger(&device).await.expect("a charger");
    chargers.fleet(10, None).await.expect("the fleet");
    let range = EventRange::default();
    let page = chargers.events(&device, None, range, 10, None).await;
    assert_eq!(page.expect("events").items.len(), 2);
    let kind = "telemetry".parse().expect("a type");
    let page = chargers.fleet_events(&kind, range, 10, None).await;
    page.expect("events");
    let day = MountainDay::of(EpochMillis(NOW_MS));
    let days = BTreeSet::from([(device.clone(), day)]);
    chargers.recount(&days).await.expect("counted");
    let rebuilt = chargers.rebuild(None, day, day, 10, None).await;
    rebuilt.expect("counted again");
    chargers
        .daily(&device, None, None, 10, None)
        .await
        .expect("days");
}

/// A log in which nothing happens.
struct Quiet;

#[async_trait]
impl ChangeFeed for Quiet {
    async fn end(&self, _: &str) -> Result<Position, StoreError> {
        Ok(Position::new("end"))
    }

    async fn changes(
        &self,
        _: &str,
        from: &Position,
        _: usize,
        _: Duration,
    ) -> Result<ChangePage, StoreError> {
        Ok(ChangePage {
            changes: Vec::new(),
            next: from.clone(),
            has_gap: false,
        })
    }
}

/// A reaction that starts over, and one that goes on.
async fn use_reactions(store: &Arc<dyn Store>, clock: &Arc<ManualClock>) {
    let chargers = Chargers::new(Arc::clone(store), Arc::clone(clock) as _);
    let reactions = Reactions::new(Arc::clone(store), Arc::new(Quiet), Arc::clone(clock) as _);
    for _ in 0..2 {
        let reaction = DailyReaction::new(chargers.clone());
        reactions.catch_up(&reaction).await.expect("caught up");
    }
}

/// A group with all there is below it, looked at, altered and removed.
async fn use_records(records: &Records) {
    let group = NewGroup {
        name: "home".parse().expect("a name"),
        retention: None,
        external_id: None,
        attributes: Attributes::default(),
    };
    let group = records.add_group(group).await.expect("a group").id;
    let device = NewDevice {
        name: "roof".parse().expect("a name"),
        model: None,
        acl_policy: None,
        attributes: Attributes::default(),
    };
    let device = records
        .add_device(group, device)
        .await
        .expect("a device")
        .id;
    let journal = NewJournal {
        name: "outside".parse().expect("a name"),
        data_type: "number".parse().expect("a type"),
        attributes: Attributes::default(),
    };
    let journal = records.add_journal(group, device, journal).await;
    let journal = journal.expect("a journal").id;
    for at in [NOW_MS, NOW_MS, NOW_MS + 1, NOW_MS - 1] {
        let new = NewRecord {
            value: RecordValue::Number(1.into()),
            unit: "C".parse().expect("a unit"),
            kind: "temperature".parse().expect("a type"),
            timestamp: Some(at.try_into().expect("a time")),
            id: Some(format!("id of {at}").parse().expect("an id")),
        };
        let added = records.add_record(group, device, journal, new).await;
        added.expect("a record");
    }
    let name = Some("house".parse().expect("a name"));
    let change = GroupChange {
        name,
        ..GroupChange::default()
    };
    records.alter_group(group, change).await.expect("altered");
    let altered = records
        .alter_device(group, device, DeviceChange::default())
        .await;
    altered.expect("altered");
    records.list_groups(10, None).await.expect("groups");
    records
        .list_devices(group, 10, None)
        .await
        .expect("devices");
    records.latest(group, None, 10, None).await.expect("latest");
    let range = RecordRange::default();
    let page = records.records(group, device, None, range, 10, None).await;
    assert_eq!(page.expect("records").items.len(), 3);
    let followed = GroupReaction::new(records.clone()).start_over().await;
    followed.expect("followed");
    records.housekeep(10).await.expect("kept house");
    let newest = (NOW_MS + 1).try_into().expect("a time");
    let deleted = records.delete_record(group, device, journal, newest).await;
    deleted.expect("deleted");
    records.remove_device(group, device).await.expect("removed");
    records.remove_group(group).await.expect("removed");
    records.continue_removals(100).await.expect("swept");
}

/// Knows no device.
struct Stranger;

#[async_trait]
impl PushService for Stranger {
    async fn send(&self, messages: &[Envelope]) -> Result<Vec<Ticket>, SendError> {
        let unknown = Ticket::Error {
            code: "DeviceNotRegistered".to_owned(),
            message: "gone".to_owned(),
        };
        Ok(vec![unknown; messages.len()])
    }

    async fn receipts(&self, _: &[String]) -> Result<BTreeMap<String, Receipt>, SendError> {
        Ok(BTreeMap::new())
    }
}

/// A device through all patterns, a notification from acceptance to its end, the clean-up.
async fn use_push(push: &Push, clock: &Arc<ManualClock>) {
    let user = "user-1".parse().expect("a user");
    let device = push::NewDevice {
        user_id: "user-1".parse().expect("a user"),
        device_id: "device-1".parse().expect("a device"),
        expo_push_token: "ExponentPushToken[one]".parse().expect("a token"),
        platform: push::Platform::Ios,
    };
    let device_id = device.device_id.clone();
    push.register(device.clone()).await.expect("new");
    push.register(device).await.expect("known");
    push.device(&user, &device_id).await.expect("a device");
    let page = push.active_devices(&user, 10, None).await;
    assert_eq!(page.expect("devices").items.len(), 1);
    let message = Message::new(NewMessage {
        title: Some("Done".to_owned()),
        body: Some("Your photo is ready".to_owned()),
        ..NewMessage::default()
    });
    let message = message.expect("a message");
    let key = "job-7".parse().expect("a key");
    for _ in 0..2 {
        let accepted = push.notify(&user, message.clone(), Some(&key)).await;
        accepted.expect("accepted");
    }
    let mut worker = Worker::new(push.clone(), Arc::new(Stranger));
    clock.advance_ms(1000);
    assert_eq!(worker.turn().await.expect("a turn").deactivated, 1);
    let page = push.notifications(&user, 10, None).await;
    assert!(page.expect("notifications").items[0].finished_at.is_some());
    push.check_table().await.expect("checked");
    push.check_user(&user).await.expect("checked");
    push.deactivate(&user, &device_id).await.expect("off");
    push.delete(&user, &device_id).await.expect("deleted");
    push.clean_up(30, false).await.expect("clean");
    for number in 0..101 {
        let device = push::NewDevice {
            user_id: user.clone(),
            device_id: number.to_string().parse().expect("a device"),
            expo_push_token: format!("ExpoPushToken[{number}]").parse().expect("a token"),
            platform: push::Platform::Android,
        };
        push.register(device).await.expect("new");
    }
    let Ok(Accepted::New(sent)) = push.notify(&user, message.clone(), None).await else {
        panic!("not accepted");
    };
    let read = push.notification(&user, &sent.id).await;
    assert_eq!(read.expect("a notification").devices.len(), 101);
    push.broadcast(None, message.clone(), Some(&key))
        .await
        .expect("accepted");
    let mut worker = Worker::new(push.clone(), Arc::new(Stranger));
    assert_eq!(worker.turn().await.expect("a turn").broadcast, 101);
    push.broadcasts(10, None).await.expect("broadcasts");
    push.erase_user(&user).await.expect("erased");
}

/// A broker without subscribers.
struct NoSubscribers;

#[async_trait]
impl Publish for NoSubscribers {
    async fn publish(&self, _: homeport_systems::messages::Message) -> Result<(), StoreError> {
        Ok(())
    }
}

/// Takes nothing at first, then everything.
#[derive(Default)]
struct Hesitant(Mutex<bool>);

#[async_trait]
impl RequestService for Hesitant {
    async fn post(&self, _: &OutgoingRequest) -> Result<(), SendError> {
        let was_asked = std::mem::replace(&mut *self.0.lock().expect("no panic"), true);
        let later = SendError::Busy {
            reason: "not now".to_owned(),
            retry_after: None,
        };
        was_asked.then_some(()).ok_or(later)
    }
}

/// A rule from its making to its end, a message through it, and everything there is to look at.
async fn use_telemetry_and_rules(store: &Arc<dyn Store>, clock: &Arc<ManualClock>, push: &Push) {
    let deps = RuleEngineDeps {
        store: Arc::clone(store),
        clock: Arc::clone(clock) as _,
        push: push.clone(),
        tables: tables(&TableNames::default()),
        telemetry_table: TableNames::default().telemetry,
        future_limit: FutureLimit::default(),
        sns_topics: std::collections::HashMap::new(),
    };
    let engine = RuleEngine::new(deps, Vec::new()).expect("an engine");
    engine.load().await.expect("rules");
    let name = "hook".parse().expect("a name");
    let document = serde_json::json!({
        "sql": "SELECT * FROM 'van/+/telemetry'",
        "actions": [{"http": {"url": "https://example.com"}}],
    });
    let document = || serde_json::from_value(document.clone()).expect("a rule");
    engine.put(&name, document(), None).await.expect("made");
    engine.put(&name, document(), None).await.expect("replaced");
    let message = homeport_systems::messages::Message {
        topic: "van/a/telemetry".to_owned(),
        payload: "{}".into(),
        delivery: Delivery::AtLeastOnce,
        retain: false,
        publisher: Publisher::default(),
        received_at: EpochMillis(NOW_MS),
        properties: Properties::default(),
        hops: 0,
    };
    engine.take(&message).await.expect("taken in");
    let worker = RequestWorker::new(
        engine.clone(),
        Arc::new(Hesitant::default()),
        Arc::new(NoSubscribers),
    );
    for sent in [1, 1, 0] {
        assert_eq!(worker.turn().await, Ok(sent));
        clock.advance_ms(3_600_000);
    }
    engine.versions(&name).await.expect("versions");
    engine.version(&name, 1).await.expect("a version");
    engine.delete(&name, None).await.expect("deleted");
    engine.refresh().await.expect("refreshed");
    let telemetry = Telemetry::new(
        Arc::clone(store),
        Arc::clone(clock) as _,
        &telemetry::Settings::default(),
    );
    let thing = "a".parse().expect("a thing");
    telemetry.latest(&thing, None).await.expect("a message");
    let kind = "telemetry".parse().expect("a type");
    let range = HistoryRange::default();
    for (selection, count) in [
        (FleetSelection::Type(kind), 1),
        (FleetSelection::Severity(Severity::Info, None), 0),
    ] {
        let page = telemetry.of_fleet(&selection, range, 10, None).await;
        assert_eq!(page.expect("messages").items.len(), count);
    }
    let rule = "telemetry".parse().expect("a name");
    let document = engine.rule(&rule).expect("a rule").rule.document;
    let range = ReplayRange {
        thing,
        from: None,
        to: None,
    };
    let replay = engine.replay(&rule, &document, telemetry, range);
    replay.expect("a rule").page(1).await.expect("a page");
}

/// Takes everything.
struct Obliging;

#[async_trait]
impl alerts::Deliver for Obliging {
    async fn webhook(&self, _: &alerts::WebhookCall) -> Result<(), SendError> {
        Ok(())
    }

    async fn email(&self, _: &alerts::Email) -> Result<(), SendError> {
        Ok(())
    }
}

/// A definition whose alert is raised, told, acknowledged and cleared, a silence, and their removal.
async fn use_alerts(store: &Arc<dyn Store>, clock: &Arc<ManualClock>, push: &Push) {
    let parts = alerts::Parts {
        store: Arc::clone(store),
        clock: Arc::clone(clock) as _,
        feed: Some(Arc::new(Quiet)),
        push: push.clone(),
        sources: sources(store, clock),
        publish: Arc::new(NoSubscribers),
    };
    let settings = alerts::Settings {
        silence_grace_secs: 0,
        ..alerts::Settings::default()
    };
    let alerts = Alerts::new(parts.clone(), settings.clone());
    let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".to_owned();
    let terms = |condition| alerts::DefinitionTerms {
        name: "cold".parse().expect("a name"),
        is_enabled: true,
        severity: alerts::Severity::Warning,
        source: fleet::SystemName::new("sensors"),
        filter: None,
        devices: alerts::Devices::All,
        condition,
        quiet: None,
        min_interval_secs: 0,
        targets: vec![alerts::Target::Webhook {
            url: "https://example.com/".parse().expect("a URL"),
            secret: Some(secret.clone().try_into().expect("a secret")),
        }],
    };
    let cold = alerts::Condition::Threshold(alerts::Threshold {
        attribute: "sensors.t".parse().expect("a path"),
        side: alerts::Side::Below,
        raise: 10.into(),
        clear: 10.into(),
        min_secs: 0,
        min_count: 1,
    });
    let silent = alerts::Condition::Absence(alerts::Absence { after_secs: 60 });
    let cold = alerts.create(terms(cold)).await.expect("a definition");
    let silent = alerts.create(terms(silent)).await.expect("a definition");
    // Not every store has a log: the changes are made up.
    let reading = |at_ms: i64, degrees: i64| {
        let values = Map::from([("t".to_owned(), Value::from(degrees))]);
        let item = Item::new()
            .with("hardware_id", "AA:BB:CC:DD:EE:03")
            .with("ts_batch", format!("{at_ms:013}#a"))
            .with("timestamp_ms", at_ms)
            .with("sensors", Value::M(values));
        Change {
            at_ms: clock.now_ms(),
            kind: ChangeKind::Insert,
            by_expiry: false,
            key: Item::new(),
            old: None,
            new: Some(item),
        }
    };
    let judge = async |alerts: &Alerts, change| {
        let reaction = alerts.reaction(&fleet::SystemName::new("sensors"));
        let reaction = reaction.expect("a watched system");
        let reactions = alerts.reactions().expect("a feed");
        reactions.catch_up(&reaction).await.expect("level");
        reaction.apply(&[change]).await.expect("judged");
    };
    judge(&alerts, reading(NOW_MS, 5)).await;
    let mut worker = alerts::Worker::new(alerts.clone(), Arc::new(Obliging));
    worker.turn().await.expect("a turn");
    let open = alerts
        .alerts(&alerts::AlertFilter::default(), 10, None)
        .await;
    let id = open.expect("alerts").items[0].id.clone();
    let by = "anna".parse().expect("a name");
    alerts.acknowledge(&id, by, None).await.expect("seen");
    judge(&alerts, reading(NOW_MS + 1, 15)).await;
    // Another process judges the next one, so that what this one knows is out of date.
    let other = Alerts::new(parts, settings);
    judge(&other, reading(NOW_MS + 2, 5)).await;
    judge(&alerts, reading(NOW_MS + 3, 15)).await;
    clock.advance_ms(120_000);
    assert_eq!(worker.turn().await.expect("a turn").silent, 1);
    let page = alerts.definitions(10, None).await.expect("a page");
    assert_eq!(page.items.len(), 2);
    for id in [&cold.id, &silent.id] {
        alerts.definition(id).await.expect("a definition");
        alerts.delete(id).await.expect("deleted");
    }
}

fn sources(store: &Arc<dyn Store>, clock: &Arc<ManualClock>) -> Sources {
    let clock = Arc::clone(clock) as _;
    let deps = SourceDeps::for_reading(store, &clock, &TableNames::default());
    Sources::connect(&SYSTEMS, &deps)
}

/// The list of devices, and the timeline of one with alerts.
async fn use_fleet(store: &Arc<dyn Store>, clock: &Arc<ManualClock>) {
    let (store_again, time) = (Arc::clone(store), Arc::clone(clock) as _);
    let sources = sources(store, clock);
    let fleet = Fleet::new(store_again, time, sources, Expectations::default());
    let page = fleet
        .devices(&DeviceFilter::default(), |_| true, 100, None)
        .await;
    let page = page.expect("devices");
    assert!(page.counts.total() > 0);
    for (device, _) in &page.devices {
        let named = DeviceRef {
            system: device.system.clone(),
            id: device.id.clone(),
        };
        fleet.device(&named).await.expect("its page");
        let range = TimelineRange::default();
        let timeline = fleet.timeline(&named, &range, 10, None).await;
        timeline.expect("its timeline");
    }
}

async fn use_api_keys(keys: &ApiKeys, elsewhere: &ApiKeys) {
    let (key, raw) = keys
        .create(NewApiKey::for_all_of("sensors"))
        .await
        .expect("a key");
    let verified = elsewhere.verify(raw.reveal()).await.expect("verified");
    assert!(verified.is_some());
    elsewhere.check_pepper().await.expect("the pepper");
    keys.list(10, None).await.expect("keys");
    let inactive = keys.inactive(&[key.key_id].into()).await;
    assert!(inactive.expect("a status").is_empty());
    keys.revoke(key.key_id).await.expect("revoked");
}

/// A session from its beginning to its end, a message through its queue, and a retained one.
async fn use_messages(store: &Arc<dyn Store>) {
    let sessions = SessionTable::new(Arc::clone(store));
    sessions.begin_run().await.expect("a run");
    let session = StoredSession {
        owner: "any".to_owned(),
        client_id: "c".to_owned(),
        queue_id: "q".to_owned(),
        expiry_secs: 60,
        expires_at: None,
        subscriptions: BTreeMap::new(),
    };
    sessions.put(&session).await.expect("stored");
    assert_eq!(sessions.load().await.expect("sessions").len(), 1);
    sessions.remove("any", "c").await.expect("removed");
    let message = messages::Message {
        topic: "van/v1/x".to_owned(),
        payload: "1".into(),
        delivery: messages::Delivery::AtLeastOnce,
        retain: true,
        publisher: messages::Publisher::default(),
        received_at: EpochMillis(NOW_MS),
        properties: messages::Properties::default(),
        hops: 0,
    };
    let retained = RetainedTable::new(Arc::clone(store));
    let now = EpochMillis(NOW_MS).seconds();
    retained.keep(&message, 1, now).await.expect("kept");
    assert_eq!(retained.topics().await.expect("topics").len(), 1);
    let topics = [message.topic.as_str().into()];
    assert_eq!(retained.get(&topics).await.expect("messages").len(), 1);
    let queue = QueueTable::new(Arc::clone(store));
    let queued = messages::NewQueued {
        queue_id: "q".into(),
        queued: messages::Queued {
            sequence: 1,
            message: Arc::new(message),
            delivery: messages::Delivery::AtLeastOnce,
            retain: false,
            identifiers: Vec::new(),
        },
        expires_at: now.plus_secs(3_000_000_000),
    };
    queue.add(&[queued]).await.expect("added");
    assert_eq!(queue.count("q").await, Ok(1));
    assert_eq!(queue.first("q", 1).await.expect("a page").queued.len(), 1);
    queue.clear("q").await.expect("cleared");
}
