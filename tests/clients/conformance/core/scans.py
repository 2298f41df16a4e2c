"""Scan on tables: filters, pages, segments and what is selected."""

from .steps import ABSENT, Case, Exactly, Satisfies, Walks, done, item, put, refused, rows, scan, table

H, S = "scans", "scans-segments"
TABLES = [table(H, ["pk"]), table(S, ["pk"])]
ITEMS = [
    {"pk": "1", "s": "apple", "n": 10, "b": b"\x01\x02", "set": {"a", "b"}, "status": "active"},
    {"pk": "2", "s": "banana", "n": 20, "b": b"\x03\x04", "set": {"b", "c"}, "status": "gone"},
    {"pk": "3", "s": "cherry", "n": 30, "b": b"\x05\x06", "set": {"a", "c"}, "status": "active"},
]
SEED = [*(put(H, each) for each in ITEMS), *(put(S, {"pk": f"{at:03}", "n": at}) for at in range(20))]
FILTERS = [
    ("s = :v", {":v": "banana"}, "2"),
    ("n <> :v", {":v": 20}, "1", "3"),
    ("n > :v", {":v": 15}, "2", "3"),
    ("s <= :v", {":v": "banana"}, "1", "2"),
    ("contains(s, :v)", {":v": "an"}, "2"),
    ("attribute_exists(s)", {}, "1", "2", "3"),
    ("b > :v", {":v": b"\x03\x04"}, "3"),
    ("begins_with(b, :v)", {":v": b"\x03"}, "2"),
    ("b BETWEEN :lo AND :hi", {":lo": b"\x01\x02", ":hi": b"\x03\x04"}, "1", "2"),
    ("#set = :v", {":v": {"b", "a"}}, "1"),
    ("#set <> :v", {":v": {"a", "b"}}, "2", "3"),
    ("pk = :v", {":v": "none"}),
    ("(s = :a) OR (s = :b)", {":a": "apple", ":b": "cherry"}, "1", "3"),
    ("(s = :a OR (s = :b))", {":a": "apple", ":b": "cherry"}, "1", "3"),
    ("(n > :v) AND ((s = :a) OR (s = :b))", {":v": 15, ":a": "apple", ":b": "cherry"}, "3"),
    ("(NOT (s = :a))", {":a": "apple"}, "2", "3"),
]


def filtered(expression, values, *wanted):
    more = {"ExpressionAttributeNames": {"#set": "set"}} if "#set" in expression else {}
    return Case(f"a filter: {expression}", [
        done(scan(H, expression, values, **more), {"Items": rows("pk", *wanted), "Count": len(wanted), "ScannedCount": 3}),
    ])  # fmt: skip


def segment(at, of, **more):
    return scan(S, Segment=at, TotalSegments=of, **more)


class Segments:
    """All segments together have each item once."""

    def __init__(self, of):
        self.of = of

    def run(self, server):
        seen = []
        for at in range(self.of):
            answer = server.send(*segment(at, self.of))
            assert "LastEvaluatedKey" not in answer
            seen += [found["pk"]["S"] for found in answer["Items"]]
        assert sorted(seen) == [f"{at:03}" for at in range(20)], seen


CASES = [
    *(filtered(*each) for each in FILTERS),
    Case("a scan reads everything", [
        done(scan(H, ConsistentRead=True), {"Items": rows("pk", "1", "2", "3"), "Count": 3, "ScannedCount": 3, "LastEvaluatedKey": ABSENT}),
    ]),
    Case("a limit counts what is read, not what a filter leaves", [
        done(scan(H, Limit=2), {"Count": 2, "LastEvaluatedKey": Satisfies("a key", lambda key: list(key) == ["pk"])}),
        done(scan(H, "n > :v", {":v": 100}, Limit=1), {"Count": 0, "ScannedCount": 1, "LastEvaluatedKey": {}}),
    ]),
    Case("pages add up and do not repeat where they began", [
        Walks(*scan(S, Limit=3), "pk", [f"{at:03}" for at in range(20)], cursor=["pk"], pages_min=7),
        Walks(*scan(S, "n >= :v", {":v": 10}, Limit=3), "pk", [f"{at:03}" for at in range(10, 20)], pages_min=7),
    ]),
    Case("a page begins at a key of the table", [
        refused(scan(H, ExclusiveStartKey=item(bad="x")), "ValidationException", whole="The provided starting key is invalid: The provided key element does not match the schema"),
        refused(scan(H, ExclusiveStartKey=item(pk="1", more="x")), "ValidationException", whole="The provided starting key is invalid: The provided key element does not match the schema"),
        refused(scan(H, ExclusiveStartKey={"pk": {"N": "1e126"}}), "ValidationException", whole="Number overflow. Attempting to store a number with magnitude larger than supported range"),
        refused(scan(H, ExclusiveStartKey={"pk": {}}), "ValidationException", "The provided starting key is invalid: Supplied AttributeValue is empty"),
    ]),
    Case("a start key lies within the segment", [
        refused((lambda request: (request[0], {**request[1], "ExclusiveStartKey": item(pk="000")}))(segment(0, 1_000_000)), "ValidationException",
                whole="The provided starting key is invalid: Invalid ExclusiveStartKey. Please use ExclusiveStartKey with correct Segment. TotalSegments: 1000000 Segment: 0"),
    ]),
    Case("segments share a table without gap or overlap", [Segments(1), Segments(4), Segments(7)]),
    Case("segments are numbered within their count, of at most a million", [
        refused(segment(0, 1_000_001), "ValidationException", "totalSegments", "1000000"),
        refused(segment(4, 4), "ValidationException", "Segment"),
        done(segment(0, 1_000_000)),
    ]),
    Case("counting leaves the items out", [
        done(scan(H, Select="COUNT"), {"Count": 3, "ScannedCount": 3, "Items": ABSENT}),
        done(scan(H, "n > :v", {":v": 15}, Select="COUNT"), {"Count": 2, "ScannedCount": 3, "Items": ABSENT}),
    ]),
    Case("chosen attributes need a projection, and others refuse one", [
        done(scan(H, "pk = :v", {":v": "1"}, ProjectionExpression="s"), {"Items": [Exactly(item(s="apple"))]}),
        refused(scan(H, Select="SPECIFIC_ATTRIBUTES"), "ValidationException", "Must specify the AttributesToGet or ProjectionExpression when choosing to get SPECIFIC_ATTRIBUTES"),
        refused(scan(H, Select="ALL_ATTRIBUTES", ProjectionExpression="pk"), "ValidationException", "Cannot specify the ProjectionExpression when choosing to get ALL_ATTRIBUTES"),
        refused(scan(H, Select="COUNT", ProjectionExpression="pk"), "ValidationException", "Cannot specify the ProjectionExpression when choosing to get only the Count"),
        refused(scan(H, Select="ALL_PROJECTED_ATTRIBUTES"), "ValidationException", "ALL_PROJECTED_ATTRIBUTES can be used only when Querying using an IndexName"),
        refused(scan(H, Select="ALL_PROJECTED_ATTRIBUTES", ProjectionExpression="pk"), "ValidationException", "Cannot specify the ProjectionExpression when choosing to get ALL_PROJECTED_ATTRIBUTES"),
    ]),
    Case("a filter is checked before anything is read", [
        refused(scan(H, "begins_with(nothing, :v)", {":v": 5}), "ValidationException", "Incorrect operand type for operator or function; operator or function: begins_with, operand type: N"),
        refused(scan(H, "((s = :v))", {":v": "apple"}), "ValidationException", "Invalid FilterExpression: The expression has redundant parentheses"),
    ]),
    Case("a table that is not there", [refused(scan("scans-none"), "ResourceNotFoundException")]),
]  # fmt: skip
