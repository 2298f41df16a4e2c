"""TransactWriteItems and TransactGetItems."""

import uuid

from .steps import ABSENT, Case, Exactly, condition, done, expressed, index, item, missing, put, refused, stored, table
from .values import typed

H, C, X = "transactions-hash", "transactions-composite", "transactions-indexed"
TABLES = [
    table(H, ["pk"]),
    table(C, ["pk", "sk"]),
    table(X, ["pk", "sk"], LocalSecondaryIndexes=[index("local", "pk", "lk")], GlobalSecondaryIndexes=[index("global", "lk")]),
]
SEED = [put(H, {"pk": f"there-{at}", "n": at, "status": "active"}) for at in range(5)] + [put(C, {"pk": "there", "sk": "1", "n": 1})]
STATUS = {"#s": "status"}
CANCELLED = "TransactionCanceledException"
FAILED = {"Code": "ConditionalCheckFailed", "Message": "The conditional request failed"}
NONE = {"Code": "None"}


def tput(table, attributes, **more):
    return {"Put": {"TableName": table, "Item": item(attributes), **more}}


def tupdate(table, key, expression, values=None, **more):
    return {"Update": {"TableName": table, "Key": item(key), **expressed("UpdateExpression", expression, values), **more}}


def tdelete(table, key, **more):
    return {"Delete": {"TableName": table, "Key": item(key), **more}}


def tcheck(table, key, expression, values=None, names=None, **more):
    return {"ConditionCheck": {"TableName": table, "Key": item(key), **condition(expression, values, names), **more}}


def tget(table, key, **more):
    return {"Get": {"TableName": table, "Key": item(key), **more}}


def write(*actions, **more):
    return "TransactWriteItems", {"TransactItems": list(actions), **more}


def read(*gets, **more):
    return "TransactGetItems", {"TransactItems": list(gets), **more}


def cancelled(request, *reasons):
    codes = ", ".join(reason["Code"] for reason in reasons)
    return refused(request, CANCELLED, f"Transaction cancelled, please refer cancellation reasons for specific reasons [{codes}]", wanted={"CancellationReasons": list(reasons)})


def invalid(claim, action, *texts):
    """An action that is tried and found invalid cancels its transaction."""
    return Case(claim, [
        cancelled(write(action), {"Code": "ValidationError"}),
        *(refused(write(action), CANCELLED, wanted={"CancellationReasons": [{"Message": text}]}) for text in texts),
    ])  # fmt: skip


def keyed(kind, key):
    """An action of this kind on an item by this key."""
    action = {"TableName": H, "Key": {"pk": typed(key)}}
    if kind == "Update":
        action |= expressed("UpdateExpression", "SET a = :a", {":a": 1})
    if kind == "ConditionCheck":
        action["ConditionExpression"] = "attribute_not_exists(pk)"
    return {kind: action}


TOKENS = [str(uuid.uuid4()) for _ in range(3)]
SCHEMA = "The provided key element does not match the schema"
INDEXED = {"pk": "i", "sk": "1"}

CASES = [
    Case("puts, updates and deletes happen together", [
        done(put(H, {"pk": "all-2", "n": 1})),
        done(put(H, {"pk": "all-3", "n": 1})),
        done(write(tput(H, {"pk": "all-1", "n": 1}), tupdate(H, {"pk": "all-2"}, "SET n = :n", {":n": 2}), tdelete(H, {"pk": "all-3"}),
                   tcheck(H, {"pk": "there-0"}, "#s = :s", {":s": "active"}, STATUS)), Exactly({})),
        stored(H, {"pk": "all-1"}, {"n": 1}),
        stored(H, {"pk": "all-2"}, {"n": 2}),
        missing(H, {"pk": "all-3"}),
    ]),
    Case("a transaction spans tables", [
        done(write(tput(H, {"pk": "span", "n": 1}), tput(C, {"pk": "span", "sk": "1", "n": 2}))),
        stored(H, {"pk": "span"}, {"n": 1}),
        stored(C, {"pk": "span", "sk": "1"}, {"n": 2}),
    ]),
    Case("several of a kind", [
        done(write(*(tput(H, {"pk": f"many-{at}", "n": at}) for at in range(3)))),
        done(write(*(tupdate(H, {"pk": f"many-{at}"}, "SET n = n + :n", {":n": 10}) for at in range(3)))),
        stored(H, {"pk": "many-2"}, {"n": 12}),
        done(write(*(tdelete(H, {"pk": f"many-{at}"}) for at in range(3)))),
        missing(H, {"pk": "many-0"}),
    ]),
    Case("an update that only removes creates no item", [
        done(write(tupdate(H, {"pk": "ghost"}, "REMOVE a, m.x"), tput(H, {"pk": "beside-ghost"})), Exactly({})),
        missing(H, {"pk": "ghost"}),
        stored(H, {"pk": "beside-ghost"}, {}),
    ]),
    Case("a set with an empty text is put", [
        done(write(tput(H, {"pk": "empty", "tags": {"", "a"}}))),
        stored(H, {"pk": "empty"}, {"tags": {"", "a"}}),
    ]),
    Case("one failed check cancels all, and the reasons are told in order", [
        cancelled(write(tcheck(H, {"pk": "there-0"}, "#s = :s", {":s": "gone"}, STATUS), tput(H, {"pk": "never"})), FAILED, NONE),
        cancelled(write(tput(H, {"pk": "never"}), tcheck(H, {"pk": "there-0"}, "#s = :s", {":s": "gone"}, STATUS)), NONE, FAILED),
        missing(H, {"pk": "never"}),
    ]),
    Case("every kind of action takes a condition", [
        cancelled(write(tput(H, {"pk": "there-1"}, **condition("attribute_not_exists(pk)"))), FAILED),
        cancelled(write(tupdate(H, {"pk": "there-1"}, "SET n = :n", {":n": 1, ":min": 10}, ConditionExpression="n > :min")), FAILED),
        cancelled(write(tdelete(H, {"pk": "there-1"}, **condition("n = :n", {":n": 0}))), FAILED),
        stored(H, {"pk": "there-1"}, {"n": 1, "status": "active"}),
    ]),
    Case("conditions take parentheses that group", [
        done(write(tput(H, {"pk": "grouped"}, **condition("(attribute_not_exists(pk)) AND (attribute_not_exists(#s))", None, STATUS)))),
        done(write(tupdate(H, {"pk": "there-2"}, "SET x = :x", {":x": 1, ":s": "active", ":n": 1}, ConditionExpression="(#s = :s AND n > :n)", ExpressionAttributeNames=STATUS))),
        done(write(tcheck(H, {"pk": "there-2"}, "(attribute_exists(pk)) AND (x = :x)", {":x": 1}), tdelete(H, {"pk": "grouped"}, **condition("(attribute_exists(pk) AND (attribute_not_exists(x)))")))),
        missing(H, {"pk": "grouped"}),
        cancelled(write(tupdate(H, {"pk": "there-2"}, "SET x = :x", {":x": 2, ":s": "gone"}, ConditionExpression="(#s = :s) AND (attribute_exists(pk))", ExpressionAttributeNames=STATUS)), FAILED),
    ]),
    Case("an update in a transaction makes an item only where its condition allows it", [
        cancelled(write(tupdate(H, {"pk": "ghost"}, "ADD n :n", {":n": 1}, ConditionExpression="attribute_exists(pk)")), FAILED),
        cancelled(write(tupdate(H, {"pk": "ghost"}, "SET n = :n", {":n": 1, ":min": 0}, ConditionExpression="score > :min")), FAILED),
        cancelled(write(tupdate(H, {"pk": "ghost"}, "SET n = :n", {":n": 1, ":s": "x"}, ConditionExpression="attribute_exists(pk) AND #s = :s", ExpressionAttributeNames=STATUS)), FAILED),
        cancelled(write(tupdate(H, {"pk": "there-3"}, "SET n = :n", {":n": 100}), tupdate(H, {"pk": "ghost"}, "SET n = :n", {":n": 1}, ConditionExpression="attribute_exists(pk)")), NONE, FAILED),
        missing(H, {"pk": "ghost"}),
        stored(H, {"pk": "there-3"}, {"n": 3, "status": "active"}),
        done(write(tupdate(H, {"pk": "upsert"}, "SET n = :n", {":n": 1}, ConditionExpression="attribute_not_exists(pk)"))),
        stored(H, {"pk": "upsert"}, {"n": 1}),
    ]),
    Case("a failed condition shows the item where that is asked for", [
        cancelled(write(tput(H, {"pk": "there-4"}, **condition("attribute_not_exists(pk)"), ReturnValuesOnConditionCheckFailure="ALL_OLD")), {**FAILED, "Item": Exactly(item(pk="there-4", n=4, status="active"))}),
        cancelled(write(tcheck(H, {"pk": "there-4"}, "n = :n", {":n": 0}, ReturnValuesOnConditionCheckFailure="ALL_OLD")), {**FAILED, "Item": item(n=4)}),
        cancelled(write(tcheck(H, {"pk": "there-4"}, "n = :n", {":n": 0})), {**FAILED, "Item": ABSENT}),
    ]),
    Case("a transaction with a token happens once", [
        done(put(H, {"pk": "once", "n": 0})),
        done(write(tupdate(H, {"pk": "once"}, "ADD n :n", {":n": 1}), ClientRequestToken=TOKENS[0])),
        done(write(tupdate(H, {"pk": "once"}, "ADD n :n", {":n": 1}), ClientRequestToken=TOKENS[0])),
        stored(H, {"pk": "once"}, {"n": 1}),
        refused(write(tupdate(H, {"pk": "once"}, "ADD n :n", {":n": 5}), ClientRequestToken=TOKENS[0]), "IdempotentParameterMismatchException"),
        stored(H, {"pk": "once"}, {"n": 1}),
    ]),
    Case("a transaction does not write one item twice", [
        refused(write(tput(H, {"pk": "twice"}), tput(H, {"pk": "twice", "n": 1})), "ValidationException", "Transaction request cannot include multiple operations on one item"),
        refused(write(tcheck(H, {"pk": "twice"}, "attribute_not_exists(pk)"), tput(H, {"pk": "twice"})), "ValidationException", "multiple operations on one item"),
        refused(read(tget(H, {"pk": "there-0"}), tget(H, {"pk": "there-0"})), "ValidationException", "multiple operations on one item"),
        missing(H, {"pk": "twice"}),
    ]),
    Case("a transaction has something to do", [
        refused(write(), "ValidationException", "transactItems"),
        refused(read(), "ValidationException", "transactItems"),
    ]),
    Case("a transaction on a table that is not there", [
        refused(write(tput("transactions-none", {"pk": "x"})), "ResourceNotFoundException"),
        refused(read(tget("transactions-none", {"pk": "x"})), "ResourceNotFoundException"),
    ]),
    *(invalid(f"a key to put of a wrong type cancels: {value!r}", tput(H, {"pk": value})) for value in (5, ["x"])),
    *(invalid(f"a key to {kind} by of a wrong type cancels: {value!r}", keyed(kind, value), SCHEMA)
      for kind in ("Update", "Delete", "ConditionCheck") for value in (5, ["x"])),
    *(invalid(f"a key of an index to put of a wrong type cancels: {value!r}", tput(X, {**INDEXED, "lk": value})) for value in (5, ["x"])),
    *(invalid(f"a key of an index to set of a wrong type cancels: {value!r}", tupdate(X, INDEXED, "SET lk = :v", {":v": value})) for value in (5, ["x"])),
    Case("an empty key is refused before anything is tried", [
        refused(write(tput(H, {"pk": ""})), "ValidationException", "empty string value"),
        *(refused(write(keyed(kind, "")), "ValidationException", "empty string value") for kind in ("Update", "Delete", "ConditionCheck")),
        refused(write(tput(X, {**INDEXED, "lk": ""})), "ValidationException", "secondary index key"),
        refused(write(tupdate(X, INDEXED, "SET lk = :v", {":v": ""})), "ValidationException", "secondary index key"),
        missing(X, INDEXED),
    ]),
    Case("reads answer in the order of their requests, and leave out what is not there", [
        done(read(tget(H, {"pk": "there-3"}), tget(H, {"pk": "none"}), tget(C, {"pk": "there", "sk": "1"})),
             {"Responses": [{"Item": item(n=3)}, Exactly({}), {"Item": item(n=1)}]}),
        done(read(tget(H, {"pk": "there-0"})), {"Responses": [{"Item": item(n=0)}]}),
    ]),
    Case("reads cost two units each, found or not", [
        done(read(tget(H, {"pk": "there-0"}), tget(H, {"pk": "none"}), ReturnConsumedCapacity="TOTAL"), {"ConsumedCapacity": [{"TableName": H, "CapacityUnits": 4, "ReadCapacityUnits": 4, "WriteCapacityUnits": ABSENT, "Table": ABSENT}]}),
        done(read(tget(H, {"pk": "there-0"}), ReturnConsumedCapacity="INDEXES"), {"ConsumedCapacity": [{"Table": Exactly({"CapacityUnits": 2, "ReadCapacityUnits": 2})}]}),
    ]),
    Case("writes cost two units for each kilobyte, with a condition or without", [
        done(write(tput(H, {"pk": "cost-1"}), tput(H, {"pk": "cost-2"}), ReturnConsumedCapacity="TOTAL"), {"ConsumedCapacity": [{"CapacityUnits": 4, "WriteCapacityUnits": 4, "ReadCapacityUnits": ABSENT}]}),
        done(write(tput(H, {"pk": "cost-3"}, **condition("attribute_not_exists(pk)")), ReturnConsumedCapacity="TOTAL"), {"ConsumedCapacity": [{"CapacityUnits": 2}]}),
        refused(write(tput(H, {"pk": "cost-4"}, **condition("attribute_exists(pk)")), ReturnConsumedCapacity="TOTAL"), CANCELLED, wanted={"ConsumedCapacity": ABSENT}),
    ]),
    Case("a check costs as much as a write", [
        done(write(tput(H, {"pk": "cost-5"}), tcheck(C, {"pk": "there", "sk": "1"}, "attribute_exists(pk)"), ReturnConsumedCapacity="INDEXES"),
             {"ConsumedCapacity": [{"CapacityUnits": 2, "WriteCapacityUnits": 2, "Table": Exactly({"CapacityUnits": 2, "WriteCapacityUnits": 2})}] * 2}),
    ]),
    Case("a transaction that is asked for again costs a read", [
        done(write(tput(H, {"pk": "cost-6", "big": "x" * 1536}), ClientRequestToken=TOKENS[1], ReturnConsumedCapacity="INDEXES"), {"ConsumedCapacity": [{"WriteCapacityUnits": 4, "ReadCapacityUnits": ABSENT}]}),
        done(write(tput(H, {"pk": "cost-6", "big": "x" * 1536}), ClientRequestToken=TOKENS[1], ReturnConsumedCapacity="INDEXES"), {"ConsumedCapacity": [{"ReadCapacityUnits": 2, "WriteCapacityUnits": ABSENT}]}),
    ]),
]  # fmt: skip
