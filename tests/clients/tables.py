"""Making tables and values with few words."""

import contextlib
import time

import pytest
from botocore.exceptions import ClientError
from boto3.dynamodb.types import TypeDeserializer, TypeSerializer


def key_schema(hash_key, range_key=None):
    schema = [{"AttributeName": hash_key, "KeyType": "HASH"}]
    if range_key is not None:
        schema.append({"AttributeName": range_key, "KeyType": "RANGE"})
    return schema


def index(name, hash_key, range_key=None):
    """An index with all attributes."""
    return {"IndexName": name, "KeySchema": key_schema(hash_key, range_key), "Projection": {"ProjectionType": "ALL"}}


def create_table(dynamodb, name, types, hash_key, range_key=None, **more):
    """Creates a table on demand; `types` maps each key attribute to S, N or B."""
    definitions = [{"AttributeName": attribute, "AttributeType": kind} for attribute, kind in types.items()]
    return dynamodb.create_table(
        TableName=name,
        AttributeDefinitions=definitions,
        KeySchema=key_schema(hash_key, range_key),
        **{"BillingMode": "PAY_PER_REQUEST", **more},
    )["TableDescription"]


def values(plain):
    """An item, a key or expression values from plain Python values; numbers are int or Decimal."""
    serializer = TypeSerializer()
    return {name: serializer.serialize(value) for name, value in plain.items()}


def plain(item):
    deserializer = TypeDeserializer()
    return {name: deserializer.deserialize(value) for name, value in item.items()}


def plain_items(answer):
    return [plain(item) for item in answer["Items"]]


def wait_for_index(dynamodb, table, name):
    """The index's status once it is no longer CREATING."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        indexes = dynamodb.describe_table(TableName=table)["Table"]["GlobalSecondaryIndexes"]
        status = next(found["IndexStatus"] for found in indexes if found["IndexName"] == name)
        if status != "CREATING":
            return status
    raise TimeoutError(f"the index {name} is still CREATING")


@contextlib.contextmanager
def refused(code, text=""):
    """The call within must be refused with this error, its message holding `text`."""
    with pytest.raises(ClientError) as caught:
        yield caught
    error = caught.value.response["Error"]
    assert error["Code"] == code, error
    assert text in error["Message"], error
