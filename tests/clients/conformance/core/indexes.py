"""Query and Scan on secondary indexes: who is in them, what they show, and their cursors."""

from .steps import ABSENT, Case, Exactly, Walks, column, done, index, item, projection, put, query, refused, rows, scan, stored, table

X, P = "indexes", "indexes-pages"
TABLES = [
    table(
        X,
        ["pk", "sk"],
        LocalSecondaryIndexes=[index("local-all", "pk", "a"), index("local-some", "pk", "b", project=projection("INCLUDE", "a"))],
        GlobalSecondaryIndexes=[index("hash", "a"), index("both", "a", "b", project=projection("INCLUDE", "word"))],
    ),
    table(
        P,
        ["pk", "sk"],
        LocalSecondaryIndexes=[index("local", "pk", "group")],
        GlobalSecondaryIndexes=[index("hash", "kind"), index("sorted", "kind", "group"), index("by-table-key", "kind", "pk")],
    ),
]
WHOLE = [
    {"pk": "1", "sk": "x", "a": "A", "b": "1", "word": "one", "extra": 1},
    {"pk": "1", "sk": "y", "a": "A-2", "b": "3", "word": "two", "extra": 2},
    {"pk": "1", "sk": "z", "a": "B", "b": "2", "word": "three", "extra": 3},
    {"pk": "2", "sk": "x", "a": "A", "b": "4", "word": "four", "extra": 4},
]
SPARSE = [{"pk": "1", "sk": "none"}, {"pk": "1", "sk": "half", "a": "A"}]
SEED = [*(put(X, each) for each in WHOLE + SPARSE)] + [
    put(P, {"pk": "p", "sk": f"{at:02}", "kind": "widget", "group": f"g{at % 5}", "n": at}) for at in range(30)
]
ALL = [f"{at:02}" for at in range(30)]
FIVES = ", ".join(f":v{at}" for at in range(0, 30, 5))
FIVE_VALUES = {f":v{at}": at for at in range(0, 30, 5)}


def local(name, condition, values, **more):
    return query(X, f"pk = :p{condition}", {":p": "1", **values}, IndexName=name, ConsistentRead=True, **more)


def walk(operation, name, cursor, condition=None, values=None, **more):
    if operation == "Scan":
        request = scan(P, IndexName=name, Limit=4, **more)
    else:
        request = query(P, condition, values, IndexName=name, Limit=4, **more)
    return Walks(*request, "sk", ALL, cursor=cursor, pages_min=8)


CASES = [
    Case("an index by a partition key alone", [
        done(query(X, "a = :a", {":a": "A"}, IndexName="hash"), {"Items": rows("sk", "x", "x", "half"), "Count": 3}),
        done(query(X, "a = :a", {":a": "nobody"}, IndexName="hash"), {"Items": []}),
        refused(query(X, "a = :a", {":a": "A"}, IndexName="hash", ConsistentRead=True), "ValidationException", "Consistent reads are not supported on global secondary indexes"),
    ]),
    Case("an index by two keys", [
        done(query(X, "a = :a AND b = :b", {":a": "A", ":b": "4"}, IndexName="both"), {"Items": column("word", "four")}),
        done(query(X, "a = :a", {":a": "A"}, IndexName="both", ScanIndexForward=False), {"Items": column("b", "4", "1")}),
    ]),
    Case("a local index sorts a partition by another attribute, consistently", [
        done(local("local-all", "", {}), {"Items": column("a", "A", "A", "A-2", "B")}),
        done(local("local-all", " AND a = :a", {":a": "B"}), {"Items": [Exactly(item(WHOLE[2]))]}),
        done(local("local-all", " AND begins_with(a, :a)", {":a": "A-"}), {"Items": column("sk", "y")}),
        done(local("local-some", " AND b BETWEEN :x AND :y", {":x": "1", ":y": "2"}), {"Items": column("b", "1", "2")}),
        done(query(X, "pk = :p", {":p": "nobody"}, IndexName="local-all"), {"Items": [], "Count": 0}),
    ]),
    Case("an index shows what it carries, and the keys of the table", [
        done(query(X, "a = :a AND b = :b", {":a": "A", ":b": "1"}, IndexName="both"), {"Items": [Exactly(item(pk="1", sk="x", a="A", b="1", word="one"))]}),
        done(query(X, "a = :a AND b = :b", {":a": "A", ":b": "1"}, IndexName="both", Select="ALL_PROJECTED_ATTRIBUTES"), {"Items": [Exactly(item(pk="1", sk="x", a="A", b="1", word="one"))]}),
        done(local("local-some", " AND b = :b", {":b": "1"}), {"Items": [Exactly(item(pk="1", sk="x", a="A", b="1"))]}),
        done(local("local-all", " AND a = :a", {":a": "B"}, Select="ALL_ATTRIBUTES"), {"Items": [Exactly(item(WHOLE[2]))]}),
    ]),
    Case("a local index fetches what it does not carry", [
        done(local("local-some", " AND b = :b", {":b": "1"}, Select="ALL_ATTRIBUTES"), {"Items": [Exactly(item(WHOLE[0]))]}),
        done(local("local-some", " AND b = :b", {":b": "1"}, ProjectionExpression="extra"), {"Items": [Exactly(item(extra=1))]}),
    ]),
    Case("a global index refuses what it does not carry", [
        refused(query(X, "a = :a", {":a": "A"}, IndexName="both", Select="ALL_ATTRIBUTES"), "ValidationException", "Select type ALL_ATTRIBUTES is not supported for global secondary index both because its projection type is not ALL"),
    ]),
    Case("an item without an index's keys is in the table alone", [
        stored(X, {"pk": "1", "sk": "none"}, {}),
        done(query(X, "a = :a", {":a": "A"}, IndexName="both"), {"Items": rows("word", "one", "four")}),
        done(local("local-some", "", {}), {"Items": column("sk", "x", "z", "y")}),
        done(scan(X, IndexName="hash"), {"Items": rows("a", "A", "A", "A", "A-2", "B"), "Count": 5}),
        done(scan(X, IndexName="both"), {"Count": 4}),
        done(scan(X, IndexName="local-some", ConsistentRead=True), {"Count": 4}),
    ]),
    Case("a scan of an index shows what it carries and filters by it", [
        done(scan(X, "word = :d", {":d": "one"}, IndexName="both"), {"Items": [Exactly(item(pk="1", sk="x", a="A", b="1", word="one"))], "ScannedCount": 4}),
        done(scan(X, "pk = :p AND extra = :e", {":p": "2", ":e": 4}, IndexName="hash"), {"Items": [Exactly(item(WHOLE[3]))]}),
        done(scan(X, "(a = :a) AND ((b = :x) OR (b = :y))", {":a": "A", ":x": "1", ":y": "4"}, IndexName="hash"), {"Count": 2}),
        done(scan(X, "pk = :p", {":p": "1"}, IndexName="local-some", ConsistentRead=True), {"Items": rows("b", "1", "2", "3"), "LastEvaluatedKey": ABSENT}),
    ]),
    Case("cursors of an index have its keys and the table's, and no item is lost where keys are equal", [
        walk("Query", "hash", ["pk", "sk", "kind"], "kind = :k", {":k": "widget"}),
        walk("Query", "sorted", ["pk", "sk", "kind", "group"], "kind = :k", {":k": "widget"}),
        walk("Query", "by-table-key", ["pk", "sk", "kind"], "kind = :k", {":k": "widget"}),
        walk("Query", "local", ["pk", "sk", "group"], "pk = :p", {":p": "p"}),
        walk("Query", "local", ["pk", "sk", "group"], "pk = :p", {":p": "p"}, ScanIndexForward=False),
        walk("Scan", "hash", ["pk", "sk", "kind"]),
        walk("Scan", "sorted", ["pk", "sk", "kind", "group"]),
        walk("Scan", "local", ["pk", "sk", "group"]),
    ]),
    Case("a filter leaves pages short, and the walk goes on", [
        Walks(*scan(P, f"n IN ({FIVES})", FIVE_VALUES, IndexName=name, Limit=4), "n", list(range(0, 30, 5)), pages_min=8)
        for name in ("hash", "sorted", "local")
    ]),
    Case("a page of an index begins at keys of the index and of the table", [
        refused(query(X, "a = :a", {":a": "A"}, IndexName="hash", ExclusiveStartKey=item(pk="1")), "ValidationException", "The provided starting key is invalid"),
        refused(scan(X, IndexName="hash", ExclusiveStartKey=item(pk="1", sk="x")), "ValidationException", "The provided starting key is invalid"),
    ]),
]  # fmt: skip
