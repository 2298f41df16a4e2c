"""Restores, exports and imports that are interrupted by a kill: the source is unchanged, nothing partial remains, and they can be
repeated."""

import gzip
import hashlib
import json
import os
import subprocess

import pytest

from conftest import COMMAND_SECS_MAX, client, within

ITEMS = 4000
FILLING = "x" * 4000
# How often a transfer is seen running before the server is killed.
LOOKS_BEFORE_KILLS = (1, 10, 40)


def digest(dynamodb, table):
    """The number of items of a table, and a digest of them in key order."""
    items = []
    for page in dynamodb.get_paginator("scan").paginate(TableName=table):
        items += [json.dumps(item, sort_keys=True) for item in page["Items"]]
    return len(items), hashlib.sha256("\n".join(sorted(items)).encode()).hexdigest()


def files(folder):
    """The files of a folder with their contents."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def write_import(bucket):
    """Items in the format of exports."""
    (bucket / "given").mkdir()
    lines = (
        json.dumps({"Item": {"id": {"S": f"{number:05}"}, "n": {"N": str(number)}, "filling": {"S": FILLING}}})
        for number in range(ITEMS)
    )
    (bucket / "given" / "data.json.gz").write_bytes(gzip.compress("\n".join(lines).encode(), 1))


class TableTransfer:
    """A transfer with a table as its result."""

    result = "result"

    def is_going_on(self, dynamodb):
        try:
            status = dynamodb.describe_table(TableName=self.result)["Table"]["TableStatus"]
        except dynamodb.exceptions.ResourceNotFoundException:
            # Not listed yet, or lost with the server.
            return None
        return status == "CREATING"

    def left(self, dynamodb):
        """The result after a kill: nothing or everything."""
        if self.result not in dynamodb.list_tables()["TableNames"]:
            return None
        found = digest(dynamodb, self.result)
        dynamodb.delete_table(TableName=self.result)
        return found

    def end(self, dynamodb):
        within(lambda: self.is_going_on(dynamodb) is False)
        return digest(dynamodb, self.result)


class FromBackup(TableTransfer):
    def prepare(self, dynamodb):
        self.arn = dynamodb.create_backup(TableName="source", BackupName="kept")["BackupDetails"]["BackupArn"]

        def is_available():
            described = dynamodb.describe_backup(BackupArn=self.arn)["BackupDescription"]
            return described["BackupDetails"]["BackupStatus"] == "AVAILABLE"

        within(is_available)

    def begin(self, dynamodb):
        dynamodb.restore_table_from_backup(TargetTableName=self.result, BackupArn=self.arn)


class FromPast(TableTransfer):
    def prepare(self, dynamodb):
        pass

    def begin(self, dynamodb):
        dynamodb.restore_table_to_point_in_time(
            SourceTableName="source", TargetTableName=self.result, UseLatestRestorableTime=True
        )


class Import(TableTransfer):
    def prepare(self, dynamodb):
        pass

    def begin(self, dynamodb):
        self.arn = dynamodb.import_table(
            S3BucketSource={"S3Bucket": "bucket", "S3KeyPrefix": "given/"},
            InputFormat="DYNAMODB_JSON",
            InputCompressionType="GZIP",
            TableCreationParameters={
                "TableName": self.result,
                "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
                "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
                "BillingMode": "PAY_PER_REQUEST",
            },
        )["ImportTableDescription"]["ImportArn"]

    def is_going_on(self, dynamodb):
        described = dynamodb.describe_import(ImportArn=self.arn)["ImportTableDescription"]
        return described["ImportStatus"] == "IN_PROGRESS"

    def end(self, dynamodb):
        found = super().end(dynamodb)
        described = dynamodb.describe_import(ImportArn=self.arn)["ImportTableDescription"]
        assert (described["ImportStatus"], described["ErrorCount"]) == ("COMPLETED", 0)
        return found


class Export:
    def __init__(self):
        self.folder = None

    def prepare(self, dynamodb):
        self.table = dynamodb.describe_table(TableName="source")["Table"]["TableArn"]

    def begin(self, dynamodb):
        begun = dynamodb.export_table_to_point_in_time(TableArn=self.table, S3Bucket="bucket", S3Prefix="taken")
        self.arn = begun["ExportDescription"]["ExportArn"]

    def is_going_on(self, dynamodb):
        described = dynamodb.describe_export(ExportArn=self.arn)["ExportDescription"]
        return described["ExportStatus"] == "IN_PROGRESS"

    def left(self, dynamodb):
        """An export with a summary is complete; without a summary it does not count."""
        arns = {listed["ExportArn"] for listed in dynamodb.list_exports(TableArn=self.table)["ExportSummaries"]}
        return self.exported(dynamodb) if self.arn in arns else None

    def end(self, dynamodb):
        within(lambda: not self.is_going_on(dynamodb))
        return self.exported(dynamodb)

    def exported(self, dynamodb):
        described = dynamodb.describe_export(ExportArn=self.arn)["ExportDescription"]
        assert described["ExportStatus"] == "COMPLETED"
        summary = json.loads((self.folder / described["ExportManifest"]).read_text())
        items = []
        for line in (self.folder / summary["manifestFilesS3Key"]).read_text().splitlines():
            data = gzip.decompress((self.folder / json.loads(line)["dataFileS3Key"]).read_bytes()).decode()
            items += [json.dumps(json.loads(line)["Item"], sort_keys=True) for line in data.splitlines()]
        return len(items), hashlib.sha256("\n".join(sorted(items)).encode()).hexdigest()


@pytest.mark.parametrize("kind", [FromBackup, FromPast, Export, Import])
def test_killed_transfer_keeps_source_and_can_be_repeated(kind, start_server, tmp_path):
    data, bucket = tmp_path / "data", tmp_path / "buckets" / "bucket"
    bucket.mkdir(parents=True)
    write_import(bucket)
    options = ("--dynamodb-buckets", str(tmp_path / "buckets"))
    server = start_server(data, options=options)
    dynamodb = client(server.endpoint)
    transfer = kind()
    transfer.folder = bucket
    filled = Import()
    filled.result = "source"
    filled.begin(dynamodb)
    before = filled.end(dynamodb)
    assert before[0] == ITEMS
    given = files(bucket / "given")
    on = {"PointInTimeRecoveryEnabled": True}
    dynamodb.update_continuous_backups(TableName="source", PointInTimeRecoverySpecification=on)
    transfer.prepare(dynamodb)
    cut = 0
    for looks in LOOKS_BEFORE_KILLS:
        transfer.begin(dynamodb)
        seen = 0
        while seen < looks and transfer.is_going_on(dynamodb) is not False:
            seen += 1
        server.kill()
        server = start_server(data, options=options)
        dynamodb = client(server.endpoint)
        left = transfer.left(dynamodb)
        assert left in (None, before)
        cut += left is None
        assert digest(dynamodb, "source") == before
        assert files(bucket / "given") == given
    assert cut > 0, "no kill came in time"
    transfer.begin(dynamodb)
    assert transfer.end(dynamodb) == before
    assert digest(dynamodb, "source") == before
    server.stop()
    checked = subprocess.run(
        [os.environ["HOMEPORT_BIN"], "check", "--data-dir", str(data)],
        capture_output=True,
        text=True,
        timeout=COMMAND_SECS_MAX,
    )
    assert checked.returncode == 0, checked.stdout
    assert "no problems" in checked.stdout
