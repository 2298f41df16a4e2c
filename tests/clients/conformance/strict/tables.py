"""The tables that the cases meet."""

TEXT = "strict-text"
BYTES = "strict-bytes"
NUMBER = "strict-number"
PAIR = "strict-pair"
RANKED = "strict-ranked"
INDEXED = "strict-indexed"
ABSENT = "strict-absent"

THROUGHPUT = {"ReadCapacityUnits": 5, "WriteCapacityUnits": 5}


def key_schema(hash_key, range_key=None):
    schema = [{"AttributeName": hash_key, "KeyType": "HASH"}]
    return schema if range_key is None else [*schema, {"AttributeName": range_key, "KeyType": "RANGE"}]


def definition(name, types, hash_key, range_key=None, **more):
    """A table on demand; `types` maps each key attribute to S, N or B."""
    return {
        "TableName": name,
        "AttributeDefinitions": [{"AttributeName": n, "AttributeType": kind} for n, kind in types.items()],
        "KeySchema": key_schema(hash_key, range_key),
        "BillingMode": "PAY_PER_REQUEST",
        **more,
    }


def index(name, hash_key, range_key=None, **projection):
    return {
        "IndexName": name,
        "KeySchema": key_schema(hash_key, range_key),
        "Projection": projection or {"ProjectionType": "ALL"},
    }


TABLES = [
    definition(TEXT, {"pk": "S"}, "pk"),
    definition(BYTES, {"pk": "B"}, "pk"),
    definition(NUMBER, {"pk": "N"}, "pk"),
    definition(PAIR, {"pk": "S", "sk": "S"}, "pk", "sk"),
    definition(RANKED, {"pk": "S", "sk": "N"}, "pk", "sk"),
    definition(
        INDEXED,
        {"pk": "S", "sk": "S", "b": "B", "g": "S", "h": "S", "l": "S"},
        "pk",
        "sk",
        GlobalSecondaryIndexes=[
            index("by-b", "b"),
            index("by-g", "g"),
            index("by-h", "h", ProjectionType="INCLUDE", NonKeyAttributes=["kept"]),
        ],
        LocalSecondaryIndexes=[index("by-l", "pk", "l", ProjectionType="KEYS_ONLY")],
    ),
]
