"""Conditions of PartiQL statements: comparisons of every type, functions, IS, and functions on sets."""

from .steps import Case, column, done, exact_items, execute, missing, put, refused, rows, stored, table

H = "filtering"
TABLES = [table(H, ["pk"])]
SETS = {"ss": {"a", "b", "c"}, "ns": {1, 2, 3}, "bs": {b"\x01", b"\x02"}, "s": "str"}
ITEM = {"ss": {"a", "b", "c"}, "s": "str", "m": {"sub": "x"}, "nul": None, "flag": True, "marker": "here"}

# Of each type: what is stored, another value, and the same again in another order with whether that is equal.
TYPES = {
    "SS": ({"SS": ["a", "b", "c"]}, {"SS": ["a", "b", "d"]}, {"SS": ["c", "a", "b"]}, True),
    "NS": ({"NS": ["1", "2", "3"]}, {"NS": ["1", "2", "4"]}, {"NS": ["3", "1", "2"]}, True),
    "BS": ({"BS": ["AQI=", "AwQ="]}, {"BS": ["AQI=", "BQY="]}, {"BS": ["AwQ=", "AQI="]}, True),
    "L": ({"L": [{"S": "a"}, {"S": "b"}]}, {"L": [{"S": "a"}, {"S": "c"}]}, {"L": [{"S": "b"}, {"S": "a"}]}, False),
    "M": ({"M": {"x": {"N": "1"}, "y": {"N": "2"}}}, {"M": {"x": {"N": "1"}, "y": {"N": "3"}}}, {"M": {"y": {"N": "2"}, "x": {"N": "1"}}}, True),
    "B": ({"B": "AQID"}, {"B": "AQIE"}, {"B": "AQID"}, True),
    "NULL": ({"NULL": True}, {"S": "not null"}, {"NULL": True}, True),
    "BOOL": ({"BOOL": True}, {"BOOL": False}, {"BOOL": True}, True),
}  # fmt: skip
UNORDERED = {
    "BOOL": {"BOOL": True}, "NULL": {"NULL": True}, "L": {"L": [{"S": "a"}]}, "M": {"M": {"a": {"S": "b"}}}, "SS": {"SS": ["a"]},
    "NS": {"NS": ["1"]}, "BS": {"BS": ["AQ=="]},
}  # fmt: skip
SEED = [
    *(("PutItem", {"TableName": H, "Item": {"pk": {"S": f"type-{kind}"}, "val": values[0]}}) for kind, values in TYPES.items()),
    put(H, {"pk": "item", **ITEM}),
    *(put(H, {"pk": f"write-{at}", "a": 5}) for at in range(6)),
]


def raw(statement, *parameters):
    return "ExecuteStatement", {"Statement": statement, "Parameters": list(parameters)}


def equal(pk, value, operator, wanted):
    """Whether a comparison holds, in a statement and as a condition of an update."""
    steps = [done(raw(f'SELECT pk FROM "{H}" WHERE pk = ? AND val {operator} ?', {"S": pk}, value), {"Items": column("pk", *([pk] if wanted else []))})]
    conditional = ("UpdateItem", {"TableName": H, "Key": {"pk": {"S": pk}}, "UpdateExpression": "REMOVE nothing", "ConditionExpression": f"val {operator} :v", "ExpressionAttributeValues": {":v": value}})
    steps.append(done(conditional) if wanted else refused(conditional, "ConditionalCheckFailedException"))
    return steps


def holds(expression, wanted=True):
    return done(execute(f"SELECT * FROM \"{H}\" WHERE pk = 'item' AND {expression}"), {"Items": column("pk", *(["item"] if wanted else []))})


def sets(claim, clause, after, *parameters):
    """An UPDATE of an item with sets, alone, in a transaction and in a batch."""
    statement = f"UPDATE \"{H}\" {clause} WHERE pk = 'sets'"
    given = {"Statement": statement, **({"Parameters": list(parameters)} if parameters else {})}
    steps = []
    for request in (("ExecuteStatement", given), ("ExecuteTransaction", {"TransactStatements": [given]}), ("BatchExecuteStatement", {"Statements": [given]})):
        steps += [done(put(H, {"pk": "sets", **SETS})), done(request), stored(H, {"pk": "sets"}, {name: value for name, value in {**SETS, **after}.items() if value is not None})]
    return Case(claim, steps)


CASES = [
    *(Case(f"values of the type {kind} are equal or not", [
        *equal(f"type-{kind}", same, "=", True), *equal(f"type-{kind}", other, "=", False),
        *equal(f"type-{kind}", same, "<>", False), *equal(f"type-{kind}", other, "<>", True),
        *equal(f"type-{kind}", permuted, "=", is_equal),
    ]) for kind, (same, other, permuted, is_equal) in TYPES.items()),
    *(Case(f"values of the type {kind} have no order, and are unequal to others", [
        refused(raw(f'SELECT pk FROM "{H}" WHERE pk = ? AND val < ?', {"S": "type-B"}, value), "ValidationException", whole=f"Incorrect operand type for operator or function; operator or function: <, operand type: {kind}"),
        *equal("type-B", value, "=", False), *equal("type-B", value, "<>", True),
    ]) for kind, value in UNORDERED.items()),
    Case("the operator is named as it was written", [
        *(refused(raw(f'SELECT pk FROM "{H}" WHERE pk = ? AND val {operator} ?', {"S": "type-B"}, {"BOOL": True}), "ValidationException",
                  whole=f"Incorrect operand type for operator or function; operator or function: {operator}, operand type: BOOL") for operator in ("<", "<=", ">", ">=")),
        refused(raw(f'SELECT pk FROM "{H}" WHERE pk = ? AND val BETWEEN ? AND ?', {"S": "type-B"}, {"BOOL": True}, {"BOOL": False}), "ValidationException", "operator or function: BETWEEN"),
    ]),
    Case("values of two types have no order and are no fault", [
        done(raw(f'SELECT pk FROM "{H}" WHERE pk = ? AND val < ?', {"S": "type-NULL"}, {"N": "5"}), {"Items": []}),
    ]),
    Case("bytes are ordered by their bytes", [
        done(raw(f'SELECT pk FROM "{H}" WHERE pk = ? AND val < ?', {"S": "type-B"}, {"B": "AQIE"}), {"Items": column("pk", "type-B")}),
        done(raw(f'SELECT pk FROM "{H}" WHERE pk = ? AND val > ?', {"S": "type-B"}, {"B": "AQIE"}), {"Items": []}),
    ]),
    Case("a write may depend on such a comparison", [
        done(raw(f"UPDATE \"{H}\" SET touched = 'yes' WHERE pk = ? AND val = ?", {"S": "type-SS"}, {"SS": ["c", "b", "a"]})),
        refused(raw(f"UPDATE \"{H}\" SET touched = 'no' WHERE pk = ? AND val = ?", {"S": "type-M"}, {"M": {"x": {"N": "2"}}}), "ConditionalCheckFailedException"),
        done(execute(f'SELECT pk FROM "{H}" WHERE touched IS NOT MISSING'), {"Items": rows("pk", "type-SS")}),
    ]),
    Case("attribute_exists and attribute_not_exists", [
        holds("attribute_exists(ss)"), holds("attribute_exists(nope)", False),
        holds("attribute_not_exists(nope)"), holds("attribute_not_exists(ss)", False),
        holds("NOT attribute_exists(nope)"), holds("ATTRIBUTE_EXISTS(ss)"), holds('attribute_exists("ss")'),
        holds("(attribute_exists(nope) OR attribute_exists(ss))"),
        holds("attribute_exists(m.sub)"), holds("attribute_exists(m.nope)", False),
        done(execute(f'SELECT pk FROM "{H}" WHERE attribute_exists(marker)'), {"Items": exact_items({"pk": "item"})}),
    ]),
    Case("a condition may be compared with true", [holds("attribute_exists(ss) = true")]),
    Case("size and attribute_type", [
        holds("size(s) = 3"), holds("size(s) = 4", False),
        holds("attribute_type(ss, 'SS')"), holds("attribute_type(ss, 'S')", False),
    ]),
    Case("IS NULL and IS of a type", [
        holds("nul IS NULL"), holds("s IS NULL", False), holds("s IS NOT NULL"), holds("nul IS NOT NULL", False),
        holds("flag IS BOOL"), holds("s IS STRING"), holds("s IS BOOL", False),
    ]),
    Case("functions are conditions on writes", [
        done(execute(f"UPDATE \"{H}\" SET z = 1 WHERE pk = 'write-0' AND attribute_exists(a)")),
        stored(H, {"pk": "write-0"}, {"a": 5, "z": 1}),
        refused(execute(f"UPDATE \"{H}\" SET z = 2 WHERE pk = 'write-1' AND attribute_exists(nope)"), "ConditionalCheckFailedException"),
        done(execute(f"UPDATE \"{H}\" SET y = 1 WHERE pk = 'write-1' AND attribute_not_exists(y)")),
        refused(execute(f"UPDATE \"{H}\" SET y = 2 WHERE pk = 'write-1' AND attribute_not_exists(y)"), "ConditionalCheckFailedException"),
        stored(H, {"pk": "write-1"}, {"a": 5, "y": 1}),
        refused(execute(f"DELETE FROM \"{H}\" WHERE pk = 'write-2' AND attribute_exists(nope)"), "ConditionalCheckFailedException"),
        stored(H, {"pk": "write-2"}, {"a": 5}),
        done(execute(f"DELETE FROM \"{H}\" WHERE pk = 'write-2' AND attribute_not_exists(nope)")),
        missing(H, {"pk": "write-2"}),
        refused(execute(f"UPDATE \"{H}\" SET z = 1 WHERE pk = 'nobody' AND attribute_not_exists(pk)"), "ConditionalCheckFailedException"),
        missing(H, {"pk": "nobody"}),
        done(("ExecuteTransaction", {"TransactStatements": [{"Statement": f"UPDATE \"{H}\" SET z = 1 WHERE pk = 'write-3' AND attribute_exists(a)"}]})),
        stored(H, {"pk": "write-3"}, {"a": 5, "z": 1}),
    ]),
    sets("set_add puts texts into a set", "SET ss = set_add(ss, <<'0', 'z'>>)", {"ss": {"0", "a", "b", "c", "z"}}),
    sets("set_add puts numbers into a set", "SET ns = set_add(ns, <<4, 1>>)", {"ns": {1, 2, 3, 4}}),
    sets("set_add takes a parameter", "SET bs = set_add(bs, ?)", {"bs": {b"\x01", b"\x02", b"\x03"}}, {"BS": ["AQ==", "Aw=="]}),
    sets("set_add of what is there changes nothing", "SET ss = set_add(ss, <<'a'>>)", {}),
    sets("set_add makes a set", "SET fresh = set_add(fresh, <<'x'>>)", {"fresh": {"x"}}),
    sets("set_add in capitals", "SET ss = SET_ADD(ss, <<'x'>>)", {"ss": {"a", "b", "c", "x"}}),
    sets("two of them", "SET ss = set_add(ss, <<'x'>>) SET ns = set_add(ns, <<9>>)", {"ss": {"a", "b", "c", "x"}, "ns": {1, 2, 3, 9}}),
    sets("set_delete takes texts out", "SET ss = set_delete(ss, <<'a'>>)", {"ss": {"b", "c"}}),
    sets("set_delete takes numbers out", "SET ns = set_delete(ns, <<2>>)", {"ns": {1, 3}}),
    sets("set_delete of everything takes the set away", "SET ss = set_delete(ss, <<'a', 'b', 'c'>>)", {"ss": None}),
    sets("set_delete of what is not there changes nothing", "SET ss = set_delete(ss, <<'zz'>>)", {}),
    sets("set_delete of no set changes nothing", "SET fresh = set_delete(fresh, <<'a'>>)", {}),
    Case("set_add shows the set, and makes no item", [
        done(put(H, {"pk": "sets", **SETS})),
        done(execute(f"UPDATE \"{H}\" SET ss = set_add(ss, <<'r'>>) WHERE pk = 'sets' RETURNING MODIFIED NEW *"), {"Items": exact_items({"ss": {"a", "b", "c", "r"}})}),
        refused(execute(f"UPDATE \"{H}\" SET ss = set_add(ss, <<'x'>>) WHERE pk = 'nobody'"), "ConditionalCheckFailedException"),
        missing(H, {"pk": "nobody"}),
    ]),
]  # fmt: skip
