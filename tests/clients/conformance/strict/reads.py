"""Query and Scan: wording and order of checks."""

from .case import ACCEPTED, Answered, case, either, invalid, invalid_with, not_found, story
from .tables import ABSENT, PAIR, RANKED, TEXT
from .values import INVALID, MISMATCH, TOO_DEEP, N, S, deep, one, violation

SELECTS = "Member must satisfy enum value set: [SPECIFIC_ATTRIBUTES, COUNT, ALL_ATTRIBUTES, ALL_PROJECTED_ATTRIBUTES]"
SCHEMA_TYPE = INVALID + "Condition parameter type does not match schema type"
SPECIFIC = "Must specify the AttributesToGet or ProjectionExpression when choosing to get SPECIFIC_ATTRIBUTES"
ZERO_BASED = "The Segment parameter is zero-based and must be less than parameter TotalSegments"
MISSED = "Query condition missed key schema element: pk"


def query(name, answer, condition="pk = :v", values=None, table=PAIR, **more):
    values = {":v": S("x")} if values is None else values
    body = {"TableName": table, "KeyConditionExpression": condition, "ExpressionAttributeValues": values, **more}
    return case(f"query: {name}", "Query", body, answer)


def scan(name, answer, **more):
    return case(f"scan: {name}", "Scan", {"TableName": TEXT, **more}, answer)


def operand(function, kind):
    return f"Invalid KeyConditionExpression: Incorrect operand type for operator or function; operator or function: {function}, operand type: {kind}"


P = {":p": S("q")}
TRUE = {"BOOL": True}
UNDEFINED = "An expression attribute value used in expression is not defined; attribute value: :none"
BEGINS = "begins_with(sk, :n)"
NUMERIC = {":n": N(1)}
NULLS = {"b": {"ComparisonOperator": "NULL"}, "c": {"ComparisonOperator": "NULL"}}

CASES = [
    query("without the partition key", invalid(MISSED), "sk = :v"),
    query("by what is no key", invalid(MISSED), "a = :v"),
    query("unused name", invalid("Value provided in ExpressionAttributeNames unused in expressions: keys: {#u}"), ExpressionAttributeNames={"#u": "a"}),
    query("unknown selection", invalid(one(violation("X", "select", SELECTS))), Select="X"),
    query("limit 0", invalid(one("Value at 'Limit' failed to satisfy constraint: Member must have value greater than or equal to 1")), Limit=0),
    query("empty key condition", invalid("Invalid KeyConditionExpression: The expression can not be empty;"), ""),
    query(
        "undefined name in the filter",
        invalid("Invalid FilterExpression: An expression attribute name used in the document path is not defined; attribute name: #none"),
        values={":v": S("x"), ":w": S("y")}, FilterExpression="#none = :w",
    ),
    query("name that no table has, and an unknown selection", invalid_with("validation error"), table="abc!", Select="X"),
    query("unknown capacity and selection", invalid_with("returnConsumedCapacity"), ReturnConsumedCapacity="X", Select="X"),
    query("prefix that is a number, of a text", invalid(operand("begins_with", "N")), f"pk = :p AND {BEGINS}", {**P, **NUMERIC}),
    query("prefix that is a boolean", invalid(operand("begins_with", "BOOL")), f"pk = :p AND {BEGINS}", {**P, ":n": TRUE}),
    query("prefix that is a number, of a number", invalid(operand("begins_with", "N")), f"pk = :p AND {BEGINS}", {**P, **NUMERIC}, RANKED),
    query("prefix that is a text, of a number", invalid(SCHEMA_TYPE), f"pk = :p AND {BEGINS}", {**P, ":n": S("a")}, RANKED),
    query("less than a boolean", invalid(operand("<", "BOOL")), "pk = :p AND sk < :n", {**P, ":n": TRUE}, RANKED),
    query("boolean at the left", invalid(operand(">=", "BOOL")), "pk = :p AND :n >= sk", {**P, ":n": TRUE}, RANKED),
    query("between booleans", invalid(operand("BETWEEN", "BOOL")), "pk = :p AND sk BETWEEN :a AND :b", {**P, ":a": {"BOOL": False}, ":b": TRUE}, RANKED),
    query("equal to a boolean", invalid(SCHEMA_TYPE), "pk = :p AND sk = :n", {**P, ":n": TRUE}, RANKED),
    query("two conditions on the sort key", invalid("Invalid KeyConditionExpression: KeyConditionExpressions must only contain one condition per key"), "pk = :p AND sk > :a AND sk < :b", {**P, ":a": N(1), ":b": N(5)}, RANKED),
    query(
        "three attributes for two keys",
        invalid("The number of query conditions (3) exceeds the number of key attributes defined in the schema (2)"),
        "pk = :p AND sk > :a AND extra = :b", {**P, ":a": N(1), ":b": N(5)}, RANKED,
    ),
    query("undefined value before a bad operand", invalid_with(UNDEFINED), f"pk = :none AND {BEGINS}", NUMERIC),
    query("bad operand before an undefined value", invalid_with(operand("begins_with", "N")), f"{BEGINS} AND pk = :none", NUMERIC),
    query("bad operand between", invalid_with(operand("begins_with", "N")), f"pk = :p AND {BEGINS} AND sk = :none", {**P, **NUMERIC}),
    query("bad operand before a third condition", invalid_with(operand("begins_with", "N")), f"pk = :p AND {BEGINS} AND sk > :s", {**P, **NUMERIC, ":s": S("a")}),
    query("bad operand before a missing table", invalid_with(operand("begins_with", "N")), f"pk = :p AND {BEGINS}", {**P, **NUMERIC}, ABSENT),
    query("missing table", not_found(), f"pk = :p AND {BEGINS}", {**P, ":n": S("a")}, ABSENT),
    case(
        "query: unknown operator before an unknown selection",
        "Query",
        {
            "TableName": ABSENT,
            "KeyConditions": {"pk": {"ComparisonOperator": "EQ", "AttributeValueList": [S("a")]}},
            "QueryFilter": NULLS,
            "ConditionalOperator": "XOR",
            "Select": "X",
        },
        invalid("Failed to satisfy constraint: Member must satisfy enum value set: [ALL, OR]"),
    ),
    query("redundant parentheses", invalid("Invalid KeyConditionExpression: The expression has redundant parentheses;"), "((pk = :v))"),
    query("start that is no key", invalid("The provided starting key is invalid"), ExclusiveStartKey={"bad": S("p")}),
    query("specific attributes without any", invalid(one(SPECIFIC)), Select="SPECIFIC_ATTRIBUTES"),
    scan("start that is no key", invalid("The provided starting key is invalid", f"The provided starting key is invalid: {MISMATCH}"), ExclusiveStartKey={"bad": S("p")}),
    scan("specific attributes without any", invalid(one(SPECIFIC), SPECIFIC), Select="SPECIFIC_ATTRIBUTES"),
    scan("redundant parentheses", invalid("Invalid FilterExpression: The expression has redundant parentheses;"), FilterExpression="((a = :v))", ExpressionAttributeValues={":v": S("x")}),
    scan(
        "prefix that is a number",
        invalid("Invalid FilterExpression: Incorrect operand type for operator or function; operator or function: begins_with, operand type: N"),
        FilterExpression="begins_with(a, :n)", ExpressionAttributeValues={":n": N(1)},
    ),
    scan("segment alone", invalid("The TotalSegments parameter is required but was not present in the request when Segment parameter is present"), Segment=0),
    scan("segment past the last", invalid(f"{ZERO_BASED}: Segment: 5 is not less than TotalSegments: 5", ZERO_BASED), Segment=5, TotalSegments=5),
    scan("segments alone", invalid("The Segment parameter is required but was not present in the request when parameter TotalSegments is present"), TotalSegments=4),
    scan("segment below 0", invalid_with("egment' failed to satisfy constraint: Member must have value greater than or equal to 0"), Segment=-1, TotalSegments=4),
    scan(
        "limit 0",
        invalid(
            one(violation("0", "limit", "Member must have value greater than or equal to 1")),
            one("Value at 'Limit' failed to satisfy constraint: Member must have value greater than or equal to 1"),
        ),
        Limit=0,
    ),
    scan("missing table", not_found(), TableName=ABSENT),
    scan(
        "deep filter and an operator without need",
        either(invalid(TOO_DEEP), invalid("ConditionalOperator can only be used when Filter or Expected has two or more elements")),
        TableName=ABSENT, ScanFilter={"a": {"ComparisonOperator": "EQ", "AttributeValueList": [deep(40)]}}, ConditionalOperator="AND",
    ),
    story(
        "query and scan: a page ends after 1 MB",
        *[
            ("PutItem", {"TableName": PAIR, "Item": {"pk": S("page"), "sk": S(f"{at:02}"), "p": S("x" * 60_000)}}, ACCEPTED)
            for at in range(20)
        ],
        (
            "Query",
            {"TableName": PAIR, "KeyConditionExpression": "pk = :v", "ExpressionAttributeValues": {":v": S("page")}},
            Answered(judge=lambda answer: 0 < answer["Count"] < 20 and "LastEvaluatedKey" in answer),
        ),
        (
            "Query",
            {"TableName": PAIR, "KeyConditionExpression": "pk = :v", "ExpressionAttributeValues": {":v": S("page")}, "Limit": 5},
            Answered(judge=lambda answer: answer["Count"] == 5 and answer["LastEvaluatedKey"]["sk"] == S("04")),
        ),
        (
            "Query",
            {"TableName": PAIR, "KeyConditionExpression": "pk = :v", "ExpressionAttributeValues": {":v": S("page")}, "ExclusiveStartKey": {"pk": S("page"), "sk": S("15")}},
            Answered({"Count": 4}, without=("LastEvaluatedKey",)),
        ),
        ("Scan", {"TableName": PAIR}, Answered(judge=lambda answer: "LastEvaluatedKey" in answer)),
    ),
]  # fmt: skip
