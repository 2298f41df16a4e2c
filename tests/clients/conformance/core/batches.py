"""BatchGetItem and BatchWriteItem."""

from .steps import ABSENT, Case, Exactly, done, index, item, missing, put, refused, rows, stored, table
from .values import typed

H, C, X = "batches-hash", "batches-composite", "batches-indexed"
TABLES = [
    table(H, ["pk"]),
    table(C, ["pk", "sk"]),
    table(X, ["pk", "sk"], LocalSecondaryIndexes=[index("local", "pk", "lk")], GlobalSecondaryIndexes=[index("global", "lk")]),
]
SEED = [put(H, {"pk": f"read-{at}", "n": at}) for at in range(5)] + [
    put(C, {"pk": "read", "sk": "1", "n": 1}),
    put(H, {"pk": "wide", "a": "x", "b": "y", "m": {"p": 1, "q": 2}, "l": [{"x": 1, "y": 2, "z": 3}, "second"]}),
]


def read(table, *keys, **more):
    return {table: {"Keys": [item(key) for key in keys], **more}}


def batch_get(*requests):
    return "BatchGetItem", {"RequestItems": {name: value for request in requests for name, value in request.items()}}


def puts(table, *items):
    return {table: [{"PutRequest": {"Item": item(each)}} for each in items]}


def deletes(table, *keys):
    return {table: [{"DeleteRequest": {"Key": item(key)}} for key in keys]}


def batch_write(*requests, **more):
    joined = {}
    for request in requests:
        for name, writes in request.items():
            joined.setdefault(name, []).extend(writes)
    return "BatchWriteItem", {"RequestItems": joined, **more}


def bad_key(table, value, **more):
    return batch_write({table: [{"PutRequest": {"Item": {**item(more), **value}}}]})


TWO = ({"pk": "both-1"}, {"pk": "both-2"})

CASES = [
    Case("a batch reads several items, consistently", [
        done(batch_get(read(H, *({"pk": f"read-{at}"} for at in range(5)), ConsistentRead=True)),
             {"Responses": {H: rows("n", 0, 1, 2, 3, 4)}, "UnprocessedKeys": Exactly({})}),
    ]),
    Case("what is not there is left out of a batch", [
        done(batch_get(read(H, {"pk": "read-0"}, {"pk": "none"}, {"pk": "read-1"})), {"Responses": {H: rows("n", 0, 1)}}),
    ]),
    Case("a batch reads from several tables, and names one of which nothing was found", [
        done(batch_get(read(H, {"pk": "read-3"}), read(C, {"pk": "read", "sk": "1"})),
             {"Responses": {H: rows("n", 3), C: rows("n", 1)}}),
        done(batch_get(read(H, {"pk": "read-3"}), read(C, {"pk": "none", "sk": "1"})), {"Responses": {H: rows("n", 3), C: []}}),
    ]),
    Case("a projection in a batch leaves the key out", [
        done(batch_get(read(H, {"pk": "wide"}, ProjectionExpression="a")), {"Responses": {H: [Exactly(item(a="x"))]}}),
    ]),
    Case("an item of which the projection finds nothing is there and empty", [
        done(batch_get(read(H, {"pk": "wide"}, ProjectionExpression="nothing")), {"Responses": {H: [Exactly({})]}}),
    ]),
    Case("paths of one map or of one element come back together", [
        done(batch_get(read(H, {"pk": "wide"}, ProjectionExpression="m.p, m.q")),
             {"Responses": {H: [Exactly(item(m={"p": 1, "q": 2}))]}}),
        done(batch_get(read(H, {"pk": "wide"}, ProjectionExpression="l[0].y, l[0].x")),
             {"Responses": {H: [Exactly(item(l=[{"x": 1, "y": 2}]))]}}),
        done(batch_get(read(H, {"pk": "wide"}, ProjectionExpression="l[1], l[0].z")),
             {"Responses": {H: [Exactly(item(l=[{"z": 3}, "second"]))]}}),
    ]),
    Case("a batch reads at most a hundred items", [
        refused(batch_get(read(H, *({"pk": f"many-{at}"} for at in range(101)))), "ValidationException"),
        done(batch_get(read(H, *({"pk": f"many-{at}"} for at in range(100)))), {"Responses": {H: []}}),
    ]),
    Case("a batch of nothing is refused", [
        refused(batch_get(), "ValidationException", "requestItems"),
        refused(batch_write(), "ValidationException", "requestItems"),
    ]),
    Case("a batch does not ask for one item twice", [
        refused(batch_get(read(H, {"pk": "same"}, {"pk": "same"})), "ValidationException",
                whole="Provided list of item keys contains duplicates"),
        refused(batch_write(puts(H, {"pk": "same", "n": 1}, {"pk": "same", "n": 2})), "ValidationException",
                whole="Provided list of item keys contains duplicates"),
    ]),
    Case("a batch on a table that is not there is refused", [
        refused(batch_get(read("batches-none", {"pk": "a"})), "ResourceNotFoundException"),
        refused(batch_write(puts("batches-none", {"pk": "a"})), "ResourceNotFoundException"),
    ]),
    Case("a batch writes several items", [
        done(batch_write(puts(H, *({"pk": f"written-{at}", "n": at} for at in range(5)))), {"UnprocessedItems": Exactly({})}),
        stored(H, {"pk": "written-0"}, {"n": 0}),
        stored(H, {"pk": "written-4"}, {"n": 4}),
    ]),
    Case("a batch deletes several items, of which some need not be there", [
        done(batch_write(puts(H, {"pk": "gone-1"}, {"pk": "gone-2"}))),
        done(batch_write(deletes(H, {"pk": "gone-1"}, {"pk": "gone-2"}, {"pk": "gone-3"})), {"UnprocessedItems": Exactly({})}),
        missing(H, {"pk": "gone-1"}),
        missing(H, {"pk": "gone-2"}),
    ]),
    Case("a batch puts and deletes", [
        done(put(H, {"pk": "mixed-old"})),
        done(batch_write(puts(H, {"pk": "mixed-new"}), deletes(H, {"pk": "mixed-old"}))),
        stored(H, {"pk": "mixed-new"}, {}),
        missing(H, {"pk": "mixed-old"}),
    ]),
    Case("a batch writes to several tables", [
        done(batch_write(puts(H, *TWO), puts(C, {"pk": "both", "sk": "1"}, {"pk": "both", "sk": "2"})), {"UnprocessedItems": Exactly({})}),
        stored(H, TWO[1], {}),
        stored(C, {"pk": "both", "sk": "2"}, {}),
        done(batch_write(deletes(H, *TWO), deletes(C, {"pk": "both", "sk": "1"}, {"pk": "both", "sk": "2"}))),
        missing(H, TWO[0]),
        missing(C, {"pk": "both", "sk": "1"}),
    ]),
    Case("a set in a batch may have an empty text in it", [
        done(batch_write(puts(H, {"pk": "empty-member", "tags": {"", "a"}}))),
        stored(H, {"pk": "empty-member"}, {"tags": {"", "a"}}),
    ]),
    Case("a batch writes at most 25 items", [
        refused(batch_write(puts(H, *({"pk": f"many-{at}"} for at in range(26)))), "ValidationException"),
        missing(H, {"pk": "many-0"}),
    ]),
    Case("an item of a batch must have a key of the right type", [
        refused(bad_key(H, {}, other="x"), "ValidationException", "The provided key element does not match the schema"),
        refused(bad_key(H, {"pk": typed(5)}), "ValidationException", "The provided key element does not match the schema"),
        refused(bad_key(H, {"pk": typed(["x"])}), "ValidationException", "The provided key element does not match the schema"),
        refused(bad_key(H, {"pk": typed("")}), "ValidationException", "empty string value"),
    ]),
    Case("an item of a batch must have keys of indexes of the right type, where it has any", [
        refused(bad_key(X, {"lk": typed(5)}, pk="a", sk="b"), "ValidationException", "Type mismatch for Index Key"),
        refused(bad_key(X, {"lk": typed(["x"])}, pk="a", sk="b"), "ValidationException"),
        refused(bad_key(X, {"lk": typed("")}, pk="a", sk="b"), "ValidationException", "secondary index key"),
        missing(X, {"pk": "a", "sk": "b"}),
    ]),
    Case("a batch tells what it cost only where that is asked for", [
        done(batch_write(puts(H, {"pk": "cost"}), ReturnConsumedCapacity="TOTAL"),
             {"ConsumedCapacity": [{"TableName": H, "CapacityUnits": 1, "Table": ABSENT}]}),
        done(batch_write(puts(H, {"pk": "cost"})), {"ConsumedCapacity": ABSENT}),
    ]),
]  # fmt: skip
