"""PutItem, GetItem, UpdateItem and DeleteItem: wording, and which check comes first."""

from .case import ACCEPTED, Answered, Refused, case, condition_failed, invalid, invalid_with, not_found, story
from .tables import ABSENT, BYTES, PAIR, TEXT
from .values import EMPTY_BYTES_KEY, EMPTY_TEXT_KEY, INVALID, MISMATCH, B, S, deep, key, one, violation

ID = key("items")
NULL_NAME = "Value null at 'tableName' failed to satisfy constraint: Member must not be null"
NO_KEY = "Value null at 'key' failed to satisfy constraint: Member must not be null"
SHORT_NAME = "Value at 'TableName' failed to satisfy constraint: Member must have length greater than or equal to 1"
EMPTY_NAME = violation("", "tableName", "Member must have length greater than or equal to 1")
LONG_NAME = violation("a" * 256, "tableName", "Member must have length less than or equal to 255")
BAD_NAME = violation("bad table!", "tableName", "Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+")
RETURN_ENUM = "Failed to satisfy constraint: Member must satisfy enum value set: [ALL_OLD, UPDATED_OLD, ALL_NEW, UPDATE_NEW, NONE]"
OLD_RETURN_ENUM = violation("X", "returnValues", "Member must satisfy enum value set: [ALL_NEW, UPDATED_OLD, ALL_OLD, NONE, UPDATED_NEW]")
CAPACITY_ENUM = violation("X", "returnConsumedCapacity", "Member must satisfy enum value set: [INDEXES, TOTAL, NONE]")
OLD_XOR = violation("XOR", "conditionalOperator", "Member must satisfy enum value set: [OR, AND]")
EXPRESSIONLESS = "{} can only be specified when using expressions"
BOTH = "Can not use both expression and non-expression parameters in the same request: Non-expression parameters: {{{}}} Expression parameters: {{{}}}"
OLD_OR_NONE = "ReturnValues can only be ALL_OLD or NONE"


# So deep that the service checks in its older way what a request asks for, before its depth.
VERY_DEEP = [
    ("condition", {"ConditionExpression": "d = :d", "ExpressionAttributeValues": {":d": deep(63)}}),
    ("Expected", {"Expected": {"d": {"Value": deep(63)}}}),
    ("key", {"Key": {"pk": deep(100), "sk": S("1")}}),
]
VERY_DEEP_EXPECTED = {"Expected": {"a": {"Value": deep(100)}, "b": {"Exists": False}}, "ConditionalOperator": "XOR"}


def put(name, answer, **more):
    return case(f"put: {name}", "PutItem", {"TableName": TEXT, "Item": ID, **more}, answer)


def get(name, answer, **more):
    return case(f"get: {name}", "GetItem", {"TableName": TEXT, "Key": ID, **more}, answer)


def update(name, answer, **more):
    return case(f"update: {name}", "UpdateItem", {"TableName": TEXT, "Key": ID, **more}, answer)


def delete(name, answer, **more):
    return case(f"delete: {name}", "DeleteItem", {"TableName": TEXT, "Key": ID, **more}, answer)


def setting(value, **more):
    return {"UpdateExpression": "SET a = :v", "ExpressionAttributeValues": {":v": value}, **more}


UNDEFINED = "Invalid {}: An expression attribute value used in expression is not defined; attribute value: {}"


# The same faults of all operations that write one item.
def of_all_writes(make, item):
    member = {"Item": {}} if item else {"Key": {}}
    return [
        make("empty name of the table", invalid(one(SHORT_NAME)), TableName="", **member),
        make("empty name of the table and an unknown return", invalid(one(SHORT_NAME)), TableName="", ReturnValues="X", **member),
        make("long name of the table", invalid(one(LONG_NAME)), TableName="a" * 256),
        make("characters that no name has", invalid(one(BAD_NAME)), TableName="bad table!", **member),
        make("missing table", not_found(), TableName=ABSENT),
        make("names without an expression", invalid(one(EXPRESSIONLESS.format("ExpressionAttributeNames"))), ExpressionAttributeNames={"#a": "a"}),
        make("values without an expression", invalid(one(EXPRESSIONLESS.format("ExpressionAttributeValues"))), ExpressionAttributeValues={":v": S("x")}),
        make("names beside Expected", invalid(one(EXPRESSIONLESS.format("ExpressionAttributeNames"))), Expected={"a": {"Exists": False}}, ExpressionAttributeNames={"#a": "a"}),
        make("empty names", invalid(one("ExpressionAttributeNames must not be empty")), ConditionExpression="attribute_exists(a)", ExpressionAttributeNames={}),
        make("empty values", invalid(one("ExpressionAttributeValues must not be empty")), ConditionExpression="attribute_exists(a)", ExpressionAttributeValues={}),
        make("empty condition", invalid(one("Invalid ConditionExpression: The expression can not be empty;")), ConditionExpression=""),
        make("Expected beside a condition", invalid(one(BOTH.format("Expected", "ConditionExpression"))), Expected={"pk": {"Exists": False}}, ConditionExpression="attribute_not_exists(pk)"),
        make("redundant parentheses", invalid(one("Invalid ConditionExpression: The expression has redundant parentheses;")), ConditionExpression="((attribute_not_exists(pk)))"),
        make(
            "contains itself",
            invalid(one("Invalid ConditionExpression: The first operand must be distinct from the remaining operands for this operator or function; operator: contains, first operand: [data]")),
            ConditionExpression="contains(#a, #a)",
            ExpressionAttributeNames={"#a": "data"},
        ),
        *[
            make(f"Expected: {name}", invalid(one(INVALID + text)), Expected={"a": condition})
            for name, condition, text in [
                ("exists without a value", {"Exists": True}, "Value must be provided when Exists is true for Attribute: a"),
                ("a value that shall not be", {"Exists": False, "Value": S("x")}, "Value cannot be used when Exists is false for Attribute: a"),
                ("two forms of value", {"Value": S("x"), "ComparisonOperator": "EQ", "AttributeValueList": [S("x")]}, "Value and AttributeValueList cannot be used together for Attribute: a"),
                ("comparison with nothing", {"ComparisonOperator": "EQ"}, "Value or AttributeValueList must be used with ComparisonOperator: EQ for Attribute: a"),
                ("between one value", {"ComparisonOperator": "BETWEEN", "AttributeValueList": [S("x")]}, "Invalid number of argument(s) for the BETWEEN ComparisonOperator"),
            ]
        ],
    ]  # fmt: skip


CASES = [
    *of_all_writes(put, item=True),
    *of_all_writes(delete, item=False),
    put("no name of a table", invalid(one(NULL_NAME)), TableName=None),
    *[
        put(f"empty {kind}", invalid(one(INVALID + text)), Item={**ID, "v": {kind: []}})
        for kind, text in [
            ("SS", "An string set  may not be empty"),
            ("NS", "An number set  may not be empty"),
            ("BS", "Binary sets should not be empty"),
        ]
    ],
    put("empty set in a map", invalid_with("may not be empty"), Item={**ID, "v": {"M": {"x": {"SS": []}}}}),
    put("empty set in a list", invalid_with("may not be empty"), Item={**ID, "v": {"L": [{"SS": []}]}}),
    put("empty texts twice in a set", invalid_with(INVALID + "Input collection", "contains duplicates"), Item={**ID, "v": {"SS": ["", ""]}}),
    put("no bytes twice in a set", invalid_with(INVALID + "Input collection", "of type BS contains duplicates"), Item={**ID, "v": {"BS": ["", ""]}}),
    put("NULL that is false", invalid_with(INVALID + "Null attribute value types must have the value of true"), Item={**ID, "v": {"NULL": False}}),
    put("empty text as key", invalid(EMPTY_TEXT_KEY), Item=key("")),
    put("empty sort key", invalid_with("cannot contain an empty string value. Key: sk"), TableName=PAIR, Item=key("a", "")),
    put("empty bytes as key", invalid(EMPTY_BYTES_KEY), TableName=BYTES, Item={"pk": B(b"")}),
    put(
        "three unknown choices",
        invalid_with("3 validation errors detected: ", "returnConsumedCapacity", "returnItemCollectionMetrics", "enum value set: [ALL_OLD, UPDATED_OLD, ALL_NEW, UPDATE_NEW, NONE]"),
        TableName=ABSENT, ReturnConsumedCapacity="X", ReturnItemCollectionMetrics="X", ReturnValues="X",
    ),
    put("unknown operator in older words beside a very deep Expected", invalid(one(OLD_XOR)), TableName=ABSENT, **VERY_DEEP_EXPECTED),
    get("missing table", not_found(), TableName=ABSENT),
    get("half a key", invalid(MISMATCH), TableName=PAIR),
    get("no projection at all", invalid('Invalid ProjectionExpression: Syntax error; token: "!", near: "!!"'), ProjectionExpression="!!! WRONG !!!"),
    get("empty bytes as key", invalid(EMPTY_BYTES_KEY), TableName=BYTES, Key={"pk": B(b"")}),
    update("empty name of the table", invalid(one(SHORT_NAME)), TableName="", Key={}),
    update("characters that no name has", invalid(one(BAD_NAME)), TableName="bad table!", Key={}),
    update("two unknown choices: the first alone", invalid(one(RETURN_ENUM)), TableName=ABSENT, ReturnValues="X", ReturnConsumedCapacity="X"),
    update("of the partition key", invalid(INVALID + "Cannot update attribute pk. This attribute is part of the key"), **setting(S("b"), UpdateExpression="SET pk = :v")),
    update("of the sort key", invalid(INVALID + "Cannot update attribute sk. This attribute is part of the key"), TableName=PAIR, Key=key("a", "b"), **setting(S("c"), UpdateExpression="SET sk = :v")),
    update("no sentence", invalid_with('Invalid UpdateExpression: Syntax error; token: "WRONG", near: "WRONG SYNTAX"'), **setting(S("b"), UpdateExpression="WRONG SYNTAX HERE")),
    update("empty expression", invalid_with("Invalid UpdateExpression: The expression can not be empty;"), UpdateExpression=""),
    update("unused name", invalid_with("Value provided in ExpressionAttributeNames unused in expressions: keys: {#u}"), **setting(S("b"), ExpressionAttributeNames={"#u": "a"})),
    update("unused value", invalid_with("Value provided in ExpressionAttributeValues unused in expressions: keys: {:u}"), UpdateExpression="SET a = :v", ExpressionAttributeValues={":v": S("b"), ":u": S("c")}),
    update("undefined value", invalid(one(UNDEFINED.format("UpdateExpression", ":v"))), UpdateExpression="SET a = :v"),
    update("undefined value in the condition alone", invalid(one(UNDEFINED.format("ConditionExpression", ":v"))), UpdateExpression="SET b = :w", ConditionExpression="a = :v", ExpressionAttributeValues={":w": S("x")}),
    update("AttributeUpdates beside an expression", invalid(one(BOTH.format("AttributeUpdates", "UpdateExpression"))), **setting(S("b"), AttributeUpdates={"a": {"Action": "PUT", "Value": S("b")}})),
    update("empty bytes as key", invalid(EMPTY_BYTES_KEY), TableName=BYTES, Key={"pk": B(b"")}, **setting(S("b"))),
    update("empty name of the table and no key", invalid(f"2 validation errors detected: {EMPTY_NAME}; {NO_KEY}"), TableName="", Key=None, **setting(S("b"))),
    update(
        "four members at once",
        invalid(f"4 validation errors detected: {CAPACITY_ENUM}; {EMPTY_NAME}; {OLD_RETURN_ENUM}; {NO_KEY}"),
        TableName="", Key=None, ReturnConsumedCapacity="X", ReturnValues="X", **setting(S("b")),
    ),
    update(
        "unknown operator and no key",
        invalid(f"2 validation errors detected: {OLD_XOR}; {NO_KEY}"),
        TableName=ABSENT, Key=None, AttributeUpdates={"x": {"Action": "PUT", "Value": S("1")}},
        Expected={"a": {"Exists": False}, "b": {"Exists": False}}, ConditionalOperator="XOR",
    ),
    update("unknown operator in older words beside a very deep Expected", invalid(one(OLD_XOR)), TableName=ABSENT, AttributeUpdates={"x": {"Action": "PUT", "Value": S("1")}}, **VERY_DEEP_EXPECTED),
    *[delete(f"unknown return in older words beside a very deep {what}", invalid(one(OLD_RETURN_ENUM)), **{"TableName": ABSENT, "ReturnValues": "X", **more}) for what, more in VERY_DEEP],
    *[delete(f"what a delete cannot return, beside a very deep {what}", invalid(OLD_OR_NONE), **{"TableName": ABSENT, "ReturnValues": "UPDATED_NEW", **more}) for what, more in VERY_DEEP],
    delete("usual words beside a deep condition", invalid(one(RETURN_ENUM)), TableName=ABSENT, ReturnValues="X", ConditionExpression="d = :d", ExpressionAttributeValues={":d": deep(40)}),
    delete("half a key", invalid(MISMATCH), TableName=PAIR),
    delete("empty bytes as key", invalid(EMPTY_BYTES_KEY), TableName=BYTES, Key={"pk": B(b"")}),
    delete("returning what is new", invalid(one(OLD_OR_NONE)), ReturnValues="ALL_NEW"),
    delete("returning what was updated", invalid(one(OLD_OR_NONE)), ReturnValues="UPDATED_NEW"),
    delete("two unknown choices", invalid_with("2 validation errors detected: ", "returnConsumedCapacity"), TableName=ABSENT, ReturnValues="X", ReturnConsumedCapacity="X"),
    story(
        "a failed condition shows the item that it met, if asked",
        ("PutItem", {"TableName": TEXT, "Item": {**key("met"), "a": S("old")}}, ACCEPTED),
        ("PutItem", {"TableName": TEXT, "Item": key("met"), "ConditionExpression": "attribute_not_exists(pk)"}, condition_failed()),
        ("DeleteItem", {"TableName": TEXT, "Key": key("met"), "ConditionExpression": "a = :v", "ExpressionAttributeValues": {":v": S("x")}}, condition_failed()),
        (
            "UpdateItem",
            {"TableName": TEXT, "Key": key("met"), "UpdateExpression": "SET a = :n", "ConditionExpression": "a = :v", "ExpressionAttributeValues": {":n": S("new"), ":v": S("x")}},
            condition_failed(),
        ),
        (
            "PutItem",
            {"TableName": TEXT, "Item": key("met"), "ConditionExpression": "attribute_not_exists(pk)", "ReturnValuesOnConditionCheckFailure": "ALL_OLD"},
            Refused("ConditionalCheckFailedException", texts=("The conditional request failed",), members={"Item": {**key("met"), "a": S("old")}}),
        ),
        ("GetItem", {"TableName": TEXT, "Key": key("met")}, Answered({"Item": {**key("met"), "a": S("old")}})),
    ),
]  # fmt: skip
