"""PartiQL on secondary indexes: what a SELECT reads of them, what it costs, and what is refused."""

from .steps import Case, Exactly, Remembered, Satisfies, column, done, execute, index, item, projection, put, refused, rows, table, zero

X = "on-indexes"
TABLES = [
    table(
        X,
        ["pk", "sk"],
        GlobalSecondaryIndexes=[
            index("gsi-all", "g1"),
            index("gsi-some", "g2", project=projection("INCLUDE", "shown")),
            index("gsi-keys", "g2", project=projection("KEYS_ONLY")),
        ],
        LocalSecondaryIndexes=[
            index("lsi-all", "pk", "l1"),
            index("lsi-keys", "pk", "l2", project=projection("KEYS_ONLY")),
            index("lsi-some", "pk", "l3", project=projection("INCLUDE", "shown")),
        ],
    )
]
SEED = [
    put(X, {"pk": "p", "sk": "s1", "g1": "x", "g2": "y", "l1": "a1", "l2": "b1", "l3": "c1", "shown": "1", "hidden": "h1"}),
    put(X, {"pk": "p", "sk": "s2", "g1": "z", "g2": "y", "l1": "a2", "l2": "b2", "l3": "c2", "shown": "2", "hidden": "h2"}),
    put(X, {"pk": "p", "sk": "s3", "hidden": "h3"}),
    put(X, {"pk": "p", "sk": "s4", "g1": "x", "g2": "y", "l1": "a4", "l2": "b4", "l3": "c4", "shown": "4", "hidden": "h4"}),
    put(X, {"pk": "q", "sk": "s5", "g2": "y2", "shown": "5", "hidden": "h5"}),
]
UNFILTERED = "does not project one or more filter attributes: [hidden]"


def select(what, name, where=None, **more):
    clause = "" if where is None else f" WHERE {where}"
    return execute(f'SELECT {what} FROM "{X}".{name}{clause}', ReturnConsumedCapacity="INDEXES", **more)


def gsi(name, what="*", where="g2 = 'y'", **more):
    return select(what, f'"{name}"', where, **more)


def lsi(name, what="*", where="pk = 'p'", **more):
    return select(what, f'"{name}"', where, **more)


def names(*wanted):
    return Satisfies(f"items of {sorted(wanted)}", lambda found: len(found) == 3 and all(sorted(each) == sorted(wanted) for each in found))


def cost(table_units, kind=None, name=None, units=0):
    """What the table cost and what one index did, which together are all."""
    wanted = {"CapacityUnits": table_units + units, "Table": {"CapacityUnits": table_units or zero}}
    if kind:
        wanted[kind] = Exactly({name: {"CapacityUnits": units}})
    return {"ConsumedCapacity": wanted}


LOCAL, GLOBAL = "LocalSecondaryIndexes", "GlobalSecondaryIndexes"

CASES = [
    Case("a SELECT of an index leaves out what is not in it", [
        done(gsi("gsi-all", "pk, sk", "g1 = 'x'"), {"Items": rows("sk", "s1", "s4")}),
        done(execute(f"SELECT pk, sk FROM \"{X}\" WHERE pk = 'p'"), {"Items": rows("sk", "s1", "s2", "s3", "s4")}),
        done(lsi("lsi-all", "sk"), {"Items": column("sk", "s1", "s2", "s4")}),
    ]),
    Case("a SELECT without the index's key scans the index", [
        done(gsi("gsi-all", "*", "pk = 'p' AND sk = 's4'"), {"Items": rows("sk", "s4")}),
        done(gsi("gsi-keys", "sk", None), {"Items": rows("sk", "s1", "s2", "s4", "s5")}),
    ]),
    Case("a star shows what the index carries, and costs on the index alone", [
        done(gsi("gsi-keys"), {"Items": names("g2", "pk", "sk"), **cost(0, GLOBAL, "gsi-keys", 0.5)}),
        done(gsi("gsi-some"), {"Items": names("g2", "pk", "sk", "shown"), **cost(0, GLOBAL, "gsi-some", 0.5)}),
        done(lsi("lsi-keys"), {"Items": names("l2", "pk", "sk"), **cost(0, LOCAL, "lsi-keys", 0.5)}),
    ]),
    Case("a read of an index costs on the index, and twice as much if it is consistent", [
        done(gsi("gsi-all", "pk", "g1 = 'x'"), cost(0, GLOBAL, "gsi-all", 0.5)),
        done(lsi("lsi-all", "pk"), cost(0, LOCAL, "lsi-all", 0.5)),
        done(lsi("lsi-all", "pk", ConsistentRead=True), cost(0, LOCAL, "lsi-all", 1)),
        done(lsi("lsi-keys", "l2"), cost(0, LOCAL, "lsi-keys", 0.5)),
        refused(gsi("gsi-all", "pk", "g1 = 'x'", ConsistentRead=True), "ValidationException", "Strongly consistent read is not supported on Global Secondary Indexes"),
    ]),
    Case("a local index fetches from the table what it does not carry, which costs there for each row that it reads", [
        done(lsi("lsi-keys", "hidden"), {"Items": column("hidden", "h1", "h2", "h4"), **cost(1.5, LOCAL, "lsi-keys", 0.5)}),
        done(lsi("lsi-keys", "hidden", ConsistentRead=True), cost(3, LOCAL, "lsi-keys", 1)),
        done(lsi("lsi-some", "hidden", "pk = 'p' AND shown = 'none'"), {"Items": [], **cost(1.5, LOCAL, "lsi-some", 0.5)}),
        done(lsi("lsi-keys", "hidden", Limit=1), {"Items": column("hidden", "h1"), **cost(0.5, LOCAL, "lsi-keys", 0.5)}),
        done(lsi("lsi-some", "hidden", "pk = 'p' AND l3 = 'c2'"), {"Items": column("hidden", "h2")}),
    ]),
    Case("a global index does not show what it does not carry", [
        refused(gsi("gsi-some", "hidden"), "ValidationException", whole="One or more parameter values were invalid: Global secondary index gsi-some does not project [hidden]"),
        refused(gsi("gsi-some", "other, hidden"), "ValidationException", whole="One or more parameter values were invalid: Global secondary index gsi-some does not project [other, hidden]"),
        refused(gsi("gsi-some", "hidden", None), "ValidationException", whole="One or more parameter values were invalid: Global secondary index gsi-some does not project [hidden]"),
    ]),
    Case("a query of an index does not filter by what it does not carry", [
        *(refused(gsi("gsi-some", "pk", f"g2 = 'y' AND {condition}"), "ValidationException", f"Secondary index gsi-some {UNFILTERED}")
          for condition in ("hidden = 'h1'", "hidden IS MISSING", "hidden IS NOT MISSING", "begins_with(hidden, 'h')", "NOT hidden = 'h1'")),
        refused(gsi("gsi-some", "pk", "g2 IN ['y', 'z'] AND hidden = 'h1'"), "ValidationException", UNFILTERED),
        refused(lsi("lsi-keys", "pk", "pk = 'p' AND hidden = 'h1'"), "ValidationException", UNFILTERED),
        refused(lsi("lsi-keys", "pk", "pk = 'p' AND l2 BETWEEN 'b1' AND 'b4' AND hidden = 'h1'"), "ValidationException", UNFILTERED),
        done(gsi("gsi-some", "pk", "g2 = 'y' AND shown = '1'"), {"Items": column("pk", "p")}),
        done(gsi("gsi-some", "pk", "g2 = 'y' AND shown IS NOT MISSING"), {"Items": column("pk", "p", "p", "p")}),
    ]),
    Case("a scan of an index finds nothing by what it does not carry", [
        done(gsi("gsi-some", "pk", "hidden = 'h1'"), {"Items": []}),
        done(lsi("lsi-keys", "pk", "hidden = 'h1'"), {"Items": []}),
        done(gsi("gsi-some", "pk", "hidden = 'h1' AND hidden = 'h2'"), {"Items": []}),
        done(gsi("gsi-keys", "pk, sk", "NOT hidden = 'h1'"), {"Items": rows("sk", "s1", "s2", "s4", "s5")}),
        done(gsi("gsi-some", "pk, sk", "(g2 = 'y' AND hidden = 'h1') OR (g2 = 'y2')"), {"Items": rows("sk", "s5")}),
    ]),
    Case("pages of an index go on where they ended, on the same index", [
        done(gsi("gsi-all", "pk, sk", "g1 = 'x'", Limit=1), {"Items": Satisfies("one", lambda found: len(found) == 1)}, {"token": ["NextToken"], "first": ["Items", 0, "sk", "S"]}),
        done(gsi("gsi-all", "pk, sk", "g1 = 'x'", NextToken=Remembered("token")), {"Items": Satisfies("the other", lambda found: len(found) == 1)}, {"second": ["Items", 0, "sk", "S"]}),
        done(gsi("gsi-some", "pk, sk", Limit=1), {}, {"token": ["NextToken"]}),
        refused(gsi("gsi-keys", "pk, sk", NextToken=Remembered("token")), "ValidationException"),
    ]),
    Case("writes are not done on an index", [
        refused(execute(f"INSERT INTO \"{X}\".\"gsi-all\" VALUE {{'pk': 'w', 'sk': 'w'}}"), "ValidationException", "FROM clause may only contain a single table name"),
        refused(execute(f"INSERT INTO \"{X}\".\"none\" VALUE {{'pk': 'w', 'sk': 'w'}}"), "ValidationException", "FROM clause may only contain a single table name"),
        refused(execute(f"UPDATE \"{X}\".\"gsi-all\" SET shown = 'z' WHERE pk = 'p' AND sk = 's1'"), "ValidationException", "This operation is not supported on an index"),
        refused(execute(f"DELETE FROM \"{X}\".\"gsi-all\" WHERE pk = 'p' AND sk = 's1'"), "ValidationException", "This operation is not supported on an index"),
        done(execute(f"SELECT pk, sk FROM \"{X}\" WHERE pk = 'p'"), {"Items": rows("sk", "s1", "s2", "s3", "s4")}),
    ]),
    Case("a transaction reads no index", [
        refused(("ExecuteTransaction", {"TransactStatements": [{"Statement": f"SELECT * FROM \"{X}\".\"gsi-all\" WHERE g1 = 'x'"}]}), "ValidationException", "Reads on indices are not supported within transactions"),
        done(("ExecuteTransaction", {"TransactStatements": [{"Statement": f"SELECT * FROM \"{X}\" WHERE pk = 'p' AND sk = 's1'"}]}), {"Responses": [{"Item": item(shown="1")}]}),
    ]),
]  # fmt: skip
