"""BatchGetItem and BatchWriteItem: wording, order of checks, limits."""

import json

from .case import Answered, case, either, invalid, invalid_like, invalid_with, not_found, story
from .tables import ABSENT, BYTES, PAIR, TEXT
from .values import EMPTY_BYTES_KEY, EMPTY_TEXT_KEY, MISMATCH, B, N, S, key, one, violation

CAPACITY_ENUM = violation("X", "returnConsumedCapacity", "Member must satisfy enum value set: [INDEXES, TOTAL, NONE]")
METRICS_ENUM = violation("Y", "returnItemCollectionMetrics", "Member must satisfy enum value set: [SIZE, NONE]")
NOTHING = one("Value at 'RequestItems' failed to satisfy constraint: Member must have length greater than or equal to 1")
TWICE = "Provided list of item keys contains duplicates"
NAMES = (
    "failed to satisfy constraint: Map keys must satisfy constraint: [Member must have length less than or equal to 255, "
    "Member must have length greater than or equal to 3, Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+]"
)
OVERLAP = "Invalid ProjectionExpression: Two document paths overlap with each other; must remove or rewrite one of these paths; path one: [a], path two: [{}]"
BAD_GETS = {"bad!name": {"Keys": [{"pk": S("a")}]}}
BAD_GETS_SHOWN = f"Value '{json.dumps(BAD_GETS, separators=(',', ':'))}' at 'requestItems' {NAMES}"


def get(name, answer, items, **more):
    return case(f"get: {name}", "BatchGetItem", {"RequestItems": items, **more}, answer)


def write(name, answer, items, **more):
    return case(f"write: {name}", "BatchWriteItem", {"RequestItems": items, **more}, answer)


def keys(*wanted, **more):
    return {"Keys": [key(pk) for pk in wanted], **more}


def puts(*items):
    return [{"PutRequest": {"Item": item}} for item in items]


def deletes(*wanted):
    return [{"DeleteRequest": {"Key": one_key}} for one_key in wanted]


def writes_nothing(name, answer, items, at, **more):
    return story(
        f"write: {name}",
        ("BatchWriteItem", {"RequestItems": items, **more}, answer),
        ("GetItem", {"TableName": TEXT, "Key": key(at)}, Answered(without=("Item",))),
    )


MANY = [f"many-{at}" for at in range(101)]

CASES = [
    get("nothing", invalid(NOTHING, "The requestItems parameter is required for BatchGetItem"), {}),
    get("101 keys", invalid(one(f"Value at 'RequestItems.{TEXT}.member.Keys' failed to satisfy constraint: Member must have length less than or equal to 100")), {TEXT: keys(*MANY)}),
    get("100 keys", Answered({"UnprocessedKeys": {}}), {TEXT: keys(*MANY[:100])}),
    get("no keys", invalid(one(f"Value at 'RequestItems.{TEXT}.member.Keys' failed to satisfy constraint: Member must have length greater than or equal to 1")), {TEXT: keys()}),
    get("missing table", not_found(), {ABSENT: keys("a")}),
    get("a key twice", invalid(TWICE), {TEXT: keys("a", "a")}),
    get("empty bytes as key", invalid(EMPTY_BYTES_KEY), {BYTES: {"Keys": [{"pk": B(b"")}]}}),
    get(
        "two kinds of projection",
        invalid_with("Can not use both expression and non-expression parameters in the same request: Non-expression parameters: {AttributesToGet} Expression parameters: {ProjectionExpression}"),
        {TEXT: keys("a", AttributesToGet=["pk"], ProjectionExpression="pk")},
    ),
    get(
        "two kinds of projection on two tables",
        invalid_with("Can not use both expression and non-expression parameters in the same request"),
        {TEXT: keys("a", ProjectionExpression="pk"), PAIR: {"Keys": [key("a", "b")], "AttributesToGet": ["pk"]}},
    ),
    get("name that no table has", invalid(one(BAD_GETS_SHOWN)), BAD_GETS),
    get("name that no table has, and an unknown choice", invalid(f"2 validation errors detected: {BAD_GETS_SHOWN}; {CAPACITY_ENUM}"), BAD_GETS, ReturnConsumedCapacity="X"),
    get("unknown choice", invalid(one(CAPACITY_ENUM)), {TEXT: keys("a")}, ReturnConsumedCapacity="X"),
    get("unknown choice before a missing table", invalid(one(CAPACITY_ENUM)), {ABSENT: keys("a")}, ReturnConsumedCapacity="X"),
    get("path twice", invalid(OVERLAP.format("a")), {TEXT: keys("a", ProjectionExpression="a, a")}),
    get("path twice by two names", invalid(OVERLAP.format("a")), {TEXT: keys("a", ProjectionExpression="#a, #b", ExpressionAttributeNames={"#a": "a", "#b": "a"})}),
    get("path within a path", invalid(OVERLAP.format("a, b")), {TEXT: keys("a", ProjectionExpression="a, a.b")}),
    get(
        "bad projection of one table of two",
        invalid(OVERLAP.format("a")),
        {TEXT: keys("a", ProjectionExpression="a, a"), PAIR: {"Keys": [key("a", "b")], "ProjectionExpression": "a"}},
    ),
    write("nothing", invalid(NOTHING, "The requestItems parameter is required for BatchWriteItem"), {}),
    write(
        "26 requests",
        either(
            invalid_like(
                rf"1 validation error detected: Value '\{{{TEXT}=\[.+\]\}}' at 'requestItems' failed to satisfy constraint: Map value must satisfy constraint: "
                r"\[Member must have length less than or equal to 25, Member must have length greater than or equal to 1\]"
            ),
            invalid(one(f"Value at 'RequestItems.{TEXT}.member' failed to satisfy constraint: Member must have length less than or equal to 25")),
        ),
        {TEXT: puts(*[key(pk) for pk in MANY[:26]])},
    ),
    write("25 requests", Answered({"UnprocessedItems": {}}), {TEXT: puts(*[{**key(pk), "n": N(1)} for pk in MANY[:25]])}),
    write("25 requests of 20 KB", Answered({"UnprocessedItems": {}}), {TEXT: puts(*[{**key(pk), "p": S("x" * 20_000)} for pk in MANY[:25]])}),
    write(
        "no requests of a table",
        invalid(one(f"Value '{{{TEXT}=[]}}' at 'requestItems' failed to satisfy constraint: Map value must satisfy constraint: [Member must have length less than or equal to 25, Member must have length greater than or equal to 1]")),
        {TEXT: []},
    ),
    write("put and delete of a key", invalid(TWICE), {TEXT: [*puts(key("a")), *deletes(key("a"))]}),
    write("missing table", not_found(), {ABSENT: puts(key("a"))}),
    write("key of another type", invalid(MISMATCH), {TEXT: puts({"pk": N(5)})}),
    write("key that is no scalar", invalid(MISMATCH), {TEXT: puts({"pk": {"L": [S("x")]}})}),
    write("item without its key", invalid(MISMATCH), {TEXT: puts({"other": S("x")})}),
    write("delete without its key", invalid(MISMATCH), {TEXT: deletes({"other": S("x")})}),
    write("empty text as key", invalid(EMPTY_TEXT_KEY), {TEXT: puts(key(""))}),
    write("empty bytes as key of a put", invalid(EMPTY_BYTES_KEY), {BYTES: puts({"pk": B(b"")})}),
    write("empty bytes as key of a delete", invalid(EMPTY_BYTES_KEY), {BYTES: deletes({"pk": B(b"")})}),
    write(
        "name that no table has",
        invalid_like(
            r"1 validation error detected: Value '\{bad!name=\[WriteRequest\(putRequest=PutRequest\(item=\{pk=.+\}.*\)\]\}' at 'requestItems' failed to satisfy constraint: "
            r"Map keys must satisfy constraint: \[Member must have length less than or equal to 255, Member must have length greater than or equal to 3, "
            r"Member must satisfy regular expression pattern: \[a-zA-Z0-9_.-\]\+\]"
        ),
        {"bad!name": puts(key("x"))},
    ),
    write("name that no table has gives way to an unknown choice", invalid(one(CAPACITY_ENUM)), {"bad!name": puts(key("x"))}, ReturnConsumedCapacity="X"),
    write("unknown choice before a missing table", invalid(one(CAPACITY_ENUM)), {ABSENT: puts(key("a"))}, ReturnConsumedCapacity="X"),
    writes_nothing("unknown capacity", invalid(one(CAPACITY_ENUM)), {TEXT: puts(key("bw-1"))}, "bw-1", ReturnConsumedCapacity="X"),
    writes_nothing("unknown metrics", invalid(one(METRICS_ENUM)), {TEXT: puts(key("bw-2"))}, "bw-2", ReturnItemCollectionMetrics="Y"),
    writes_nothing(
        "both unknown",
        invalid(f"2 validation errors detected: {CAPACITY_ENUM}; {METRICS_ENUM}"),
        {TEXT: puts(key("bw-3"))}, "bw-3", ReturnConsumedCapacity="X", ReturnItemCollectionMetrics="Y",
    ),
]  # fmt: skip
