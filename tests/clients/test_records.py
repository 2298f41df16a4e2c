"""The record store's access patterns over HTTP, and what plain boto3 finds in its table after each."""

import time

import pytest

from record_store import TABLE, RecordStore
from tables import plain, values

WAIT_SECS_MAX = 60


@pytest.fixture(scope="session")
def store(server):
    return RecordStore(server)


@pytest.fixture
def place(store):
    """A group with a device that has a journal: their addresses and their numbers."""
    group, gid = store.add_group()
    device, did = store.add_device(group)
    journal, jid = store.add_journal(device)
    return {"group": group, "device": device, "journal": journal, "gid": gid, "did": did, "jid": jid}


def stored(dynamodb, gid, prefix=""):
    """The items of a group by their sort keys."""
    pages = dynamodb.get_paginator("query").paginate(
        TableName=TABLE,
        KeyConditionExpression="PK = :pk" + (" AND begins_with(SK, :prefix)" if prefix else ""),
        ExpressionAttributeValues=values({":pk": str(gid), **({":prefix": prefix} if prefix else {})}),
    )
    return {item["SK"]["S"]: plain(item) for page in pages for item in page["Items"]}


def wait_until(holds):
    """Waits for the background; the last answer."""
    end = time.monotonic() + WAIT_SECS_MAX
    while time.monotonic() < end:
        if holds():
            return
        time.sleep(0.01)
    raise AssertionError("the background did not finish in time")


def test_the_table_has_the_documents_keys(dynamodb, store):
    description = dynamodb.describe_table(TableName=TABLE)["Table"]
    assert description["KeySchema"] == [
        {"AttributeName": "PK", "KeyType": "HASH"},
        {"AttributeName": "SK", "KeyType": "RANGE"},
    ]
    assert {one["AttributeType"] for one in description["AttributeDefinitions"]} == {"S"}


def test_device_adds_journal_record(dynamodb, store, place):
    gid, did, jid = place["gid"], place["did"], place["jid"]
    store.add_record(place["journal"], 21, 1600000000000)
    store.add_record(place["journal"], 20, 1500000000000)
    attributes = {"PK": str(gid), "unit": "C", "type": "temperature"}
    newest = {**attributes, "value": 21, "timestamp": 1600000000000}
    late = {**attributes, "value": 20, "timestamp": 1500000000000}
    assert stored(dynamodb, gid, "Record#") == {
        f"Record#{did}#{jid}#1500000000000#": {**late, "SK": f"Record#{did}#{jid}#1500000000000#"},
        f"Record#{did}#{jid}#1600000000000#": {**newest, "SK": f"Record#{did}#{jid}#1600000000000#"},
    }
    latest = f"LatestRecord#{did}#{jid}#"
    assert stored(dynamodb, gid, "LatestRecord#") == {latest: {**newest, "SK": latest}}


def test_list_all_devices_in_group(dynamodb, store, place):
    store.add_device(place["group"], model="BME280")
    listed = store("GET", f"{place['group']}/devices")["devices"]
    assert [f"Device#{store.number('did', device['did'])}#" for device in listed] == list(
        stored(dynamodb, place["gid"], "Device#")
    )


def test_list_all_journals_in_group(dynamodb, store, place):
    device, _ = store.add_device(place["group"])
    store.add_journal(device)
    listed = store("GET", f"{place['group']}/journals")["journals"]
    keys = [f"Journal#{store.number('did', one['did'])}#{store.number('jid', one['jid'])}#" for one in listed]
    assert len(keys) == 2 and keys == list(stored(dynamodb, place["gid"], "Journal#"))


def test_get_one_device_records_in_a_certain_time_range(dynamodb, store, place):
    for at in (5, 100, 200, 201):
        store.add_record(place["journal"], at, at)
    records = store("GET", f"{place['journal']}/records?from=100&to=200&order=asc")["records"]
    sort = f"Record#{place['did']}#{place['jid']}#"
    found = dynamodb.query(
        TableName=TABLE,
        KeyConditionExpression="PK = :pk AND SK BETWEEN :from AND :to",
        ExpressionAttributeValues=values(
            {":pk": str(place["gid"]), ":from": f"{sort}0000000000100#", ":to": f"{sort}0000000000200#"}
        ),
    )["Items"]
    assert [record["value"] for record in records] == [plain(item)["value"] for item in found] == [100, 200]
    assert len(store("GET", f"{place['device']}/records")["records"]) == 4


def test_get_latest_records_for_all_devices_in_group(dynamodb, store, place):
    device, _ = store.add_device(place["group"])
    journal, _ = store.add_journal(device)
    store.add_record(place["journal"], 1, 10)
    store.add_record(journal, 2, 20)
    listed = store("GET", f"{place['group']}/latest")["records"]
    found = stored(dynamodb, place["gid"], "LatestRecord#")
    assert sorted(record["value"] for record in listed) == sorted(item["value"] for item in found.values()) == [1, 2]


def test_get_latest_record_for_a_device(dynamodb, store, place):
    store.add_record(place["journal"], 1, 10)
    store.add_record(place["journal"], 2, 10)
    (latest,) = store("GET", f"{place['device']}/latest")["records"]
    found = stored(dynamodb, place["gid"], f"LatestRecord#{place['did']}#")
    assert (latest["value"], latest["timestamp"]) == (2, 11)
    assert [item["value"] for item in found.values()] == [2]
    # Both records of the millisecond are kept.
    assert len(stored(dynamodb, place["gid"], "Record#")) == 2


def test_add_device(dynamodb, store):
    group, gid = store.add_group()
    policy = {"Statement": [{"Effect": "Allow"}]}
    _, did = store.add_device(group, model="BME280", acl_policy=policy)
    key = f"Device#{did}#"
    assert stored(dynamodb, gid, "Device#") == {
        key: {"PK": str(gid), "SK": key, "name": "roof", "model": "BME280", "acl_policy": policy}
    }


def test_remove_device(dynamodb, store, place):
    kept, did = store.add_device(place["group"])
    store.add_record(place["journal"], 1, 10)
    store("DELETE", place["device"])
    status, answer = store.send("GET", f"{place['device']}/latest")
    assert (status, answer["errorCode"]) == (404, "ERROR_NOTFOUND")
    wait_until(lambda: len(stored(dynamodb, place["gid"])) == 2)
    assert list(stored(dynamodb, place["gid"])) == [f"Device#{did}#", f"Group#{place['gid']}#"]


def test_delete_item(dynamodb, store, place):
    """The document names this case after its action; what it can be is the removal of a journal."""
    store.add_record(place["journal"], 1, 10)
    store("DELETE", place["journal"])
    wait_until(lambda: len(stored(dynamodb, place["gid"])) == 2)
    assert list(stored(dynamodb, place["gid"])) == [f"Device#{place['did']}#", f"Group#{place['gid']}#"]


def test_alter_device(dynamodb, store, place):
    store("PATCH", place["device"], {"model": "BME680"})
    (device,) = stored(dynamodb, place["gid"], "Device#").values()
    assert (device["name"], device["model"]) == ("roof", "BME680")
    missing = f"{place['device']}x"
    assert store.send("PATCH", missing, {"name": "x"})[1]["errorCode"] == "FORMAT_INVALID"


def test_add_group(dynamodb, store):
    _, gid = store.add_group(retention_secs=86400)
    key = f"Group#{gid}#"
    assert stored(dynamodb, gid) == {key: {"PK": str(gid), "SK": key, "name": "home", "retention_secs": 86400}}


def test_alter_group(dynamodb, store):
    group, gid = store.add_group(retention_secs=86400)
    store("PATCH", group, {"name": "office"})
    (item,) = stored(dynamodb, gid).values()
    assert (item["name"], item["retention_secs"]) == ("office", 86400)


def test_remove_group(dynamodb, store, place):
    store.add_record(place["journal"], 1, 10)
    store("DELETE", place["group"])
    assert store.send("GET", place["group"])[0] == 404
    wait_until(lambda: not stored(dynamodb, place["gid"]))
    removals = dynamodb.query(
        TableName=TABLE,
        KeyConditionExpression="PK = :pk",
        ExpressionAttributeValues=values({":pk": "Removal#"}),
    )
    assert f"Removal#{place['gid']}#" not in [item["SK"]["S"] for item in removals["Items"]]


def test_api_ids_are_dispensed_as_the_document_shows(dynamodb, store):
    init = {"idtag": "shown", "config": {"salt": "sdfjkl34j234j", "min_length": 8}}
    assert store("POST", "/v1/ids/init", init) == {"idtag": "shown"}
    for number in range(1, 11):
        dispensed = store("POST", "/v1/ids/dispense", {"idtag": "shown"})
        assert (set(dispensed), dispensed["id"]) == ({"id", "idtag", "encoded"}, number)
    assert dispensed["encoded"] == "5YXd4XZ0"
    assert store("POST", "/v1/ids/decode", {"idtag": "shown", "encoded": "5YXd4XZ0"}) == dispensed
    (tag,) = stored(dynamodb, "IdTag#shown#").values()
    assert (tag["salt"], tag["last_id"]) == ("sdfjkl34j234j", 10)


def test_errors_have_a_status_a_message_and_a_code(store):
    for path, body, status, code in (
        ("/v1/ids/decode", {"idtag": "gid", "encoded": "nonsense"}, 400, "FORMAT_INVALID"),
        ("/v1/ids/dispense", {"idtag": "unknown"}, 404, "ERROR_NOTFOUND"),
        ("/v1/ids/init", {"idtag": "gid"}, 409, "DUPLICATE_RESOURCE"),
    ):
        store.add_group()
        answered, error = store.send("POST", path, body)
        assert (answered, error["status"], error["errorCode"]) == (status, "ERROR", code)
        assert set(error) == {"status", "errorMessage", "errorCode"} and error["errorMessage"]
