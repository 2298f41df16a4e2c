"""BatchExecuteStatement: several PartiQL statements that succeed or fail each for itself."""

from .steps import ABSENT, Case, containing, done, index, item, missing, put, refused, stored, table
from .values import typed

H, X = "batched", "batched-indexed"
TABLES = [table(H, ["pk"]), table(X, ["pk", "sk"], GlobalSecondaryIndexes=[index("global", "gk")])]
SEED = [*(put(H, {"pk": f"there-{at}", "val": at}) for at in range(6)), put(X, {"pk": "p", "sk": "1", "gk": "g"})]
UNKEYED = "Select statements within BatchExecuteStatement must specify the primary key in the where clause."


def batch(*given, **more):
    return "BatchExecuteStatement", {"Statements": [{"Statement": each} if isinstance(each, str) else each for each in given], **more}


def read(pk, **more):
    return {"Statement": f'SELECT * FROM "{H}" WHERE pk = ?', "Parameters": [typed(pk)], **more}


def failed(code, message=None, table=ABSENT):
    error = {"Code": code} if message is None else {"Code": code, "Message": message}
    return {"Error": error, "TableName": table, "Item": ABSENT}


def costs(units, *given):
    return done(batch(*given, ReturnConsumedCapacity="TOTAL"), {"ConsumedCapacity": [{"TableName": H, "CapacityUnits": units}]})


def guarded(pk, **more):
    return {"Statement": f"UPDATE \"{H}\" SET touched = 'yes' WHERE pk = ? AND val = ?", "Parameters": [typed(pk), typed("wrong")], **more}


CASES = [
    Case("reads in a batch answer in order", [
        done(batch(read("there-1"), read("there-0")), {"Responses": [{"Item": item(val=1), "TableName": H}, {"Item": item(val=0)}]}),
    ]),
    Case("writes in a batch are done", [
        done(batch(f"INSERT INTO \"{H}\" VALUE {{'pk': 'new', 'val': 1}}", f"UPDATE \"{H}\" SET val = 20 WHERE pk = 'there-2'", f"DELETE FROM \"{H}\" WHERE pk = 'there-3'"),
             {"Responses": [{"TableName": H, "Error": ABSENT}] * 3}),
        stored(H, {"pk": "new"}, {"val": 1}),
        stored(H, {"pk": "there-2"}, {"val": 20}),
        missing(H, {"pk": "there-3"}),
    ]),
    Case("a statement on no table fails alone", [
        done(batch(read("there-0"), "SELECT * FROM \"batched-none\" WHERE pk = 'x'"), {"Responses": [{"Item": item(val=0), "Error": ABSENT}, {"Error": {"Code": "ResourceNotFound"}, "Item": ABSENT}]}),
    ]),
    Case("an invalid statement fails alone", [
        done(batch(f"SLECT * FROM \"{H}\" WHERE pk = 'there-0'", read("there-0")),
             {"Responses": [failed("ValidationError", "Statement wasn't well formed, can't be processed: Expected data manipulation"), {"Item": item(val=0)}]}),
    ]),
    Case("a batch has something to do", [refused(batch(), "ValidationException", "statements")]),
    Case("each read is consistent or not", [
        costs(0.5, read("there-0")),
        costs(1, read("there-0", ConsistentRead=True)),
        costs(0.5, read("there-0", ConsistentRead=False)),
        costs(1.5, read("there-0", ConsistentRead=True), read("there-1")),
    ]),
    Case("a read in a batch names the table's key, and no index", [
        done(batch(f'SELECT * FROM "{H}" WHERE val = 1', read("there-0")), {"Responses": [failed("ValidationError", UNKEYED), {"Item": item(val=0)}]}),
        done(batch(f"SELECT * FROM \"{X}\".\"global\" WHERE gk = 'g'"), {"Responses": [failed("ValidationError", UNKEYED)]}),
        done(batch(f"SELECT * FROM \"{X}\".\"global\" WHERE pk = 'p' AND sk = '1' AND gk = 'g'"), {"Responses": [failed("ValidationError", UNKEYED)]}),
        done(batch(f"SELECT * FROM \"{X}\" WHERE pk = 'p'"), {"Responses": [failed("ValidationError", UNKEYED)]}),
    ]),
    Case("a statement that was tried and failed names its table", [
        done(batch(guarded("there-4")), {"Responses": [failed("ConditionalCheckFailed", containing("conditional request failed"), H)]}),
        done(batch({"Statement": f"INSERT INTO \"{H}\" VALUE {{'pk': ?}}", "Parameters": [typed("there-4")]}), {"Responses": [failed("DuplicateItem", None, H)]}),
        stored(H, {"pk": "there-4"}, {"val": 4}),
    ]),
    Case("a failed condition in a batch shows no item, whatever is asked for", [
        *(done(batch(guarded("there-5", **more)), {"Responses": [failed("ConditionalCheckFailed", None, H)]})
          for more in ({}, {"ReturnValuesOnConditionCheckFailure": "NONE"}, {"ReturnValuesOnConditionCheckFailure": "ALL_OLD"})),
    ]),
]  # fmt: skip
