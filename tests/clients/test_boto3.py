"""Every operation with boto3: its main use and its most common error."""

import time
import urllib.request
import uuid

import boto3
import pytest
from boto3.dynamodb.conditions import Attr, Key

from conftest import REGION
from tables import create_table, index, plain, refused, values, wait_for_index


@pytest.fixture
def table(dynamodb):
    """An empty table with a composite key (id, at) and an index by (kind, at)."""
    name = f"things-{uuid.uuid4()}"
    create_table(
        dynamodb,
        name,
        {"id": "S", "at": "N", "kind": "S"},
        "id",
        "at",
        GlobalSecondaryIndexes=[index("by-kind", "kind", "at")],
    )
    yield name
    dynamodb.delete_table(TableName=name)


@pytest.fixture
def filled(dynamodb, table):
    """The table with five items of one partition, two of them of kind `odd`."""
    for at in range(5):
        item = {"id": "a", "at": at, "kind": "odd" if at % 2 else "even", "amount": at * 10}
        dynamodb.put_item(TableName=table, Item=values(item))
    return table


def key(at, id="a"):
    return values({"id": id, "at": at})


def times(answer):
    return [int(item["at"]["N"]) for item in answer["Items"]]


def test_created_table_is_active_for_the_waiter(dynamodb):
    description = create_table(dynamodb, "created", {"id": "S"}, "id")
    assert description["TableStatus"] == "ACTIVE"
    assert description["TableArn"] == "arn:aws:dynamodb:us-east-1:000000000000:table/created"
    dynamodb.get_waiter("table_exists").wait(TableName="created", WaiterConfig={"MaxAttempts": 1})
    with refused("ResourceInUseException", "created"):
        create_table(dynamodb, "created", {"id": "S"}, "id")
    dynamodb.delete_table(TableName="created")


def test_describe_table_has_keys_and_indexes(dynamodb, filled):
    description = dynamodb.describe_table(TableName=filled)["Table"]
    assert [key["AttributeName"] for key in description["KeySchema"]] == ["id", "at"]
    assert description["GlobalSecondaryIndexes"][0]["IndexName"] == "by-kind"
    assert description["ItemCount"] == 5
    with refused("ResourceNotFoundException", "Table: missing not found"):
        dynamodb.describe_table(TableName="missing")


def test_list_tables_pages_through_all_names(dynamodb):
    names = [f"listed-{number}" for number in range(3)]
    for name in names:
        create_table(dynamodb, name, {"id": "S"}, "id")
    pages = dynamodb.get_paginator("list_tables").paginate(PaginationConfig={"PageSize": 1})
    listed = [name for page in pages for name in page["TableNames"]]
    assert [name for name in listed if name in names] == names
    assert listed == sorted(listed)
    with refused("ValidationException", "limit"):
        dynamodb.list_tables(Limit=101)
    for name in names:
        dynamodb.delete_table(TableName=name)


def test_delete_table_respects_deletion_protection(dynamodb):
    create_table(dynamodb, "doomed", {"id": "S"}, "id", DeletionProtectionEnabled=True)
    with refused("ValidationException", "protected"):
        dynamodb.delete_table(TableName="doomed")
    dynamodb.update_table(TableName="doomed", DeletionProtectionEnabled=False)
    dynamodb.delete_table(TableName="doomed")
    dynamodb.get_waiter("table_not_exists").wait(TableName="doomed", WaiterConfig={"MaxAttempts": 1})
    with refused("ResourceNotFoundException", "Table: doomed not found"):
        dynamodb.delete_table(TableName="doomed")


def test_update_table_changes_every_setting(dynamodb, table):
    throughput = {"ReadCapacityUnits": 3, "WriteCapacityUnits": 4}
    dynamodb.update_table(
        TableName=table,
        BillingMode="PROVISIONED",
        ProvisionedThroughput=throughput,
        GlobalSecondaryIndexUpdates=[{"Update": {"IndexName": "by-kind", "ProvisionedThroughput": throughput}}],
    )
    dynamodb.update_table(TableName=table, StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"})
    dynamodb.update_table(TableName=table, SSESpecification={"Enabled": True, "SSEType": "KMS"})
    dynamodb.update_table(TableName=table, TableClass="STANDARD_INFREQUENT_ACCESS")
    description = dynamodb.describe_table(TableName=table)["Table"]
    assert description["ProvisionedThroughput"]["WriteCapacityUnits"] == 4
    assert description["StreamSpecification"]["StreamViewType"] == "NEW_IMAGE"
    assert description["SSEDescription"]["SSEType"] == "KMS"
    assert description["TableClassSummary"]["TableClass"] == "STANDARD_INFREQUENT_ACCESS"
    with refused("ValidationException", "At least one of"):
        dynamodb.update_table(TableName=table)


def test_update_table_creates_and_deletes_indexes(dynamodb, filled):
    created = index("by-amount", "amount")
    dynamodb.update_table(
        TableName=filled,
        AttributeDefinitions=[{"AttributeName": "amount", "AttributeType": "N"}],
        GlobalSecondaryIndexUpdates=[{"Create": created}],
    )
    assert wait_for_index(dynamodb, filled, "by-amount") == "ACTIVE"
    found = dynamodb.query(
        TableName=filled,
        IndexName="by-amount",
        KeyConditionExpression="amount = :amount",
        ExpressionAttributeValues=values({":amount": 30}),
    )
    assert times(found) == [3]
    dynamodb.update_table(TableName=filled, GlobalSecondaryIndexUpdates=[{"Delete": {"IndexName": "by-kind"}}])
    with refused("ValidationException", "by-kind"):
        dynamodb.scan(TableName=filled, IndexName="by-kind")
    with refused("ResourceNotFoundException"):
        dynamodb.update_table(TableName=filled, GlobalSecondaryIndexUpdates=[{"Delete": {"IndexName": "none"}}])


def test_put_item_returns_old_item_and_checks_condition(dynamodb, table):
    item = values({"id": "a", "at": 1, "binary": b"\x00\xff", "set": {"x", "y"}, "list": [None, True, {"deep": 1}]})
    dynamodb.put_item(TableName=table, Item=item)
    answer = dynamodb.put_item(TableName=table, Item=key(1), ReturnValues="ALL_OLD", ReturnConsumedCapacity="TOTAL")
    assert plain(answer["Attributes"]) == plain(item)
    assert answer["ConsumedCapacity"]["CapacityUnits"] == 1.0
    with refused("ConditionalCheckFailedException", "The conditional request failed") as caught:
        dynamodb.put_item(
            TableName=table,
            Item=key(1),
            ConditionExpression="attribute_not_exists(id)",
            ReturnValuesOnConditionCheckFailure="ALL_OLD",
        )
    assert caught.value.response["Item"] == key(1)
    with refused("ValidationException", "Missing the key at in the item"):
        dynamodb.put_item(TableName=table, Item=values({"id": "a"}))


def test_get_item_projects_and_handles_missing_items(dynamodb, filled):
    answer = dynamodb.get_item(
        TableName=filled,
        Key=key(3),
        ConsistentRead=True,
        ProjectionExpression="#s, kind",
        ExpressionAttributeNames={"#s": "amount"},
    )
    assert plain(answer["Item"]) == {"amount": 30, "kind": "odd"}
    assert "Item" not in dynamodb.get_item(TableName=filled, Key=key(99))
    with refused("ValidationException", "Empty attribute name for key #s"):
        dynamodb.get_item(
            TableName=filled, Key=key(3), ProjectionExpression="#s", ExpressionAttributeNames={"#s": ""}
        )
    with refused("ValidationException", "The provided key element does not match the schema"):
        dynamodb.get_item(TableName=filled, Key=values({"id": "a"}))


def test_update_item_counts_appends_and_removes(dynamodb, table):
    def update(expression, numbers, **more):
        return dynamodb.update_item(
            TableName=table,
            Key=key(1),
            UpdateExpression=expression,
            ExpressionAttributeValues=values(numbers),
            ReturnValues="ALL_NEW",
            **more,
        )["Attributes"]

    update("SET seen = list_append(if_not_exists(seen, :none), :one) ADD hits :two", {":none": [], ":one": [1], ":two": 2})
    changed = update("SET seen[1] = :three, hits = hits - :one REMOVE gone", {":three": 3, ":one": 1})
    assert plain(changed) == {"id": "a", "at": 1, "seen": [1, 3], "hits": 1}
    with refused("ConditionalCheckFailedException"):
        update("SET hits = :one", {":one": 1, ":many": 5}, ConditionExpression="hits > :many")
    with refused("ValidationException", "Cannot update attribute id. This attribute is part of the key"):
        update("SET id = :one", {":one": 1})


def test_delete_item_returns_the_deleted_item(dynamodb, filled):
    answer = dynamodb.delete_item(TableName=filled, Key=key(2), ReturnValues="ALL_OLD")
    assert plain(answer["Attributes"])["amount"] == 20
    assert "Item" not in dynamodb.get_item(TableName=filled, Key=key(2))
    with refused("ConditionalCheckFailedException"):
        dynamodb.delete_item(TableName=filled, Key=key(2), ConditionExpression="attribute_exists(id)")


def test_query_pages_in_both_directions_and_on_indexes(dynamodb, filled):
    request = {
        "TableName": filled,
        "KeyConditionExpression": "id = :id AND #at BETWEEN :from AND :to",
        "ExpressionAttributeNames": {"#at": "at"},
        "ExpressionAttributeValues": values({":id": "a", ":from": 1, ":to": 4}),
    }
    assert times(dynamodb.query(**request)) == [1, 2, 3, 4]
    assert times(dynamodb.query(**request, ScanIndexForward=False, Limit=2)) == [4, 3]
    pages = dynamodb.get_paginator("query").paginate(**request, PaginationConfig={"PageSize": 1})
    assert [at for page in pages for at in times(page)] == [1, 2, 3, 4]
    count = dynamodb.query(**request, Select="COUNT")
    assert count["Count"] == 4 and "Items" not in count
    by_kind = {"KeyConditionExpression": "kind = :kind", "ExpressionAttributeValues": values({":kind": "odd"})}
    assert times(dynamodb.query(TableName=filled, IndexName="by-kind", **by_kind)) == [1, 3]
    with refused("ValidationException", "Query condition missed key schema element: id"):
        dynamodb.query(TableName=filled, **by_kind)


def test_scan_filters_and_segments_cover_all_items(dynamodb, filled):
    for number in range(20):
        dynamodb.put_item(TableName=filled, Item=key(0, id=f"p{number}"))
    seen = []
    for segment in range(4):
        seen += dynamodb.scan(TableName=filled, Segment=segment, TotalSegments=4)["Items"]
    assert len(seen) == 25
    answer = dynamodb.scan(
        TableName=filled,
        FilterExpression="contains(kind, :part) AND attribute_type(amount, :number)",
        ExpressionAttributeValues=values({":part": "dd", ":number": "N"}),
    )
    assert sorted(times(answer)) == [1, 3]
    assert (answer["Count"], answer["ScannedCount"]) == (2, 25)
    with refused("ValidationException", "Segment"):
        dynamodb.scan(TableName=filled, Segment=4, TotalSegments=4)


def test_batch_get_item_returns_existing_items(dynamodb, filled):
    answer = dynamodb.batch_get_item(RequestItems={filled: {"Keys": [key(1), key(2), key(77)]}})
    assert sorted(plain(item)["amount"] for item in answer["Responses"][filled]) == [10, 20]
    assert answer["UnprocessedKeys"] == {}
    with refused("ValidationException", "Provided list of item keys contains duplicates"):
        dynamodb.batch_get_item(RequestItems={filled: {"Keys": [key(1), key(1)]}})


def test_batch_write_item_puts_and_deletes(dynamodb, filled):
    requests = [{"PutRequest": {"Item": key(9)}}, {"DeleteRequest": {"Key": key(0)}}]
    assert dynamodb.batch_write_item(RequestItems={filled: requests})["UnprocessedItems"] == {}
    assert times(dynamodb.scan(TableName=filled)) == [1, 2, 3, 4, 9]
    with refused("ValidationException", "less than or equal to 25"):
        dynamodb.batch_write_item(RequestItems={filled: [{"PutRequest": {"Item": key(at)}} for at in range(26)]})
    with refused("ValidationException", "The provided key element does not match the schema"):
        dynamodb.batch_write_item(RequestItems={filled: [{"PutRequest": {"Item": values({"id": "a"})}}]})


def test_transact_get_items_keeps_request_order(dynamodb, filled):
    gets = [{"Get": {"TableName": filled, "Key": key(at)}} for at in (3, 88, 1)]
    found = dynamodb.transact_get_items(TransactItems=gets)["Responses"]
    assert [plain(one["Item"])["amount"] if "Item" in one else None for one in found] == [30, None, 10]
    with refused("ResourceNotFoundException"):
        dynamodb.transact_get_items(TransactItems=[{"Get": {"TableName": "missing", "Key": key(1)}}])


def test_transact_write_items_is_atomic_and_idempotent(dynamodb, filled):
    add_one = {
        "TableName": filled,
        "Key": key(1),
        "UpdateExpression": "ADD amount :one",
        "ExpressionAttributeValues": values({":one": 1}),
    }
    check = {"TableName": filled, "Key": key(2), "ConditionExpression": "attribute_exists(id)"}
    items = [{"Update": add_one}, {"ConditionCheck": check}, {"Delete": {"TableName": filled, "Key": key(3)}}]
    for _ in range(2):
        dynamodb.transact_write_items(TransactItems=items, ClientRequestToken="the-same-token")
    assert plain(dynamodb.get_item(TableName=filled, Key=key(1))["Item"])["amount"] == 11
    with refused("IdempotentParameterMismatchException"):
        dynamodb.transact_write_items(TransactItems=items[:1], ClientRequestToken="the-same-token")
    failing = {"ConditionCheck": {**check, "ConditionExpression": "attribute_not_exists(id)"}}
    with refused("TransactionCanceledException", "[None, ConditionalCheckFailed]") as caught:
        dynamodb.transact_write_items(TransactItems=[{"Update": add_one}, failing])
    assert [reason["Code"] for reason in caught.value.response["CancellationReasons"]] == ["None", "ConditionalCheckFailed"]
    assert plain(dynamodb.get_item(TableName=filled, Key=key(1))["Item"])["amount"] == 11


def test_time_to_live_hides_expired_items(dynamodb, filled):
    assert dynamodb.describe_time_to_live(TableName=filled)["TimeToLiveDescription"] == {"TimeToLiveStatus": "DISABLED"}
    enabled = {"Enabled": True, "AttributeName": "expires"}
    dynamodb.update_time_to_live(TableName=filled, TimeToLiveSpecification=enabled)
    description = dynamodb.describe_time_to_live(TableName=filled)["TimeToLiveDescription"]
    assert description == {"TimeToLiveStatus": "ENABLED", "AttributeName": "expires"}
    # DynamoDB ignores expiry times of more than five years ago, so the test needs a recent one.
    an_hour_ago = int(time.time()) - 3600
    dynamodb.put_item(TableName=filled, Item=values({"id": "a", "at": 50, "expires": an_hour_ago}))
    assert "Item" not in dynamodb.get_item(TableName=filled, Key=key(50))
    with refused("ValidationException", "TimeToLive is already enabled"):
        dynamodb.update_time_to_live(TableName=filled, TimeToLiveSpecification=enabled)
    with refused("ResourceNotFoundException"):
        dynamodb.describe_time_to_live(TableName="missing")


def test_tags_are_added_and_removed(dynamodb, table):
    arn = dynamodb.describe_table(TableName=table)["Table"]["TableArn"]
    dynamodb.tag_resource(ResourceArn=arn, Tags=[{"Key": "env", "Value": "dev"}, {"Key": "team", "Value": "van"}])
    dynamodb.untag_resource(ResourceArn=arn, TagKeys=["team"])
    assert dynamodb.list_tags_of_resource(ResourceArn=arn)["Tags"] == [{"Key": "env", "Value": "dev"}]
    with refused("ResourceNotFoundException"):
        dynamodb.tag_resource(ResourceArn=arn + "-missing", Tags=[{"Key": "a", "Value": "b"}])


def test_limits_endpoints_and_backups_are_described(dynamodb, server, table):
    assert dynamodb.describe_limits()["TableMaxReadCapacityUnits"] > 0
    assert dynamodb.describe_endpoints()["Endpoints"][0]["CachePeriodInMinutes"] > 0
    backups = dynamodb.describe_continuous_backups(TableName=table)["ContinuousBackupsDescription"]
    assert backups["ContinuousBackupsStatus"] in ("ENABLED", "DISABLED")
    with refused("TableNotFoundException"):
        dynamodb.describe_continuous_backups(TableName="missing")


def test_unsupported_operation_is_unknown(dynamodb):
    with refused("UnknownOperationException"):
        dynamodb.list_global_tables()


def test_resource_interface_accepts_plain_values(server, filled):
    resource = boto3.resource(
        "dynamodb",
        endpoint_url=server.endpoint,
        region_name=REGION,
        aws_access_key_id="any",
        aws_secret_access_key="any",
    )
    table = resource.Table(filled)
    with table.batch_writer() as batch:
        for at in range(100, 160):
            batch.put_item(Item={"id": "b", "at": at})
    condition = Key("id").eq("b") & Key("at").gte(150)
    assert table.query(KeyConditionExpression=condition)["Count"] == 10
    assert table.scan(FilterExpression=Attr("amount").exists())["Count"] == 5


def test_unsigned_request_is_accepted_without_credentials(server):
    request = urllib.request.Request(
        server.endpoint,
        data=b"{}",
        headers={"Content-Type": "application/x-amz-json-1.0", "X-Amz-Target": "DynamoDB_20120810.ListTables"},
    )
    with urllib.request.urlopen(request, timeout=10) as answer:
        assert answer.status == 200
