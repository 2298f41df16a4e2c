"""PartiQL statements one at a time: reading, writing and the forms that statements may take."""

import uuid

from .steps import Case, Exactly, column, done, exact_items, execute, missing, positive, put, refused, rows, stored, table

H, C, N, NS = "statements-hash", "statements-composite", "statements-number", "statements-number-sorted"
TABLES = [table(H, ["pk"]), table(C, ["pk", "sk"]), table(N, ["pk"], {"pk": "N"}), table(NS, ["pk", "sk"], {"sk": "N"})]
SEED = [
    put(H, {"pk": "a", "age": 30, "kind": "x", "m": {"in": "deep", "other": 1}, "extra": 1}),
    put(H, {"pk": "b", "age": 20}),
    put(H, {"pk": "c", "age": 10}),
    *(put(C, {"pk": "p", "sk": name}) for name in ("first-1", "first-2", "second")),
    *(put(C, {"pk": "three", "sk": str(at)}) for at in (1, 2, 3)),
    *(put(NS, {"pk": "n", "sk": at}) for at in (1, 2, 3)),
    put(N, {"pk": 7310000, "tag": "x"}),
    ("PutItem", {"TableName": N, "Item": {"pk": {"N": "7.3"}}}),
    ("PutItem", {"TableName": N, "Item": {"pk": {"N": "-7.3"}}}),
    *(put(H, {"pk": f"write-{at}", "name": "alpha", "n": 5}) for at in range(12)),
]
FAILED = ("ConditionalCheckFailedException",)


def selects(where, *wanted, table=H, what="*", name="pk", more=()):
    return done(execute(f'SELECT {what} FROM "{table}" WHERE {where}', *more), {"Items": column(name, *wanted)})


def wrong(claim, statement, *texts, kind="ValidationException", unchanged=()):
    return Case(claim, [refused(execute(statement), kind, *texts), *unchanged])


def transaction(*given, **more):
    return "ExecuteTransaction", {"TransactStatements": [{"Statement": statement} for statement in given], **more}


def batch(*given, **more):
    return "BatchExecuteStatement", {"Statements": [{"Statement": statement} for statement in given], **more}


TOKEN = str(uuid.uuid4())
OLD = {"name": "alpha", "n": 5}

CASES = [
    Case("a SELECT by key, by a comparison beside it, and of nobody", [
        selects("pk = 'a'", "a"),
        selects("pk = 'a' AND age > 20", "a"),
        selects("pk = 'a' AND age > 40"),
        selects("pk = 'nobody'"),
        selects("pk = ?", "a", more=["a"]),
    ]),
    Case("a SELECT shows attributes, and a path under its last name", [
        done(execute(f"SELECT pk, m FROM \"{H}\" WHERE pk = 'a'"), {"Items": exact_items({"pk": "a", "m": {"in": "deep", "other": 1}})}),
        done(execute(f"SELECT m.other FROM \"{H}\" WHERE pk = 'a'"), {"Items": exact_items({"other": 1})}),
        done(execute(f"SELECT m.\"in\" FROM \"{H}\" WHERE pk = 'a'"), {"Items": exact_items({"in": "deep"})}),
    ]),
    Case("a SELECT with begins_with", [selects("pk = 'p' AND begins_with(\"sk\", 'first-')", "first-1", "first-2", table=C, name="sk")]),
    Case("a SELECT with conditions turned around", [
        selects("pk = 'a' AND NOT begins_with(kind, 'y')", "a"),
        selects("pk = 'a' AND NOT begins_with(kind, 'x')"),
        selects("pk = 'a' AND kind IS NOT MISSING", "a"),
        selects("pk = 'a' AND kind IS MISSING"),
        selects("pk = 'b' AND kind IS MISSING", "b"),
    ]),
    Case("a SELECT tells what it cost, where that is asked for", [
        done(execute(f"SELECT * FROM \"{H}\" WHERE pk = 'a'", ReturnConsumedCapacity="TOTAL"), {"ConsumedCapacity": {"TableName": H, "CapacityUnits": 0.5}}),
        done(execute(f"INSERT INTO \"{H}\" VALUE {{'pk': 'cost'}}", ReturnConsumedCapacity="TOTAL"), {"ConsumedCapacity": {"CapacityUnits": positive}}),
    ]),
    Case("ORDER BY the sort key, both ways", [
        selects("pk = 'n' ORDER BY sk DESC", 3, 2, 1, table=NS, name="sk"),
        selects("pk = 'n' ORDER BY sk ASC", 1, 2, 3, table=NS, name="sk"),
    ]),
    Case("numbers are written in every way", [
        *(selects(f"pk = {literal}", 7310000, table=N) for literal in ("7310000", "7.31e6", "7.31E6", "7.31e+6", "731e4", "73100000e-1")),
        done(execute(f'SELECT * FROM "{N}" WHERE pk = .73e1'), {"Items": [{"pk": {"N": "7.3"}}]}),
        done(execute(f'SELECT * FROM "{N}" WHERE pk = -.73e1'), {"Items": [{"pk": {"N": "-7.3"}}]}),
        done(execute(f"INSERT INTO \"{N}\" VALUE {{'pk': 7.32e6}}")),
        stored(N, {"pk": 7320000}, {}),
        refused(execute(f'SELECT * FROM "{N}" WHERE pk = 1e99999999999'), "ValidationException"),
    ]),
    Case("comments are no part of a statement", [
        done(execute(f"SELECT * FROM \"{H}\" WHERE pk = 'a' -- a note"), {"Items": column("pk", "a")}),
        done(execute(f"SELECT * FROM \"{H}\" -- a note\nWHERE pk = 'b'"), {"Items": column("pk", "b")}),
        done(execute(f"-- a note\nSELECT * FROM \"{H}\" WHERE pk = 'a'"), {"Items": column("pk", "a")}),
        done(execute(f"SELECT * FROM \"{H}\" /* a note */ WHERE pk = 'c' /* another */"), {"Items": column("pk", "c")}),
        refused(execute(f"SELECT * FROM \"{H}\" WHERE pk = 'a' # a note"), "ValidationException"),
    ]),
    wrong("an invalid statement", f'SELECTT * FROMM "{H}"', "Statement wasn't well formed, can't be processed"),
    wrong("a table that is not there", "SELECT * FROM \"statements-none\" WHERE pk = 'x'", kind="ResourceNotFoundException"),
    wrong("a SELECT with an alias", f"SELECT * FROM \"{H}\" t WHERE pk = 'a'", "Aliasing is not supported"),
    wrong("a DELETE with an alias", f"DELETE FROM \"{H}\" t WHERE pk = 'write-0'", unchanged=[stored(H, {"pk": "write-0"}, OLD)]),
    wrong("a DELETE with an order", f"DELETE FROM \"{H}\" WHERE pk = 'write-0' ORDER BY pk", unchanged=[stored(H, {"pk": "write-0"}, OLD)]),
    wrong("a word too many", f"INSERT INTO \"{N}\" VALUE {{'pk': 7330000}} foo", unchanged=[missing(N, {"pk": 7330000})]),
    wrong("a write without a key", f"DELETE FROM \"{H}\" WHERE \"name\" = 'alpha'", "Where clause does not contain a mandatory equality on all key attributes"),
    Case("an INSERT writes what is not there yet", [
        done(execute(f"INSERT INTO \"{H}\" VALUE {{'pk': 'insert-1', 'n': 1}}"), {"Items": []}),
        stored(H, {"pk": "insert-1"}, {"n": 1}),
        refused(execute(f"INSERT INTO \"{H}\" VALUE {{'pk': 'insert-1', 'n': 2}}"), "DuplicateItemException"),
        stored(H, {"pk": "insert-1"}, {"n": 1}),
        done(execute(f"DELETE FROM \"{H}\" WHERE pk = 'insert-1'"), {"Items": []}),
        done(execute(f"INSERT INTO \"{H}\" VALUE {{'pk': ?, 'n': ?}}", "insert-1", 3)),
        stored(H, {"pk": "insert-1"}, {"n": 3}),
    ]),
    Case("an UPDATE sets and removes", [
        done(execute(f"UPDATE \"{H}\" SET n = 6 WHERE pk = 'write-1'"), {"Items": []}),
        stored(H, {"pk": "write-1"}, {"name": "alpha", "n": 6}),
        done(execute(f"UPDATE \"{H}\" REMOVE n WHERE pk = 'write-1'")),
        stored(H, {"pk": "write-1"}, {"name": "alpha"}),
    ]),
    Case("an UPDATE begins with FROM too", [
        done(execute(f"FROM \"{H}\" WHERE pk = 'write-2' SET n = 1")),
        stored(H, {"pk": "write-2"}, {"name": "alpha", "n": 1}),
        done(execute(f"from \"{H}\" where pk = ? set n = ?", "write-2", 7)),
        stored(H, {"pk": "write-2"}, {"name": "alpha", "n": 7}),
        done(execute(f"FROM \"{H}\" WHERE pk = 'write-2' AND n = 7 SET x = 2 REMOVE \"name\"")),
        stored(H, {"pk": "write-2"}, {"n": 7, "x": 2}),
        done(execute(f"FROM \"{H}\" WHERE pk = 'write-2' SET y = 3 RETURNING ALL NEW *"), {"Items": exact_items({"pk": "write-2", "n": 7, "x": 2, "y": 3})}),
        done(execute(f"FROM \"{H}\" WHERE pk = 'write-2' REMOVE y")),
        refused(execute(f"FROM \"{H}\" WHERE pk = 'write-2' AND n = 8 SET x = 5"), *FAILED),
        refused(execute(f"FROM \"{H}\" WHERE pk = 'nobody' SET x = 5"), *FAILED),
        stored(H, {"pk": "write-2"}, {"n": 7, "x": 2}),
        missing(H, {"pk": "nobody"}),
        done(transaction(f"FROM \"{H}\" WHERE pk = 'write-2' SET x = 8")),
        done(batch(f"FROM \"{H}\" WHERE pk = 'write-2' SET y = 9"), {"Responses": [{"TableName": H}]}),
        stored(H, {"pk": "write-2"}, {"n": 7, "x": 8, "y": 9}),
    ]),
    Case("what is asked beside the key is a condition on a write", [
        refused(execute(f"DELETE FROM \"{H}\" WHERE pk = 'write-3' AND \"name\" = 'beta'"), *FAILED),
        refused(execute(f"UPDATE \"{H}\" SET n = 9 WHERE pk = 'write-3' AND \"name\" = 'beta'"), *FAILED),
        refused(execute(f"DELETE FROM \"{H}\" WHERE pk = 'write-3' AND NOT begins_with(\"name\", 'al')"), *FAILED),
        stored(H, {"pk": "write-3"}, OLD),
        done(execute(f"UPDATE \"{H}\" SET n = 9 WHERE pk = 'write-3' AND \"name\" = 'alpha'")),
        stored(H, {"pk": "write-3"}, {"name": "alpha", "n": 9}),
        done(execute(f"DELETE FROM \"{H}\" WHERE pk = 'write-3' AND NOT begins_with(\"name\", 'zz')")),
        missing(H, {"pk": "write-3"}),
    ]),
    Case("a DELETE of nobody does nothing, and an UPDATE of nobody fails", [
        done(execute(f"DELETE FROM \"{H}\" WHERE pk = 'nobody' AND \"name\" = 'x'"), {"Items": []}),
        refused(execute(f"UPDATE \"{H}\" SET n = 1 WHERE pk = 'nobody'"), *FAILED, whole="The conditional request failed"),
        refused(execute(f"UPDATE \"{H}\" REMOVE m.n WHERE pk = 'nobody'"), *FAILED, whole="The conditional request failed"),
        missing(H, {"pk": "nobody"}),
    ]),
    Case("branches of an OR with a sort key turned around are read together", [
        *(done(execute(f"SELECT * FROM \"{C}\" WHERE pk = 'three' AND {left} OR pk = 'three' AND sk = '2'"), {"Items": rows("sk", *wanted)}) for left, wanted in (
            ("NOT sk = '1'", "23"), ("sk <> '1'", "23"), ("NOT begins_with(sk, 'x')", "123"), ("NOT sk IN ['1', '3']", "2"), ("NOT sk > '5'", "123"), ("NOT (sk = '1')", "23"),
        )),
        done(execute(f"SELECT * FROM \"{C}\" WHERE pk = 'three' OR pk = 'three' AND NOT sk = '1'"), {"Items": rows("sk", "1", "2", "3")}),
    ]),
    Case("statements in a transaction happen together", [
        done(transaction(f"INSERT INTO \"{H}\" VALUE {{'pk': 'tx-1', 'n': 1}}", f"UPDATE \"{H}\" SET n = 2 WHERE pk = 'write-4'", f"DELETE FROM \"{H}\" WHERE pk = 'write-5'"), {"Responses": Exactly([])}),
        stored(H, {"pk": "tx-1"}, {"n": 1}),
        stored(H, {"pk": "write-4"}, {"name": "alpha", "n": 2}),
        missing(H, {"pk": "write-5"}),
        refused(transaction(f"INSERT INTO \"{H}\" VALUE {{'pk': 'tx-2'}}", f"INSERT INTO \"{H}\" VALUE {{'pk': 'tx-1'}}"), "TransactionCanceledException", wanted={"CancellationReasons": [{"Code": "None"}, {"Code": "DuplicateItem"}]}),
        missing(H, {"pk": "tx-2"}),
        stored(H, {"pk": "tx-1"}, {"n": 1}),
    ]),
    Case("writes in a transaction answer nothing but what they cost", [
        done(transaction(f"UPDATE \"{H}\" SET n = 3 WHERE pk = 'write-6'", ReturnConsumedCapacity="TOTAL"), {"Responses": Exactly([]), "ConsumedCapacity": [{"TableName": H, "CapacityUnits": 2}]}),
    ]),
    Case("reads in a transaction answer each", [
        done(transaction(f"SELECT * FROM \"{H}\" WHERE pk = 'a'", f"SELECT * FROM \"{H}\" WHERE pk = 'nobody'"), {"Responses": [{"Item": {"pk": {"S": "a"}}}, Exactly({})]}),
    ]),
    Case("a transaction with a token happens once, and costs a read the second time", [
        done(transaction(f"UPDATE \"{H}\" SET n = n + 1 WHERE pk = 'write-7'", ClientRequestToken=TOKEN, ReturnConsumedCapacity="INDEXES"), {"ConsumedCapacity": [{"WriteCapacityUnits": 2}]}),
        done(transaction(f"UPDATE \"{H}\" SET n = n + 1 WHERE pk = 'write-7'", ClientRequestToken=TOKEN, ReturnConsumedCapacity="INDEXES"), {"ConsumedCapacity": [{"ReadCapacityUnits": 2}]}),
        stored(H, {"pk": "write-7"}, {"name": "alpha", "n": 6}),
    ]),
    Case("a transaction returns nothing and has something to do", [
        refused(transaction(f"UPDATE \"{H}\" SET n = 1 WHERE pk = 'write-8' RETURNING ALL NEW *"), "ValidationException", "RETURNING clause is not supported in ExecuteTransaction"),
        stored(H, {"pk": "write-8"}, OLD),
        refused(transaction(), "ValidationException", "transactStatements"),
    ]),
]  # fmt: skip
