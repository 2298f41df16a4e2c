"""Telemetry with boto3: what rules write is in the table as the design document shows it, and its queries find it.

Messages get in as commands do, through the rules; how devices publish them over MQTT is tested with the broker.
"""

import time
from decimal import Decimal

import pytest
from boto3.dynamodb.types import TypeDeserializer

TABLE = "van-telemetry"
THIRTY_DAYS_SECS = 30 * 24 * 60 * 60
# The document's statement, on another topic.
STATEMENT = """SELECT
  topic(2) as thing_name,           -- Extract from topic
  timestamp() as timestamp,         -- IoT Core timestamp
  '{message_type}' as message_type, -- Hardcode type
  parameters as payload,            -- What the command carries
  timestamp() + 2592000000 as ttl   -- Expire after 30 days
FROM 'van/+/commands' WHERE command = '{message_type}'"""


def plain(item):
    deserializer = TypeDeserializer()
    return {name: deserializer.deserialize(value) for name, value in item.items()}


@pytest.fixture(scope="module")
def things(server):
    """Makes a rule for each type of message, so that a command becomes one."""
    for message_type in ("telemetry", "status", "alert"):
        sql = STATEMENT.format(message_type=message_type)
        rule = {"sql": sql, "actions": [{"dynamoDBv2": {"putItem": {"tableName": TABLE}}}]}
        server.as_operator("PUT", f"/v1/rules/client_{message_type}", rule)
    yield server
    for message_type in ("telemetry", "status", "alert"):
        server.call_for_nothing("DELETE", f"/v1/rules/client_{message_type}")


def send(server, thing, message_type, payload):
    return server.as_operator("POST", f"/v1/telemetry/{thing}/commands", {"command": message_type, "parameters": payload})


def test_the_table_is_the_documents(dynamodb, server):
    table = dynamodb.describe_table(TableName=TABLE)["Table"]
    assert table["KeySchema"] == [
        {"AttributeName": "thing_name", "KeyType": "HASH"},
        {"AttributeName": "timestamp", "KeyType": "RANGE"},
    ]
    kinds = {one["AttributeName"]: one["AttributeType"] for one in table["AttributeDefinitions"]}
    assert kinds == {"thing_name": "S", "timestamp": "N", "message_type": "S", "severity": "S"}
    indexes = {index["IndexName"]: index for index in table["GlobalSecondaryIndexes"]}
    assert indexes.keys() == {"MessageTypeIndex", "AlertSeverityIndex"}
    for name, attribute in (("MessageTypeIndex", "message_type"), ("AlertSeverityIndex", "severity")):
        assert indexes[name]["KeySchema"] == [
            {"AttributeName": attribute, "KeyType": "HASH"},
            {"AttributeName": "timestamp", "KeyType": "RANGE"},
        ]
        assert indexes[name]["Projection"] == {"ProjectionType": "ALL"}
    ttl = dynamodb.describe_time_to_live(TableName=TABLE)["TimeToLiveDescription"]
    assert (ttl["TimeToLiveStatus"], ttl["AttributeName"]) == ("ENABLED", "ttl")


def test_a_message_is_stored_as_the_document_shows_it(dynamodb, things):
    before = time.time_ns() // 1_000_000
    payload = {"battery_voltage": 13.2, "glycol_temp": 72, "pdm1": {"1": True, "2": False}, "hvac_mode": "heat"}
    sent = send(things, "storyteller-van-01", "telemetry", payload)
    page = dynamodb.query(
        TableName=TABLE,
        KeyConditionExpression="thing_name = :thing AND #at >= :before",
        ExpressionAttributeNames={"#at": "timestamp"},
        ExpressionAttributeValues={":thing": {"S": "storyteller-van-01"}, ":before": {"N": str(before)}},
        ScanIndexForward=False,
        Limit=10,
    )
    (item,) = page["Items"]
    assert item["payload"]["M"]["pdm1"] == {"M": {"1": {"BOOL": True}, "2": {"BOOL": False}}}
    stored = plain(item)
    assert stored["message_type"] == "telemetry"
    assert stored["timestamp"] == sent["timestamp"]
    # In seconds, though the statement computes milliseconds.
    assert stored["ttl"] == sent["timestamp"] // 1000 + THIRTY_DAYS_SECS
    assert stored["payload"]["battery_voltage"] == Decimal("13.2")


def test_alerts_of_all_things_are_found_by_the_index(dynamodb, things):
    before = time.time_ns() // 1_000_000
    for thing in ("van-a", "van-b"):
        send(things, thing, "alert", {"severity": "low"})
    send(things, "van-a", "telemetry", {})
    page = dynamodb.query(
        TableName=TABLE,
        IndexName="MessageTypeIndex",
        KeyConditionExpression="message_type = :type AND #at >= :before",
        ExpressionAttributeNames={"#at": "timestamp"},
        ExpressionAttributeValues={":type": {"S": "alert"}, ":before": {"N": str(before)}},
    )
    assert sorted(item["thing_name"]["S"] for item in page["Items"]) == ["van-a", "van-b"]
    over_http = things.as_operator("GET", f"/v1/telemetry?message_type=alert&from={before}")
    assert sorted(message["thing_name"] for message in over_http["messages"]) == ["van-a", "van-b"]


def test_severities_of_all_things_are_found_by_the_index(dynamodb, things):
    before = time.time_ns() // 1_000_000
    for thing, severity in (("van-a", "critical"), ("van-b", "critical"), ("van-c", "info")):
        things.as_operator("POST", f"/v1/topics/van/{thing}/alerts", {"severity": severity})
    page = dynamodb.query(
        TableName=TABLE,
        IndexName="AlertSeverityIndex",
        KeyConditionExpression="severity = :severity AND #at >= :before",
        ExpressionAttributeNames={"#at": "timestamp"},
        ExpressionAttributeValues={":severity": {"S": "critical"}, ":before": {"N": str(before)}},
    )
    assert sorted(item["thing_name"]["S"] for item in page["Items"]) == ["van-a", "van-b"]
    over_http = things.as_operator("GET", f"/v1/telemetry?severity=critical&from={before}")
    assert sorted(message["thing_name"] for message in over_http["messages"]) == ["van-a", "van-b"]


def test_messages_of_one_millisecond_are_all_kept(dynamodb, things):
    for number in range(20):
        send(things, "van-fast", "status", {"number": number})
    page = dynamodb.query(
        TableName=TABLE,
        KeyConditionExpression="thing_name = :thing",
        ExpressionAttributeValues={":thing": {"S": "van-fast"}},
    )
    numbers = [item["payload"]["M"]["number"]["N"] for item in page["Items"]]
    assert numbers == [str(number) for number in range(20)]
    latest = things.as_operator("GET", "/v1/telemetry/van-fast/latest?message_type=status")
    assert latest["payload"] == {"number": 19}
