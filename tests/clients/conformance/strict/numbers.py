"""Numbers: what is kept of them, what they cost, what is refused."""

from .case import ACCEPTED, Answered, case, invalid_with, story
from .tables import NUMBER, RANKED, TEXT
from .values import ITEM_BYTES_MAX, OVERFLOW, TOO_LARGE, TOO_PRECISE, UNDERFLOW, N, S, key

DIGITS_38 = "12345678901234567890123456789012345678"
LARGEST = "9.9999999999999999999999999999999999999E+125"
HUGE = N("1e99999999999")

# As written, and as it comes back.
KEPT = [
    (DIGITS_38, DIGITS_38),
    (LARGEST, "9" * 38 + "0" * 88),
    (f"-{LARGEST}", "-" + "9" * 38 + "0" * 88),
    ("00042", "42"),
    ("0042.1200", "42.12"),
    ("1.0", "1"),
    ("3.1400", "3.14"),
    ("1.5E2", "150"),
    ("1E125", "1" + "0" * 125),
    ("1E-130", "0." + "0" * 129 + "1"),
    ("-0", "0"),
    ("0." + "0" * 37 + "1", "0." + "0" * 37 + "1"),
]
# What a number counts for in the size of its item.
COSTS = [
    ("0", 1),
    ("1", 2),
    ("12", 2),
    ("123", 3),
    ("1234", 3),
    (DIGITS_38, 20),
    ("0042", 2),
    ("100", 2),
    ("1010", 3),
    ("0.0000001", 2),
    ("1E125", 2),
    ("1E-100", 2),
    ("1.5", 3),
    ("15", 2),
    ("1.2", 3),
    ("1.200", 3),
    ("1.234", 4),
    ("3.14159", 5),
    ("123456", 4),
    ("100.5", 4),
    ("0.15", 2),
    ("-42", 3),
    ("-0", 1),
]


def costing(number, cost, size):
    padding = size - len("pk") - len("cost") - len("n") - cost - len("p")
    return {"TableName": TEXT, "Item": {**key("cost"), "n": N(number), "p": S("x" * padding)}}


def kept(written, read):
    return story(
        f"{written} is kept",
        ("PutItem", {"TableName": TEXT, "Item": {**key("kept"), "n": N(written)}}, ACCEPTED),
        ("GetItem", {"TableName": TEXT, "Key": key("kept")}, Answered({"Item": {**key("kept"), "n": N(read)}})),
    )


def refused(written, text):
    return case(f"{written} is refused", "PutItem", {"TableName": TEXT, "Item": {**key("none"), "n": N(written)}}, invalid_with(text))


CASES = [
    *[kept(written, read) for written, read in KEPT],
    refused(DIGITS_38 + "9", TOO_PRECISE),
    refused("1E+126", OVERFLOW),
    refused("-1E+126", OVERFLOW),
    refused("1E-131", UNDERFLOW),
    *[
        story(
            f"{number} costs {cost} bytes",
            ("PutItem", costing(number, cost, ITEM_BYTES_MAX), ACCEPTED),
            ("PutItem", costing(number, cost, ITEM_BYTES_MAX + 1), invalid_with(TOO_LARGE)),
        )
        for number, cost in COSTS
    ],
    story(
        "15,000 numbers of 38 digits fit into an item",
        ("PutItem", {"TableName": TEXT, "Item": {**key("many-numbers"), "l": {"L": [N("9" * 38)] * 15_000}}}, ACCEPTED),
        ("GetItem", {"TableName": TEXT, "Key": key("many-numbers")}, Answered(judge=lambda answer: len(answer["Item"]["l"]["L"]) == 15_000)),
        ("PutItem", {"TableName": TEXT, "Item": {**key("many-numbers"), "l": {"L": [N("9" * 38)] * 21_000}}}, invalid_with(TOO_LARGE)),
    ),
    story(
        "sets of numbers that differ in the last digit are not equal",
        ("PutItem", {"TableName": TEXT, "Item": {**key("last-digit"), "ns": {"NS": ["12345678901234567890123"]}}}, ACCEPTED),
        *[
            (
                "Query",
                {"TableName": TEXT, "KeyConditionExpression": "pk = :p", "FilterExpression": "ns = :n", "ExpressionAttributeValues": {":p": S("last-digit"), ":n": {"NS": [number]}}},
                Answered({"Count": count}),
            )
            for number, count in [("12345678901234567890123", 1), ("12345678901234567890124", 0)]
        ],
    ),
    story(
        "a sum past the largest number is refused",
        ("PutItem", {"TableName": TEXT, "Item": {**key("sum"), "n": N("9E125")}}, ACCEPTED),
        ("UpdateItem", {"TableName": TEXT, "Key": key("sum"), "UpdateExpression": "SET n = n + :v", "ExpressionAttributeValues": {":v": N("9E125")}}, invalid_with(OVERFLOW)),
    ),
    story(
        "a set holds the extremes",
        ("PutItem", {"TableName": TEXT, "Item": {**key("extremes"), "ns": {"NS": [LARGEST, f"-{LARGEST}", "1E-130", "0"]}}}, ACCEPTED),
        ("GetItem", {"TableName": TEXT, "Key": key("extremes")}, Answered(judge=lambda answer: len(answer["Item"]["ns"]["NS"]) == 4)),
    ),
    story(
        "sort keys are in the order of their numbers",
        *[("PutItem", {"TableName": RANKED, "Item": {"pk": S("order"), "sk": N(sk)}}, ACCEPTED) for sk in ("9" * 38, "1E-130", "0")],
        (
            "Query",
            {"TableName": RANKED, "KeyConditionExpression": "pk = :v", "ExpressionAttributeValues": {":v": S("order")}},
            Answered(judge=lambda answer: [item["sk"]["N"][:3] for item in answer["Items"]] == ["0", "0.0", "999"]),
        ),
    ),
    *[
        case(f"key past the range: {operation}", operation, body, invalid_with(OVERFLOW))
        for operation, body in [
            ("GetItem", {"TableName": NUMBER, "Key": {"pk": HUGE}}),
            ("DeleteItem", {"TableName": NUMBER, "Key": {"pk": HUGE}}),
            ("UpdateItem", {"TableName": NUMBER, "Key": {"pk": HUGE}, "UpdateExpression": "SET a = :a", "ExpressionAttributeValues": {":a": S("x")}}),
            ("Query", {"TableName": RANKED, "KeyConditionExpression": "pk = :p AND sk = :v", "ExpressionAttributeValues": {":p": S("x"), ":v": HUGE}}),
            ("BatchGetItem", {"RequestItems": {NUMBER: {"Keys": [{"pk": HUGE}]}}}),
        ]
    ],
]  # fmt: skip
