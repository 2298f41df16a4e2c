"""DynamoDB Streams with boto3 and the AWS CLI: a consumer gets every record exactly once."""

import contextlib
import os
import threading
import time

import boto3
import botocore.config
import pytest
from botocore.exceptions import BotoCoreError, ClientError

from conftest import REGION, client
from tables import create_table, refused, values

# Set `HOMEPORT_STREAM_CHANGES=100000` for a long run; the default is shorter.
CHANGES = int(os.environ.get("HOMEPORT_STREAM_CHANGES", "10000"))
WRITERS = 4
BATCH = 25
FOLLOW_SECS_MAX = 600


def streams_client(endpoint):
    return boto3.client(
        "dynamodbstreams",
        endpoint_url=endpoint,
        region_name=REGION,
        aws_access_key_id="any",
        aws_secret_access_key="any",
        config=botocore.config.Config(retries={"total_max_attempts": 1}),
    )


def with_stream(dynamodb, name, view):
    specification = {"StreamEnabled": True, "StreamViewType": view}
    made = create_table(dynamodb, name, {"id": "S"}, "id", StreamSpecification=specification)
    return made["LatestStreamArn"]


def shards(streams, arn):
    """All shards, page by page."""
    found, more = [], {}
    while True:
        description = streams.describe_stream(StreamArn=arn, **more)["StreamDescription"]
        found += description["Shards"]
        if "LastEvaluatedShardId" not in description:
            return found
        more = {"ExclusiveStartShardId": description["LastEvaluatedShardId"]}


def records(streams, arn):
    """All current records of the open and closed shards."""
    found = []
    for shard in shards(streams, arn):
        iterator = streams.get_shard_iterator(
            StreamArn=arn, ShardId=shard["ShardId"], ShardIteratorType="TRIM_HORIZON"
        )["ShardIterator"]
        while iterator:
            page = streams.get_records(ShardIterator=iterator)
            found += page["Records"]
            iterator = page.get("NextShardIterator") if page["Records"] else None
    return found


@pytest.fixture(scope="module")
def streams(server):
    return streams_client(server.endpoint)


@pytest.mark.parametrize("view", ["KEYS_ONLY", "NEW_IMAGE", "OLD_IMAGE", "NEW_AND_OLD_IMAGES"])
def test_insert_update_and_delete_are_three_records(dynamodb, streams, view):
    name = f"life-{view}"
    arn = with_stream(dynamodb, name, view)
    dynamodb.put_item(TableName=name, Item=values({"id": "a", "n": 1}))
    dynamodb.put_item(TableName=name, Item=values({"id": "a", "n": 2}))
    dynamodb.delete_item(TableName=name, Key=values({"id": "a"}))
    told = records(streams, arn)
    assert [record["eventName"] for record in told] == ["INSERT", "MODIFY", "REMOVE"]
    assert len({record["eventID"] for record in told}) == 3
    one, two = values({"id": "a", "n": 1}), values({"id": "a", "n": 2})
    new, old = view in ("NEW_IMAGE", "NEW_AND_OLD_IMAGES"), view in ("OLD_IMAGE", "NEW_AND_OLD_IMAGES")
    assert [record["dynamodb"].get("NewImage") for record in told] == ([one, two, None] if new else [None] * 3)
    assert [record["dynamodb"].get("OldImage") for record in told] == ([None, one, two] if old else [None] * 3)
    assert all(record["dynamodb"]["Keys"] == values({"id": "a"}) for record in told)
    numbers = [record["dynamodb"]["SequenceNumber"] for record in told]
    assert numbers == sorted(numbers) and all(len(number) >= 21 for number in numbers)
    dynamodb.delete_table(TableName=name)


def test_expired_item_is_removed_by_the_service(dynamodb, streams):
    arn = with_stream(dynamodb, "expiring", "OLD_IMAGE")
    dynamodb.update_time_to_live(
        TableName="expiring", TimeToLiveSpecification={"Enabled": True, "AttributeName": "until"}
    )
    past = {"id": "a", "until": int(time.time()) - 2 * 3600}
    dynamodb.put_item(TableName="expiring", Item=values(past))
    # A write to an expired item finds it deleted, and the stream has the deletion first.
    dynamodb.put_item(TableName="expiring", Item=values({"id": "a", "until": 0}))
    told = records(streams, arn)
    assert [record["eventName"] for record in told] == ["INSERT", "REMOVE", "INSERT"]
    assert told[1]["userIdentity"] == {"PrincipalId": "dynamodb.amazonaws.com", "Type": "Service"}
    assert told[1]["dynamodb"]["OldImage"] == values(past)
    assert all("userIdentity" not in told[at] for at in (0, 2))
    dynamodb.delete_table(TableName="expiring")


def test_disabled_stream_ends_and_stays_readable(dynamodb, streams):
    arn = with_stream(dynamodb, "ending", "NEW_IMAGE")
    dynamodb.put_item(TableName="ending", Item=values({"id": "a"}))
    dynamodb.update_table(TableName="ending", StreamSpecification={"StreamEnabled": False})
    dynamodb.put_item(TableName="ending", Item=values({"id": "b"}))
    assert [record["dynamodb"]["Keys"] for record in records(streams, arn)] == [values({"id": "a"})]
    again = dynamodb.update_table(
        TableName="ending", StreamSpecification={"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"}
    )["TableDescription"]["LatestStreamArn"]
    assert again != arn
    listed = [stream["StreamArn"] for stream in streams.list_streams(TableName="ending")["Streams"]]
    assert listed == [arn, again]
    assert streams.describe_stream(StreamArn=arn)["StreamDescription"]["StreamStatus"] == "DISABLED"
    dynamodb.delete_table(TableName="ending")


def test_errors_have_names_of_the_sdk(streams):
    unknown = f"arn:aws:dynamodb:{REGION}:000000000000:table/none/stream/2020-01-01T00:00:00.000"
    with pytest.raises(streams.exceptions.ResourceNotFoundException):
        streams.describe_stream(StreamArn=unknown)
    with refused("ValidationException", "Invalid ShardIterator"):
        streams.get_records(ShardIterator="nonsense")


def test_cli_reads_stream(dynamodb, aws):
    arn = with_stream(dynamodb, "typed", "NEW_IMAGE")
    dynamodb.put_item(TableName="typed", Item=values({"id": "a"}))
    read = lambda *arguments: aws(*arguments, service="dynamodbstreams")
    assert arn in [stream["StreamArn"] for stream in read("list-streams")["Streams"]]
    described = read("describe-stream", "--stream-arn", arn)["StreamDescription"]
    shard = described["Shards"][0]["ShardId"]
    place = ["--stream-arn", arn, "--shard-id", shard, "--shard-iterator-type", "TRIM_HORIZON"]
    iterator = read("get-shard-iterator", *place)["ShardIterator"]
    page = read("get-records", "--shard-iterator", iterator)
    assert [record["eventName"] for record in page["Records"]] == ["INSERT"]
    dynamodb.delete_table(TableName="typed")


class Follower(threading.Thread):
    """Follows a stream by its iterators, also through restarts of the server."""

    def __init__(self, arn, endpoint, expected):
        super().__init__(daemon=True)
        self.arn = arn
        self.endpoint = endpoint
        self.expected = expected
        self.seen = []
        self.failures = 0
        self.failed = None

    def run(self):
        try:
            self.follow()
        except BaseException as error:
            self.failed = error

    def follow(self):
        deadline = time.monotonic() + FOLLOW_SECS_MAX
        iterator = None
        while len(self.seen) < self.expected and time.monotonic() < deadline:
            try:
                streams = streams_client(self.endpoint())
                if iterator is None:
                    shard = shards(streams, self.arn)[0]["ShardId"]
                    iterator = streams.get_shard_iterator(
                        StreamArn=self.arn, ShardId=shard, ShardIteratorType="TRIM_HORIZON"
                    )["ShardIterator"]
                while len(self.seen) < self.expected and time.monotonic() < deadline:
                    page = streams.get_records(ShardIterator=iterator)
                    self.seen += [int(record["dynamodb"]["NewImage"]["n"]["N"]) for record in page["Records"]]
                    iterator = page["NextShardIterator"]
            except (BotoCoreError, ClientError):
                # The server was killed; the iterator without a response is used again.
                self.failures += 1


def test_consumer_survives_kill_without_gap_or_repeat(start_server, tmp_path):
    data = tmp_path / "data"
    servers = [start_server(data)]
    arn = with_stream(client(servers[0].endpoint), "followed", "NEW_IMAGE")
    follower = Follower(arn, lambda: servers[-1].endpoint, CHANGES)
    follower.start()
    running = threading.Event()
    running.set()

    def write(writer):
        """Writes every number once. A batch without a response is repeated, which changes no existing item."""
        numbers = range(writer, CHANGES, WRITERS)
        for at in range(0, len(numbers), BATCH):
            puts = [{"PutRequest": {"Item": values({"id": str(n), "n": n})}} for n in numbers[at : at + BATCH]]
            while True:
                with contextlib.suppress(BotoCoreError, ClientError):
                    unprocessed = client(servers[-1].endpoint).batch_write_item(RequestItems={"followed": puts})
                    if not unprocessed["UnprocessedItems"]:
                        break
                running.wait(timeout=FOLLOW_SECS_MAX)

    writers = [threading.Thread(target=write, args=(writer,), daemon=True) for writer in range(WRITERS)]
    for writer in writers:
        writer.start()
    for kill_at in (CHANGES // 3, 2 * CHANGES // 3):
        deadline = time.monotonic() + FOLLOW_SECS_MAX
        while len(follower.seen) < kill_at and follower.is_alive():
            assert time.monotonic() < deadline, "the follower does not get on"
            time.sleep(0.01)
        running.clear()
        servers[-1].kill()
        servers.append(start_server(data))
        running.set()
    for writer in writers:
        writer.join(timeout=FOLLOW_SECS_MAX)
        assert not writer.is_alive()
    follower.join(timeout=FOLLOW_SECS_MAX)
    assert follower.failed is None
    assert len(follower.seen) == CHANGES
    assert sorted(follower.seen) == list(range(CHANGES))
    # The records of one writer are in the order of its writes.
    for writer in range(WRITERS):
        own = [n for n in follower.seen if n % WRITERS == writer]
        assert own == sorted(own)
    # A second reader gets the same records in the same order.
    again = records(streams_client(servers[-1].endpoint), arn)
    assert [int(record["dynamodb"]["NewImage"]["n"]["N"]) for record in again] == follower.seen
