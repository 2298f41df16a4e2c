"""The functions of PartiQL where they are refused."""

from .case import ACCEPTED, Answered, case, invalid, story
from .statements import IN_TRANSACTION, in_batch, together
from .tables import TEXT
from .values import S, key

ITEM = {**key("functions"), "ss": {"SS": ["a", "b", "c"]}, "ns": {"NS": ["1", "2", "3"]}, "s": S("str"), "m": {"M": {"inner": {"SS": ["x"]}}}}
NOT_WELL_FORMED = "Statement wasn't well formed, can't be processed: "
PATH_NEEDED = "Operator or function requires a document path; operator or function: attribute_exists"
OPERANDS = "Incorrect number of operands for operator or function; operator or function: attribute_exists, number of operands: {}"
WRONG_TYPE = "An operand in the update expression has an incorrect data type"


def where(condition):
    return f"SELECT * FROM \"{TEXT}\" WHERE pk = 'functions' AND {condition}"


def update(assignment):
    return f"UPDATE \"{TEXT}\" SET {assignment} WHERE pk = 'functions'"


def at(statement, token, after=""):
    """Where the statement has this token, as messages say it."""
    found = statement.index(token, statement.index(after) + len(after))
    return f"1:{found + 1}:{len(token)}"


def first_must_be_target(assignment, function):
    statement = update(assignment)
    return statement, f"The first argument to {function.upper()} must equal the assignment value at {at(statement, function)}"


def second_must_be_set(assignment, function):
    # The place is that of the first argument.
    statement = update(assignment)
    return statement, f"The second argument to {function.upper()} must be a value with type SET at {at(statement, 'ss', function + '(')}"


def two_arguments(assignment):
    statement = update(assignment)
    return statement, f"SET_ADD must have exactly two arguments at {at(statement, 'set_add')}"


def unrecognized(condition, name, written):
    statement = where(condition)
    return statement, f"Unrecognized function: {name} at {at(statement, written)}"


SELECTED = f"SELECT attribute_exists(ss) FROM \"{TEXT}\" WHERE pk = 'functions'"
INSERTED = f"INSERT INTO \"{TEXT}\" VALUE {{'pk': 'functions-2', 'ss': set_add(<<'a'>>, <<'b'>>)}}"

STATEMENTS = [
    (where("attribute_exists('ss')"), PATH_NEEDED),
    (where("attribute_exists()"), OPERANDS.format(0)),
    (where("attribute_exists(ss, ns)"), OPERANDS.format(2)),
    (where("attribute_exists(m.inner)"), NOT_WELL_FORMED + "Invalid path dot component"),
    (SELECTED, f"Unexpected path component at {at(SELECTED, 'attribute_exists')}"),
    unrecognized("EXISTS(ss)", "exists", "EXISTS"),
    unrecognized("set_add(ss, <<'x'>>) = ss", "set_add", "set_add"),
    first_must_be_target("t = set_add(ss, <<'x'>>)", "set_add"),
    first_must_be_target("ss = set_add(<<'a'>>, <<'b'>>)", "set_add"),
    first_must_be_target("t = set_delete(ss, <<'a'>>)", "set_delete"),
    second_must_be_set("ss = set_add(ss, 'x')", "set_add"),
    second_must_be_set("ss = set_add(ss, ['x'])", "set_add"),
    second_must_be_set("ss = set_delete(ss, 'a')", "set_delete"),
    two_arguments("ss = set_add(ss)"),
    two_arguments("ss = set_add(ss, <<'x'>>, <<'y'>>)"),
    (update("ss = set_add(ss, <<1>>)"), WRONG_TYPE),
    (update("s = set_add(s, <<'x'>>)"), WRONG_TYPE),
    (update("ss = set_delete(ss, <<1>>)"), WRONG_TYPE),
    (update("ss = set_add(ss, <<'x', 'x'>>)"), "One or more parameter values were invalid: Input collection [x, x] contains duplicates."),
    (update("ss = set_add(ss, <<>>)"), "Empty bags are not supported"),
    (update("m.inner = set_add(m.inner, <<'y'>>)"), NOT_WELL_FORMED + "Invalid path dot component"),
    (INSERTED, f"Unsupported data type: set_add under key root at {at(INSERTED, 'set_add')}"),
]

CASES = [
    *[
        story(statement, ("PutItem", {"TableName": TEXT, "Item": ITEM}, ACCEPTED), ("ExecuteStatement", {"Statement": statement}, invalid(text)))
        for statement, text in STATEMENTS
    ],
    case("attribute_exists of a parameter", "ExecuteStatement", {"Statement": where("attribute_exists(?)"), "Parameters": [S("ss")]}, invalid(PATH_NEEDED)),
    together(
        "a transaction reads by keys alone",
        invalid(IN_TRANSACTION + "Select statements within ExecuteTransaction must specify the primary key in the where clause."),
        (where("attribute_exists(ss)"),),
    ),
    in_batch(
        "a batch reads by keys alone",
        "Select statements within BatchExecuteStatement must specify the primary key in the where clause.",
        where("attribute_exists(ss)"),
    ),
    together(
        "EXISTS needs a further condition",
        invalid(IN_TRANSACTION + "EXISTS() must contain a single item read with additional condition"),
        (f"EXISTS(SELECT * FROM \"{TEXT}\" WHERE pk = 'functions')",),
        (f"UPDATE \"{TEXT}\" SET z = 1 WHERE pk = 'functions-2'",),
    ),
    story(
        "set_add and set_delete change the set",
        ("PutItem", {"TableName": TEXT, "Item": {**key("functions-3"), "ss": {"SS": ["a", "b"]}}}, ACCEPTED),
        ("ExecuteStatement", {"Statement": f"UPDATE \"{TEXT}\" SET ss = set_add(ss, <<'c'>>) WHERE pk = 'functions-3'"}, ACCEPTED),
        ("ExecuteStatement", {"Statement": f"UPDATE \"{TEXT}\" SET ss = set_delete(ss, <<'a'>>) WHERE pk = 'functions-3'"}, ACCEPTED),
        ("GetItem", {"TableName": TEXT, "Key": key("functions-3")}, Answered({"Item": {**key("functions-3"), "ss": {"SS": ["b", "c"]}}})),
    ),
]  # fmt: skip
