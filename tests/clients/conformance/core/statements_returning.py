"""RETURNING: what a PartiQL write shows of the item it changed."""

from .steps import ABSENT, Case, Exactly, done, exact_items, execute, item, missing, put, refused, stored, table

H = "returning"
TABLES = [table(H, ["pk"])]
SEED = []
ABC = {"tags": ["a", "b", "c"]}
AB = {"tags": ["a", "b"]}
LEAF = {"profile": {"sub": "old", "sib": "keep"}}

# An item, how it is changed, which kind of RETURNING, what that shows (none: no row) and what the item is then.
SHOWN = [
    ({"d": "old", "k": 1}, "SET d = 'new'", "ALL OLD", {"pk": "x", "d": "old", "k": 1}, {"d": "new", "k": 1}),
    ({"d": "old", "k": 1}, "SET d = 'new'", "ALL NEW", {"pk": "x", "d": "new", "k": 1}, {"d": "new", "k": 1}),
    ({"d": "old", "k": 1}, "SET d = 'new'", "MODIFIED OLD", {"d": "old"}, {"d": "new", "k": 1}),
    ({"d": "old", "k": 1}, "SET d = 'new'", "MODIFIED NEW", {"d": "new"}, {"d": "new", "k": 1}),
    ({"k": 1}, "SET d = 'new'", "MODIFIED OLD", None, {"d": "new", "k": 1}),
    ({"k": 1}, "SET d = 'new'", "MODIFIED NEW", {"d": "new"}, {"d": "new", "k": 1}),
    ({"d": "old", "k": 1}, "REMOVE d", "MODIFIED OLD", {"d": "old"}, {"k": 1}),
    ({"d": "old", "k": 1}, "REMOVE d", "MODIFIED NEW", None, {"k": 1}),
    (LEAF, "SET profile.sub = 'new'", "MODIFIED OLD", {"profile": {"sub": "old"}}, {"profile": {"sub": "new", "sib": "keep"}}),
    (LEAF, "SET profile.sub = 'new'", "MODIFIED NEW", {"profile": {"sub": "new"}}, {"profile": {"sub": "new", "sib": "keep"}}),
    (AB, "SET tags[0] = 'x'", "MODIFIED NEW", {"tags": ["x"]}, {"tags": ["x", "b"]}),
    (AB, "SET tags[0] = 'x'", "MODIFIED OLD", {"tags": ["a"]}, {"tags": ["x", "b"]}),
    (ABC, "SET tags[2] = 'y'", "MODIFIED NEW", {"tags": ["y"]}, {"tags": ["a", "b", "y"]}),
    (ABC, "SET tags[2] = 'y'", "MODIFIED OLD", {"tags": ["c"]}, {"tags": ["a", "b", "y"]}),
    (ABC, "SET tags[0] = 'x', tags[2] = 'y'", "MODIFIED NEW", {"tags": ["x", "y"]}, {"tags": ["x", "b", "y"]}),
    (ABC, "SET tags[0] = 'x', tags[2] = 'y'", "MODIFIED OLD", {"tags": ["a", "c"]}, {"tags": ["x", "b", "y"]}),
    (ABC, "SET tags[2] = 'y', tags[0] = 'x'", "MODIFIED NEW", {"tags": ["x", "y"]}, {"tags": ["x", "b", "y"]}),
    (ABC, "SET tags[2] = 'y', tags[0] = 'x'", "MODIFIED OLD", {"tags": ["a", "c"]}, {"tags": ["x", "b", "y"]}),
    (AB, "SET tags[5] = 'c'", "MODIFIED NEW", None, ABC),
    (AB, "SET tags[5] = 'c'", "MODIFIED OLD", None, ABC),
    (AB, "SET tags[2] = 'c'", "MODIFIED NEW", {"tags": ["c"]}, ABC),
    (AB, "SET tags[2] = 'c'", "MODIFIED OLD", None, ABC),
    (ABC, "REMOVE tags[1]", "MODIFIED OLD", {"tags": ["b"]}, {"tags": ["a", "c"]}),
    (ABC, "REMOVE tags[1]", "MODIFIED NEW", {"tags": ["c"]}, {"tags": ["a", "c"]}),
    (ABC, "REMOVE tags[2]", "MODIFIED NEW", None, AB),
    (ABC, "REMOVE tags[2]", "MODIFIED OLD", {"tags": ["c"]}, AB),
]


def batch(statement):
    return "BatchExecuteStatement", {"Statements": [{"Statement": statement}]}


def shows(before, clause, kind, row, after):
    statement = f"UPDATE \"{H}\" {clause} WHERE pk = 'x' RETURNING {kind} *"
    return Case(f"{clause} of {before} shows by {kind}", [
        done(put(H, {"pk": "x", **before})),
        done(execute(statement), {"Items": [] if row is None else exact_items(row)}),
        stored(H, {"pk": "x"}, after),
        # In a batch, a row that would be empty is left out.
        done(put(H, {"pk": "x", **before})),
        done(batch(statement), {"Responses": [{"TableName": H, "Error": ABSENT, "Item": ABSENT if row is None else Exactly(item(row))}]}),
        stored(H, {"pk": "x"}, after),
    ])  # fmt: skip


def not_of_deletes(kind):
    text = f"Invalid returning clause: RETURNING {kind} *. Only RETURNING ALL OLD * is allowed in DELETE statements."
    statement = f"DELETE FROM \"{H}\" WHERE pk = 'kept' RETURNING {kind} *"
    return Case(f"a DELETE does not show {kind}", [
        done(put(H, {"pk": "kept"})),
        refused(execute(statement), "ValidationException", whole=text),
        done(batch(statement), {"Responses": [{"Error": {"Code": "ValidationError", "Message": text}, "Item": ABSENT}]}),
        stored(H, {"pk": "kept"}, {}),
    ])  # fmt: skip


CASES = [
    *(shows(*each) for each in SHOWN),
    *(not_of_deletes(kind) for kind in ("MODIFIED OLD", "MODIFIED NEW", "ALL NEW")),
    Case("a DELETE shows what was there", [
        done(put(H, {"pk": "gone", "n": 7})),
        done(execute(f"DELETE FROM \"{H}\" WHERE pk = 'gone' RETURNING ALL OLD *"), {"Items": exact_items({"pk": "gone", "n": 7})}),
        missing(H, {"pk": "gone"}),
        done(execute(f"DELETE FROM \"{H}\" WHERE pk = 'gone' RETURNING ALL OLD *"), {"Items": []}),
        done(put(H, {"pk": "gone", "n": 7})),
        done(batch(f"DELETE FROM \"{H}\" WHERE pk = 'gone' RETURNING ALL OLD *"), {"Responses": [{"Item": Exactly(item(pk="gone", n=7))}]}),
        missing(H, {"pk": "gone"}),
    ]),
    Case("an element of a list that is not there is not made", [
        done(put(H, {"pk": "no list", "n": 1})),
        refused(execute(f"UPDATE \"{H}\" SET fresh[0] = 'x' WHERE pk = 'no list'"), "ValidationException", "The document path provided in the update expression is invalid for update"),
        stored(H, {"pk": "no list"}, {"n": 1}),
    ]),
    Case("an UPDATE of nobody shows nothing and makes nothing", [
        refused(execute(f"UPDATE \"{H}\" SET n = 1 WHERE pk = 'nobody' RETURNING ALL OLD *"), "ConditionalCheckFailedException", whole="The conditional request failed"),
        missing(H, {"pk": "nobody"}),
    ]),
]  # fmt: skip
