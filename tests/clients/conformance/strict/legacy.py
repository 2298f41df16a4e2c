"""The parameters from before expressions."""

from .case import ACCEPTED, Answered, case, condition_failed, invalid, story
from .tables import PAIR, TEXT
from .values import INVALID, N, S, key, one

BOTH = "Can not use both expression and non-expression parameters in the same request: Non-expression parameters: {{{}}} Expression parameters: {{{}}}"


def compares(operator, *values):
    return {"ComparisonOperator": operator, "AttributeValueList": list(values)}


def put(item, answer=ACCEPTED, **more):
    return ("PutItem", {"TableName": TEXT, "Item": item, **more}, answer)


def holds(item):
    return ("GetItem", {"TableName": TEXT, "Key": {"pk": item["pk"]}, "ConsistentRead": True}, Answered({"Item": item}))


def updated(name, before, updates, after):
    pk = key(f"updates-{name}")
    return story(
        f"AttributeUpdates: {name}",
        put({**pk, **before}),
        ("UpdateItem", {"TableName": TEXT, "Key": pk, "AttributeUpdates": updates}, ACCEPTED),
        holds({**pk, **after}),
    )


def expected(name, before, condition, met, **more):
    """A put and a delete under the condition, on an item with these attributes."""
    pk = key(f"expected-{name}")
    answer = ACCEPTED if met else condition_failed()
    return story(
        f"Expected: {name}",
        put({**pk, **before}),
        put({**pk, "new": S("x")}, answer, Expected=condition, **more),
        holds({**pk, "new": S("x")} if met else {**pk, **before}),
        put({**pk, **before}),
        ("DeleteItem", {"TableName": TEXT, "Key": pk, "Expected": condition, **more}, answer),
    )


TWO = {"a": compares("EQ", S("1")), "b": compares("EQ", S("2"))}
PK = {"pk": compares("EQ", S("legacy"))}
ROWS = [("alpha", 1, "hello-world"), ("beta", 2, "hello-there"), ("delta", 4, "hello-again"), ("epsilon", 5, "world"), ("gamma", 3, "goodbye")]
FILL = [("PutItem", {"TableName": PAIR, "Item": {**key("legacy", sk), "n": N(n), "t": S(t)}}, ACCEPTED) for sk, n, t in ROWS]
SCANNED = [("f-1", 10, "alpha-one"), ("f-2", 20, "beta-two"), ("f-3", 30, "alpha-three"), ("f-4", 40, "gamma-four"), ("f-5", 50, "alpha-five")]


def queried(name, found, sort=None, **more):
    conditions = {**PK, **({"sk": sort} if sort else {})}
    judge = lambda answer: [item["sk"]["S"] for item in answer["Items"]] == found  # noqa: E731
    return story(
        f"KeyConditions: {name}",
        *FILL,
        ("Query", {"TableName": PAIR, "KeyConditions": conditions, "ConsistentRead": True, **more}, Answered(judge=judge)),
    )


def scanned(name, found, conditions, **more):
    judge = lambda answer: sorted(item["pk"]["S"] for item in answer["Items"]) == found  # noqa: E731
    return story(
        f"ScanFilter: {name}",
        *[put({**key(pk), "legacyNumber": N(n), "legacyText": S(t)}) for pk, n, t in SCANNED],
        ("Scan", {"TableName": TEXT, "ScanFilter": conditions, **more}, Answered(judge=judge)),
    )


PERSON = {**key("person"), "name": S("alice"), "age": N(30), "role": S("admin")}


def chosen(name, operation, body, answer):
    return story(f"AttributesToGet: {name}", put(PERSON), (operation, body, answer))


CASES = [
    updated("put", {}, {"a": {"Action": "PUT", "Value": S("x")}}, {"a": S("x")}),
    updated("put without saying so", {}, {"a": {"Value": S("x")}}, {"a": S("x")}),
    updated("put and put", {"a": S("old")}, {"a": {"Action": "PUT", "Value": S("x")}, "b": {"Action": "PUT", "Value": N(42)}}, {"a": S("x"), "b": N(42)}),
    updated("delete of an attribute", {"a": S("x"), "b": S("y")}, {"a": {"Action": "DELETE"}}, {"b": S("y")}),
    updated("delete of members", {"t": {"SS": ["a", "b", "c"]}}, {"t": {"Action": "DELETE", "Value": {"SS": ["b"]}}}, {"t": {"SS": ["a", "c"]}}),
    updated("add to a number", {"n": N(10)}, {"n": {"Action": "ADD", "Value": N(5)}}, {"n": N(15)}),
    updated("add of members", {"t": {"SS": ["a", "b"]}}, {"t": {"Action": "ADD", "Value": {"SS": ["c", "d"]}}}, {"t": {"SS": ["a", "b", "c", "d"]}}),
    updated(
        "three at once",
        {"a": S("old"), "n": N(1), "x": S("y")},
        {"a": {"Action": "PUT", "Value": S("new")}, "n": {"Action": "ADD", "Value": N(9)}, "x": {"Action": "DELETE"}},
        {"a": S("new"), "n": N(10)},
    ),
    *[
        story(
            f"AttributeUpdates: {name} creates no item",
            ("DeleteItem", {"TableName": TEXT, "Key": key("updates-ghost")}, ACCEPTED),
            ("UpdateItem", {"TableName": TEXT, "Key": key("updates-ghost"), "AttributeUpdates": updates, "ReturnValues": "ALL_NEW"}, Answered(without=("Attributes",))),
            ("GetItem", {"TableName": TEXT, "Key": key("updates-ghost")}, Answered(without=("Item",))),
        )
        for name, updates in [
            ("delete of an attribute", {"a": {"Action": "DELETE"}}),
            ("delete of members", {"t": {"Action": "DELETE", "Value": {"SS": ["b"]}}}),
            ("delete of two kinds", {"a": {"Action": "DELETE"}, "t": {"Action": "DELETE", "Value": {"NS": ["1"]}}}),
        ]
    ],
    *[
        story(
            f"AttributeUpdates: {name} creates an item",
            ("DeleteItem", {"TableName": TEXT, "Key": key("updates-made")}, ACCEPTED),
            ("UpdateItem", {"TableName": TEXT, "Key": key("updates-made"), "AttributeUpdates": updates}, ACCEPTED),
            ("GetItem", {"TableName": TEXT, "Key": key("updates-made")}, Answered({"Item": {**key("updates-made"), **made}})),
        )
        for name, updates, made in [
            ("nothing", {}, {}),
            ("add and delete", {"a": {"Action": "DELETE"}, "n": {"Action": "ADD", "Value": N(1)}}, {"n": N(1)}),
        ]
    ],
    case(
        "AttributeUpdates: of the key",
        "UpdateItem",
        {"TableName": TEXT, "Key": key("a"), "AttributeUpdates": {"pk": {"Action": "PUT", "Value": S("b")}}},
        invalid(INVALID + "Cannot update attribute pk. This attribute is part of the key"),
    ),
    expected("value that is there", {"a": S("1")}, {"a": {"Exists": True, "Value": S("1")}}, True),
    expected("value that is another", {"a": S("1")}, {"a": {"Value": S("2")}}, False),
    expected("attribute that shall not be", {"a": S("1")}, {"a": {"Exists": False}}, False),
    expected("attribute that is not", {"a": S("1")}, {"b": {"Exists": False}}, True),
    expected("equal", {"a": S("1")}, {"a": compares("EQ", S("1"))}, True),
    expected("not equal", {"a": S("1")}, {"a": compares("EQ", S("x"))}, False),
    expected("beginning", {"a": S("hello-world")}, {"a": compares("BEGINS_WITH", S("hello"))}, True),
    expected("not containing", {"a": S("hello"), "l": {"L": [N(2)]}, "t": {"NS": ["2"]}}, {name: compares("NOT_CONTAINS", N(1)) for name in "alt"}, True),
    expected("not containing, of a member", {"t": {"NS": ["2"]}}, {"t": compares("NOT_CONTAINS", N(2))}, False),
    # For a missing attribute, neither CONTAINS nor NOT_CONTAINS is true; NE is.
    expected("containing, of a missing attribute", {"a": S("1")}, {"q": compares("CONTAINS", N(1))}, False),
    expected("not containing, of a missing attribute", {"a": S("1")}, {"q": compares("NOT_CONTAINS", N(1))}, False),
    expected("not equal, of a missing attribute", {"a": S("1")}, {"q": compares("NE", N(1))}, True),
    *[
        case(
            f"Expected: {operator} of a value of type {kind}",
            "PutItem",
            {"TableName": TEXT, "Item": key("expected-types"), "Expected": {"a": compares(operator, *([value] * count))}},
            invalid(one(f"{INVALID}ComparisonOperator {operator} is not valid for {kind} AttributeValue type")),
        )
        for operator, count, kind, value in [
            ("BEGINS_WITH", 1, "N", N(3)),
            ("CONTAINS", 1, "L", {"L": [N(1)]}),
            ("NOT_CONTAINS", 1, "SS", {"SS": ["a"]}),
            ("LT", 1, "BOOL", {"BOOL": True}),
            ("GE", 1, "M", {"M": {}}),
            ("BETWEEN", 2, "NS", {"NS": ["1"]}),
            ("IN", 1, "L", {"L": [N(1)]}),
        ]
    ],
    expected("both of two", {"a": S("1"), "b": S("2")}, TWO, True, ConditionalOperator="AND"),
    expected("one of two where both are needed", {"a": S("1"), "b": S("3")}, TWO, False, ConditionalOperator="AND"),
    expected("one of two where one is enough", {"a": S("1"), "b": S("3")}, TWO, True, ConditionalOperator="OR"),
    story(
        "Expected: only if it is new",
        ("DeleteItem", {"TableName": TEXT, "Key": key("expected-new")}, ACCEPTED),
        put({**key("expected-new"), "a": S("1")}, Expected={"pk": {"Exists": False}}),
        put({**key("expected-new"), "a": S("2")}, condition_failed(), Expected={"pk": {"Exists": False}}),
        holds({**key("expected-new"), "a": S("1")}),
    ),
    queried("of the partition", ["alpha", "beta", "delta", "epsilon", "gamma"]),
    queried("backwards", ["gamma", "epsilon", "delta", "beta", "alpha"], ScanIndexForward=False),
    queried("beginning", ["alpha"], compares("BEGINS_WITH", S("al"))),
    queried("between", ["beta", "delta", "epsilon"], compares("BETWEEN", S("beta"), S("epsilon"))),
    queried("after", ["epsilon", "gamma"], compares("GT", S("delta"))),
    queried("with a filter", ["gamma"], QueryFilter={"n": compares("EQ", N(3))}),
    queried("with a filter on a part of a text", ["alpha", "beta", "delta"], QueryFilter={"t": compares("CONTAINS", S("hello"))}),
    story(
        "QueryFilter: of a boolean",
        ("PutItem", {"TableName": PAIR, "Item": {**key("legacy-flags", "off"), "f": {"BOOL": False}}}, ACCEPTED),
        ("PutItem", {"TableName": PAIR, "Item": {**key("legacy-flags", "on"), "f": {"BOOL": True}}}, ACCEPTED),
        (
            "Query",
            {"TableName": PAIR, "KeyConditions": {"pk": compares("EQ", S("legacy-flags"))}, "QueryFilter": {"f": compares("EQ", {"BOOL": True})}},
            Answered({"Items": [{**key("legacy-flags", "on"), "f": {"BOOL": True}}], "ScannedCount": 2}),
        ),
    ),
    case(
        "KeyConditions: beside an expression",
        "Query",
        {"TableName": PAIR, "KeyConditions": PK, "KeyConditionExpression": "pk = :v", "ExpressionAttributeValues": {":v": S("x")}},
        invalid(BOTH.format("KeyConditions", "KeyConditionExpression")),
    ),
    scanned("equal", ["f-2"], {"legacyNumber": compares("EQ", N(20))}),
    scanned("greater", ["f-4", "f-5"], {"legacyNumber": compares("GT", N(30))}),
    scanned("beginning", ["f-1", "f-3", "f-5"], {"legacyText": compares("BEGINS_WITH", S("alpha"))}),
    scanned("part of a text", ["f-2"], {"legacyText": compares("CONTAINS", S("two"))}),
    scanned("text without a substring", ["f-1", "f-3", "f-4", "f-5"], {"legacyText": compares("NOT_CONTAINS", S("two"))}),
    scanned("both of two", ["f-3", "f-5"], {"legacyText": compares("BEGINS_WITH", S("alpha")), "legacyNumber": compares("GT", N(20))}, ConditionalOperator="AND"),
    case(
        "ScanFilter: beside an expression",
        "Scan",
        {"TableName": TEXT, "ScanFilter": {"a": compares("EQ", N(1))}, "FilterExpression": "a = :v", "ExpressionAttributeValues": {":v": N(1)}},
        invalid(BOTH.format("ScanFilter", "FilterExpression")),
    ),
    chosen("of GetItem", "GetItem", {"TableName": TEXT, "Key": key("person"), "AttributesToGet": ["name", "age"]}, Answered({"Item": {"name": S("alice"), "age": N(30)}})),
    chosen("one", "GetItem", {"TableName": TEXT, "Key": key("person"), "AttributesToGet": ["role"]}, Answered({"Item": {"role": S("admin")}})),
    chosen("one that is not there", "GetItem", {"TableName": TEXT, "Key": key("person"), "AttributesToGet": ["name", "none"]}, Answered({"Item": {"name": S("alice")}})),
    chosen("an empty name", "GetItem", {"TableName": TEXT, "Key": key("person"), "AttributesToGet": [""]}, invalid("Empty attribute name")),
    chosen("a name and an empty one, of Scan", "Scan", {"TableName": TEXT, "AttributesToGet": ["name", ""]}, invalid("Empty attribute name")),
    chosen("an empty name, of BatchGetItem", "BatchGetItem", {"RequestItems": {TEXT: {"Keys": [key("person")], "AttributesToGet": [""]}}}, invalid("Empty attribute name")),
    chosen("of BatchGetItem", "BatchGetItem", {"RequestItems": {TEXT: {"Keys": [key("person")], "AttributesToGet": ["pk", "role"]}}}, Answered({"Responses": {TEXT: [{**key("person"), "role": S("admin")}]}})),
    chosen(
        "of Scan",
        "Scan",
        {"TableName": TEXT, "AttributesToGet": ["age"], "ScanFilter": {"pk": compares("EQ", S("person"))}},
        Answered({"Items": [{"age": N(30)}]}),
    ),
    story(
        "AttributesToGet: of Query",
        *FILL,
        (
            "Query",
            {"TableName": PAIR, "KeyConditions": {**PK, "sk": compares("EQ", S("beta"))}, "AttributesToGet": ["sk", "n"]},
            Answered({"Items": [{"sk": S("beta"), "n": N(2)}]}),
        ),
    ),
    case(
        "AttributesToGet: beside an expression",
        "GetItem",
        {"TableName": TEXT, "Key": key("person"), "AttributesToGet": ["name"], "ProjectionExpression": "#n", "ExpressionAttributeNames": {"#n": "name"}},
        invalid(BOTH.format("AttributesToGet", "ProjectionExpression")),
    ),
]  # fmt: skip
