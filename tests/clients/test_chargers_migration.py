"""Chargers brought over from the tables that came before: made over DynamoDB's protocol as the document describes them,
migrated by the command, which is killed in the middle and goes on, and checked with boto3."""

import hashlib
import os
import re
import subprocess

from conftest import client
from tables import create_table, plain, plain_items, values

EVENTS_V2 = "sidewalk-v1-device_events_v2"
ORPHANS = ("sidewalk-v1-device_events_dedupe_v2", "sidewalk-v1-device_config")
FLEET = [f"7d4c0a52-91b5-4b3f-8a66-0c2f4f4be5{number:02x}" for number in range(8)]
EVENTS_PER_DEVICE = 500
# 2025-11-02T08:00:00Z, when 01:59:59.999 is followed by 01:00:00.000.
FALL_BACK_MS = 1762070400000
MINUTE_MS = 60 * 1000
# Scheduler, OTA session, time sync, divergence tracker.
SENTINELS = {0: "last_command", -1: "session_id", -2: "last_sync_ms", -3: "retry_count"}
COMMAND_SECS_MAX = 300


def sc_id(uuid):
    return "SC-" + hashlib.sha256(uuid.encode()).hexdigest()[:8].upper()


def old_event(uuid, timestamp):
    return {
        "device_id": uuid,
        "timestamp": timestamp,
        "event_type": "telemetry",
        "data": {"j1772_state": "C", "current_ma": timestamp % 1000},
    }


def put_all(dynamodb, table, items):
    for first in range(0, len(items), 25):
        writes = [{"PutRequest": {"Item": values(item)}} for item in items[first : first + 25]]
        assert not dynamodb.batch_write_item(RequestItems={table: writes})["UnprocessedItems"]


def make_old_tables(dynamodb):
    create_table(dynamodb, EVENTS_V2, {"device_id": "S", "timestamp": "N"}, "device_id", "timestamp")
    create_table(dynamodb, "device-registry", {"device_id": "S"}, "device_id")
    create_table(dynamodb, "daily-aggregates", {"device_id": "S", "date": "S"}, "device_id", "date")
    for name in ORPHANS:
        create_table(dynamodb, name, {"id": "S"}, "id")
    for number, uuid in enumerate(FLEET):
        half = EVENTS_PER_DEVICE // 2
        times = [FALL_BACK_MS + step * MINUTE_MS for step in range(-half, EVENTS_PER_DEVICE - half)]
        put_all(dynamodb, EVENTS_V2, [old_event(uuid, at) for at in times])
        marks = [{"device_id": uuid, "timestamp": at, name: number} for at, name in SENTINELS.items()]
        put_all(dynamodb, EVENTS_V2, marks)
        registered = {"device_id": sc_id(uuid), "wireless_device_id": uuid, "owner_name": f"owner {number}"}
        put_all(dynamodb, "device-registry", [registered])
        put_all(dynamodb, "daily-aggregates", [{"device_id": sc_id(uuid), "date": "2025-10-30", "event_count": 96}])


def command(data, *more):
    return [os.environ["HOMEPORT_BIN"], "chargers", "migrate", "--data-dir", str(data), *more]


def migrate(data, *more):
    finished = subprocess.run(command(data, *more), capture_output=True, text=True, timeout=COMMAND_SECS_MAX)
    assert finished.returncode == 0, finished.stdout + finished.stderr
    return finished.stdout


def migrate_and_be_killed(data):
    """Ends the command as soon as it says that it is among the events; how many it had by then."""
    process = subprocess.Popen(command(data), stdout=subprocess.PIPE, text=True)
    events = 0
    try:
        while events == 0:
            line = process.stdout.readline()
            events = int(re.search(r"(\d+) events", line).group(1))
    finally:
        process.kill()
        process.wait(timeout=COMMAND_SECS_MAX)
        process.stdout.close()
    return events, line


def count(dynamodb, table):
    pages = dynamodb.get_paginator("scan").paginate(TableName=table, Select="COUNT")
    return sum(page["Count"] for page in pages)


def test_a_migration_that_is_killed_goes_on_and_brings_everything_over(start_server, tmp_path):
    data = tmp_path / "data"
    server = start_server(data)
    make_old_tables(client(server.endpoint))
    server.stop()
    total = len(FLEET) * EVENTS_PER_DEVICE
    everything = f"{len(FLEET)} devices, {total} events, {4 * len(FLEET)} states, {len(FLEET)} days"

    dry = migrate(data, "--dry-run")
    assert everything in dry and "nothing was written" in dry

    before, line = migrate_and_be_killed(data)
    assert 0 < before < total, line
    done = migrate(data)
    assert "resuming at" in done
    verified = total + 6 * len(FLEET)
    assert f"{everything}; 0 refused, {verified} verified, 0 missing" in done

    dynamodb = client(start_server(data).endpoint)
    assert count(dynamodb, "evse-events") == total
    assert count(dynamodb, "evse-devices") == count(dynamodb, "evse-device-state") == len(FLEET)
    for number, uuid in enumerate(FLEET):
        key = values({"device_id": sc_id(uuid)})
        device = plain(dynamodb.get_item(TableName="evse-devices", Key=key)["Item"])
        assert (device["wireless_device_id"], device["owner_name"]) == (uuid, f"owner {number}")
        state = plain(dynamodb.get_item(TableName="evse-device-state", Key=key)["Item"])
        assert state["scheduler_last_command"] == state["ota_session_id"] == number
        assert state["time_sync_last_sync_ms"] == state["divergence_retry_count"] == number
    found = plain_items(
        dynamodb.query(
            TableName="evse-events",
            KeyConditionExpression="device_id = :id AND timestamp_mt BETWEEN :from AND :to",
            ExpressionAttributeValues=values(
                {":id": sc_id(FLEET[0]), ":from": "2025-11-02 01:30:00.000", ":to": "2025-11-02 01:30:00.999"}
            ),
        )
    )
    # The two half past ones: both were brought over.
    assert sorted(event["timestamp_utc_ms"] for event in found) == [
        FALL_BACK_MS - 30 * MINUTE_MS,
        FALL_BACK_MS + 30 * MINUTE_MS,
    ]
    assert count(dynamodb, EVENTS_V2) == total + 4 * len(FLEET), "what was there before stays"


def test_orphans_are_deleted_only_by_name(start_server, tmp_path):
    data = tmp_path / "data"
    server = start_server(data)
    for name in ORPHANS:
        create_table(client(server.endpoint), name, {"id": "S"}, "id")
    server.stop()
    migrate(data)
    migrate(data, "--delete-table", ORPHANS[1])
    names = client(start_server(data).endpoint).list_tables()["TableNames"]
    assert ORPHANS[0] in names and ORPHANS[1] not in names
