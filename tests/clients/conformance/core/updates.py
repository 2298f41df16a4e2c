"""UpdateItem: what each clause does, what comes back, and what is refused."""

from .steps import ABSENT, Case, Exactly, done, get, item, missing, put, refused, stored, table, update

H = "updates-hash"
TABLES = [table(H, ["pk"])]
SEED = []
LIST_APPEND = "The function is not allowed to be used this way in an expression; function: list_append"
OVERFLOW = "Number overflow. Attempting to store a number with magnitude larger than supported range"
MISSING_PATH = "The document path provided in the update expression is invalid for update"


def changes(claim, before, expression, after, values=None, **more):
    """An update of an item with the attributes `before` leaves it with `after`; none before makes it."""
    key = {"pk": claim}
    made = [] if before is None else [done(put(H, {**key, **before}))]
    return Case(claim, [*made, done(update(H, key, expression, values, **more)), stored(H, key, after)])


def returns(claim, before, expression, values, **wanted):
    """The values that each kind of ReturnValues returns for the same update, which is repeated for each."""
    key, steps = {"pk": claim}, []
    for kind, attributes in wanted.items():
        steps += [] if before is None else [done(put(H, {**key, **before}))]
        shown = ABSENT if attributes is None else Exactly(item({**key, **attributes} if kind.startswith("ALL") else attributes))
        steps.append(done(update(H, key, expression, values, ReturnValues=kind), {"Attributes": shown}))
    return Case(claim, steps)


def creates_no_item(claim, expression, values=None):
    """An update that only removes from an item that does not exist succeeds, returns nothing and stores nothing."""
    key = {"pk": claim}
    steps = [done(update(H, key, expression, values, ReturnValues=kind), Exactly({})) for kind in ("NONE", "ALL_OLD", "ALL_NEW", "UPDATED_OLD", "UPDATED_NEW")]
    return Case(claim, [*steps, missing(H, key)])


def wrong(claim, expression, values=None, *texts, before=None, **more):
    key = {"pk": claim}
    steps = [refused(update(H, key, expression, values, **more), "ValidationException", *texts)]
    if before is None:
        return Case(claim, [*steps, missing(H, key)])
    return Case(claim, [done(put(H, {**key, **before})), *steps, stored(H, key, before)])


CASES = [
    changes("SET makes an item", None, "SET a = :a", {"a": "x"}, {":a": "x"}),
    changes("an update without a clause makes an item of its key", None, None, {}),
    changes("SET replaces an attribute", {"a": "x", "b": 1}, "SET a = :a", {"a": "y", "b": 1}, {":a": "y"}),
    changes("SET adds an attribute", {"a": "x"}, "SET b = :b", {"a": "x", "b": 100}, {":b": 100}),
    changes("SET counts up and down", {"n": 10, "m": 1}, "SET n = n + :v, m = m - :v", {"n": 15, "m": -4}, {":v": 5}),
    changes("SET takes parentheses", {"n": 10}, "SET n = (n - :v)", {"n": 7}, {":v": 3}),
    changes("if_not_exists keeps what is there and sets what is not", {"a": "x"},
            "SET a = if_not_exists(a, :d), b = if_not_exists(b, :d)", {"a": "x", "b": "d"}, {":d": "d"}),
    changes("if_not_exists may fall back to another attribute", {"a": "x"}, "SET b = if_not_exists(b, a)", {"a": "x", "b": "x"}),
    changes("if_not_exists may be counted with", {"n": 10}, "SET n = if_not_exists(n, :d) - :v", {"n": 7}, {":d": 0, ":v": 3}),
    changes("list_append appends", {"l": ["a"]}, "SET l = list_append(l, :v)", {"l": ["a", "b", "c"]}, {":v": ["b", "c"]}),
    changes("list_append prepends", {"l": ["b"]}, "SET l = list_append(:v, l)", {"l": ["a", "b"]}, {":v": ["a"]}),
    changes("list_append may begin with nothing", {}, "SET l = list_append(if_not_exists(l, :e), :v)", {"l": ["x"]}, {":e": [], ":v": ["x"]}),
    changes("every clause sees the item as it was", {"a": "old"}, "SET a = :a, b = a", {"a": "new", "b": "old"}, {":a": "new"}),
    changes("SET makes a set of one empty text", {}, "SET tags = :v", {"tags": {""}}, {":v": {""}}),
    changes("SET makes a set within a map", {"m": {}}, "SET m.tags = :v", {"m": {"tags": {""}}}, {":v": {""}}),
    changes("REMOVE takes an attribute away", {"a": 1, "b": 2}, "REMOVE a", {"b": 2}),
    changes("REMOVE of what is not there does nothing", {"a": 1, "m": {"x": 1}}, "REMOVE nothing, m.nothing", {"a": 1, "m": {"x": 1}}),
    creates_no_item("REMOVE creates no item", "REMOVE a, b"),
    creates_no_item("REMOVE of a nested path creates no item", "REMOVE m.x, l[0], deep.er[1].x"),
    creates_no_item("DELETE creates no item", "DELETE s :v", {":v": {"a"}}),
    creates_no_item("DELETE of a nested path creates no item", "DELETE m.s :v", {":v": {"a"}}),
    creates_no_item("REMOVE and DELETE create no item", "REMOVE a DELETE s :v", {":v": {"a"}}),
    changes("REMOVE and SET create an item", None, "SET a = :a REMOVE b", {"a": 1}, {":a": 1}),
    changes("DELETE and ADD create an item", None, "ADD n :n DELETE s :v", {"n": 1}, {":n": 1, ":v": {"a"}}),
    Case("the condition of REMOVE is checked without an item", [
        refused(update(H, {"pk": "remove-if"}, "REMOVE a", ConditionExpression="attribute_exists(pk)"), "ConditionalCheckFailedException"),
        done(update(H, {"pk": "remove-if"}, "REMOVE a", ConditionExpression="attribute_not_exists(pk)"), Exactly({})),
        missing(H, {"pk": "remove-if"}),
    ]),
    Case("REMOVE without an item still needs a valid key", [
        refused(update(H, {"other": "x"}, "REMOVE a"), "ValidationException", "The provided key element does not match the schema"),
        refused(update(H, {"pk": "x"}, "REMOVE pk"), "ValidationException", "Cannot update attribute pk. This attribute is part of the key"),
    ]),
    changes("ADD counts", {"n": 10}, "ADD n :v", {"n": 13}, {":v": 3}),
    changes("ADD makes a number", {}, "ADD n :v", {"n": 10}, {":v": 10}),
    changes("ADD puts into a set, in order", {"s": {"b"}}, "ADD s :v", {"s": {"", "a", "b", "c"}}, {":v": {"c", "a", ""}}),
    changes("ADD makes a set", {}, "ADD s :v", {"s": {""}}, {":v": {""}}),
    changes("ADD of what is in the set changes nothing", {"s": {""}}, "ADD s :v", {"s": {""}}, {":v": {""}}),
    changes("ADD puts no bytes at all into a set of bytes", {"s": {b"\x01"}}, "ADD s :v", {"s": {b"", b"\x01"}}, {":v": {b""}}),
    changes("ADD orders numbers by their value", {"s": {10, 9}}, "ADD s :v", {"s": {-1, 9, 10, 100}}, {":v": {100, -1}}),
    changes("DELETE takes out of a set", {"s": {"a", "b", "c"}}, "DELETE s :v", {"s": {"a", "c"}}, {":v": {"b", "z"}}),
    changes("DELETE of all members takes the set away", {"s": {"a", "b"}}, "DELETE s :v", {}, {":v": {"a", "b"}}),
    changes("DELETE of the empty text leaves the others", {"s": {"", "a"}}, "DELETE s :v", {"s": {"a"}}, {":v": {""}}),
    changes("DELETE of the last, empty text takes the set away", {"s": {""}}, "DELETE s :v", {}, {":v": {""}}),
    changes("DELETE may leave a set of one empty text", {"s": {"", "a"}}, "DELETE s :v", {"s": {""}}, {":v": {"a"}}),
    changes("SET goes into a map that is there", {"m": {"x": "old", "keep": 1}}, "SET m.x = :v, m.y = :v", {"m": {"x": "v", "y": "v", "keep": 1}}, {":v": "v"}),
    changes("SET goes down three levels", {"a": {"b": {"c": "old"}}}, "SET a.b.c = :v", {"a": {"b": {"c": "new"}}}, {":v": "new"}),
    changes("SET counts within a map", {"m": {"n": 10}}, "SET m.n = m.n + :v", {"m": {"n": 15}}, {":v": 5}),
    changes("SET of an element past the end appends", {"l": ["a", "b", "c"]}, "SET l[5] = :v", {"l": ["a", "b", "c", "x"]}, {":v": "x"}),
    changes("SET of the first element of an empty list makes it", {"l": []}, "SET l[0] = :v", {"l": ["x"]}, {":v": "x"}),
    changes("REMOVE of a name in a map leaves the others", {"m": {"x": 1, "y": 2}}, "REMOVE m.x", {"m": {"y": 2}}),
    changes("REMOVE of an element moves the later ones up", {"l": ["a", "b", "c", "d"]}, "REMOVE l[1]", {"l": ["a", "c", "d"]}),
    changes("REMOVE of the last element", {"l": ["x", "y"]}, "REMOVE l[1]", {"l": ["x"]}),
    changes("all four clauses in one update", {"a": 1, "s": {"x", "y"}, "n": 1, "r": 1}, "SET a = :a REMOVE r ADD n :n DELETE s :s",
            {"a": 2, "s": {"y"}, "n": 4}, {":a": 2, ":n": 3, ":s": {"x"}}),
    returns("returned of a changed attribute", {"x": 1, "y": "keep"}, "SET x = :v", {":v": 2},
            ALL_NEW={"x": 2, "y": "keep"}, ALL_OLD={"x": 1, "y": "keep"}, UPDATED_NEW={"x": 2}, UPDATED_OLD={"x": 1}, NONE=None),
    returns("returned of one name in a map", {"m": {"keep": 1, "x": "old"}}, "SET m.x = :v", {":v": "new"},
            UPDATED_NEW={"m": {"x": "new"}}, UPDATED_OLD={"m": {"x": "old"}}),
    returns("returned of several names in a map", {"m": {"keep": 1}}, "SET m.x = :v, m.y = :v", {":v": 1}, UPDATED_NEW={"m": {"x": 1, "y": 1}}),
    returns("returned of a removed attribute", {"x": 1, "y": 2}, "REMOVE y", None, UPDATED_NEW=None, UPDATED_OLD={"y": 2}),
    returns("returned of a new item", None, "SET a = :a", {":a": "x"}, UPDATED_NEW={"a": "x"}),
    Case("nothing is returned of an update without a clause", [
        done(update(H, {"pk": "no clause"}), Exactly({})),
        done(get(H, {"pk": "no clause"}), {"Item": Exactly(item(pk="no clause"))}),
    ]),
    wrong("SET into a map that is not there", "SET m.a.b = :v", {":v": 1}, MISSING_PATH, before={"other": 1}),
    wrong("SET into a list that is not there", "SET l[0] = :v", {":v": 1}, MISSING_PATH, before={"other": 1}),
    wrong("REMOVE of a nested path in a missing map", "REMOVE m.x", None, MISSING_PATH, before={"other": 1}),
    wrong("SET and REMOVE of a nested path without an item", "SET a = :a REMOVE m.x", {":a": 1}, MISSING_PATH),
    wrong("list_append within list_append", "SET l = list_append(list_append(l, :a), :b)", {":a": [1], ":b": [2]}, LIST_APPEND, before={"l": []}),
    wrong("list_append as the second operand of list_append", "SET l = list_append(:a, list_append(l, :b))", {":a": [1], ":b": [2]}, LIST_APPEND, before={"l": []}),
    wrong("a sum with more digits than a number has", "SET n = n + :v", {":v": 1}, OVERFLOW, before={"n": 10**50}),
    wrong("a difference with more digits than a number has", "SET n = :v - n", {":v": 10**50}, OVERFLOW, before={"n": 1}),
    wrong("ADD with more digits than a number has", "ADD n :v", {":v": 1}, OVERFLOW, before={"n": 10**50}),
    wrong("SET of one attribute twice", "SET a = :a, a = :b", {":a": 1, ":b": 2}, "Two document paths overlap with each other", before={"a": 0}),
    wrong("SET of the key", "SET pk = :v", {":v": "x"}, "Cannot update attribute pk. This attribute is part of the key"),
    wrong("a name without its sign", "SET #s = :v", {":v": 1}, 'ExpressionAttributeNames contains invalid key: Syntax error; key: "s"', ExpressionAttributeNames={"s": "status"}),
    wrong("a value without its sign", "SET a = :v", {"v": 1}, 'ExpressionAttributeValues contains invalid key: Syntax error; key: "v"'),
    wrong("names without an expression", None, None, "ExpressionAttributeNames can only be specified when using expressions", ExpressionAttributeNames={"#s": "status"}),
    wrong("a name that no expression uses", "SET #s = :v", {":v": 1}, "Value provided in ExpressionAttributeNames unused in expressions: keys: {#unused}", ExpressionAttributeNames={"#s": "status", "#unused": "x"}),
    wrong("a value that no expression uses", "SET a = :v", {":v": 1, ":unused": 1}, "Value provided in ExpressionAttributeValues unused in expressions: keys: {:unused}"),
    Case("an update of a table that is not there", [
        refused(update("updates-none", {"pk": "x"}, "SET a = :a", {":a": 1}), "ResourceNotFoundException", "Requested resource not found"),
    ]),
]  # fmt: skip
