"""A large removal, cut off by SIGKILL: nothing of it is ever visible again, and it is brought to its end."""

import os
import signal
import time

from conftest import client
from record_store import TABLE, RecordStore
from tables import values

# A debug build takes its time: the full 100,000 are for a release build.
RECORDS = int(os.environ.get("HOMEPORT_TEST_REMOVED_RECORDS", "10000"))
WAIT_SECS_MAX = 300


def fill(dynamodb, gid, did, jid):
    """Writes the history straight into the table, as fast as batches go."""
    for first in range(0, RECORDS, 25):
        items = [
            {
                "PK": str(gid),
                "SK": f"Record#{did}#{jid}#{at:013}#",
                "value": at,
                "unit": "C",
                "type": "temperature",
                "timestamp": at,
            }
            for at in range(first, min(first + 25, RECORDS))
        ]
        writes = [{"PutRequest": {"Item": values(item)}} for item in items]
        assert not dynamodb.batch_write_item(RequestItems={TABLE: writes})["UnprocessedItems"]


def partition(dynamodb, partition, prefix):
    """How many items of a partition begin with a prefix."""
    pages = dynamodb.get_paginator("query").paginate(
        TableName=TABLE,
        Select="COUNT",
        KeyConditionExpression="PK = :pk AND begins_with(SK, :prefix)",
        ExpressionAttributeValues=values({":pk": partition, ":prefix": prefix}),
    )
    return sum(page["Count"] for page in pages)


def exists(dynamodb, gid, sort):
    key = values({"PK": str(gid), "SK": sort})
    return "Item" in dynamodb.get_item(TableName=TABLE, Key=key, ConsistentRead=True)


def check_invisible(store, group, device, journal):
    for path in (device, journal, f"{device}/latest", f"{device}/records", f"{journal}/records", f"{device}/journals"):
        status, answer = store.send("GET", path)
        assert (status, answer["errorCode"]) == (404, "ERROR_NOTFOUND"), path
    assert store("GET", f"{group}/devices") == {"devices": []}
    assert store("GET", f"{group}/journals") == {"journals": []}
    assert store("GET", f"{group}/latest") == {"records": []}
    body = {"value": 1, "unit": "C", "type": "temperature"}
    assert store.send("POST", f"{journal}/records", body)[0] == 404


def test_a_removal_cut_off_by_a_kill_is_invisible_and_is_brought_to_its_end(start_server, tmp_path):
    first = start_server(tmp_path / "data")
    store, dynamodb = RecordStore(first), client(first.endpoint)
    group, gid = store.add_group()
    device, did = store.add_device(group)
    journal, jid = store.add_journal(device)
    fill(dynamodb, gid, did, jid)
    store.add_record(journal, 1, RECORDS)
    start, end = f"Record#{did}#{jid}#{0:013}#", f"Record#{did}#{jid}#{RECORDS:013}#"
    store("DELETE", device)
    # One look only: a fast server would be done before it is cut off.
    assert store("GET", f"{group}/latest") == {"records": []}
    deadline = time.monotonic() + WAIT_SECS_MAX
    while exists(dynamodb, gid, start):
        assert time.monotonic() < deadline, "the removal does not begin"
    assert exists(dynamodb, gid, end), "the removal was over before it could be cut off"
    first.process.send_signal(signal.SIGKILL)
    first.process.wait()

    second = start_server(tmp_path / "data")
    store, dynamodb = RecordStore(second), client(second.endpoint)
    check_invisible(store, group, device, journal)
    deadline = time.monotonic() + WAIT_SECS_MAX
    while partition(dynamodb, "Removal#", "Removal#"):
        assert time.monotonic() < deadline, "the removal does not end"
        check_invisible(store, group, device, journal)
    for prefix in ("Device#", "Journal#", "LatestRecord#", "Record#"):
        assert partition(dynamodb, str(gid), prefix) == 0, prefix
    check_invisible(store, group, device, journal)
    # It went on where it had been cut off, and did not begin again with what was gone.
    assert 0 < store.metric("homeport_records_removed_items_total") < RECORDS
    second.stop()
