"""DynamoDB Streams: what a table tells of its stream, and what its records show."""

from .steps import ABSENT, Case, Exactly, Satisfies, delete, done, item, put, refused, some_text, table, update

VIEWS = ("NEW_AND_OLD_IMAGES", "NEW_IMAGE", "OLD_IMAGE", "KEYS_ONLY")
TABLES = [table(f"streams-{view}", ["pk"], StreamSpecification={"StreamEnabled": True, "StreamViewType": view}) for view in VIEWS]
SEED = [
    request
    for view in VIEWS
    for request in (
        # An update that only removes creates no item, and so no record.
        update(f"streams-{view}", {"pk": "a"}, "REMOVE v"),
        put(f"streams-{view}", {"pk": "a", "v": "old"}),
        update(f"streams-{view}", {"pk": "a"}, "SET v = :v", {":v": "new"}),
        delete(f"streams-{view}", {"pk": "a"}),
    )
]
OLD, NEW = item(pk="a", v="old"), item(pk="a", v="new")


class Records:
    """All records of a table's stream: name, old and new image of each, in order."""

    def __init__(self, table, *wanted):
        self.table, self.wanted = table, wanted

    def run(self, server):
        arn = server.send("DescribeTable", {"TableName": self.table})["Table"]["LatestStreamArn"]
        found = []
        for shard in server.send("DescribeStream", {"StreamArn": arn})["StreamDescription"]["Shards"]:
            wanted = {"StreamArn": arn, "ShardId": shard["ShardId"], "ShardIteratorType": "TRIM_HORIZON"}
            iterator = server.send("GetShardIterator", wanted)["ShardIterator"]
            while iterator:
                answer = server.send("GetRecords", {"ShardIterator": iterator})
                found += answer["Records"]
                iterator = answer.get("NextShardIterator") if answer["Records"] else None
        assert len(found) == len(self.wanted), found
        for record, (name, old, new) in zip(found, self.wanted):
            change = record["dynamodb"]
            assert record["eventName"] == name, record
            assert change["Keys"] == item(pk="a"), record
            assert change.get("OldImage") == old, record
            assert change.get("NewImage") == new, record


def told(view, *images):
    name = f"streams-{view}"
    return Case(f"a stream of {view} tells what it should", [
        done(("DescribeTable", {"TableName": name}), {"Table": {"LatestStreamArn": some_text, "StreamSpecification": Exactly({"StreamEnabled": True, "StreamViewType": view})}}, {"arn": ["Table", "LatestStreamArn"]}),
        done(("ListStreams", {"TableName": name}), {"Streams": [{"TableName": name, "StreamArn": some_text}]}),
        done(("ListStreams", {}), {"Streams": Satisfies("with this one", lambda found: name in [each["TableName"] for each in found])}),
        Records(name, *((event, *pair) for event, pair in zip(("INSERT", "MODIFY", "REMOVE"), images))),
    ])  # fmt: skip


class Iterators:
    """A stream is enabled, has shards with names, and every kind of iterator is given."""

    def run(self, server):
        arn = server.send("DescribeTable", {"TableName": "streams-KEYS_ONLY"})["Table"]["LatestStreamArn"]
        stream = server.send("DescribeStream", {"StreamArn": arn})["StreamDescription"]
        assert stream["StreamStatus"] == "ENABLED" and stream["Shards"], stream
        for shard in stream["Shards"]:
            for kind in ("TRIM_HORIZON", "LATEST"):
                wanted = {"StreamArn": arn, "ShardId": shard["ShardId"], "ShardIteratorType": kind}
                assert server.send("GetShardIterator", wanted)["ShardIterator"]


class NumberedIterators:
    """Only iterators that start at a sequence number take one."""

    def run(self, server):
        arn = server.send("DescribeTable", {"TableName": "streams-KEYS_ONLY"})["Table"]["LatestStreamArn"]
        shard = server.send("DescribeStream", {"StreamArn": arn})["StreamDescription"]["Shards"][0]
        first = shard["SequenceNumberRange"]["StartingSequenceNumber"]
        numbered = {"StreamArn": arn, "ShardId": shard["ShardId"], "SequenceNumber": first}
        for kind in ("AT_SEQUENCE_NUMBER", "AFTER_SEQUENCE_NUMBER"):
            assert server.send("GetShardIterator", {**numbered, "ShardIteratorType": kind})["ShardIterator"]
        for kind in ("TRIM_HORIZON", "LATEST"):
            refused(("GetShardIterator", {**numbered, "ShardIteratorType": kind}), "ValidationException", "SequenceNumber", kind).run(server)


CASES = [
    told("NEW_AND_OLD_IMAGES", (None, OLD), (OLD, NEW), (NEW, None)),
    told("NEW_IMAGE", (None, OLD), (None, NEW), (None, None)),
    told("OLD_IMAGE", (None, None), (OLD, None), (NEW, None)),
    told("KEYS_ONLY", (None, None), (None, None), (None, None)),
    Case("every shard gives iterators", [Iterators()]),
    Case("TRIM_HORIZON and LATEST take no sequence number", [NumberedIterators()]),
    Case("a table without a stream tells none", [
        done(("CreateTable", table("streams-none", ["pk"])), {"TableDescription": {"LatestStreamArn": ABSENT, "StreamSpecification": ABSENT}}),
        done(("DeleteTable", {"TableName": "streams-none"})),
    ]),
]  # fmt: skip
