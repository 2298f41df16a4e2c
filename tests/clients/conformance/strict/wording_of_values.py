"""Bad numbers and repeated members of sets: the wording depends on the operation that meets them.

PutItem, UpdateItem and DeleteItem count what is wrong; GetItem, BatchGetItem and Query have the same texts without the count;
BatchWriteItem reads values in an older way. Transactions and Scan do either, by region.
"""

from .case import ACCEPTED, Answered, case, either, invalid, story
from .tables import TEXT
from .values import INVALID, NOT_NUMERIC, OVERFLOW, TOO_PRECISE, UNDERFLOW, N, S, for_value, key, one

KEY = key("values")
CONDITION = "attribute_not_exists(pk) OR v = :v"


def put(**more):
    return "PutItem", {"TableName": TEXT, "Item": KEY, **more}


def update(expression=None, **more):
    body = {"TableName": TEXT, "Key": KEY, **more}
    return "UpdateItem", body if expression is None else {**body, "UpdateExpression": expression}


def query(**more):
    values = {":p": S("values"), **more.pop("ExpressionAttributeValues", {})}
    return "Query", {
        "TableName": TEXT,
        "KeyConditionExpression": "pk = :p",
        "ExpressionAttributeValues": values,
        **more,
    }


def transact(**action):
    return "TransactWriteItems", {"TransactItems": [{kind: {"TableName": TEXT, **body} for kind, body in action.items()}]}


# Where a value can stand. How the operation words it: "counted", "bare", "older", or in a transaction "either";
# `wrapped` when the older wording names the value's placeholder.
PLACES = [
    ("item of PutItem", "counted", lambda v: put(Item={**KEY, "v": v})),
    ("within documents of PutItem", "counted", lambda v: put(Item={**KEY, "v": {"M": {"x": {"L": [v]}}}})),
    ("condition of PutItem", "counted", lambda v: put(ConditionExpression=CONDITION, ExpressionAttributeValues={":v": v})),
    ("Expected of PutItem", "counted", lambda v: put(Expected={"v": {"Value": v}})),
    ("update of UpdateItem", "counted", lambda v: update("SET v = :v", ExpressionAttributeValues={":v": v})),
    (
        "condition of UpdateItem",
        "counted",
        lambda v: update(
            "SET o = :o", ConditionExpression=CONDITION, ExpressionAttributeValues={":o": N(1), ":v": v}
        ),
    ),
    ("AttributeUpdates", "counted", lambda v: update(AttributeUpdates={"v": {"Action": "PUT", "Value": v}})),
    (
        "key of UpdateItem",
        "counted",
        lambda v: update("SET o = :o", Key={"pk": v}, ExpressionAttributeValues={":o": N(1)}),
    ),
    (
        "condition of DeleteItem",
        "counted",
        lambda v: (
            "DeleteItem",
            {"TableName": TEXT, "Key": KEY, "ConditionExpression": "v = :v", "ExpressionAttributeValues": {":v": v}},
        ),
    ),
    ("key of DeleteItem", "counted", lambda v: ("DeleteItem", {"TableName": TEXT, "Key": {"pk": v}})),
    ("key of GetItem", "bare", lambda v: ("GetItem", {"TableName": TEXT, "Key": {"pk": v}})),
    ("key of BatchGetItem", "bare", lambda v: ("BatchGetItem", {"RequestItems": {TEXT: {"Keys": [{"pk": v}]}}})),
    ("filter of Query", "bare", lambda v: query(FilterExpression="v = :v", ExpressionAttributeValues={":v": v})),
    (
        "key condition of Query",
        "bare",
        lambda v: (
            "Query",
            {"TableName": TEXT, "KeyConditionExpression": "pk = :v", "ExpressionAttributeValues": {":v": v}},
        ),
    ),
    ("start of Query", "bare", lambda v: query(ExclusiveStartKey={"pk": v})),
    (
        "QueryFilter",
        "bare",
        lambda v: (
            "Query",
            {
                "TableName": TEXT,
                "KeyConditions": {"pk": {"ComparisonOperator": "EQ", "AttributeValueList": [S("values")]}},
                "QueryFilter": {"v": {"ComparisonOperator": "EQ", "AttributeValueList": [v]}},
            },
        ),
    ),
    (
        "put of BatchWriteItem",
        "older",
        lambda v: ("BatchWriteItem", {"RequestItems": {TEXT: [{"PutRequest": {"Item": {**KEY, "v": v}}}]}}),
    ),
    (
        "delete of BatchWriteItem",
        "older",
        lambda v: ("BatchWriteItem", {"RequestItems": {TEXT: [{"DeleteRequest": {"Key": {"pk": v}}}]}}),
    ),
    (
        "filter of Scan",
        "either, wrapped",
        lambda v: (
            "Scan",
            {"TableName": TEXT, "FilterExpression": "v = :v", "ExpressionAttributeValues": {":v": v}},
        ),
    ),
    (
        "ScanFilter",
        "either",
        lambda v: ("Scan", {"TableName": TEXT, "ScanFilter": {"v": {"ComparisonOperator": "EQ", "AttributeValueList": [v]}}}),
    ),
    ("put of a transaction", "either", lambda v: transact(Put={"Item": {**KEY, "v": v}})),
    ("key of a transaction's delete", "either", lambda v: transact(Delete={"Key": {"pk": v}})),
    (
        "key of TransactGetItems",
        "either",
        lambda v: ("TransactGetItems", {"TransactItems": [{"Get": {"TableName": TEXT, "Key": {"pk": v}}}]}),
    ),
    *[
        (
            f"value of a transaction's {kind}",
            "either, wrapped",
            lambda v, kind=kind, body=body: transact(**{kind: {**body, "ExpressionAttributeValues": {":v": v}}}),
        )
        for kind, body in [
            ("Put", {"Item": KEY, "ConditionExpression": CONDITION}),
            ("Update", {"Key": KEY, "UpdateExpression": "SET v = :v"}),
            ("Delete", {"Key": KEY, "ConditionExpression": CONDITION}),
            ("ConditionCheck", {"Key": KEY, "ConditionExpression": CONDITION}),
        ]
    ],
]

# A value and what is wrong with it, in the newer and in the older wording.
VALUES = [
    ("letters", N("abc"), f"{NOT_NUMERIC}: abc", f"{NOT_NUMERIC}: abc"),
    ("no digits", N(""), f"{NOT_NUMERIC}: ", NOT_NUMERIC),
    ("a number past the largest", N("1e126"), OVERFLOW, OVERFLOW),
    # The older reading computes with 32 bits, which turn over.
    ("the largest exponent of 32 bits", N("1e2147483647"), OVERFLOW, UNDERFLOW),
    # The newer wording sorts what came before the first repetition.
    (
        "a text twice",
        {"SS": ["b", "a", "b"]},
        f'{INVALID}Input collection ["a", "b", "b"] contains duplicates.',
        f"{INVALID}Input collection [b, a, b] contains duplicates.",
    ),
    (
        "bytes twice",
        {"BS": ["/w==", "AA==", "AA=="]},
        f'{INVALID}Input collection ["AA==","/w==","AA=="]of type BS contains duplicates.',
        f"{INVALID}Input collection [/w==, AA==, AA==]of type BS contains duplicates.",
    ),
    (
        "a number twice",
        {"NS": ["2", "1", "2"]},
        f"{INVALID}Input collection contains duplicates.",
        "Input collection contains duplicates",
    ),
]


def answer(wording, newer, older):
    if wording == "counted":
        return invalid(one(newer))
    if wording == "bare":
        return invalid(newer)
    if "wrapped" in wording:
        older = for_value(older, ":v")
    return invalid(older) if wording.startswith("older") else either(invalid(older), invalid(newer))


# What PutItem says of other numbers that are none.
NUMBERS = [
    ("1e99999999999", OVERFLOW),
    ("-1e99999999999", OVERFLOW),
    ("1e-99999999999", UNDERFLOW),
    ("1e2147483648", OVERFLOW),
    ("1e-2147483648", UNDERFLOW),
    ("1e9223372036854775808", f"{NOT_NUMERIC}: 1e9223372036854775808"),
    ("1e-131", UNDERFLOW),
    ("0e126", OVERFLOW),
    ("0e-131", UNDERFLOW),
    ("1.2.3", f"{NOT_NUMERIC}: 1.2.3"),
    (" 1", f"{NOT_NUMERIC}:  1"),
    ("1 ", f"{NOT_NUMERIC}: 1 "),
    ("0x10", f"{NOT_NUMERIC}: 0x10"),
    ("1e", f"{NOT_NUMERIC}: 1e"),
    ("NaN", f"{NOT_NUMERIC}: NaN"),
    ("Infinity", f"{NOT_NUMERIC}: Infinity"),
    ("1234567890" * 4, TOO_PRECISE),
]

CASES = [
    *[
        case(f"{what}, {where}", *request(value), answer(wording, newer, older))
        for where, wording, request in PLACES
        for what, value, newer, older in VALUES
    ],
    *[
        case(f"number {number!r} in an item", *put(Item={**KEY, "v": N(number)}), invalid(one(text)))
        for number, text in NUMBERS
    ],
    *[
        case(f"number {number!r} in a set", *put(Item={**KEY, "v": {"NS": ["1", number]}}), invalid(one(text)))
        for number, text in [("abc", f"{NOT_NUMERIC}: abc"), ("", f"{NOT_NUMERIC}: "), ("1e126", OVERFLOW)]
    ],
    story(
        "a bad number in Expected writes nothing",
        ("PutItem", {"TableName": TEXT, "Item": key("v-none"), "Expected": {"n": {"Value": N("x")}}}, invalid(one(f"{NOT_NUMERIC}: x"))),
        ("GetItem", {"TableName": TEXT, "Key": key("v-none")}, Answered(without=("Item",))),
    ),
    story(
        "a number's exponent within the range is taken",
        ("PutItem", {"TableName": TEXT, "Item": {**key("v-zero"), "a": N("0e125"), "b": N("1e-130")}}, ACCEPTED),
        (
            "GetItem",
            {"TableName": TEXT, "Key": key("v-zero"), "ProjectionExpression": "a"},
            Answered({"Item": {"a": N(0)}}),
        ),
    ),
]  # fmt: skip
