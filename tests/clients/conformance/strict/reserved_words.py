"""Words that expressions keep for themselves must be written through names."""

from .case import ACCEPTED, Answered, case, invalid_with, story
from .tables import TEXT
from .values import S, key

WORDS = ["status", "name", "data", "count", "items", "STATUS", "Timestamp", "user", "zone"]
RESERVED = "Attribute name is a reserved keyword; reserved keyword: {}"
ONE = {":v": S("x")}


def refused(what, operation, expression, word, **more):
    body = {"TableName": TEXT, "Key": key("reserved"), expression: what.format(word), **more}
    if operation == "PutItem":
        body["Item"] = body.pop("Key")
    if operation == "Scan":
        del body["Key"]
    return case(f"{word} in {expression}", operation, body, invalid_with(f"Invalid {expression}: {RESERVED.format(word)}"))


CASES = [
    *[
        story(
            f"{word} through a name",
            ("PutItem", {"TableName": TEXT, "Item": {**key("reserved"), word: S("x")}}, ACCEPTED),
            (
                "GetItem",
                {"TableName": TEXT, "Key": key("reserved"), "ProjectionExpression": "pk, #w", "ExpressionAttributeNames": {"#w": word}},
                Answered({"Item": {**key("reserved"), word: S("x")}}),
            ),
        )
        for word in WORDS
    ],
    *[refused("{} = :v", "PutItem", "ConditionExpression", word, ExpressionAttributeValues=ONE) for word in WORDS],
    *[refused("SET {} = :v", "UpdateItem", "UpdateExpression", word, ExpressionAttributeValues=ONE) for word in WORDS],
    *[refused("{} = :v", "Scan", "FilterExpression", word, ExpressionAttributeValues=ONE) for word in WORDS],
    *[refused("pk, {}", "GetItem", "ProjectionExpression", word) for word in WORDS],
    story(
        "several words through names",
        ("PutItem", {"TableName": TEXT, "Item": {**key("several"), "status": S("a"), "name": S("b")}}, ACCEPTED),
        (
            "UpdateItem",
            {"TableName": TEXT, "Key": key("several"), "UpdateExpression": "SET status = :v, name = :v", "ExpressionAttributeValues": ONE},
            invalid_with("reserved keyword"),
        ),
        (
            "UpdateItem",
            {
                "TableName": TEXT,
                "Key": key("several"),
                "UpdateExpression": "SET #s = :v, #n = :v, #c = :v",
                "ExpressionAttributeNames": {"#s": "status", "#n": "name", "#c": "count"},
                "ExpressionAttributeValues": ONE,
            },
            ACCEPTED,
        ),
        (
            "GetItem",
            {"TableName": TEXT, "Key": key("several")},
            Answered({"Item": {**key("several"), "status": S("x"), "name": S("x"), "count": S("x")}}),
        ),
    ),
]
