"""The parameters from before expressions, as programs written before 2014 send them."""

import uuid

import pytest

from tables import create_table, index, refused, values


@pytest.fixture
def filled(dynamodb):
    """Five items of one partition (id, at), two of them of kind `odd`."""
    name = f"legacy-{uuid.uuid4()}"
    keys = {"id": "S", "at": "N", "kind": "S"}
    create_table(dynamodb, name, keys, "id", "at", GlobalSecondaryIndexes=[index("by-kind", "kind", "at")])
    for at in range(5):
        item = {"id": "a", "at": at, "kind": "odd" if at % 2 else "even", "amount": at * 10}
        dynamodb.put_item(TableName=name, Item=values(item))
    yield name
    dynamodb.delete_table(TableName=name)


def key(at):
    return values({"id": "a", "at": at})


def equal(value):
    return {"ComparisonOperator": "EQ", "AttributeValueList": list(values({"v": value}).values())}


def times(answer):
    return [int(item["at"]["N"]) for item in answer["Items"]]


def test_query_accepts_key_conditions_filter_and_attributes(dynamodb, filled):
    between = {"ComparisonOperator": "BETWEEN", "AttributeValueList": [{"N": "1"}, {"N": "4"}]}
    answer = dynamodb.query(
        TableName=filled,
        KeyConditions={"id": equal("a"), "at": between},
        QueryFilter={"kind": equal("odd"), "amount": {"ComparisonOperator": "GT", "AttributeValueList": [{"N": "20"}]}},
        AttributesToGet=["at", "amount"],
    )
    assert answer["Items"] == [values({"at": 3, "amount": 30})]
    assert (answer["Count"], answer["ScannedCount"]) == (1, 4)
    assert times(dynamodb.query(TableName=filled, IndexName="by-kind", KeyConditions={"kind": equal("odd")})) == [1, 3]


def test_scan_accepts_filter_joined_by_or(dynamodb, filled):
    answer = dynamodb.scan(
        TableName=filled,
        ScanFilter={"amount": equal(0), "at": equal(4)},
        ConditionalOperator="OR",
    )
    assert sorted(times(answer)) == [0, 4]
    with refused("ValidationException", "two or more elements"):
        dynamodb.scan(TableName=filled, ScanFilter={"amount": equal(0)}, ConditionalOperator="OR")


def test_writes_accept_expectations(dynamodb, filled):
    with refused("ConditionalCheckFailedException"):
        dynamodb.put_item(TableName=filled, Item=key(0), Expected={"id": {"Exists": False}})
    with refused("ConditionalCheckFailedException"):
        dynamodb.delete_item(TableName=filled, Key=key(0), Expected={"amount": {"Value": {"N": "7"}}})
    dynamodb.delete_item(TableName=filled, Key=key(0), Expected={"amount": {"Value": {"N": "0"}}})
    assert "Item" not in dynamodb.get_item(TableName=filled, Key=key(0))


def test_attribute_updates_change_item(dynamodb, filled):
    answer = dynamodb.update_item(
        TableName=filled,
        Key=key(1),
        AttributeUpdates={
            "amount": {"Action": "ADD", "Value": {"N": "5"}},
            "log": {"Action": "ADD", "Value": {"L": [{"S": "x"}]}},
            "kind": {"Action": "DELETE"},
        },
        Expected={"kind": equal("odd")},
        ReturnValues="ALL_NEW",
    )
    assert answer["Attributes"] == {**key(1), "amount": {"N": "15"}, "log": {"L": [{"S": "x"}]}}
    with refused("ValidationException", "Type mismatch for attribute to update"):
        dynamodb.update_item(
            TableName=filled, Key=key(1), AttributeUpdates={"log": {"Action": "ADD", "Value": {"N": "1"}}}
        )


def test_attributes_to_get_select_attributes(dynamodb, filled):
    answer = dynamodb.get_item(TableName=filled, Key=key(2), AttributesToGet=["amount"])
    assert answer["Item"] == values({"amount": 20})
    batch = {filled: {"Keys": [key(2)], "AttributesToGet": ["amount"]}}
    assert dynamodb.batch_get_item(RequestItems=batch)["Responses"][filled] == [values({"amount": 20})]


def test_both_forms_in_one_request_are_rejected(dynamodb, filled):
    with refused("ValidationException", "Can not use both expression and non-expression parameters"):
        dynamodb.query(
            TableName=filled,
            KeyConditions={"id": equal("a")},
            KeyConditionExpression="id = :a",
            ExpressionAttributeValues={":a": {"S": "a"}},
        )
