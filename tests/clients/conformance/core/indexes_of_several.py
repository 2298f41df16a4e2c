"""Global indexes whose partition key or sort key has several attributes."""

from .steps import ABSENT, Case, Exactly, Until, Walks, column, done, execute, index, item, put, query, refused, rows, scan, table, update
from .values import typed

S, M, N, A = "several", "several-mixed", "several-numbers", "several-added"


def keys(hashes, ranges):
    return [{"AttributeName": name, "KeyType": kind} for kind, names in (("HASH", hashes), ("RANGE", ranges)) for name in names]


def several(name, hashes, ranges, kind="ALL"):
    return {"IndexName": name, "KeySchema": keys(hashes, ranges), "Projection": {"ProjectionType": kind}}


TABLES = [
    table(S, ["pk"], GlobalSecondaryIndexes=[several("gsi", "h", "abcd"), several("keys", "h", "ab", "KEYS_ONLY")]),
    table(
        M,
        ["pk", "sk"],
        GlobalSecondaryIndexes=[index("single", "g"), several("multi", ["h1", "h2"], ["r1"])],
        LocalSecondaryIndexes=[index("local", "pk", "l")],
    ),
    table(N, ["pk"], {"x": "N", "y": "N"}, GlobalSecondaryIndexes=[several("gsi", ["h1", "h2"], ["x", "y"])]),
    table(A, ["pk"]),
]
ITEMS = [
    {"pk": "p1", "a": "T", "b": "live", "c": "b", "d": "r1"},
    {"pk": "p2", "a": "T", "b": "live", "c": "a", "d": "r2"},
    {"pk": "p3", "a": "T", "b": "live", "c": "a", "d": "r1"},
    {"pk": "p4", "a": "T", "b": "draft", "c": "c", "d": "r1"},
    {"pk": "p5", "a": "F", "b": "live", "c": "a", "d": "r0"},
    # Without one of the attributes it is not in the index.
    {"pk": "p6", "a": "T", "b": "live", "d": "r1"},
]
SEED = [
    *(put(S, {"h": "o", **each}) for each in ITEMS),
    put(M, {"pk": "i", "sk": "s", "g": "g1", "h1": "a", "h2": "x", "r1": "m", "l": "l1"}),
    *(put(N, {"pk": f"{x},{y}", "h1": "a", "h2": "b", "x": x, "y": y}) for x in (-1, 2, 10) for y in (-5, 3)),
    # Their partition begins with the same bytes.
    put(N, {"pk": "other", "h1": "ab", "h2": "c", "x": 1, "y": 1}),
    *(put(A, {"pk": str(at), "one": "a", "two": str(at % 2)}) for at in range(4)),
]
REFUSED = "PartiQL statements cannot be executed on tables with multi-attribute HASH keys or multi-attribute RANGE keys."
VALUES = {":h": "o", ":a": "T", ":b": "live", ":c": "a", ":r": "r", ":x": "r1", ":y": "r1"}


def asked(condition, **more):
    return query(S, condition, {name: value for name, value in VALUES.items() if name in condition}, IndexName="gsi", **more)


def conditions(**wanted):
    """KeyConditions: a value to equal, or an operator and its value."""
    operators = {name: value if isinstance(value, tuple) else ("EQ", value) for name, value in wanted.items()}
    return {name: {"ComparisonOperator": operator, "AttributeValueList": [typed(value)]} for name, (operator, value) in operators.items()}


def found(condition, *wanted, **more):
    return done(asked(condition, **more), {"Items": column("pk", *wanted)})


def gap(condition, lacking, last):
    text = f"RANGE key attributes {lacking} must have equality conditions specified in the query because a condition is present on key attribute {last}"
    return refused(asked(condition), "ValidationException", text)


def wrong(claim, hashes, ranges, *texts):
    return Case(claim, [refused(("CreateTable", table("several-wrong", ["pk"], GlobalSecondaryIndexes=[several("gsi", hashes, ranges)])), "ValidationException", *texts)])


CASES = [
    Case("items are in the order of the attributes, one after the other", [
        found("h = :h", "p5", "p4", "p3", "p2", "p1"),
        found("h = :h AND a = :a", "p4", "p3", "p2", "p1"),
        found("h = :h AND a = :a", "p1", "p2", "p3", "p4", ScanIndexForward=False),
        done(query(N, "h1 = :a AND h2 = :b", {":a": "a", ":b": "b"}, IndexName="gsi"), {"Items": column("pk", "-1,-5", "-1,3", "2,-5", "2,3", "10,-5", "10,3")}),
    ]),
    Case("equalities from the front, and then one condition of any kind", [
        found("h = :h AND a = :a AND b = :b", "p3", "p2", "p1"),
        found("h = :h AND a = :a AND b = :b AND c = :c", "p3", "p2"),
        found("h = :h AND a = :a AND b = :b AND c > :c", "p1"),
        found("h = :h AND a = :a AND b < :b", "p4"),
        found("h = :h AND a = :a AND b = :b AND c = :c AND begins_with(d, :r)", "p3", "p2"),
        found("h = :h AND a = :a AND b = :b AND c = :c AND d BETWEEN :x AND :y", "p3"),
        found("b = :b AND h = :h AND a = :a", "p3", "p2", "p1"),
        done(query(N, "h1 = :a AND h2 = :b AND x = :x AND y > :y", {":a": "a", ":b": "b", ":x": 2, ":y": 0}, IndexName="gsi"), {"Items": column("pk", "2,3")}),
        done(query(N, "h1 = :a AND h2 = :b AND x <= :x", {":a": "a", ":b": "b", ":x": 2}, IndexName="gsi"), {"Items": column("pk", "-1,-5", "-1,3", "2,-5", "2,3")}),
    ]),
    Case("a condition behind one that is lacking is refused", [
        gap("h = :h AND a = :a AND c = :c", "b", "c"),
        gap("h = :h AND a = :a AND b > :b AND c = :c", "b", "c"),
        gap("h = :h AND b = :b", "a", "b"),
    ]),
    Case("KeyConditions take a condition for each attribute", [
        done(("Query", {"TableName": S, "IndexName": "gsi", "KeyConditions": conditions(h="o", a="T", b="live", c="a", d=("BEGINS_WITH", "r"))}), {"Items": column("pk", "p3", "p2")}),
        done(("Query", {"TableName": S, "IndexName": "gsi", "KeyConditions": conditions(h="o", a="T", b=("LT", "live"))}), {"Items": column("pk", "p4")}),
        done(("Query", {"TableName": S, "IndexName": "gsi", "KeyConditions": conditions(h="o")}), {"Items": column("pk", "p5", "p4", "p3", "p2", "p1")}),
        done(("Query", {"TableName": M, "IndexName": "multi", "KeyConditions": conditions(h1="a", h2="x", r1="m")}), {"Items": column("pk", "i")}),
        refused(("Query", {"TableName": S, "IndexName": "gsi", "KeyConditions": conditions(h="o", a="T", c="a")}), "ValidationException", "RANGE key attributes b must have equality conditions specified in the query because a condition is present on key attribute c"),
        refused(("Query", {"TableName": M, "IndexName": "multi", "KeyConditions": conditions(h1="a", r1="m")}), "ValidationException", "HASH key attributes h2 must have equality conditions specified in the query"),
        refused(("Query", {"TableName": M, "KeyConditions": conditions(pk="i", sk="s", more="x")}), "ValidationException", whole="Conditions can be of length 1 or 2 only"),
        refused(("Query", {"TableName": M, "IndexName": "single", "KeyConditions": conditions(g="g1", h1="a", h2="x")}), "ValidationException", whole="Conditions can be of length 1 or 2 only"),
    ]),
    Case("all attributes of the partition key are asked for", [
        refused(query(N, "h1 = :a", {":a": "a"}, IndexName="gsi"), "ValidationException", "HASH key attributes h2 must have equality conditions specified in the query"),
        refused(query(N, "h1 = :a AND h2 > :b", {":a": "a", ":b": "b"}, IndexName="gsi"), "ValidationException", "HASH key attributes h2 must have equality conditions specified in the query"),
    ]),
    Case("a cursor has all keys, and pages add up", [
        done(asked("h = :h AND a = :a", Limit=2), {"Items": column("pk", "p4", "p3"), "LastEvaluatedKey": Exactly(item(h="o", a="T", b="live", c="a", d="r1", pk="p3"))}),
        Walks(*asked("h = :h", Limit=2), "pk", ["p1", "p2", "p3", "p4", "p5"], cursor=["pk", *"habcd"], pages_min=3),
        Walks(*asked("h = :h", Limit=2, ScanIndexForward=False), "pk", ["p1", "p2", "p3", "p4", "p5"], cursor=["pk", *"habcd"], pages_min=3),
        Walks(*scan(N, IndexName="gsi", Limit=2), "pk", ["-1,-5", "-1,3", "2,-5", "2,3", "10,-5", "10,3", "other"], cursor=["pk", "h1", "h2", "x", "y"], pages_min=4),
        refused(asked("h = :h", ExclusiveStartKey=item(pk="p3", h="o", a="T")), "ValidationException", "The provided starting key is invalid"),
    ]),
    Case("an index without other attributes carries all of its keys", [
        done(query(S, "h = :h AND a = :a AND b = :b", {":h": "o", ":a": "F", ":b": "live"}, IndexName="keys"), {"Items": [Exactly(item(pk="p5", h="o", a="F", b="live"))]}),
    ]),
    Case("an item moves when one of its attributes changes, and leaves with it", [
        done(put(S, {"pk": "moving", "h": "m", "a": "1", "b": "1", "c": "1", "d": "1"})),
        done(update(S, {"pk": "moving"}, "SET c = :c", {":c": "2"})),
        done(query(S, "h = :h AND a = :a AND b = :a AND c = :c", {":h": "m", ":a": "1", ":c": "2"}, IndexName="gsi"), {"Items": rows("pk", "moving")}),
        done(update(S, {"pk": "moving"}, "REMOVE d")),
        done(query(S, "h = :h", {":h": "m"}, IndexName="gsi"), {"Items": []}),
    ]),
    Case("each attribute has its type", [
        refused(put(S, {"pk": "bad", "h": "o", "c": 5}), "ValidationException", "Type mismatch for Index Key c Expected: S Actual: N"),
        refused(put(S, {"pk": "bad", "h": "o", "d": ""}), "ValidationException", "secondary index key"),
    ]),
    Case("the index is described as it was made", [
        done(("DescribeTable", {"TableName": M}), {"Table": {"GlobalSecondaryIndexes": [{}, {"IndexName": "multi", "KeySchema": Exactly(keys(["h1", "h2"], ["r1"]))}]}}),
    ]),
    Case("such an index is added to a table with items", [
        done(("UpdateTable", {"TableName": A, "AttributeDefinitions": [{"AttributeName": name, "AttributeType": "S"} for name in ("one", "two")], "GlobalSecondaryIndexUpdates": [{"Create": several("later", ["one", "two"], [])}]})),
        Until("DescribeTable", {"TableName": A}, {"Table": {"GlobalSecondaryIndexes": [{"IndexStatus": "ACTIVE"}]}}),
        done(query(A, "#o = :o AND two = :t", {":o": "a", ":t": "1"}, IndexName="later", ExpressionAttributeNames={"#o": "one"}), {"Items": rows("pk", "1", "3")}),
    ]),
    Case("PartiQL reads no such index, but all the rest", [
        refused(execute(f"SELECT * FROM \"{M}\".\"multi\" WHERE h1 = 'a' AND h2 = 'x'"), "ValidationException", whole=REFUSED),
        refused(execute(f'SELECT * FROM "{M}"."multi"'), "ValidationException", whole=REFUSED),
        refused(execute(f"SELECT pk FROM \"{N}\".\"gsi\" WHERE h1 = 'a' AND h2 = 'b' ORDER BY x DESC"), "ValidationException", whole=REFUSED),
        done(("BatchExecuteStatement", {"Statements": [{"Statement": f"SELECT * FROM \"{M}\".\"multi\" WHERE h1 = 'a' AND h2 = 'x'"}, {"Statement": f"SELECT * FROM \"{M}\" WHERE pk = 'i' AND sk = 's'"}]}),
             {"Responses": [{"Error": {"Code": "ValidationError", "Message": REFUSED}, "Item": ABSENT}, {"Item": item(pk="i")}]}),
        *(done(execute(f'SELECT * FROM "{M}"{source}'), {"Items": column("pk", "i")}) for source in (" WHERE pk = 'i'", ".\"single\" WHERE g = 'g1'", ".\"local\" WHERE pk = 'i'")),
        done(execute(f"INSERT INTO \"{S}\" VALUE {{'pk': 'inserted'}}")),
        done(execute(f"UPDATE \"{S}\" SET extra = 1 WHERE pk = 'inserted'")),
        done(execute(f"DELETE FROM \"{S}\" WHERE pk = 'inserted' RETURNING ALL OLD *"), {"Items": [Exactly(item(pk="inserted", extra=1))]}),
    ]),
    wrong("five attributes for the partition", [f"h{at}" for at in range(5)], [], "The KeySchema exceeds the maximum allowed number of HASH key attributes"),
    wrong("five attributes to sort by", ["h"], [f"r{at}" for at in range(5)], "The KeySchema exceeds the maximum allowed number of RANGE key attributes"),
    wrong("an attribute twice", ["h"], ["a", "a"], "The KeySchema contains multiple key attributes with the same name"),
    Case("attributes of the partition key stand before those of the sort key", [
        refused(("CreateTable", {**table("several-wrong", ["pk"], GlobalSecondaryIndexes=[several("gsi", ["h", "i"], ["a"])]), "GlobalSecondaryIndexes": [
            {**several("gsi", [], []), "KeySchema": keys(["h"], ["a"]) + keys(["i"], [])}]}), "ValidationException", "All HASH key attributes must precede RANGE key attributes in the KeySchema"),
    ]),
    Case("a table's key has one attribute for each part", [
        refused(("CreateTable", {**table("several-wrong", ["pk", "sk", "more"]), "KeySchema": keys(["pk"], ["sk", "more"])}), "ValidationException", "keySchema"),
        refused(("CreateTable", {**table("several-wrong", ["pk", "sk"]), "KeySchema": keys(["pk", "sk"], [])}), "ValidationException", "RANGE"),
    ]),
]  # fmt: skip
