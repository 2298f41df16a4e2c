"""What requests cost, and where their answers say so."""

from .steps import (
    ABSENT, Case, Exactly, condition, delete, done, get, index, item, positive, projection, put, query, scan, some_text, table, update, zero,
)  # fmt: skip

H, R, X = "capacity-hash", "capacity-rows", "capacity-indexed"
TABLES = [
    table(H, ["pk"]),
    table(R, ["pk", "sk"]),
    table(
        X,
        ["pk", "sk"],
        GlobalSecondaryIndexes=[index("global", "gk", project=projection("INCLUDE", "shown"))],
        LocalSecondaryIndexes=[index("local", "pk", "lk")],
    ),
]
# Six items of about 1.5 KB: 9 KB, which are three blocks of 4 KB.
SEED = [put(R, {"pk": "p", "sk": str(at), "keep": at == 0, "filler": "x" * 1500}) for at in range(6)] + [
    put(H, {"pk": "small", "a": 1}),
    put(X, {"pk": "read", "sk": "1", "lk": "l", "gk": "g"}),
]
INDEXES = {"ReturnConsumedCapacity": "INDEXES"}
TOTAL = {"ReturnConsumedCapacity": "TOTAL"}
WHOLE = {"pk": "", "sk": "1", "gk": "g", "lk": "l", "shown": "s", "plain": "o"}


def of(table, units):
    """One total, without its parts and without reads and writes apart, as all operations but transactions tell it."""
    parts = {"Table": ABSENT, "GlobalSecondaryIndexes": ABSENT, "LocalSecondaryIndexes": ABSENT}
    return {
        "ConsumedCapacity": {
            "TableName": table, "CapacityUnits": units, "ReadCapacityUnits": ABSENT, "WriteCapacityUnits": ABSENT, **parts,
        }
    }  # fmt: skip


def parts(table, units, of_global=None, of_local=None):
    """The total and its parts; an index that cost nothing is not named."""
    one = lambda name, cost: ABSENT if cost is None else Exactly({name: {"CapacityUnits": cost}})  # noqa: E731
    return {
        "TableName": table,
        "CapacityUnits": units + (of_global or 0) + (of_local or 0),
        "Table": Exactly({"CapacityUnits": units}),
        "GlobalSecondaryIndexes": one("global", of_global),
        "LocalSecondaryIndexes": one("local", of_local),
    }


def costs(request, *units):
    return done(request, {"ConsumedCapacity": parts(X, *units)})


def seeded(name):
    return done(put(X, {**WHOLE, "pk": name}))


def changed(name, expression, values=None):
    return update(X, {"pk": name, "sk": "1"}, expression, values, **INDEXES)


CASES = [
    Case("a read of one small item costs one unit, or half if it need not be consistent", [
        done(get(H, {"pk": "small"}, ConsistentRead=True, **TOTAL), of(H, 1)),
        done(get(H, {"pk": "small"}, **TOTAL), of(H, 0.5)),
        done(get(H, {"pk": "none"}, **TOTAL), of(H, 0.5)),
    ]),
    Case("a write of one small item costs one unit", [
        done(put(H, {"pk": "w"}, **TOTAL), of(H, 1)),
        done(update(H, {"pk": "w"}, "SET a = :a", {":a": 1}, **TOTAL), of(H, 1)),
        done(update(H, {"pk": "no item"}, "REMOVE a", **TOTAL), of(H, 1)),
        done(delete(H, {"pk": "w"}, **TOTAL), of(H, 1)),
    ]),
    Case("no capacity is returned unless requested", [
        done(put(H, {"pk": "quiet"}, ReturnConsumedCapacity="NONE"), {"ConsumedCapacity": ABSENT}),
        done(get(H, {"pk": "quiet"}), {"ConsumedCapacity": ABSENT, "Item": {}}),
        done(scan(H), {"ConsumedCapacity": ABSENT}),
    ]),
    Case("the parts are told apart where that is asked for", [
        done(put(H, {"pk": "apart"}, **INDEXES), {"ConsumedCapacity": {"CapacityUnits": 1, "Table": Exactly({"CapacityUnits": 1}), "WriteCapacityUnits": ABSENT}}),
        done(query(X, "pk = :p", {":p": "read"}, ConsistentRead=True, **INDEXES), {"ConsumedCapacity": parts(X, 1)}),
    ]),
    Case("a query of an index costs on the index", [
        done(query(X, "gk = :g", {":g": "g"}, IndexName="global", Limit=1, **INDEXES),
             {"ConsumedCapacity": {"Table": {"CapacityUnits": zero}, "GlobalSecondaryIndexes": {"global": {"CapacityUnits": 0.5}}, "CapacityUnits": 0.5}}),
        done(query(X, "pk = :p", {":p": "read"}, IndexName="local", **INDEXES),
             {"ConsumedCapacity": {"Table": {"CapacityUnits": zero}, "LocalSecondaryIndexes": {"local": {"CapacityUnits": 0.5}}, "CapacityUnits": 0.5}}),
    ]),
    Case("a query costs what it reads, whatever it filters or shows", [
        done(query(R, "pk = :p", {":p": "p"}, **TOTAL), {"Count": 6, **of(R, 1.5)}),
        done(query(R, "pk = :p", {":p": "p", ":k": True}, FilterExpression="keep = :k", **TOTAL), {"Count": 1, **of(R, 1.5)}),
        done(query(R, "pk = :p", {":p": "p", ":k": "no"}, FilterExpression="keep = :k", **TOTAL), {"Count": 0, **of(R, 1.5)}),
        done(query(R, "pk = :p", {":p": "p"}, ProjectionExpression="sk", **TOTAL), {"Count": 6, **of(R, 1.5)}),
        done(query(R, "pk = :p", {":p": "p"}, Select="COUNT", **TOTAL), {"Count": 6, **of(R, 1.5)}),
    ]),
    Case("a scan costs what it reads, whatever it filters or shows", [
        done(scan(R, **TOTAL), {"Count": 6, **of(R, 1.5)}),
        done(scan(R, ConsistentRead=True, **TOTAL), of(R, 3)),
        done(scan(R, "keep = :k", {":k": True}, **TOTAL), {"Count": 1, **of(R, 1.5)}),
        done(scan(R, "keep = :k", {":k": "no"}, **TOTAL), {"Count": 0, **of(R, 1.5)}),
        done(scan(R, ProjectionExpression="pk", **TOTAL), of(R, 1.5)),
        done(scan(R, "keep = :k", {":k": True}, ProjectionExpression="pk", **TOTAL), of(R, 1.5)),
    ]),
    Case("a write costs a unit more for each index that the item is in", [
        costs(put(X, {"pk": "put-1", "sk": "1", "gk": "g", "shown": "s"}, **INDEXES), 1, 1),
        costs(put(X, {"pk": "put-2", "sk": "1", "lk": "l"}, **INDEXES), 1, None, 1),
        costs(put(X, {**WHOLE, "pk": "put-3"}, **INDEXES), 1, 1, 1),
        costs(put(X, {"pk": "put-4", "sk": "1", "plain": "o"}, **INDEXES), 1),
        done(put(X, {"pk": "put-5", "sk": "1", "gk": "g", "shown": "s"}, **TOTAL), of(X, 2)),
    ]),
    Case("writing the same again costs nothing on the indexes", [
        seeded("again"),
        costs(put(X, {**WHOLE, "pk": "again"}, **INDEXES), 1),
    ]),
    Case("an update costs on an index what it changes of it", [
        seeded("update-1"),
        costs(changed("update-1", "SET plain = :o", {":o": "2"}), 1, None, 1),
        seeded("update-2"),
        costs(changed("update-2", "SET shown = :s", {":s": "2"}), 1, 1, 1),
        seeded("update-3"),
        costs(changed("update-3", "SET gk = :g", {":g": "moved"}), 1, 2, 1),
        seeded("update-4"),
        costs(changed("update-4", "REMOVE gk"), 1, 1, 1),
        seeded("update-5"),
        costs(changed("update-5", "SET lk = :l", {":l": "moved"}), 1, None, 2),
    ]),
    Case("deleting costs on each index that the item was in", [
        seeded("delete-1"),
        costs(delete(X, {"pk": "delete-1", "sk": "1"}, **INDEXES), 1, 1, 1),
        done(put(X, {"pk": "delete-2", "sk": "1"})),
        costs(delete(X, {"pk": "delete-2", "sk": "1"}, **INDEXES), 1),
    ]),
    Case("a batch tells what each table cost, and its indexes", [
        done(("BatchWriteItem", {"RequestItems": {X: [
            {"PutRequest": {"Item": item(pk="batch-1", sk="1", gk="g", shown="s")}},
            {"PutRequest": {"Item": item(pk="batch-2", sk="1", plain="o")}},
        ]}, **INDEXES}), {"ConsumedCapacity": [parts(X, 2, 1)]}),
    ]),
    Case("a condition that holds costs nothing more", [
        done(put(H, {"pk": "held"}, **condition("attribute_not_exists(pk)"), **TOTAL), of(H, 1)),
    ]),
    Case("collection size is returned for tables with local indexes on request", [
        done(put(X, {**WHOLE, "pk": "size"}, ReturnItemCollectionMetrics="SIZE"),
             {"ItemCollectionMetrics": Exactly({"ItemCollectionKey": item(pk="size"), "SizeEstimateRangeGB": [0.0, 1.0]})}),
        done(update(X, {"pk": "size", "sk": "1"}, "SET shown = :s", {":s": "t"}, ReturnItemCollectionMetrics="SIZE"),
             {"ItemCollectionMetrics": {"ItemCollectionKey": item(pk="size"), "SizeEstimateRangeGB": [0.0, 1.0]}}),
        done(delete(X, {"pk": "size", "sk": "1"}, ReturnItemCollectionMetrics="SIZE"),
             {"ItemCollectionMetrics": {"ItemCollectionKey": item(pk="size"), "SizeEstimateRangeGB": [0.0, 1.0]}}),
        done(put(X, {**WHOLE, "pk": "size"}, ReturnItemCollectionMetrics="NONE"), {"ItemCollectionMetrics": ABSENT}),
        done(put(H, {"pk": "size"}, ReturnItemCollectionMetrics="SIZE"), {"ItemCollectionMetrics": ABSENT}),
    ]),
    Case("the account tells its limits and its endpoint", [
        done(("DescribeLimits", {}), {"AccountMaxReadCapacityUnits": positive, "AccountMaxWriteCapacityUnits": positive, "TableMaxReadCapacityUnits": positive, "TableMaxWriteCapacityUnits": positive}),
        done(("DescribeEndpoints", {}), {"Endpoints": [{"Address": some_text, "CachePeriodInMinutes": positive}]}),
    ]),
]  # fmt: skip
