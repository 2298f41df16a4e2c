//! Uplinks of AWS IoT Wireless and the payload decoders that make events of them.

mod support;

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use homeport_item::Value;
use homeport_store::{ManualClock, Scan};
use homeport_systems::chargers::decoders::{
    DECODERS_MAX, DecoderDocument, DecoderName, Decoders, DecodersError, REFRESH_MS,
};
use homeport_systems::chargers::{
    Chargers, Event, EventOutcome, EventRange, Order, ScId, UNDECODED, Uplink, UplinkOutcome,
    WirelessDeviceId, schema,
};
use homeport_systems::plain_json;
use serde_json::json;
use support::{Fixture, NOW_MS};

const UUID: &str = "b319d001-6b08-4d88-b4ca-4d2d98a6d43c";
/// A decoder of three bytes.
const CURRENT: &str = r#"{"fields": [{"name": "current_ma", "offset": 1, "type": "u16"}]}"#;

async fn chargers() -> (Chargers, Fixture) {
    let fixture = support::fixture(&schema::tables()).await;
    let clock = Arc::clone(&fixture.clock) as _;
    let chargers = Chargers::new(Arc::clone(&fixture.store), clock);
    (chargers, fixture)
}

fn document(json: &str) -> DecoderDocument {
    serde_json::from_str(json).expect("a decoder")
}

fn named(name: &str) -> DecoderName {
    name.parse().expect("a name")
}

async fn put(chargers: &Chargers, name: &str, json: &str) {
    let decoders = chargers.decoders();
    let put = decoders.put(&named(name), document(json), None).await;
    put.expect("stored");
}

fn sidewalk(payload: &[u8], sequence: u64) -> serde_json::Value {
    json!({
        "MessageId": "48a0c3cb-7dc6-4e03-b738-9f3565808bd0",
        "WirelessDeviceId": UUID,
        "PayloadData": STANDARD.encode(payload),
        "WirelessMetadata": {"Sidewalk": {
            "CmdExStatus": "COMMAND_EXEC_STATUS_UNSPECIFIED",
            "MessageType": "CUSTOM_COMMAND_ID_NOTIFY", "NackExStatus": [],
            "Seq": sequence, "SidewalkId": "B659A2463A",
        }},
    })
}

fn lorawan(payload: &[u8], f_port: u8) -> serde_json::Value {
    json!({
        "WirelessDeviceId": UUID,
        "PayloadData": STANDARD.encode(payload),
        "WirelessMetadata": {"LoRaWAN": {
            "ADR": false, "Bandwidth": 125, "DataRate": "0", "DevEui": "58a0cb0002020c99",
            "FCnt": 1, "FPort": f_port, "Frequency": "868100000",
            "Gateways": [{"GatewayEui": "80029cfffe5cf1cc", "Rssi": -29, "Snr": 9.75}],
            "MType": "UnconfirmedDataUp", "SpreadingFactor": 12,
            "Timestamp": "2027-01-15T07:59:00.295912052Z",
        }},
    })
}

fn uplink(message: &serde_json::Value) -> Uplink {
    Uplink::parse(message.to_string().as_bytes()).expect("an uplink")
}

async fn ingest(chargers: &Chargers, message: &serde_json::Value) -> UplinkOutcome {
    let outcomes = chargers.ingest_uplinks(vec![uplink(message)]).await;
    outcomes.expect("outcomes").remove(0)
}

async fn events(chargers: &Chargers) -> Vec<Event> {
    let wireless: WirelessDeviceId = UUID.parse().expect("a UUID");
    let range = EventRange {
        from: None,
        to: None,
        order: Order::OldestFirst,
    };
    let device_id = ScId::of(wireless);
    let page = chargers.events(&device_id, None, range, 100, None);
    page.await.expect("events").items
}

fn is_stored(outcome: &UplinkOutcome) -> bool {
    matches!(outcome.outcome, EventOutcome::Stored { .. })
}

#[tokio::test]
async fn decoded_uplink_becomes_an_event() {
    let (chargers, _fixture) = chargers().await;
    put(&chargers, "current", CURRENT).await;
    let outcome = ingest(&chargers, &lorawan(&[9, 0x3e, 0x80], 2)).await;
    assert!(is_stored(&outcome) && outcome.undecoded.is_none());
    let event = events(&chargers).await.remove(0);
    assert_eq!(event.event_type.as_str(), "telemetry");
    assert_eq!(event.data.members().get("current_ma"), Some(&16_000.into()));
    // The time of the network, and not of the arrival.
    assert_eq!(event.timestamp_utc.0, NOW_MS - 60_000 + 295);
    let uplink = event.uplink.expect("the uplink");
    assert_eq!(uplink.get("decoder"), Some(&"current".into()));
    assert_eq!(uplink.get("decoder_version"), Some(&1.into()));
    let message = uplink
        .get("message")
        .and_then(Value::as_map)
        .expect("a message");
    assert_eq!(message.get("PayloadData"), Some(&"CT6A".into()));
    let wireless: WirelessDeviceId = UUID.parse().expect("a UUID");
    let state = chargers.state(&ScId::of(wireless)).await.expect("a state");
    assert_eq!(state.get("current_ma"), Some(&16_000.into()));
}

#[tokio::test]
async fn repeated_uplink_is_stored_once() {
    let (chargers, _fixture) = chargers().await;
    let message = sidewalk(br#"{"current_ma": 1}"#, 7);
    assert!(is_stored(&ingest(&chargers, &message).await));
    let repeated = ingest(&chargers, &message).await.outcome;
    assert!(matches!(repeated, EventOutcome::Duplicate { .. }));
    assert!(is_stored(
        &ingest(&chargers, &sidewalk(br#"{"current_ma": 1}"#, 8)).await
    ));
    assert_eq!(events(&chargers).await.len(), 2);
}

#[tokio::test]
async fn uplink_is_the_same_after_decoder_change() {
    let (chargers, _fixture) = chargers().await;
    let messages = [sidewalk(&[9, 0, 1], 7), lorawan(&[9, 0, 1], 2)];
    for message in &messages {
        assert!(ingest(&chargers, message).await.undecoded.is_some());
    }
    put(&chargers, "current", CURRENT).await;
    for message in &messages {
        let repeated = ingest(&chargers, message).await.outcome;
        assert!(matches!(repeated, EventOutcome::Duplicate { .. }));
    }
}

#[tokio::test]
async fn undecodable_uplink_keeps_its_payload() {
    let (chargers, _fixture) = chargers().await;
    put(&chargers, "current", CURRENT).await;
    let outcome = ingest(&chargers, &sidewalk(&[9, 1], 1)).await;
    let reason = "decoder current: current_ma: needs bytes 1 to 2, and the payload has 2 bytes";
    assert!(is_stored(&outcome));
    assert_eq!(outcome.undecoded.as_deref(), Some(reason));
    let event = events(&chargers).await.remove(0);
    assert_eq!(event.event_type.as_str(), UNDECODED);
    let members = event.data.members();
    assert_eq!(members.get("undecoded_reason"), Some(&reason.into()));
    let uplink = Value::M(event.uplink.expect("the uplink"));
    assert!(plain_json::value(&uplink).contains(r#""PayloadData":"CQE=""#));
}

#[tokio::test]
async fn json_payload_needs_no_decoder() {
    let (chargers, _fixture) = chargers().await;
    // It would fail on the payload.
    put(&chargers, "current", CURRENT).await;
    for (payload, event_type, undecoded) in [
        (
            r#"{"current_ma": 16000, "deep": {"a": [1.50]}}"#,
            "telemetry",
            None,
        ),
        (
            r#" {"event_type": "boot", "reason": "power"} "#,
            "boot",
            None,
        ),
        (
            r#"{"event_type": "no spaces"}"#,
            UNDECODED,
            Some("event_type must be"),
        ),
        (r#"{"a b": 1}"#, UNDECODED, Some("data must be")),
        ("{}", UNDECODED, Some("decoder current")),
        ("[1]", "telemetry", None),
    ] {
        let before = events(&chargers).await.len();
        let message = sidewalk(payload.as_bytes(), before as u64);
        let outcome = ingest(&chargers, &message).await;
        assert!(is_stored(&outcome), "{payload}");
        let said = outcome.undecoded.unwrap_or_default();
        match undecoded {
            None => assert_eq!(said, "", "{payload}"),
            Some(part) => assert!(said.contains(part), "{payload}: {said}"),
        }
        let stored = events(&chargers).await;
        let event = stored.last().expect("an event");
        assert_eq!(event.event_type.as_str(), event_type, "{payload}");
        assert_eq!(event.data.members().get("event_type"), None);
    }
}

#[tokio::test]
async fn most_specific_decoder_reads_the_uplink() {
    let (chargers, _fixture) = chargers().await;
    let with = |applies_to: serde_json::Value, event_type: &str| {
        json!({"applies_to": applies_to, "event_type": event_type, "fields": []}).to_string()
    };
    let sc_id = ScId::of(UUID.parse().expect("a UUID"));
    let payload = [0xe5, 1, 2];
    let mut sequence = 0;
    for (applies_to, name) in [
        (json!({}), "z-default"),
        (json!({"network": "sidewalk"}), "y-network"),
        (json!({"prefix": "E501"}), "x-prefix"),
        (json!({"devices": [sc_id.as_str()]}), "w-device"),
        (
            json!({"devices": [UUID.to_uppercase()], "prefix": "e5"}),
            "v-both",
        ),
    ] {
        put(&chargers, name, &with(applies_to, name)).await;
        sequence += 1;
        ingest(&chargers, &sidewalk(&payload, sequence)).await;
        let stored = events(&chargers).await;
        assert_eq!(stored.last().expect("an event").event_type.as_str(), name);
    }
    for (applies_to, name) in [
        (json!({"prefix": "e502"}), "a-prefix"),
        (json!({"network": "lorawan"}), "a-network"),
        (json!({"f_ports": [2]}), "a-port"),
        (json!({"devices": ["SC-00000000"]}), "a-device"),
    ] {
        put(&chargers, name, &with(applies_to, name)).await;
    }
    ingest(&chargers, &sidewalk(&payload, sequence + 1)).await;
    let stored = events(&chargers).await;
    assert_eq!(
        stored.last().expect("an event").event_type.as_str(),
        "v-both"
    );
    for name in ["v-both", "w-device"] {
        let deleted = chargers.decoders().delete(&named(name), None).await;
        deleted.expect("deleted");
    }
    ingest(&chargers, &lorawan(&payload, 2)).await;
    let stored = events(&chargers).await;
    let types: Vec<_> = stored
        .iter()
        .map(|event| event.event_type.as_str())
        .collect();
    assert!(types.contains(&"a-port"), "{types:?}");
}

#[test]
fn malformed_uplinks_are_refused_with_the_member() {
    let with = |pointer: &str, value: serde_json::Value| {
        let mut message = lorawan(&[1], 2);
        *message.pointer_mut(pointer).expect("a member") = value;
        message.to_string()
    };
    let meta = "/WirelessMetadata/LoRaWAN";
    for (message, expected) in [
        ("{".to_owned(), "must be JSON"),
        ("[1]".to_owned(), "must be a JSON object"),
        ("{}".to_owned(), "WirelessDeviceId is missing"),
        (
            with("/WirelessDeviceId", json!(1)),
            "WirelessDeviceId must be a text",
        ),
        (
            with("/WirelessDeviceId", json!("x")),
            "WirelessDeviceId must be a UUID",
        ),
        (
            with("/PayloadData", json!("?")),
            "PayloadData must be Base64",
        ),
        (
            with("/PayloadData", json!("A".repeat(4000))),
            "PayloadData has at most 2048 bytes",
        ),
        (
            with("/WirelessMetadata", json!("LoRaWAN")),
            "WirelessMetadata must be an object",
        ),
        (
            with("/WirelessMetadata", json!({})),
            "either Sidewalk or LoRaWAN",
        ),
        (
            with("/WirelessMetadata", json!({"LoRaWAN": {}, "Sidewalk": {}})),
            "either Sidewalk or LoRaWAN",
        ),
        (
            with(&format!("{meta}/Timestamp"), json!("today")),
            "Timestamp must be a time",
        ),
        (
            with(&format!("{meta}/FCnt"), json!(-1)),
            "FCnt must be a whole number",
        ),
        (
            with(&format!("{meta}/FPort"), json!(256)),
            "FPort must be 0 to 255",
        ),
        (
            with(&format!("{meta}/MType"), json!("x".repeat(20_000))),
            "at most 16384 bytes",
        ),
    ] {
        let error = Uplink::parse(message.as_bytes()).expect_err(expected);
        assert!(error.to_string().contains(expected), "{expected}: {error}");
    }
}

#[test]
fn metadata_may_have_other_members_and_forms() {
    let mut message = lorawan(&[1], 2);
    message["TransmitMode"] = json!("0");
    let details = &mut message["WirelessMetadata"]["LoRaWAN"];
    details["New"] = json!({"a": [1, null]});
    details["FCnt"] = json!("17");
    details["FPort"] = json!(null);
    details["Fport"] = json!(136);
    let uplink = uplink(&message);
    assert_eq!((uplink.sequence, uplink.f_port), (Some(17), Some(136)));
}

#[tokio::test]
async fn decoder_versions_stay_readable() {
    let (chargers, _fixture) = chargers().await;
    let decoders = chargers.decoders();
    let name = named("evse");
    let missing = decoders.put(&name, document(CURRENT), Some(1)).await;
    assert_eq!(missing.unwrap_err(), DecodersError::Missing(name.clone()));
    let (first, is_new) = decoders.put(&name, document(CURRENT), None).await.unwrap();
    assert!(is_new && first.version == 1);
    let other = document(r#"{"fields": []}"#);
    let (second, is_new) = decoders.put(&name, other.clone(), Some(1)).await.unwrap();
    assert!(!is_new && second.version == 2);
    let changed = decoders.put(&name, document(CURRENT), Some(1)).await;
    let expected = DecodersError::Changed {
        name: name.clone(),
        actual: 2,
    };
    assert_eq!(changed.unwrap_err(), expected);
    assert_eq!(decoders.get(&name).await.unwrap().document, other);
    assert_eq!(decoders.delete(&name, Some(1)).await, Err(expected));
    decoders.delete(&name, Some(2)).await.unwrap();
    assert_eq!(
        decoders.get(&name).await,
        Err(DecodersError::Missing(name.clone()))
    );
    assert!(decoders.list(10, None).await.unwrap().items.is_empty());
    let versions = decoders.versions(&name).await.unwrap();
    let numbers: Vec<_> = versions.iter().map(|version| version.version).collect();
    assert_eq!(numbers, [3, 2, 1]);
    assert!(versions[0].is_deletion && !versions[1].is_deletion);
    assert_eq!(
        decoders.version(&name, 1).await.unwrap().document,
        document(CURRENT)
    );
    assert!(decoders.version(&name, 9).await.is_err());
    // A new decoder of the same name continues the versions.
    let (again, is_new) = decoders.put(&name, document(CURRENT), None).await.unwrap();
    assert!(is_new && again.version == 4);
}

#[tokio::test]
async fn decoders_are_limited_and_paged() {
    let (chargers, _fixture) = chargers().await;
    let decoders = chargers.decoders();
    for number in 0..DECODERS_MAX {
        put(&chargers, &format!("d{number:03}"), CURRENT).await;
    }
    let one_more = decoders.put(&named("x"), document(CURRENT), None).await;
    assert_eq!(one_more.unwrap_err(), DecodersError::TooMany);
    put(&chargers, "d000", CURRENT).await;
    let first = decoders.list(60, None).await.unwrap();
    let second = decoders.list(60, first.next).await.unwrap();
    assert_eq!((first.items.len(), second.items.len()), (60, 40));
    assert!(second.next.is_none());
}

#[tokio::test]
async fn decoders_of_other_processes_are_noticed() {
    let (chargers, fixture) = chargers().await;
    let clock: Arc<ManualClock> = Arc::clone(&fixture.clock);
    let other = Chargers::new(Arc::clone(&fixture.store), Arc::clone(&clock) as _);
    assert!(
        ingest(&chargers, &sidewalk(&[9, 0, 1], 1))
            .await
            .undecoded
            .is_some()
    );
    put(&other, "current", CURRENT).await;
    assert!(
        ingest(&chargers, &sidewalk(&[9, 0, 1], 2))
            .await
            .undecoded
            .is_some()
    );
    clock.advance_ms(REFRESH_MS);
    assert_eq!(
        ingest(&chargers, &sidewalk(&[9, 0, 1], 3)).await.undecoded,
        None
    );
}

#[tokio::test]
async fn malformed_stored_decoder_does_not_block_others() {
    let (chargers, fixture) = chargers().await;
    put(&chargers, "a", CURRENT).await;
    put(&chargers, "b", CURRENT).await;
    let scan = Scan::new(schema::DECODERS);
    let items = fixture.store.scan(scan).await.expect("a scan").items;
    let item = items
        .into_iter()
        .find(|item| item.get("pk") == Some(&"decoder".into()))
        .expect("a decoder");
    let broken = item.with("document", r#"{"fields": 7}"#);
    let put = homeport_store::Put::new(schema::DECODERS, broken);
    fixture.store.put(put).await.expect("a put");
    let restarted = Chargers::new(Arc::clone(&fixture.store), Arc::clone(&fixture.clock) as _);
    let outcome = ingest(&restarted, &sidewalk(&[9, 0, 1], 1)).await;
    assert_eq!(outcome.undecoded, None);
}

#[test]
fn invalid_decoders_name_the_place() {
    let field = |members: serde_json::Value| {
        let mut field = json!({"name": "a", "offset": 0, "type": "u8"});
        for (name, value) in members.as_object().expect("members") {
            field[name] = value.clone();
        }
        json!({"fields": [field]})
    };
    let many: Vec<_> = (0..65)
        .map(|number| json!({"name": format!("f{number}"), "offset": 0, "type": "u8"}))
        .collect();
    let values: serde_json::Map<_, _> = (0..257).map(|n| (n.to_string(), json!("x"))).collect();
    let devices = vec!["SC-00000000"; 1001];
    for (decoder, place) in [
        (json!({"fields": many}), "fields: at most 64"),
        (json!({"fields": [], "description": ""}), "description:"),
        (
            json!({"fields": [], "event_type": "no spaces"}),
            "event_type:",
        ),
        (
            json!({"fields": [], "event_type": "a", "event_type_from": {"offset": 0, "type": "u8", "values": {"1": "b"}}}),
            "event_type_from: give either",
        ),
        (
            json!({"fields": [], "event_type_from": {"offset": 0, "type": "u8", "values": {"1": "no spaces"}}}),
            "event_type_from.values: \"1\": event_type must be",
        ),
        (field(json!({"name": "no spaces"})), "fields[0].name:"),
        (field(json!({"offset": 2048})), "fields[0].offset:"),
        (
            field(json!({"bits": {"first": 7, "length": 2}})),
            "fields[0].bits:",
        ),
        (
            field(json!({"bits": {"first": 0, "length": 0}})),
            "fields[0].bits:",
        ),
        (
            field(json!({"bits": {"first": 4_294_967_295_u32, "length": 2}})),
            "fields[0].bits:",
        ),
        (
            field(json!({"type": "f32", "bits": {"first": 0, "length": 1}})),
            "fields[0].bits: floats",
        ),
        (
            field(json!({"scale": 2, "values": {"0": "a"}})),
            "fields[0].scale:",
        ),
        (field(json!({"unit": "x".repeat(17)})), "fields[0].unit:"),
        (field(json!({"values": {}})), "fields[0].values: 1 to 256"),
        (
            field(json!({"type": "u16", "values": values})),
            "fields[0].values: 1 to 256",
        ),
        (
            field(json!({"values": {"256": "a"}})),
            "fields[0].values: \"256\" must be",
        ),
        (field(json!({"values": {"x": "a"}})), "from 0 to 255"),
        (
            field(json!({"type": "i8", "values": {"200": "a"}})),
            "from -128 to 127",
        ),
        (
            field(json!({"values": {"1": "a", "01": "b"}})),
            "1 is given twice",
        ),
        (field(json!({"values": {"1": ""}})), "fields[0].values:"),
        (
            field(json!({"type": "f64", "values": {"1": "a"}})),
            "fields[0].values: floats",
        ),
        (
            field(json!({"flags": {"8": "a"}})),
            "\"8\" must be a bit from 0 to 7",
        ),
        (
            field(json!({"flags": {"0": "no spaces"}})),
            "fields[0].flags:",
        ),
        (
            field(json!({"flags": {"0": "x", "1": "x"}})),
            "\"x\" is the name of another member",
        ),
        (
            field(json!({"type": "i8", "flags": {"0": "x"}})),
            "only unsigned",
        ),
        (field(json!({"flags_as": "list"})), "fields[0].flags_as:"),
        (
            field(json!({"flags": {"0": "x"}, "values": {"0": "x"}})),
            "either values or flags",
        ),
        (
            json!({"fields": [], "applies_to": {"devices": ["x"]}}),
            "applies_to.devices[0]:",
        ),
        (
            json!({"fields": [], "applies_to": {"devices": devices}}),
            "applies_to.devices: at most",
        ),
        (
            json!({"fields": [], "applies_to": {"f_ports": vec![1; 33]}}),
            "applies_to.f_ports: at most",
        ),
        (
            json!({"fields": [], "applies_to": {"f_ports": [1], "network": "sidewalk"}}),
            "applies_to.f_ports: only",
        ),
        (
            json!({"fields": [], "applies_to": {"prefix": "e"}}),
            "applies_to.prefix:",
        ),
    ] {
        let error = Decoders::check(&document(&decoder.to_string())).expect_err(place);
        assert!(error.to_string().contains(place), "{place}: {error}");
    }
}

#[tokio::test]
async fn large_decoder_is_rejected() {
    let (chargers, _fixture) = chargers().await;
    let values: serde_json::Map<_, _> = (0..256)
        .map(|n| (n.to_string(), json!("x".repeat(64))))
        .collect();
    let fields: Vec<_> = (0..8)
        .map(|n| json!({"name": format!("f{n}"), "offset": n, "type": "u8", "values": values}))
        .collect();
    let large = document(&json!({"fields": fields}).to_string());
    let error = chargers.decoders().put(&named("large"), large, None).await;
    let error = error.unwrap_err().to_string();
    assert_eq!(error, "decoder: at most 65536 bytes as JSON");
}
