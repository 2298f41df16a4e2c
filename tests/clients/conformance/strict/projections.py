"""Projections that cannot be: every operation that has one refuses them with the same texts, whether or not it finds anything."""

from .case import ACCEPTED, case, invalid, story
from .tables import TEXT
from .values import S, key

OVERLAP = "Invalid ProjectionExpression: Two document paths overlap with each other; must remove or rewrite one of these paths; path one: [{}], path two: [{}]"
UNDEFINED = "Invalid ProjectionExpression: An expression attribute name used in the document path is not defined; attribute name: #none"
VALUE = {":v": S("nowhere")}

# An expression, its names, and what is said of it.
PROJECTIONS = [
    ("a, a", {}, OVERLAP.format("a", "a")),
    ("#a, #a", {"#a": "a"}, OVERLAP.format("a", "a")),
    ("a, #a", {"#a": "a"}, OVERLAP.format("a", "a")),
    ("#a, #b", {"#a": "a", "#b": "a"}, OVERLAP.format("a", "a")),
    ("a, a.b", {}, OVERLAP.format("a", "a, b")),
    ("#a, #a.#b", {"#a": "a", "#b": "b"}, OVERLAP.format("a", "a, b")),
    ("#x, #y.#b", {"#x": "a", "#y": "a", "#b": "b"}, OVERLAP.format("a", "a, b")),
    ("a.b, a", {}, OVERLAP.format("a, b", "a")),
    ("a, a.b.c", {}, OVERLAP.format("a", "a, b, c")),
    ("l, l[0]", {}, OVERLAP.format("l", "l, [0]")),
    ("#none", {}, UNDEFINED),
]
READS = [
    ("GetItem", lambda more: {"TableName": TEXT, "Key": key("nowhere"), **more}),
    ("Query", lambda more: {"TableName": TEXT, "KeyConditionExpression": "pk = :v", "ExpressionAttributeValues": VALUE, **more}),
    ("Scan", lambda more: {"TableName": TEXT, "FilterExpression": "pk = :v", "ExpressionAttributeValues": VALUE, **more}),
    ("BatchGetItem", lambda more: {"RequestItems": {TEXT: {"Keys": [key("nowhere")], **more}}}),
    ("TransactGetItems", lambda more: {"TransactItems": [{"Get": {"TableName": TEXT, "Key": key("nowhere"), **more}}]}),
]


def projecting(expression, names):
    return {"ProjectionExpression": expression, **({"ExpressionAttributeNames": names} if names else {})}


def label(expression, names):
    return ", ".join([expression, *(f"{name} is {meant}" for name, meant in names.items())])


CASES = [
    *[
        case(f"{operation}: {label(expression, names)}", operation, body(projecting(expression, names)), invalid(text))
        for operation, body in READS
        for expression, names, text in PROJECTIONS
    ],
    story(
        "an item that is there changes nothing",
        ("PutItem", {"TableName": TEXT, "Item": {**key("projected"), "a": S("x")}}, ACCEPTED),
        ("GetItem", {"TableName": TEXT, "Key": key("projected"), **projecting("a, a", {})}, invalid(OVERLAP.format("a", "a"))),
        (
            "Query",
            {"TableName": TEXT, "KeyConditionExpression": "pk = :v", "ExpressionAttributeValues": {":v": S("projected")}, **projecting("a, a", {})},
            invalid(OVERLAP.format("a", "a")),
        ),
    ),
]  # fmt: skip
