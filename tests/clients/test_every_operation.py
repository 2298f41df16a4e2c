"""Every supported operation, called with boto3 and with the AWS CLI in the same scenario."""

import json
import pathlib
import re

import boto3
import botocore.config
from botocore import xform_name
import pytest

from conftest import REGION, CommandLine, within

OPERATIONS = pathlib.Path(__file__).parents[2] / "crates" / "wire" / "src" / "operations" / "mod.rs"
STREAMS = {"DescribeStream", "GetRecords", "GetShardIterator", "ListStreams"}


def served():
    """The operations in the list of the server."""
    listed = re.search(r"^operations! \{(.*?)^\}", OPERATIONS.read_text(), re.MULTILINE | re.DOTALL).group(1)
    names = set(re.findall(r"(\w+) =>", listed))
    assert len(names) > 40
    return names


class Boto3:
    """Calls with boto3, which parses every response with the model of its operation."""

    def __init__(self, endpoint, _):
        def client(service):
            return boto3.client(
                service,
                endpoint_url=endpoint,
                region_name=REGION,
                aws_access_key_id="any",
                aws_secret_access_key="any",
                config=botocore.config.Config(retries={"total_max_attempts": 1}),
            )

        self.tables, self.streams = client("dynamodb"), client("dynamodbstreams")
        self.called = set()
        for each in (self.tables, self.streams):
            each.meta.events.register("before-send.*", self.note)

    def note(self, request, **_):
        target = request.headers["X-Amz-Target"]
        self.called.add((target if isinstance(target, str) else target.decode()).split(".")[1])

    def __call__(self, operation, **parameters):
        client = self.streams if operation in STREAMS else self.tables
        return getattr(client, xform_name(operation))(**parameters)


class Aws:
    """Calls with the AWS CLI, each in a process of its own."""

    def __init__(self, endpoint, home):
        self.aws = CommandLine(endpoint, home)
        self.called = set()

    def __call__(self, operation, **parameters):
        service = "dynamodbstreams" if operation in STREAMS else "dynamodb"
        command = xform_name(operation, "-")
        answer = self.aws(command, "--cli-input-json", json.dumps(parameters), service=service)
        self.called.add(operation)
        return answer or {}


@pytest.mark.parametrize("caller", [Boto3, Aws])
def test_every_operation_is_supported(caller, start_server, tmp_path):
    (tmp_path / "buckets" / "exports").mkdir(parents=True)
    server = start_server(tmp_path / "data", options=("--dynamodb-buckets", str(tmp_path / "buckets")))
    call = caller(server.endpoint, tmp_path)
    table_with_everything(call)
    items(call)
    transactions(call)
    statements(call)
    stream(call)
    backups(call)
    recovery(call)
    transfers(call)
    assert call("DeleteTable", TableName="things")["TableDescription"]["TableStatus"] == "DELETING"
    assert call.called == served()
    server.stop()


def create(call, table):
    created = call(
        "CreateTable",
        TableName=table,
        AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
        BillingMode="PAY_PER_REQUEST",
    )["TableDescription"]
    assert created["TableStatus"] == "ACTIVE"
    return created["TableArn"]


def table_with_everything(call):
    arn = create(call, "things")
    assert "things" in call("ListTables")["TableNames"]
    images = {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}
    changed = call("UpdateTable", TableName="things", StreamSpecification=images)["TableDescription"]
    assert changed["StreamSpecification"] == images
    assert call("DescribeTable", TableName="things")["Table"]["LatestStreamArn"] == changed["LatestStreamArn"]
    lives = {"Enabled": True, "AttributeName": "expires"}
    assert (
        call("UpdateTimeToLive", TableName="things", TimeToLiveSpecification=lives)["TimeToLiveSpecification"] == lives
    )
    described = call("DescribeTimeToLive", TableName="things")["TimeToLiveDescription"]
    assert described == {"TimeToLiveStatus": "ENABLED", "AttributeName": "expires"}
    call("TagResource", ResourceArn=arn, Tags=[{"Key": "env", "Value": "dev"}, {"Key": "team", "Value": "iot"}])
    call("UntagResource", ResourceArn=arn, TagKeys=["env"])
    assert call("ListTagsOfResource", ResourceArn=arn)["Tags"] == [{"Key": "team", "Value": "iot"}]
    call("UpdateContributorInsights", TableName="things", ContributorInsightsAction="ENABLE")
    told = call("DescribeContributorInsights", TableName="things")
    assert told["ContributorInsightsStatus"] == "ENABLED"
    listed = call("ListContributorInsights")["ContributorInsightsSummaries"]
    assert [summary["TableName"] for summary in listed] == ["things"]
    assert call("DescribeLimits")["TableMaxReadCapacityUnits"] > 0
    assert call("DescribeEndpoints")["Endpoints"][0]["CachePeriodInMinutes"] > 0


def items(call):
    item = {"id": {"S": "a"}, "n": {"N": "1"}, "m": {"M": {"l": {"L": [{"BOOL": True}, {"NULL": True}]}}}}
    key = {"id": {"S": "a"}}
    call("PutItem", TableName="things", Item=item)
    assert call("GetItem", TableName="things", Key=key)["Item"] == item
    updated = call(
        "UpdateItem",
        TableName="things",
        Key=key,
        UpdateExpression="ADD n :one",
        ExpressionAttributeValues={":one": {"N": "1"}},
        ReturnValues="UPDATED_NEW",
    )
    assert updated["Attributes"] == {"n": {"N": "2"}}
    found = call(
        "Query",
        TableName="things",
        KeyConditionExpression="id = :id",
        ExpressionAttributeValues={":id": {"S": "a"}},
    )
    assert (found["Count"], found["Items"][0]["n"]) == (1, {"N": "2"})
    assert call("Scan", TableName="things")["ScannedCount"] == 1
    gone = call("DeleteItem", TableName="things", Key=key, ReturnValues="ALL_OLD")
    assert gone["Attributes"]["m"] == item["m"]
    puts = [{"PutRequest": {"Item": {"id": {"S": name}}}} for name in "bcd"]
    assert call("BatchWriteItem", RequestItems={"things": puts})["UnprocessedItems"] == {}
    keys = [{"id": {"S": name}} for name in "bz"]
    read = call("BatchGetItem", RequestItems={"things": {"Keys": keys}})
    assert (read["Responses"]["things"], read["UnprocessedKeys"]) == ([{"id": {"S": "b"}}], {})


def transactions(call):
    writes = [
        {"Put": {"TableName": "things", "Item": {"id": {"S": "e"}}}},
        {"Delete": {"TableName": "things", "Key": {"id": {"S": "d"}}}},
    ]
    call("TransactWriteItems", TransactItems=writes)
    reads = [{"Get": {"TableName": "things", "Key": {"id": {"S": name}}}} for name in "de"]
    assert call("TransactGetItems", TransactItems=reads)["Responses"] == [{}, {"Item": {"id": {"S": "e"}}}]


def statements(call):
    call("ExecuteStatement", Statement="INSERT INTO things VALUE {'id': 'p', 'n': 1}")
    read = "SELECT n FROM things WHERE id = 'p'"
    assert call("ExecuteStatement", Statement=read)["Items"] == [{"n": {"N": "1"}}]
    batch = call("BatchExecuteStatement", Statements=[{"Statement": read}])["Responses"]
    assert batch == [{"TableName": "things", "Item": {"n": {"N": "1"}}}]
    update = "UPDATE things SET n = 2 WHERE id = 'p'"
    call("ExecuteTransaction", TransactStatements=[{"Statement": update}])
    assert call("ExecuteStatement", Statement=read)["Items"] == [{"n": {"N": "2"}}]


def stream(call):
    [listed] = call("ListStreams", TableName="things")["Streams"]
    described = call("DescribeStream", StreamArn=listed["StreamArn"])["StreamDescription"]
    assert described["StreamStatus"] == "ENABLED"
    shard = described["Shards"][0]["ShardId"]
    iterator = call(
        "GetShardIterator", StreamArn=listed["StreamArn"], ShardId=shard, ShardIteratorType="TRIM_HORIZON"
    )["ShardIterator"]
    records = call("GetRecords", ShardIterator=iterator, Limit=3)["Records"]
    assert [record["eventName"] for record in records] == ["INSERT", "MODIFY", "REMOVE"]


def backups(call):
    arn = call("CreateBackup", TableName="things", BackupName="one")["BackupDetails"]["BackupArn"]

    def is_available():
        described = call("DescribeBackup", BackupArn=arn)["BackupDescription"]
        return described["BackupDetails"]["BackupStatus"] == "AVAILABLE"

    within(is_available)
    assert [backup["BackupArn"] for backup in call("ListBackups", TableName="things")["BackupSummaries"]] == [arn]
    call("RestoreTableFromBackup", BackupArn=arn, TargetTableName="from-backup")
    active(call, "from-backup")
    assert call("Scan", TableName="from-backup")["Count"] == call("Scan", TableName="things")["Count"]
    deleted = call("DeleteBackup", BackupArn=arn)["BackupDescription"]["BackupDetails"]
    assert deleted["BackupStatus"] == "DELETED"


def active(call, table):
    within(lambda: call("DescribeTable", TableName=table)["Table"]["TableStatus"] == "ACTIVE")


def recovery(call):
    on = {"PointInTimeRecoveryEnabled": True}
    call("UpdateContinuousBackups", TableName="things", PointInTimeRecoverySpecification=on)
    described = call("DescribeContinuousBackups", TableName="things")["ContinuousBackupsDescription"]
    assert described["PointInTimeRecoveryDescription"]["PointInTimeRecoveryStatus"] == "ENABLED"
    call(
        "RestoreTableToPointInTime",
        SourceTableName="things",
        TargetTableName="recovered",
        UseLatestRestorableTime=True,
    )
    active(call, "recovered")
    assert call("Scan", TableName="recovered")["Count"] == call("Scan", TableName="things")["Count"]


def transfers(call):
    arn = call("DescribeTable", TableName="things")["Table"]["TableArn"]
    begun = call("ExportTableToPointInTime", TableArn=arn, S3Bucket="exports", S3Prefix="all")["ExportDescription"]

    def exported():
        described = call("DescribeExport", ExportArn=begun["ExportArn"])["ExportDescription"]
        return described["ExportStatus"] != "IN_PROGRESS" and described

    assert within(exported)["ExportStatus"] == "COMPLETED"
    [listed] = call("ListExports", TableArn=arn)["ExportSummaries"]
    assert listed["ExportArn"] == begun["ExportArn"]
    source = {"S3Bucket": "exports", "S3KeyPrefix": "all/"}
    table = {
        "TableName": "imported",
        "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
        "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
        "BillingMode": "PAY_PER_REQUEST",
    }
    begun = call(
        "ImportTable",
        S3BucketSource=source,
        InputFormat="DYNAMODB_JSON",
        InputCompressionType="GZIP",
        TableCreationParameters=table,
    )["ImportTableDescription"]

    def imported():
        described = call("DescribeImport", ImportArn=begun["ImportArn"])["ImportTableDescription"]
        return described["ImportStatus"] != "IN_PROGRESS" and described

    ended = within(imported)
    assert (ended["ImportStatus"], ended["ErrorCount"]) == ("COMPLETED", 0)
    assert call("ListImports")["ImportSummaryList"][0]["ImportArn"] == begun["ImportArn"]
    assert call("Scan", TableName="imported")["Count"] == call("Scan", TableName="things")["Count"]
