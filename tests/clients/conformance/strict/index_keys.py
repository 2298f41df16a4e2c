"""Values that an index cannot have as keys."""

from .case import cancelled, case, invalid
from .tables import INDEXED
from .values import INVALID, B, N, S, key

MISMATCH = INVALID + "Type mismatch for Index Key {} Expected: {} Actual: {} IndexName: {}"
UNSUPPORTED = (
    "One or more parameter values are not valid. A value specified for a secondary index key is not supported. "
    "The AttributeValue for a key attribute cannot contain an empty {} value. IndexName: {}, IndexKey: {}"
)
UPDATED = (
    "One or more parameter values are not valid. The update expression attempted to update a secondary index key to a value that is not supported. "
    "The AttributeValue for a key attribute cannot contain an empty {} value."
)
KEY = key("index", "keys")

# The attribute, its bad value, what a put says; and the kind of emptiness where it is one.
VALUES = [
    ("a number", "g", N(5), MISMATCH.format("g", "S", "N", "by-g"), None),
    ("a list", "g", {"L": [S("x")]}, MISMATCH.format("g", "S", "L", "by-g"), None),
    ("an empty text", "g", S(""), UNSUPPORTED.format("string", "by-g", "g"), "string"),
    ("no bytes", "b", B(b""), UNSUPPORTED.format("binary", "by-b", "b"), "binary"),
]


def updating(name, value):
    return {"TableName": INDEXED, "Key": KEY, "UpdateExpression": f"SET {name} = :v", "ExpressionAttributeValues": {":v": value}}


CASES = [
    made
    for what, name, value, put, empty in VALUES
    for made in [
        case(f"PutItem: {what}", "PutItem", {"TableName": INDEXED, "Item": {**KEY, name: value}}, invalid(put)),
        case(
            f"BatchWriteItem: {what}",
            "BatchWriteItem",
            {"RequestItems": {INDEXED: [{"PutRequest": {"Item": {**KEY, name: value}}}]}},
            invalid(put),
        ),
        # Emptiness is seen before a transaction begins, types within it.
        case(
            f"Put of a transaction: {what}",
            "TransactWriteItems",
            {"TransactItems": [{"Put": {"TableName": INDEXED, "Item": {**KEY, name: value}}}]},
            invalid(put) if empty else cancelled(("ValidationError", put)),
        ),
        *(
            [
                case(f"UpdateItem: {what}", "UpdateItem", updating(name, value), invalid(UPDATED.format(empty))),
                case(
                    f"Update of a transaction: {what}",
                    "TransactWriteItems",
                    {"TransactItems": [{"Update": updating(name, value)}]},
                    invalid(UPDATED.format(empty)),
                ),
            ]
            if empty
            else []
        ),
    ]
]  # fmt: skip
