"""Query on tables: key conditions, order, pages, filters and what is selected."""

from .steps import ABSENT, Case, Walks, column, done, index, item, put, query, refused, table

C, N, B = "queries", "queries-numbers", "queries-bytes"
H = "queries-hash"
TABLES = [table(H, ["pk"], GlobalSecondaryIndexes=[index("by-g", "g", "r")]), table(C, ["pk", "sk"]), table(N, ["pk", "sk"], {"sk": "N"}), table(B, ["pk", "sk"], {"sk": "B"})]
GREEK = ["alpha", "beta", "delta", "gamma"]
NUMBERS = [-100, -5, -1, 0, 1, 5, 10, 20, 50, 100]
BYTES = [b"\x01", b"\x01\x02", b"\x02", b"\xff"]
PEOPLE = [
    {"sk": "1", "name": "alice", "age": 30, "tags": {"admin", "user"}, "m": {"in": "deep"}, "l": ["first", "second"]},
    {"sk": "2", "name": "bob", "age": 25, "tags": {"user"}, "m": {"in": "other"}, "l": ["alpha", "beta"]},
    {"sk": "3", "name": "carol", "age": 35, "tags": {"admin", ""}, "m": {"in": "deep"}, "l": ["first", "gamma"]},
    {"sk": "4", "name": "dave", "age": 28, "tags": {"viewer"}, "m": {"in": "v", "k": 1, "j": 2, "i": 3}, "l": [1, 2, 3, 4], "b": b"12345"},
]  # fmt: skip
SEED = [
    *(put(H, {"pk": str(at), "g": "g", "r": "r"}) for at in range(3)),
    *(put(C, {"pk": "greek", "sk": name}) for name in GREEK),
    *(put(C, {"pk": "pages", "sk": f"{at:03}", "even": at % 2 == 0}) for at in range(10)),
    *(put(C, {"pk": "people", **person}) for person in PEOPLE),
    *(put(N, {"pk": "n", "sk": number}) for number in NUMBERS),
    *(put(B, {"pk": "b", "sk": value}) for value in BYTES),
    # Two characters, three units of UTF-16, six bytes of UTF-8.
    put(C, {"pk": "utf", "sk": "1", "s": "é\U0001d11e"}),
]
START = "The provided starting key"
BAD_START = f"{START} is invalid"
ONE_ROW = "The query can return at most one row and cannot be restarted"
NAMES = {"#n": "name", "#i": "in"}


def found(condition, values, wanted, table=C, partition="greek", **more):
    return done(query(table, f"pk = :p AND {condition}", {":p": partition, **values}, **more), {"Items": column("sk", *wanted)})


def filtered(expression, values, *wanted):
    names = {name: value for name, value in NAMES.items() if name in expression}
    more = {"ExpressionAttributeNames": names} if names else {}
    return Case(f"a filter: {expression}", [
        done(query(C, "pk = :p", {":p": "people", **values}, FilterExpression=expression, **more),
             {"Items": column("sk", *wanted), "Count": len(wanted), "ScannedCount": 4}),
    ])  # fmt: skip


def page(**more):
    return query(C, "pk = :p", {":p": "pages"}, **more)


CASES = [
    Case("a query reads a partition in order, or backwards", [
        done(query(C, "pk = :p", {":p": "greek"}), {"Items": column("sk", *GREEK), "Count": 4, "ScannedCount": 4, "LastEvaluatedKey": ABSENT}),
        done(query(C, "pk = :p", {":p": "greek"}, ScanIndexForward=False, ConsistentRead=True), {"Items": column("sk", *reversed(GREEK))}),
        done(query(C, "pk = :p", {":p": "nobody"}), {"Items": [], "Count": 0, "ScannedCount": 0}),
    ]),
    Case("numbers are in the order of their values", [
        done(query(N, "pk = :p", {":p": "n"}), {"Items": column("sk", *NUMBERS)}),
        done(query(N, "pk = :p", {":p": "n"}, ScanIndexForward=False), {"Items": column("sk", *reversed(NUMBERS))}),
        done(query(N, "pk = :p", {":p": "n"}, Limit=3), {"Items": column("sk", *NUMBERS[:3]), "LastEvaluatedKey": {}}),
        found("sk > :v", {":v": 15}, [20, 50, 100], N, "n"),
        found("sk >= :v", {":v": -1}, NUMBERS[2:], N, "n"),
        found("sk BETWEEN :a AND :b", {":a": 1, ":b": 10}, [1, 5, 10], N, "n"),
    ]),
    Case("bytes are in the order of their bytes", [
        done(query(B, "pk = :p", {":p": "b"}), {"Items": column("sk", *BYTES)}),
        done(query(B, "pk = :p", {":p": "b"}, ScanIndexForward=False), {"Items": column("sk", *reversed(BYTES))}),
        found("sk > :v", {":v": b"\x01\x02"}, BYTES[2:], B, "b"),
        found("begins_with(sk, :v)", {":v": b"\x01"}, BYTES[:2], B, "b"),
    ]),
    Case("conditions on the sort key", [
        found("sk = :v", {":v": "beta"}, ["beta"]),
        found("sk < :v", {":v": "c"}, ["alpha", "beta"]),
        found("sk <= :v", {":v": "beta"}, ["alpha", "beta"]),
        found("sk > :v", {":v": "beta"}, ["delta", "gamma"]),
        found("sk >= :v", {":v": "delta"}, ["delta", "gamma"]),
        found("sk BETWEEN :a AND :b", {":a": "beta", ":b": "delta"}, ["beta", "delta"]),
        found("begins_with(sk, :v)", {":v": "b"}, ["beta"]),
        found(":v <= sk", {":v": "delta"}, ["delta", "gamma"]),
    ]),
    Case("a key condition takes parentheses that group", [
        done(query(C, "(pk = :p) AND (sk = :s)", {":p": "greek", ":s": "beta"}), {"Items": column("sk", "beta")}),
        done(query(C, "(pk = :p AND sk = :s)", {":p": "greek", ":s": "beta"}), {"Items": column("sk", "beta")}),
        done(query(C, "(pk = :p AND (sk = :s))", {":p": "greek", ":s": "beta"}), {"Items": column("sk", "beta")}),
        refused(query(C, "((pk = :p)) AND ((sk = :s))", {":p": "greek", ":s": "beta"}), "ValidationException", "The expression has redundant parentheses"),
    ]),
    Case("an invalid key condition", [
        refused(query(C, None, None), "ValidationException", "Either the KeyConditions or KeyConditionExpression parameter must be specified in the request"),
        refused(query(C, "pk = :p AND sk.x = :v", {":p": "greek", ":v": "x"}), "ValidationException", "KeyConditionExpressions cannot have conditions on nested attributes"),
        refused(query("queries-none", "pk = :p", {":p": "x"}), "ResourceNotFoundException"),
    ]),
    filtered("size(#n) > :v", {":v": 3}, "1", "3", "4"),
    filtered("contains(#n, :v)", {":v": "lic"}, "1"),
    filtered("contains(tags, :v)", {":v": "admin"}, "1", "3"),
    filtered("contains(tags, :v)", {":v": ""}, "3"),
    filtered("NOT contains(tags, :v)", {":v": "admin"}, "2", "4"),
    filtered("attribute_type(#n, :v)", {":v": "S"}, "1", "2", "3", "4"),
    filtered("attribute_exists(b)", {}, "4"),
    filtered("begins_with(#n, :v)", {":v": "car"}, "3"),
    filtered("#n IN (:a, :b)", {":a": "alice", ":b": "carol"}, "1", "3"),
    filtered("#n = :n AND age > :v", {":n": "alice", ":v": 20}, "1"),
    filtered("#n = :a OR #n = :b", {":a": "alice", ":b": "bob"}, "1", "2"),
    filtered("age BETWEEN :a AND :b", {":a": 26, ":b": 34}, "1", "4"),
    filtered("m.#i = :v", {":v": "deep"}, "1", "3"),
    filtered("l[0] = :v", {":v": "first"}, "1", "3"),
    filtered("size(l) = :v", {":v": 4}, "4"),
    filtered("size(tags) = :v", {":v": 1}, "2", "4"),
    filtered("size(m) > :v", {":v": 2}, "4"),
    filtered("size(b) > :v", {":v": 3}, "4"),
    filtered("size(nothing) = :v", {":v": 0}),
    filtered("(#n = :a) OR (#n = :b)", {":a": "alice", ":b": "bob"}, "1", "2"),
    filtered("(#n = :a OR #n = :b)", {":a": "alice", ":b": "bob"}, "1", "2"),
    filtered("(#n = :a OR (#n = :b))", {":a": "alice", ":b": "bob"}, "1", "2"),
    filtered("(age > :v) AND (begins_with(#n, :a))", {":v": 20, ":a": "al"}, "1"),
    Case("the size of a text counts units of UTF-16", [
        done(query(C, "pk = :p", {":p": "utf", ":v": 3}, FilterExpression="size(s) = :v"), {"Count": 1}),
        done(query(C, "pk = :p", {":p": "utf", ":v": 6}, FilterExpression="size(s) = :v"), {"Count": 0}),
    ]),
    Case("a limit counts what is read, not what a filter leaves", [
        done(page(Limit=3), {"Items": column("sk", "000", "001", "002"), "LastEvaluatedKey": {"sk": {"S": "002"}}}),
        done(query(C, "pk = :p", {":p": "pages", ":e": True}, FilterExpression="even = :e", Limit=2),
             {"Items": column("sk", "000"), "Count": 1, "ScannedCount": 2, "LastEvaluatedKey": {"sk": {"S": "001"}}}),
    ]),
    Case("pages add up and do not repeat where they began", [
        Walks(*page(Limit=4), "sk", [f"{at:03}" for at in range(10)], cursor=["pk", "sk"], pages_min=3),
        done(page(ExclusiveStartKey={"pk": {"S": "pages"}, "sk": {"S": "006"}}), {"Items": column("sk", "007", "008", "009"), "LastEvaluatedKey": ABSENT}),
    ]),
    Case("a page begins at a key of the table", [
        refused(page(ExclusiveStartKey={"bad": {"S": "x"}}), "ValidationException", "The provided starting key is invalid"),
    ]),
    Case("a query for one item has one page and takes no start key", [
        done(query(H, "pk = :p", {":p": "1"}, Limit=1), {"Items": column("pk", "1"), "LastEvaluatedKey": ABSENT}),
        done(query(C, "pk = :p AND sk = :s", {":p": "greek", ":s": "beta"}, Limit=1), {"Items": column("sk", "beta"), "LastEvaluatedKey": ABSENT}),
        refused(query(H, "pk = :p", {":p": "1"}, ExclusiveStartKey=item(pk="1")), "ValidationException", whole=ONE_ROW),
        refused(query(C, "pk = :p AND sk = :s", {":p": "greek", ":s": "beta"}, ExclusiveStartKey=item(pk="greek", sk="beta")), "ValidationException", whole=ONE_ROW),
        refused(query(H, "pk = :p", {":p": "1"}, ExclusiveStartKey=item(pk="1", more="x")), "ValidationException", whole=BAD_START),
        Walks(*query(H, "g = :g AND r = :r", {":g": "g", ":r": "r"}, IndexName="by-g", Limit=1), "pk", ["0", "1", "2"], cursor=["pk", "g", "r"], pages_min=3),
    ]),
    Case("a start key lies within the range of the query", [
        refused(page(ExclusiveStartKey=item(pk="greek", sk="beta")), "ValidationException", whole=f"{START} is outside query boundaries based on provided conditions"),
        refused(query(H, "pk = :p", {":p": "1"}, ExclusiveStartKey=item(pk="2")), "ValidationException", whole=f"{START} is outside query boundaries based on provided conditions"),
        refused(query(C, "pk = :p AND sk < :s", {":p": "greek", ":s": "c"}, ExclusiveStartKey=item(pk="greek", sk="delta")), "ValidationException", whole=f"{START} does not match the range key predicate"),
        refused(query(C, "pk = :p AND sk < :s", {":p": "greek", ":s": "c"}, ExclusiveStartKey=item(pk="pages", sk="delta")), "ValidationException", whole=f"{START} does not match the range key predicate"),
        refused(query(C, "pk = :p AND sk < :s", {":p": "greek", ":s": "c"}, ExclusiveStartKey=item(pk="pages", sk="alpha")), "ValidationException", whole=ONE_ROW),
        refused(query(H, "g = :g AND r = :r", {":g": "g", ":r": "r"}, IndexName="by-g", ExclusiveStartKey=item(pk="1", g="x", r="r")), "ValidationException", whole=ONE_ROW),
    ]),
    Case("other expressions are checked before the operators of the key condition", [
        refused(query(C, "attribute_type(pk, :p)", {":p": "N"}, FilterExpression="", ProjectionExpression=""), "ValidationException", whole="Invalid FilterExpression: The expression can not be empty;"),
        refused(query(C, "attribute_type(pk, :p)", {":p": "N"}, FilterExpression="a > b", ProjectionExpression=""), "ValidationException", whole="Invalid ProjectionExpression: The expression can not be empty;"),
        refused(query(C, "attribute_type(pk, :p)", {":p": "N"}, FilterExpression="a > b"), "ValidationException", whole="Invalid operator used in KeyConditionExpression: attribute_type"),
        refused(query(C, "", {":p": "N"}, FilterExpression=""), "ValidationException", whole="Invalid KeyConditionExpression: The expression can not be empty;"),
    ]),
    Case("counting leaves the items out", [
        done(page(Select="COUNT"), {"Count": 10, "ScannedCount": 10, "Items": ABSENT}),
        done(query(C, "pk = :p", {":p": "pages", ":e": True}, FilterExpression="even = :e", Select="COUNT"), {"Count": 5, "ScannedCount": 10, "Items": ABSENT}),
    ]),
    Case("chosen attributes need a projection, and others refuse one", [
        done(page(Select="SPECIFIC_ATTRIBUTES", ProjectionExpression="sk", Limit=1), {"Items": [{"sk": {"S": "000"}, "pk": ABSENT}]}),
        refused(page(Select="SPECIFIC_ATTRIBUTES"), "ValidationException", "Must specify the AttributesToGet or ProjectionExpression when choosing to get SPECIFIC_ATTRIBUTES"),
        refused(page(Select="ALL_ATTRIBUTES", ProjectionExpression="sk"), "ValidationException", "Cannot specify the ProjectionExpression when choosing to get ALL_ATTRIBUTES"),
        refused(page(Select="COUNT", ProjectionExpression="sk"), "ValidationException", "Cannot specify the ProjectionExpression when choosing to get only the Count"),
        refused(page(Select="ALL_PROJECTED_ATTRIBUTES"), "ValidationException", "ALL_PROJECTED_ATTRIBUTES can be used only when Querying using an IndexName"),
        refused(page(Select="ALL_PROJECTED_ATTRIBUTES", ProjectionExpression="sk"), "ValidationException", "Cannot specify the ProjectionExpression when choosing to get ALL_PROJECTED_ATTRIBUTES"),
    ]),
]  # fmt: skip
