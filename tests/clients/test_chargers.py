"""Chargers over HTTP, and each of their query patterns on the stored items with plain boto3."""

import hashlib

import pytest

from tables import plain, plain_items, values

FLEET = [f"7d4c0a52-91b5-4b3f-8a66-0c2f4f4be4{number:02x}" for number in range(3)]
# 2025-11-02T08:00:00Z, when 01:59:59.999 is followed by 01:00:00.000.
FALL_BACK_MS = 1762070400000
QUARTER_MS = 15 * 60 * 1000
NAMES = ("evse-events", "evse-device-state", "evse-devices", "evse-daily-stats")


def sc_id(uuid):
    return "SC-" + hashlib.sha256(uuid.encode()).hexdigest()[:8].upper()


def query(dynamodb, condition, plain_values, **more):
    answer = dynamodb.query(
        TableName="evse-events",
        KeyConditionExpression=condition,
        ExpressionAttributeValues=values(plain_values),
        **more,
    )
    return plain_items(answer)


@pytest.fixture(scope="module")
def key(server):
    return server.call("POST", "/v1/api-keys", {"system": "chargers", "all": True})["api_key"]


@pytest.fixture(scope="module", autouse=True)
def events(server, key):
    """Of each charger a report every quarter of an hour around the end of summer time, and an update."""
    for uuid in FLEET:
        sent = [
            {
                "wireless_device_id": uuid.upper(),
                "event_type": "chargers_report",
                "occurred_at": FALL_BACK_MS + number * QUARTER_MS,
                "data": {"j1772_state": "C", "current_ma": 16000 + number},
            }
            for number in range(-6, 6)
        ]
        sent.append(
            {
                "wireless_device_id": uuid,
                "event_type": "chargers_ota_start",
                "occurred_at": FALL_BACK_MS + 100 * QUARTER_MS,
                "data": {"firmware": "1.4.2"},
            }
        )
        for _ in range(2):
            results = server.call("POST", "/v1/chargers/events", {"events": sent}, key)["results"]
        assert {result["status"] for result in results} == {"duplicate"}


def keys_of(described):
    return [(key["AttributeName"], key["KeyType"]) for key in described["KeySchema"]]


def test_decision_6_the_tables_have_the_documents_names_and_keys(dynamodb):
    tables = {name: dynamodb.describe_table(TableName=name)["Table"] for name in NAMES}
    device = ("device_id", "HASH")
    assert {name: keys_of(table) for name, table in tables.items()} == {
        "evse-events": [device, ("timestamp_mt", "RANGE")],
        "evse-device-state": [device],
        "evse-devices": [device],
        "evse-daily-stats": [device, ("date", "RANGE")],
    }
    (index,) = tables["evse-events"]["GlobalSecondaryIndexes"]
    assert index["IndexName"] == "event-type-index"
    assert keys_of(index) == [("event_type", "HASH"), ("timestamp_mt", "RANGE")]
    assert index["Projection"] == {"ProjectionType": "ALL"}
    for name, table in tables.items():
        assert {one["AttributeType"] for one in table["AttributeDefinitions"]} == {"S"}
        expiry = dynamodb.describe_time_to_live(TableName=name)["TimeToLiveDescription"]
        assert expiry["TimeToLiveStatus"] == "DISABLED"


def test_decision_1_the_timeline_of_one_device_is_interleaved(dynamodb):
    found = query(
        dynamodb,
        "device_id = :id AND timestamp_mt BETWEEN :from AND :to",
        {":id": sc_id(FLEET[0]), ":from": "2025-11-02 01:00:00.000", ":to": "2025-11-02 01:59:59.999"},
    )
    # The hour comes twice: four reports of each pass, the second moved on by a millisecond.
    assert [event["timestamp_mt"][11:] for event in found] == [
        f"01:{minute:02}:00.00{number}" for minute in (0, 15, 30, 45) for number in (0, 1)
    ]
    assert sorted(event["timestamp_utc_ms"] for event in found) == [
        FALL_BACK_MS + number * QUARTER_MS for number in range(-4, 4)
    ]
    assert {event["wireless_device_id"] for event in found} == {FLEET[0]}
    assert found[0]["data"] == {"j1772_state": "C", "current_ma": 15996}


def test_decision_4_one_type_of_one_device_by_filter(dynamodb):
    found = query(
        dynamodb,
        "device_id = :id",
        {":id": sc_id(FLEET[1]), ":type": "chargers_ota_start"},
        FilterExpression="event_type = :type",
    )
    assert [event["timestamp_mt"] for event in found] == ["2025-11-03 02:00:00.000"]


def test_decision_4_a_type_across_the_fleet_newest_first(dynamodb):
    found = query(
        dynamodb,
        "event_type = :type",
        {":type": "chargers_report"},
        IndexName="event-type-index",
        ScanIndexForward=False,
    )
    assert len(found) == 36
    keys = [event["timestamp_mt"] for event in found]
    assert keys == sorted(keys, reverse=True)
    assert {event["device_id"] for event in found} == {sc_id(uuid) for uuid in FLEET}


def test_decision_5_fleet_overview_is_one_scan(dynamodb):
    states = {state["device_id"]: state for state in plain_items(dynamodb.scan(TableName="evse-device-state"))}
    for uuid in FLEET:
        state = states[sc_id(uuid)]
        assert state["wireless_device_id"] == uuid
        assert state["last_seen_mt"] == "2025-11-03 02:00:00.000"
        assert state["last_event_type"] == "chargers_ota_start"
        assert (state["current_ma"], state["firmware"]) == (16005, "1.4.2")


def test_decision_2_the_registry_has_both_ids(dynamodb):
    for uuid in FLEET:
        key = values({"device_id": sc_id(uuid)})
        device = plain(dynamodb.get_item(TableName="evse-devices", Key=key)["Item"])
        assert device["wireless_device_id"] == uuid


def test_decision_5_state_is_set_over_http_and_kept_by_uplinks(server, key, dynamodb):
    changes = {"scheduler_paused": True, "ota_session": "s1", "time_sync_at": 7, "divergence_count": 0}
    server.call("PATCH", f"/v1/chargers/{FLEET[2]}/state", changes)
    report = {"wireless_device_id": FLEET[2], "event_type": "chargers_boot", "data": {"current_ma": 0}}
    server.call("POST", "/v1/chargers/events", report, key)
    item_key = values({"device_id": sc_id(FLEET[2])})
    state = plain(dynamodb.get_item(TableName="evse-device-state", Key=item_key)["Item"])
    assert changes.items() <= state.items()
    assert state["current_ma"] == 0


def test_daily_statistics_of_a_day_of_25_hours(server, dynamodb):
    days = {"device_id": FLEET[0], "from": "2025-11-01", "to": "2025-11-05"}
    assert server.call("POST", "/v1/chargers/daily/rebuild", days)["days"] == 2
    answer = dynamodb.query(
        TableName="evse-daily-stats",
        KeyConditionExpression="device_id = :id AND #date = :date",
        ExpressionAttributeNames={"#date": "date"},
        ExpressionAttributeValues=values({":id": sc_id(FLEET[0]), ":date": "2025-11-02"}),
    )
    (day,) = plain_items(answer)
    assert day["event_count"] == 12
    assert day["availability_pct"] == 12
    # Eleven quarters of an hour between reports, and half an hour behind the last.
    assert day["charge_duration_min"] == 11 * 15 + 30
    assert day["charge_session_count"] == 1
    assert day["peak_current_ma"] == 16005
    assert server.call("GET", f"/v1/chargers/{sc_id(FLEET[0])}/daily?from=2025-11-02&to=2025-11-02")["days"] == [
        {name: float(value) if name == "total_kwh" else value for name, value in day.items()}
    ]


def test_decision_3_the_timeline_over_http_is_in_true_order(server):
    events = server.call("GET", f"/v1/chargers/{FLEET[0]}/events?order=asc&event_type=chargers_report")["events"]
    assert [event["timestamp_utc_ms"] for event in events] == [
        FALL_BACK_MS + number * QUARTER_MS for number in range(-6, 6)
    ]
