"""ProjectionExpression: which parts of items come back, in every operation that reads."""

from .steps import ABSENT, Case, Exactly, done, get, item, put, query, refused, scan, table

C = "projections"
TABLES = [table(C, ["pk", "sk"])]
KEY = {"pk": "p", "sk": "1"}
ITEM = {
    "a": "alpha", "c": 99, "m": {"x": 1, "y": 2, "z": {"deep": 3, "other": 4}},
    "l": [
        {"a": "a0", "b": "b0", "m": {"x": "x0", "y": "y0"}, "n": [{"p": "p00", "q": "q00"}, {"p": "p01", "q": "q01"}]},
        {"a": "a1", "b": "b1"},
        {"a": "a2", "b": "b2", "c": "c2"},
    ],
    "t": ["zero", "one", "two"],
}  # fmt: skip
SEED = [put(C, {**KEY, **ITEM})]

SHOWN = {
    "a, c": {"a": "alpha", "c": 99},
    "a": {"a": "alpha"},
    "pk": {"pk": "p"},
    "nothing": {},
    "m.x": {"m": {"x": 1}},
    "m.x, m.y": {"m": {"x": 1, "y": 2}},
    "m.z.deep, m.x": {"m": {"x": 1, "z": {"deep": 3}}},
    "t[0]": {"t": ["zero"]},
    "t[2], t[0]": {"t": ["zero", "two"]},
    "t[9]": {},
    "m.x, t[1]": {"m": {"x": 1}, "t": ["one"]},
    "l[0].a, l[0].b": {"l": [{"a": "a0", "b": "b0"}]},
    "l[0].b, l[0].a": {"l": [{"a": "a0", "b": "b0"}]},
    "l[0].m.x, l[0].m.y": {"l": [{"m": {"x": "x0", "y": "y0"}}]},
    "l[0].a, l[0].m.x": {"l": [{"a": "a0", "m": {"x": "x0"}}]},
    "l[0].n[0].p, l[0].n[0].q": {"l": [{"n": [{"p": "p00", "q": "q00"}]}]},
    "l[0].n[0].p, l[0].n[1].q": {"l": [{"n": [{"p": "p00"}, {"q": "q01"}]}]},
    "l[0].a, l[0].b, l[2].c": {"l": [{"a": "a0", "b": "b0"}, {"c": "c2"}]},
}
WRONG = {
    "a, a": "Two document paths overlap with each other",
    "m, m.x": "Two document paths overlap with each other",
    "m.x, m": "Two document paths overlap with each other",
    "#undefined": "An expression attribute name used in the document path is not defined",
}


def transact_get(expression):
    return "TransactGetItems", {"TransactItems": [{"Get": {"TableName": C, "Key": item(KEY), "ProjectionExpression": expression}}]}


def batch_get(expression):
    return "BatchGetItem", {"RequestItems": {C: {"Keys": [item(KEY)], "ProjectionExpression": expression}}}


CASES = [
    *(Case(f"shows {expression}", [
        done(get(C, KEY, ProjectionExpression=expression), {"Item": Exactly(item(shown))}),
        done(query(C, "pk = :p", {":p": "p"}, ProjectionExpression=expression), {"Items": [Exactly(item(shown))]}),
        done(scan(C, ProjectionExpression=expression), {"Items": [Exactly(item(shown))]}),
        done(batch_get(expression), {"Responses": {C: [Exactly(item(shown))]}}),
        # A transaction leaves an item out of which nothing is shown; the others show it empty.
        done(transact_get(expression), {"Responses": [{"Item": item(shown) if shown else ABSENT}]}),
    ]) for expression, shown in SHOWN.items()),
    *(Case(f"does not show {expression}", [
        refused(request, "ValidationException", "Invalid ProjectionExpression", text)
        for request in (
            get(C, KEY, ProjectionExpression=expression),
            query(C, "pk = :p", {":p": "nobody"}, ProjectionExpression=expression),
            scan(C, "pk = :p", {":p": "nobody"}, ProjectionExpression=expression),
            batch_get(expression),
            transact_get(expression),
        )
    ]) for expression, text in WRONG.items()),
    Case("names stand for attributes", [
        done(get(C, KEY, ProjectionExpression="#m.#x", ExpressionAttributeNames={"#m": "m", "#x": "x"}), {"Item": Exactly(item(m={"x": 1}))}),
        refused(get(C, KEY, ProjectionExpression="#a, #b", ExpressionAttributeNames={"#a": "a", "#b": "a"}), "ValidationException", "Two document paths overlap"),
    ]),
    Case("the older list of attributes shows an empty item too", [
        done(get(C, KEY, AttributesToGet=["nothing"]), {"Item": Exactly({})}),
        done(get(C, KEY, AttributesToGet=["a"]), {"Item": Exactly(item(a="alpha"))}),
    ]),
]  # fmt: skip
