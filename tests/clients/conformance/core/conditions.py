"""Conditions on puts, updates and deletes."""

from .steps import ABSENT, Case, Exactly, condition, delete, done, get, item, missing, put, refused, stored, table, update

H = "conditions-hash"
TABLES = [table(H, ["pk"])]
OLD = {"name": "alice", "count": 5, "status": "active", "m": {"in": "deep"}, "tags": {"a", "b"}}
SEED = [put(H, {"pk": f"{kind}-{at}", **OLD}) for kind in ("holds", "fails") for at in range(8)]
FAILED = "ConditionalCheckFailedException"
STATUS = {"#s": "status", "#n": "name", "#c": "count"}

# Conditions that hold for `OLD`, with their values, and others that do not. Each is tried on all three kinds of writes.
HOLD = [
    ("attribute_exists(#s)", None, ["#s"]),
    ("attribute_exists(m.#i)", None, ["#i"]),
    ("attribute_not_exists(nothing)", None, []),
    ("attribute_not_exists(m.nothing)", None, []),
    ("NOT attribute_exists(nothing)", None, []),
    ("attribute_type(#s, :t)", {":t": "S"}, ["#s"]),
    ("attribute_type(tags, :t)", {":t": "SS"}, []),
    ("contains(#n, :v)", {":v": "lic"}, ["#n"]),
    ("contains(tags, :v)", {":v": "b"}, []),
    ("begins_with(#n, :v)", {":v": "al"}, ["#n"]),
    ("size(#n) < :v", {":v": 10}, ["#n"]),
    ("#c > :v", {":v": 3}, ["#c"]),
    ("#c BETWEEN :lo AND :hi", {":lo": 5, ":hi": 6}, ["#c"]),
    ("#s IN (:a, :b)", {":a": "gone", ":b": "active"}, ["#s"]),
    ("m.#i = :v", {":v": "deep"}, ["#i"]),
    ("#n = :n AND #c = :c", {":n": "alice", ":c": 5}, ["#n", "#c"]),
    ("#n = :n OR #c = :c", {":n": "nobody", ":c": 5}, ["#n", "#c"]),
    ("#s <> :v", {":v": "gone"}, ["#s"]),
    ("nothing <> :v", {":v": "x"}, []),
    ("nothing <> :v OR later < :v", {":v": "x"}, []),
    ("(attribute_exists(pk)) AND (#s = :v)", {":v": "active"}, ["#s"]),
    ("(attribute_exists(pk) AND #s = :v)", {":v": "active"}, ["#s"]),
    ("(attribute_exists(pk) AND (#s = :v))", {":v": "active"}, ["#s"]),
    ("(NOT (#s = :v))", {":v": "gone"}, ["#s"]),
]
FAIL = [
    ("attribute_not_exists(pk)", None, []),
    ("attribute_exists(nothing)", None, []),
    ("#c > :v", {":v": 100}, ["#c"]),
    ("#s = :v", {":v": "gone"}, ["#s"]),
    ("nothing = :v", {":v": "x"}, []),
    ("nothing < :v", {":v": "x"}, []),
    ("attribute_exists(pk) AND #s = :v", {":v": "gone"}, ["#s"]),
    ("(attribute_exists(pk)) AND (#s = :v)", {":v": "gone"}, ["#s"]),
    ("size(nothing) = :v", {":v": 0}, []),
]
# Conditions that no write is tried with.
WRONG = [
    ("((attribute_not_exists(pk)))", None, "The expression has redundant parentheses"),
    ("contains(#n, #n)", None, "The first operand must be distinct from the remaining operands"),
    ("#n BETWEEN :hi AND :lo", {":lo": "a", ":hi": "b"}, "The BETWEEN operator requires upper bound to be greater than or equal to lower bound"),
    ("begins_with(#n, :v)", {":v": 5}, "Incorrect operand type for operator or function"),
]


def given(expression, values, names):
    all_names = {**STATUS, "#i": "in"}
    return condition(expression, values, {name: all_names[name] for name in names})


def holding(expression, values, names):
    """All three kinds of writes on an item that the condition holds for."""
    key = {"pk": "turn"}
    more = given(expression, values, names)
    updated = {**more, "ExpressionAttributeValues": {**more.get("ExpressionAttributeValues", {}), **item({":new": 1})}}
    return Case(f"holds: {expression}", [
        done(put(H, {**key, **OLD})),
        done(put(H, {**key, **OLD, "put": 1}, **more)),
        stored(H, key, {**OLD, "put": 1}),
        done(update(H, key, "SET upd = :new", None, **updated)),
        stored(H, key, {**OLD, "put": 1, "upd": 1}),
        done(delete(H, key, **more)),
        missing(H, key),
    ])  # fmt: skip


def failing(expression, values, names):
    """All three kinds of writes on an item that the condition does not hold for: it stays as it is."""
    key = {"pk": "fails-0"}
    more = given(expression, values, names)
    updated = {**more, "ExpressionAttributeValues": {**more.get("ExpressionAttributeValues", {}), **item({":new": 1})}}
    return Case(f"fails: {expression}", [
        refused(put(H, {**key, "other": 1}, **more), FAILED, whole="The conditional request failed"),
        refused(update(H, key, "SET upd = :new", None, **updated), FAILED, whole="The conditional request failed"),
        refused(delete(H, key, **more), FAILED, whole="The conditional request failed"),
        stored(H, key, OLD),
    ])  # fmt: skip


def wrong(expression, values, text):
    names = {"#n": "name"} if "#n" in expression else None
    more = condition(expression, values, names)
    text = f"Invalid ConditionExpression: {text}"
    return Case(f"wrong: {expression}", [
        refused(put(H, {"pk": "wrong"}, **more), "ValidationException", text),
        refused(delete(H, {"pk": "wrong"}, **more), "ValidationException", text),
        missing(H, {"pk": "wrong"}),
    ])  # fmt: skip


def never(claim, expression, values, names=None):
    """An update that its condition keeps from making an item."""
    return Case(claim, [
        refused(update(H, {"pk": "ghost"}, "ADD hits :one", {":one": 1, **values}, ConditionExpression=expression,
                       **({"ExpressionAttributeNames": names} if names else {})), FAILED),
        missing(H, {"pk": "ghost"}),
    ])  # fmt: skip


CASES = [
    *(holding(*each) for each in HOLD),
    *(failing(*each) for each in FAIL),
    *(wrong(*each) for each in WRONG),
    Case("parentheses nest as deep as the limit of operators allows", [
        done(put(H, {"pk": "nested", "a": 1, "b": 2})),
        done(update(H, {"pk": "nested"}, "SET z = :v", {":v": 1}, ConditionExpression="a < b " + "or (a < b " * 149 + ")" * 149)),
        done(update(H, {"pk": "nested"}, "SET z = :v", {":v": 1}, ConditionExpression="NOT (" * 298 + "a < b" + ")" * 298)),
        refused(update(H, {"pk": "nested"}, "SET z = :v", {":v": 1}, ConditionExpression="a < b " + "or (a < b " * 150 + ")" * 150),
                "ValidationException", "Invalid ConditionExpression: The expression contains too many operators; operator count: 301"),
    ]),
    Case("a put makes an item only where there is none", [
        done(put(H, {"pk": "first", "n": 1}, **condition("attribute_not_exists(pk)"))),
        refused(put(H, {"pk": "first", "n": 2}, **condition("attribute_not_exists(pk)")), FAILED),
        stored(H, {"pk": "first"}, {"n": 1}),
    ]),
    Case("a put makes an item where an attribute of none is not equal", [
        done(put(H, {"pk": "unequal"}, **condition("#s <> :v OR later < :v", {":v": "x"}, {"#s": "status"}))),
        stored(H, {"pk": "unequal"}, {}),
    ]),
    never("an update whose condition wants an item makes none", "attribute_exists(pk)", {}),
    never("an update whose condition compares makes no item", "score > :v", {":v": 0}),
    never("an update whose condition wants both makes no item", "attribute_exists(pk) AND #s = :v", {":v": "a"}, {"#s": "status"}),
    Case("an update makes an item where its condition wants none", [
        done(update(H, {"pk": "upsert"}, "SET #s = :v", {":v": "made"}, ReturnValues="ALL_NEW", ConditionExpression="attribute_not_exists(pk)", ExpressionAttributeNames={"#s": "status"}),
             {"Attributes": Exactly(item(pk="upsert", status="made"))}),
    ]),
    Case("a failed condition shows the item where that is asked for", [
        refused(put(H, {"pk": "fails-1"}, **condition("attribute_not_exists(pk)"), ReturnValuesOnConditionCheckFailure="ALL_OLD"),
                FAILED, wanted={"Item": Exactly(item(pk="fails-1", **OLD))}),
        refused(update(H, {"pk": "fails-1"}, "SET x = :v", {":v": 1}, ConditionExpression="attribute_not_exists(pk)", ReturnValuesOnConditionCheckFailure="ALL_OLD"),
                FAILED, wanted={"Item": Exactly(item(pk="fails-1", **OLD))}),
        refused(delete(H, {"pk": "fails-1"}, **condition("attribute_not_exists(pk)"), ReturnValuesOnConditionCheckFailure="ALL_OLD"),
                FAILED, wanted={"Item": Exactly(item(pk="fails-1", **OLD))}),
        refused(put(H, {"pk": "fails-1"}, **condition("attribute_not_exists(pk)")), FAILED, wanted={"Item": ABSENT}),
        done(get(H, {"pk": "fails-1"}), {"Item": item(count=5)}),
    ]),
]  # fmt: skip
