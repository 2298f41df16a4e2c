"""Backups, point-in-time recovery, exports and imports with boto3 and the AWS CLI."""

import base64
import gzip
import hashlib
import json
import math
import time

import pytest

from conftest import WAIT_SECS_MAX, client, within
from tables import create_table, index, plain_items, refused, values

ITEMS = 3000


def available(dynamodb, arn):
    def look():
        described = dynamodb.describe_backup(BackupArn=arn)["BackupDescription"]
        return described if described["BackupDetails"]["BackupStatus"] == "AVAILABLE" else None

    return within(look)


def backup(dynamodb, table, name):
    arn = dynamodb.create_backup(TableName=table, BackupName=name)["BackupDetails"]["BackupArn"]
    available(dynamodb, arn)
    return arn


def active(dynamodb, table):
    dynamodb.get_waiter("table_exists").wait(TableName=table, WaiterConfig={"Delay": 1, "MaxAttempts": WAIT_SECS_MAX})


def fill(dynamodb, table, numbers):
    for at in range(0, len(numbers), 25):
        puts = [{"PutRequest": {"Item": values({"id": f"{n:05}", "n": n})}} for n in numbers[at : at + 25]]
        assert not dynamodb.batch_write_item(RequestItems={table: puts})["UnprocessedItems"]


def contents(dynamodb, table):
    pages = dynamodb.get_paginator("scan").paginate(TableName=table)
    return sorted((item for page in pages for item in plain_items(page)), key=lambda item: item["id"])


@pytest.fixture
def table(dynamodb, request):
    name = f"past-{request.node.name[:60]}"
    create_table(dynamodb, name, {"id": "S", "n": "N"}, "id", GlobalSecondaryIndexes=[index("by-n", "n")])
    yield name
    dynamodb.delete_table(TableName=name)


def test_backup_restores_state_at_request(dynamodb, table):
    fill(dynamodb, table, range(100))
    before = contents(dynamodb, table)
    arn = backup(dynamodb, table, "before")
    fill(dynamodb, table, range(100, 150))
    dynamodb.delete_item(TableName=table, Key=values({"id": "00000"}))
    description = dynamodb.restore_table_from_backup(TargetTableName="from-backup", BackupArn=arn)["TableDescription"]
    assert description["RestoreSummary"]["SourceBackupArn"] == arn
    active(dynamodb, "from-backup")
    assert contents(dynamodb, "from-backup") == before
    found = dynamodb.query(
        TableName="from-backup",
        IndexName="by-n",
        KeyConditionExpression="n = :n",
        ExpressionAttributeValues=values({":n": 42}),
    )
    assert plain_items(found) == [{"id": "00042", "n": 42}]
    with pytest.raises(dynamodb.exceptions.TableAlreadyExistsException):
        dynamodb.restore_table_from_backup(TargetTableName="from-backup", BackupArn=arn)
    dynamodb.delete_table(TableName="from-backup")
    listed = dynamodb.list_backups(TableName=table)["BackupSummaries"]
    assert [summary["BackupArn"] for summary in listed] == [arn]
    assert dynamodb.delete_backup(BackupArn=arn)["BackupDescription"]["BackupDetails"]["BackupStatus"] == "DELETED"
    with pytest.raises(dynamodb.exceptions.BackupNotFoundException):
        dynamodb.describe_backup(BackupArn=arn)


def test_indexes_can_be_omitted(dynamodb, table):
    fill(dynamodb, table, range(3))
    arn = backup(dynamodb, table, "bare")
    dynamodb.restore_table_from_backup(
        TargetTableName="bare",
        BackupArn=arn,
        GlobalSecondaryIndexOverride=[],
        BillingModeOverride="PROVISIONED",
        ProvisionedThroughputOverride={"ReadCapacityUnits": 3, "WriteCapacityUnits": 4},
    )
    active(dynamodb, "bare")
    described = dynamodb.describe_table(TableName="bare")["Table"]
    assert "GlobalSecondaryIndexes" not in described
    assert described["ProvisionedThroughput"]["ReadCapacityUnits"] == 3
    dynamodb.delete_table(TableName="bare")
    dynamodb.delete_backup(BackupArn=arn)


def recovery(dynamodb, table):
    described = dynamodb.describe_continuous_backups(TableName=table)["ContinuousBackupsDescription"]
    return described["PointInTimeRecoveryDescription"]


def test_table_is_restored_to_past_second(dynamodb, table):
    with pytest.raises(dynamodb.exceptions.PointInTimeRecoveryUnavailableException):
        dynamodb.restore_table_to_point_in_time(
            SourceTableName=table, TargetTableName="past", UseLatestRestorableTime=True
        )
    fill(dynamodb, table, range(50))
    dynamodb.update_continuous_backups(
        TableName=table, PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": True}
    )
    assert recovery(dynamodb, table)["RecoveryPeriodInDays"] == 35
    fill(dynamodb, table, range(50, 60))
    dynamodb.delete_item(TableName=table, Key=values({"id": "00007"}))
    then = contents(dynamodb, table)
    moment = math.floor(time.time()) + 1

    def is_over():
        latest = recovery(dynamodb, table).get("LatestRestorableDateTime")
        return latest is not None and latest.timestamp() >= moment

    within(is_over)
    dynamodb.put_item(TableName=table, Item=values({"id": "00001", "n": 1000}))
    dynamodb.delete_item(TableName=table, Key=values({"id": "00002"}))
    fill(dynamodb, table, [7, 60, 61])
    later = contents(dynamodb, table)
    dynamodb.restore_table_to_point_in_time(SourceTableName=table, TargetTableName="past", RestoreDateTime=moment)
    active(dynamodb, "past")
    assert contents(dynamodb, "past") == then
    dynamodb.restore_table_to_point_in_time(
        SourceTableName=table, TargetTableName="latest", UseLatestRestorableTime=True
    )
    active(dynamodb, "latest")
    assert contents(dynamodb, "latest") == later
    with pytest.raises(dynamodb.exceptions.InvalidRestoreTimeException):
        dynamodb.restore_table_to_point_in_time(
            SourceTableName=table, TargetTableName="never", RestoreDateTime=moment - 3600
        )
    for name in ("past", "latest"):
        dynamodb.delete_table(TableName=name)


def test_killed_backup_or_restore_can_be_repeated(start_server, tmp_path):
    data = tmp_path / "data"
    server = start_server(data)
    dynamodb = client(server.endpoint)
    create_table(dynamodb, "source", {"id": "S"}, "id")
    fill(dynamodb, "source", range(ITEMS))
    before = contents(dynamodb, "source")
    kept = backup(dynamodb, "source", "kept")
    # Killed right after the response: the result is complete or missing.
    cut = dynamodb.create_backup(TableName="source", BackupName="cut")["BackupDetails"]["BackupArn"]
    dynamodb.restore_table_from_backup(TargetTableName="copy", BackupArn=kept)
    server.kill()
    server = start_server(data)
    dynamodb = client(server.endpoint)
    arns = {summary["BackupArn"] for summary in dynamodb.list_backups()["BackupSummaries"]}
    assert arns in ({kept}, {kept, cut})
    assert len(list((data / "backups").iterdir())) == len(arns)
    assert contents(dynamodb, "source") == before
    if "copy" not in dynamodb.list_tables()["TableNames"]:
        with refused("ResourceNotFoundException", "copy"):
            dynamodb.describe_table(TableName="copy")
        dynamodb.restore_table_from_backup(TargetTableName="copy", BackupArn=kept)
    active(dynamodb, "copy")
    assert contents(dynamodb, "copy") == before
    server.stop()


def test_cli_backs_up_and_restores(dynamodb, aws, table):
    fill(dynamodb, table, range(5))
    arn = aws("create-backup", "--table-name", table, "--backup-name", "typed")["BackupDetails"]["BackupArn"]
    available(dynamodb, arn)
    assert aws("describe-backup", "--backup-arn", arn)["BackupDescription"]["SourceTableDetails"]["ItemCount"] == 5
    assert arn in [summary["BackupArn"] for summary in aws("list-backups")["BackupSummaries"]]
    aws("restore-table-from-backup", "--target-table-name", "typed-copy", "--backup-arn", arn)
    active(dynamodb, "typed-copy")
    aws("delete-backup", "--backup-arn", arn)
    on = ["--point-in-time-recovery-specification", "PointInTimeRecoveryEnabled=true"]
    aws("update-continuous-backups", "--table-name", "typed-copy", *on)
    source = ["--source-table-name", "typed-copy", "--use-latest-restorable-time"]
    aws("restore-table-to-point-in-time", *source, "--target-table-name", "typed-again")
    active(dynamodb, "typed-again")
    assert contents(dynamodb, "typed-again") == contents(dynamodb, table)
    for name in ("typed-copy", "typed-again"):
        dynamodb.delete_table(TableName=name)


def test_exported_table_can_be_imported(start_server, tmp_path):
    (tmp_path / "buckets" / "exports").mkdir(parents=True)
    server = start_server(tmp_path / "data", options=("--dynamodb-buckets", str(tmp_path / "buckets")))
    dynamodb = client(server.endpoint)
    arn = create_table(dynamodb, "source", {"id": "S"}, "id")["TableArn"]
    dynamodb.update_continuous_backups(
        TableName="source", PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": True}
    )
    fill(dynamodb, "source", range(200))

    def described(begun):
        look = dynamodb.describe_export(ExportArn=begun["ExportArn"])["ExportDescription"]
        return look if look["ExportStatus"] != "IN_PROGRESS" else None

    begun = dynamodb.export_table_to_point_in_time(TableArn=arn, S3Bucket="exports", S3Prefix="moved")
    export = within(lambda: described(begun["ExportDescription"]))
    assert (export["ExportStatus"], export["ItemCount"]) == ("COMPLETED", 200)
    bucket = tmp_path / "buckets" / "exports"
    summary = json.loads((bucket / export["ExportManifest"]).read_text())
    files = [json.loads(line) for line in (bucket / summary["manifestFilesS3Key"]).read_text().splitlines()]
    ids = []
    for file in files:
        data = (bucket / file["dataFileS3Key"]).read_bytes()
        assert base64.b64encode(hashlib.md5(data).digest()).decode() == file["md5Checksum"]
        lines = gzip.decompress(data).decode().splitlines()
        assert len(lines) == file["itemCount"]
        ids += [json.loads(line)["Item"]["id"]["S"] for line in lines]
    assert sorted(ids) == [f"{n:05}" for n in range(200)]
    begun = dynamodb.import_table(
        S3BucketSource={"S3Bucket": "exports", "S3KeyPrefix": "moved/"},
        InputFormat="DYNAMODB_JSON",
        InputCompressionType="GZIP",
        TableCreationParameters={
            "TableName": "target",
            "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
            "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
            "BillingMode": "PAY_PER_REQUEST",
        },
    )["ImportTableDescription"]

    def imported():
        look = dynamodb.describe_import(ImportArn=begun["ImportArn"])["ImportTableDescription"]
        return look if look["ImportStatus"] != "IN_PROGRESS" else None

    ended = within(imported)
    assert (ended["ImportStatus"], ended["ImportedItemCount"], ended["ErrorCount"]) == ("COMPLETED", 200, 0)
    assert contents(dynamodb, "target") == contents(dynamodb, "source")
    server.stop()
