"""TransactWriteItems and TransactGetItems: wording, order of checks, limits."""

from .case import ACCEPTED, Answered, Refused, cancelled, case, either, invalid, invalid_like, not_found, story
from .tables import ABSENT, BYTES, TEXT
from .values import EMPTY_BYTES_KEY, EMPTY_TEXT_KEY, INVALID, MISMATCH, TOO_DEEP, B, N, S, deep, for_value, key, one, violation

CAPACITY_ENUM = violation("X", "returnConsumedCapacity", "Member must satisfy enum value set: [INDEXES, TOTAL, NONE]")
METRICS_ENUM = violation("Y", "returnItemCollectionMetrics", "Member must satisfy enum value set: [SIZE, NONE]")
AT_LEAST_ONE = "failed to satisfy constraint: Member must have length greater than or equal to 1"
NOTHING = (one(f"Value '[]' at 'transactItems' {AT_LEAST_ONE}"), one(f"Value at 'TransactItems' {AT_LEAST_ONE}"))
MANY = r"1 validation error detected: (?:Value '\[.+\]' at 'transactItems'|Value at 'TransactItems') failed to satisfy constraint: Member must have length less than or equal to 100"
SYNTAX = 'Invalid ConditionExpression: Syntax error; token: "=", near: "= = b"'
UNFINISHED = 'Invalid ConditionExpression: Syntax error; token: "<EOF>", near: "("'
UNUSED = "Value provided in ExpressionAttributeValues unused in expressions: keys: {:u}"
EMPTY_NAME = "Empty attribute name"
FAILED = "The conditional request failed"
TOKEN = "t" * 37
TOKEN_NAMED = "Value at 'ClientRequestToken' failed to satisfy constraint: Member must have length less than or equal to 36"
TOKEN_SHOWN = violation(TOKEN, "clientRequestToken", "Member must have length less than or equal to 36")


def put(item, table=TEXT, **more):
    return {"Put": {"TableName": table, "Item": item, **more}}


def update(one_key, expression="SET a = :v", values=None, table=TEXT, **more):
    values = {":v": S("x")} if values is None else values
    return {"Update": {"TableName": table, "Key": one_key, "UpdateExpression": expression, "ExpressionAttributeValues": values, **more}}


def delete(one_key, table=TEXT, **more):
    return {"Delete": {"TableName": table, "Key": one_key, **more}}


def check(one_key, condition="attribute_not_exists(pk)", table=TEXT, **more):
    return {"ConditionCheck": {"TableName": table, "Key": one_key, "ConditionExpression": condition, **more}}


def write(name, answer, *actions, **more):
    return case(f"write: {name}", "TransactWriteItems", {"TransactItems": list(actions), **more}, answer)


def writes_nothing(name, answer, at, *actions, **more):
    return story(
        f"write: {name}",
        ("TransactWriteItems", {"TransactItems": list(actions), **more}, answer),
        ("GetItem", {"TableName": TEXT, "Key": key(at)}, Answered(without=("Item",))),
    )


def get(name, answer, *gets, **more):
    gets = [{"Get": {"TableName": table, "Key": one_key, **rest}} for table, one_key, rest in gets]
    return case(f"get: {name}", "TransactGetItems", {"TransactItems": gets, **more}, answer)


def apart(pk):
    """A key of a table that is not looked up."""
    return key(pk, "1")


def pair_key(value):
    return {"pk": value, "sk": S("1")}


BAD_KEYS = [
    ("empty text", S(""), invalid(EMPTY_TEXT_KEY)),
    ("number", N(5), cancelled(("ValidationError", MISMATCH))),
    ("list", {"L": [S("x")]}, cancelled(("ValidationError", MISMATCH))),
]
BY_KEY = [("update", update), ("delete", delete), ("check", check)]
DEEP_VALUE = either(invalid(for_value(TOO_DEEP, ":d")), invalid(TOO_DEEP))
LONG_CONDITION = "a = :v" + " AND a = :v" * 373
LONG_UPDATE = "SET " + ", ".join(f"a{at} = :v" for at in range(500))
UNUSED_CHECK = check(key("tx-u"), ExpressionAttributeValues={":u": S("x")})

CASES = [
    write("nothing", invalid(*NOTHING)),
    write("101 actions", invalid_like(MANY), *[put(key(f"tx-{at}")) for at in range(101)]),
    write("100 actions", ACCEPTED, *[put(key(f"tx-{at}")) for at in range(100)]),
    write("3.5 MB", ACCEPTED, *[put({**key(f"tx-{at}"), "p": S("x" * 350_000)}) for at in range(10)]),
    # No text of the service is known for this one.
    write("4.2 MB", Refused("ValidationException"), *[put({**key(f"tx-{at}"), "p": S("x" * 350_000)}) for at in range(12)]),
    write("one item twice", invalid("Transaction request cannot include multiple operations on one item"), put(key("a")), put(key("a"))),
    write("missing table", not_found(), put(key("a"), ABSENT)),
    write("put of a number as key", cancelled(("ValidationError", INVALID + "Type mismatch for key pk expected: S actual: N")), put({"pk": N(5)})),
    write("put of a list as key", cancelled(("ValidationError", INVALID + "Type mismatch for key pk expected: S actual: L")), put({"pk": {"L": [S("x")]}})),
    write("put of an empty text as key", invalid(EMPTY_TEXT_KEY), put(key(""))),
    write("put of empty bytes as key", invalid(EMPTY_BYTES_KEY), put({"pk": B(b"")}, BYTES)),
    *[write(f"{kind} by {what} as key", answer, make({"pk": value})) for kind, make in BY_KEY for what, value, answer in BAD_KEYS],
    *[write(f"{kind} by empty bytes as key", invalid(EMPTY_BYTES_KEY), make({"pk": B(b"")}, table=BYTES)) for kind, make in BY_KEY],
    story(
        "write: each action has its reason",
        ("BatchWriteItem", {"RequestItems": {TEXT: [{"PutRequest": {"Item": key(pk)}} for pk in ("tx-r1", "tx-r2")]}}, ACCEPTED),
        (
            "TransactWriteItems",
            {"TransactItems": [put(key(pk), ConditionExpression="attribute_not_exists(pk)") for pk in ("tx-r1", "tx-r2")]},
            cancelled(("ConditionalCheckFailed", FAILED), ("ConditionalCheckFailed", FAILED)),
        ),
        (
            "TransactWriteItems",
            {"TransactItems": [put(key(pk), ConditionExpression="attribute_not_exists(pk)") for pk in ("tx-r3", "tx-r1")]},
            cancelled("None", ("ConditionalCheckFailed", FAILED)),
        ),
        ("GetItem", {"TableName": TEXT, "Key": key("tx-r3")}, Answered(without=("Item",))),
    ),
    writes_nothing("unknown capacity", invalid(one(CAPACITY_ENUM)), "tx-e1", put(key("tx-e1")), ReturnConsumedCapacity="X"),
    writes_nothing("unknown metrics", invalid(one(METRICS_ENUM)), "tx-e2", put(key("tx-e2")), ReturnItemCollectionMetrics="Y"),
    writes_nothing("both unknown", invalid(f"2 validation errors detected: {CAPACITY_ENUM}; {METRICS_ENUM}"), "tx-e3", put(key("tx-e3")), ReturnConsumedCapacity="X", ReturnItemCollectionMetrics="Y"),
    write("unknown choice before a missing table", invalid(one(CAPACITY_ENUM)), put(key("a"), ABSENT), ReturnConsumedCapacity="X"),
    write("unknown choice before an item twice", invalid(one(CAPACITY_ENUM)), put(key("a")), delete(key("a")), ReturnConsumedCapacity="X"),
    writes_nothing("long token", invalid(one(TOKEN_NAMED), one(TOKEN_SHOWN)), "tx-t1", put(key("tx-t1")), ClientRequestToken=TOKEN),
    write("long token before an unknown choice", invalid(one(TOKEN_NAMED), f"2 validation errors detected: {TOKEN_SHOWN}; {CAPACITY_ENUM}"), put(key("a")), ClientRequestToken=TOKEN, ReturnConsumedCapacity="X"),
    write("later unfinished condition before an earlier missing table", invalid(UNFINISHED), put(key("a"), ABSENT), check(key("b"), "attribute_not_exists(")),
    write("unfinished condition before a later deep item", invalid(UNFINISHED), check(key("a"), "attribute_not_exists("), put({**key("b"), "d": deep(32)})),
    write("deep item before a later unfinished condition", invalid(TOO_DEEP), put({**key("b"), "d": deep(32)}), check(key("a"), "attribute_not_exists(")),
    write("unused value before an earlier missing table", invalid(UNUSED), put(key("a"), ABSENT), UNUSED_CHECK),
    write("unused value before a later missing table", invalid(UNUSED), UNUSED_CHECK, put(key("a"), ABSENT)),
    writes_nothing("unused value before an item twice", invalid(UNUSED), "tx-u", put(key("tx-u")), UNUSED_CHECK),
    write("deep item before a later empty name", invalid(TOO_DEEP), put({**apart("b"), "d": deep(40)}, ABSENT), put({**apart("a"), "": S("x")}, ABSENT)),
    write("empty name before a later deep item", invalid(EMPTY_NAME), put({**apart("a"), "": S("x")}, ABSENT), put({**apart("b"), "d": deep(100)}, ABSENT)),
    write("empty name before a deep value after it", invalid(EMPTY_NAME), put({**apart("a"), "": S("x"), "d": deep(100)}, ABSENT)),
    write("empty name after a deep value before it", invalid(EMPTY_NAME), put({**apart("a"), "d": deep(100), "": S("x")}, ABSENT)),
    write("deep value before an empty name within a map", invalid(TOO_DEEP), put({**apart("a"), "m": {"M": {"": S("x")}}, "d": deep(40)}, ABSENT)),
    write("empty name before a later deep value of a check", invalid(EMPTY_NAME), put({**apart("a"), "": S("x")}, ABSENT), check(apart("b"), "d = :d", ABSENT, ExpressionAttributeValues={":d": deep(100)})),
    write("deep value of a check before a later empty name", DEEP_VALUE, check(apart("b"), "d = :d", ABSENT, ExpressionAttributeValues={":d": deep(40)}), put({**apart("a"), "": S("x")}, ABSENT)),
    write("deep value of an update before a later empty name", DEEP_VALUE, update(apart("a"), "SET d = :d", {":d": deep(40)}, ABSENT), put({**apart("b"), "": S("x")}, ABSENT)),
    write("deep key of a delete before a later bad condition", invalid(TOO_DEEP), delete(pair_key(deep(40)), ABSENT), put(apart("a"), ABSENT, ConditionExpression="a = = b")),
    write("deep key of a check before a later unused value", invalid(TOO_DEEP), check(pair_key(deep(40)), "attribute_exists(a)", ABSENT), update(apart("a"), values={":v": S("x"), ":u": S("y")}, table=ABSENT)),
    write("bad condition before a later deep key", invalid(SYNTAX), put(apart("a"), ABSENT, ConditionExpression="a = = b"), delete(pair_key(deep(100)), ABSENT)),
    write("bad condition before its own deep key", invalid(SYNTAX), delete(pair_key(deep(100)), ABSENT, ConditionExpression="a = = b")),
    write(
        "long condition before its own deep key",
        invalid("Invalid ConditionExpression: Expression size has exceeded the maximum allowed size; expression size: 4109"),
        delete(pair_key(deep(100)), ABSENT, ConditionExpression=LONG_CONDITION, ExpressionAttributeValues={":v": S("x")}),
    ),
    write(
        "long update before a later deep key",
        invalid("Invalid UpdateExpression: Expression size has exceeded the maximum allowed size;"),
        update(apart("a"), LONG_UPDATE, table=ABSENT), check(pair_key(deep(100)), "attribute_exists(a)", ABSENT),
    ),
    write("unused value before a later deep key", invalid(UNUSED), update(apart("a"), values={":v": S("x"), ":u": S("y")}, table=ABSENT), check(pair_key(deep(100)), "attribute_exists(a)", ABSENT)),
    case("get: nothing", "TransactGetItems", {"TransactItems": []}, invalid(*NOTHING)),
    get("101 items", invalid_like(MANY), *[(TEXT, key(f"tx-{at}"), {}) for at in range(101)]),
    get("100 items", Answered(judge=lambda answer: len(answer["Responses"]) == 100), *[(TEXT, key(f"tx-g{at}"), {}) for at in range(100)]),
    get("missing table", not_found(), (ABSENT, key("a"), {})),
    get("no projection at all", invalid('Invalid ProjectionExpression: Syntax error; token: "!", near: "!!"'), (TEXT, key("a"), {"ProjectionExpression": "!!!"})),
    get("key without attributes", cancelled("ValidationError"), (TEXT, {}, {})),
    get("unknown choice", invalid(one(CAPACITY_ENUM)), (TEXT, key("a"), {}), ReturnConsumedCapacity="X"),
    get("unknown choice before a missing table", invalid(one(CAPACITY_ENUM)), (ABSENT, key("a"), {}), ReturnConsumedCapacity="X"),
    get("unknown choice before an item twice", invalid(one(CAPACITY_ENUM)), (TEXT, key("a"), {}), (TEXT, key("a"), {}), ReturnConsumedCapacity="X"),
]  # fmt: skip
