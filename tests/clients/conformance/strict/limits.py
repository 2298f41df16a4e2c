"""Sizes and depths: the last that is taken and the first that is refused."""

from .case import ACCEPTED, Answered, Refused, cancelled, case, either, invalid_with, story
from .tables import TEXT
from .values import ITEM_BYTES_MAX, TOO_DEEP, TOO_LARGE, UPDATE_TOO_LARGE, S, deep, key, sized_item

EXPRESSION_BYTES_MAX = 4096
TOO_LONG = "Expression size has exceeded the maximum allowed size"
LONG_KEY = "Size of hashkey has exceeded the maximum size limit of2048 bytes"
LARGE = "x" * 4_200


def put(item, **more):
    return "PutItem", {"TableName": TEXT, "Item": item, **more}


def get(one_key, **more):
    return "GetItem", {"TableName": TEXT, "Key": one_key, "ConsistentRead": True, **more}


def update(one_key, expression, values, **more):
    return "UpdateItem", {"TableName": TEXT, "Key": one_key, "UpdateExpression": expression, "ExpressionAttributeValues": values, **more}


def transact(*actions):
    return "TransactWriteItems", {"TransactItems": [{kind: {"TableName": TEXT, **body}} for kind, body in actions]}


def by_put(one_key, size):
    return put(sized_item(one_key, size))


def by_batch(one_key, size):
    return "BatchWriteItem", {"RequestItems": {TEXT: [{"PutRequest": {"Item": sized_item(one_key, size)}}]}}


def by_insert(one_key, size):
    parameters = [one_key["pk"], sized_item(one_key, size)["p"]]
    return "ExecuteStatement", {"Statement": f"INSERT INTO \"{TEXT}\" VALUE {{'pk': ?, 'p': ?}}", "Parameters": parameters}


def by_statement(one_key, size):
    parameters = [sized_item(one_key, size)["p"], one_key["pk"]]
    return "ExecuteStatement", {"Statement": f'UPDATE "{TEXT}" SET p = ? WHERE pk = ?', "Parameters": parameters}


def by_transacted_put(one_key, size):
    return transact(("Put", {"Item": sized_item(one_key, size)}))


def by_transacted_update(one_key, size):
    values = {":p": sized_item(one_key, size)["p"]}
    return transact(("Update", {"Key": one_key, "UpdateExpression": "SET p = :p", "ExpressionAttributeValues": values}))


def by_update(one_key, size):
    return update(one_key, "SET p = :p", {":p": sized_item(one_key, size)["p"]})


def by_attribute_updates(one_key, size):
    updates = {"p": {"Action": "PUT", "Value": sized_item(one_key, size)["p"]}}
    return "UpdateItem", {"TableName": TEXT, "Key": one_key, "AttributeUpdates": updates}


def ceiling(name, write, refusal, pk=None):
    """400 KB are taken, and kept; one byte more is refused. The item is there before, so that every way to write can."""
    one_key = key(pk or f"size-{name}")
    return story(
        f"400 KB by {name}",
        put(one_key) + (ACCEPTED,),
        *([("DeleteItem", {"TableName": TEXT, "Key": one_key}, ACCEPTED)] if write is by_insert else []),
        write(one_key, ITEM_BYTES_MAX) + (ACCEPTED,),
        get(one_key) + (Answered({"Item": sized_item(one_key, ITEM_BYTES_MAX)}),),
        *([("DeleteItem", {"TableName": TEXT, "Key": one_key}, ACCEPTED)] if write is by_insert else []),
        write(one_key, ITEM_BYTES_MAX + 1) + (refusal,),
    )


def spread(count, size):
    """An item of this size with so many attributes beside its key."""
    item = {**key("spread"), **{f"a{at}": S("x" * 1_000) for at in range(count - 1)}}
    return sized_item(item, size)


def filled(prefix, joint, clause, size):
    """An expression of this many bytes, from clauses that differ; and how many clauses it has."""
    clauses, at = [], 0
    while len(prefix + joint.join([*clauses, clause(at, 50)])) <= size:
        clauses.append(clause(at, 50))
        at += 1
    missing = size - len(prefix + joint.join(clauses))
    clauses[-1] = clause(at - 1, 50 + missing)
    text = prefix + joint.join(clauses)
    assert len(text) == size
    return text, at


def name_of(at, length):
    return "a" * (length - len(f"x{at}")) + f"x{at}"


def texts(count):
    return {f":v{at}": S("x") for at in range(count)}


def sets(size):
    text, count = filled("SET ", ", ", lambda at, length: f"{name_of(at, length)} = :v{at}", size)
    return text, texts(count)


def absences(size):
    return filled("", " AND ", lambda at, length: f"attribute_not_exists({name_of(at, length)})", size)[0]


def choices(size):
    text, count = filled("", " OR ", lambda at, length: f"{name_of(at, length)} = :v{at}", size)
    return text, texts(count)


def names(size):
    return filled("", ", ", name_of, size)[0]


def long_update(pk, size):
    return update(key(pk), *sets(size))


def filtered(operation, size, **more):
    text, values = choices(size)
    return operation, {"TableName": TEXT, "FilterExpression": text, "ExpressionAttributeValues": {**values, **more.pop("values", {})}, **more}


def long_query(size):
    return filtered("Query", size, values={":p": S("long-filter")}, KeyConditionExpression="pk = :p")


OVER = EXPRESSION_BYTES_MAX + 1
FIRST = name_of(0, 50)
ALIASES = {f"#a{at}": "n" * 246 + f"q{at}" for at in range(30)}
DEEP_CONDITION = {"ConditionExpression": "#d = :d", "ExpressionAttributeNames": {"#d": "d"}}

CASES = [
    ceiling("PutItem", by_put, invalid_with(TOO_LARGE)),
    ceiling("BatchWriteItem", by_batch, invalid_with(TOO_LARGE)),
    ceiling("INSERT", by_insert, invalid_with(TOO_LARGE)),
    ceiling("UPDATE", by_statement, invalid_with(UPDATE_TOO_LARGE)),
    ceiling("a transaction's Put", by_transacted_put, invalid_with(TOO_LARGE)),
    ceiling("a transaction's Update", by_transacted_update, cancelled(("ValidationError", UPDATE_TOO_LARGE))),
    ceiling("AttributeUpdates", by_attribute_updates, invalid_with(UPDATE_TOO_LARGE)),
    ceiling("UpdateItem with a long key", by_update, invalid_with(UPDATE_TOO_LARGE), "k" * 100),
    *[
        case(f"400 KB of {what}", *put({**key("size-none"), **attributes}), invalid_with(TOO_LARGE))
        for what, attributes in [
            ("text", {"v": S("x" * 410_000)}),
            ("bytes", {"v": {"B": "AAAA" * 137_000}}),
            ("names", {f"{'a' * 200}{at}": S("x" * 3_900) for at in range(100)}),
            ("nested text", {"v": {"M": {"a": {"M": {"b": S("x" * 410_000)}}}}}),
            ("a set's members", {"v": {"SS": [f"{LARGE}{at}" for at in range(100)]}}),
            ("a list's elements", {"v": {"L": [S(f"{LARGE}{at}") for at in range(100)]}}),
        ]
    ],
    story(
        "large values come back whole",
        put({**key("large"), "s": S("x" * 390_000)}) + (ACCEPTED,),
        get(key("large")) + (Answered({"Item": {**key("large"), "s": S("x" * 390_000)}}),),
        put({**key("large"), "b": {"B": "AAAA" * 116_000}}) + (ACCEPTED,),
        get(key("large")) + (Answered({"Item": {**key("large"), "b": {"B": "AAAA" * 116_000}}}),),
    ),
    story(
        "a partition key has at most 2048 bytes",
        put(key("k" * 2048)) + (ACCEPTED,),
        put(key("k" * 2049)) + (invalid_with(LONG_KEY),),
        get(key("k" * 2049)) + (invalid_with(LONG_KEY),),
    ),
    story(
        "sets may have one empty member",
        put({**key("empty-members"), "a": {"SS": [""]}, "b": {"SS": ["", "x"]}, "c": {"BS": [""]}, "d": {"BS": ["", "AA=="]}, "m": {"M": {"x": {"SS": [""]}}}, "l": {"L": [{"SS": [""]}]}}) + (ACCEPTED,),
        get(key("empty-members")) + (Answered(judge=lambda answer: answer["Item"]["a"] == {"SS": [""]} and sorted(answer["Item"]["d"]["BS"]) == ["", "AA=="]),),
    ),
    *[
        story(
            f"400 KB in {count} attributes",
            put(spread(count, ITEM_BYTES_MAX)) + (ACCEPTED,),
            put(spread(count, ITEM_BYTES_MAX + 1)) + (invalid_with(TOO_LARGE),),
        )
        for count in (2, 5, 10)
    ],
    story(
        "empty values that are no keys are taken",
        put({**key("empty"), "s": S(""), "b": {"B": ""}, "l": {"L": [S(""), S("x")]}}) + (ACCEPTED,),
        get(key("empty")) + (Answered({"Item": {**key("empty"), "s": S(""), "b": {"B": ""}, "l": {"L": [S(""), S("x")]}}}),),
    ),
    story(
        "an update of 4096 bytes is carried out",
        long_update("long-update", EXPRESSION_BYTES_MAX) + (ACCEPTED,),
        get(key("long-update")) + (Answered(judge=lambda answer: answer["Item"][FIRST] == S("x")),),
        long_update("long-update", OVER) + (invalid_with(TOO_LONG),),
    ),
    story(
        "a condition of 4096 bytes is looked at",
        put(key("long-condition"), ConditionExpression=absences(EXPRESSION_BYTES_MAX)) + (ACCEPTED,),
        put(key("long-condition"), ConditionExpression=absences(OVER)) + (invalid_with(TOO_LONG),),
    ),
    story(
        "a query's filter of 4096 bytes is looked at",
        put({**key("long-filter"), FIRST: S("x")}) + (ACCEPTED,),
        long_query(EXPRESSION_BYTES_MAX) + (Answered({"Count": 1}),),
        long_query(OVER) + (invalid_with(TOO_LONG),),
    ),
    case("a scan's filter of 4096 bytes is taken", *filtered("Scan", EXPRESSION_BYTES_MAX), ACCEPTED),
    case("a scan's filter of 4097 bytes is refused", *filtered("Scan", OVER), invalid_with(TOO_LONG)),
    story(
        "a projection of 4096 bytes is followed",
        put({**key("long-projection"), FIRST: S("there")}) + (ACCEPTED,),
        get(key("long-projection"), ProjectionExpression=names(EXPRESSION_BYTES_MAX)) + (Answered({"Item": {FIRST: S("there")}}),),
        get(key("long-projection"), ProjectionExpression=names(OVER)) + (invalid_with(TOO_LONG),),
    ),
    story(
        "what names stand for does not count",
        put(key("aliases")) + (ACCEPTED,),
        get(key("aliases"), ProjectionExpression=", ".join(ALIASES), ExpressionAttributeNames=ALIASES) + (Answered({"Item": {}}),),
    ),
    story(
        "a transaction's expressions have 4096 bytes each",
        transact(("Put", {"Item": {**key("long-tx"), "r": S("y")}, "ConditionExpression": absences(EXPRESSION_BYTES_MAX)})) + (ACCEPTED,),
        get(key("long-tx")) + (Answered({"Item": {**key("long-tx"), "r": S("y")}}),),
        transact(("Put", {"Item": key("long-tx"), "ConditionExpression": absences(OVER)})) + (invalid_with(TOO_LONG),),
        transact(("Update", {"Key": key("long-tx"), "UpdateExpression": sets(OVER)[0], "ExpressionAttributeValues": sets(OVER)[1]})) + (invalid_with(TOO_LONG),),
        transact(("Put", {"Item": key("long-tx-2")}), ("Put", {"Item": key("long-tx-3"), "ConditionExpression": absences(OVER)})) + (invalid_with(TOO_LONG),),
        get(key("long-tx-2")) + (Answered(without=("Item",)),),
    ),
    story(
        "32 levels are taken",
        put({**key("deep"), "d": deep(31)}) + (ACCEPTED,),
        get(key("deep")) + (Answered({"Item": {**key("deep"), "d": deep(31)}}),),
        put({**key("deep"), "d": deep(32)}) + (invalid_with(TOO_DEEP),),
        ("BatchWriteItem", {"RequestItems": {TEXT: [{"PutRequest": {"Item": {**key("deep-batch"), "d": deep(31)}}}]}}, Answered({"UnprocessedItems": {}})),
        get(key("deep-batch")) + (Answered({"Item": {**key("deep-batch"), "d": deep(31)}}),),
        ("BatchWriteItem", {"RequestItems": {TEXT: [{"PutRequest": {"Item": {**key("deep-batch"), "d": deep(32)}}}]}}, invalid_with(TOO_DEEP)),
        transact(("Put", {"Item": {**key("deep-tx"), "d": deep(31)}})) + (ACCEPTED,),
        get(key("deep-tx")) + (Answered({"Item": {**key("deep-tx"), "d": deep(31)}}),),
        transact(("Put", {"Item": {**key("deep-tx"), "d": deep(32)}})) + (invalid_with(TOO_DEEP),),
    ),
    story(
        "values of conditions have 32 levels too",
        put({**key("deep-condition"), "m": S("x")}) + (ACCEPTED,),
        update(key("deep-condition"), "SET t = :t", {":t": S("y"), ":d": deep(31)}, **DEEP_CONDITION) + (Refused("ConditionalCheckFailedException"),),
        update(key("deep-condition"), "SET t = :t", {":t": S("y"), ":d": deep(32)}, **DEEP_CONDITION) + (invalid_with(TOO_DEEP),),
        # Regions differ in whether a transaction looks at its values before it runs.
        transact(("Update", {"Key": key("deep-condition"), "UpdateExpression": "SET d = :d", "ExpressionAttributeValues": {":d": deep(32)}}))
        + (either(cancelled(("ValidationError", TOO_DEEP)), invalid_with(TOO_DEEP)),),
        transact(("Update", {"Key": key("deep-condition"), "UpdateExpression": "SET t = :t", **DEEP_CONDITION, "ExpressionAttributeValues": {":t": S("y"), ":d": deep(32)}}))
        + (either(cancelled("ConditionalCheckFailed"), invalid_with(TOO_DEEP)),),
        transact(("ConditionCheck", {"Key": key("deep-condition"), **DEEP_CONDITION, "ExpressionAttributeValues": {":d": deep(32)}}))
        + (either(cancelled("ConditionalCheckFailed"), invalid_with(TOO_DEEP)),),
    ),
]  # fmt: skip
