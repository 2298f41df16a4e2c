"""PartiQL: wording of refusals, order of checks, numbers of parameters."""

from .case import Answered, Refused, case, invalid, invalid_with
from .tables import ABSENT, INDEXED, PAIR, TEXT
from .values import NOT_NUMERIC, TOO_DEEP, UNDERFLOW, N, S, deep

NO_INDEX = "The table does not have the specified index"
NOT_CONSISTENT = "Strongly consistent read is not supported on Global Secondary Indexes"
RETURNING = "Invalid returning clause: RETURNING {} *. Only RETURNING ALL OLD * is allowed in DELETE statements."
IN_TRANSACTION = "Validation failed in TransactStatements[0]: "


def run(name, answer, statement, *parameters, **more):
    body = {"Statement": statement, **({"Parameters": list(parameters)} if parameters else {}), **more}
    return case(name, "ExecuteStatement", body, answer)


def together(name, answer, *statements):
    """Statements of a transaction, each a text and its parameters."""
    listed = [{"Statement": text, **({"Parameters": list(given)} if given else {})} for text, *given in statements]
    return case(name, "ExecuteTransaction", {"TransactStatements": listed}, answer)


def in_batch(name, message, statement, *parameters):
    """A statement of a batch that fails by itself."""
    judge = lambda answer: answer["Responses"][0]["Error"] == {"Code": "ValidationError", "Message": message}  # noqa: E731
    listed = [{"Statement": statement, **({"Parameters": list(parameters)} if parameters else {})}]
    return case(name, "BatchExecuteStatement", {"Statements": listed}, Answered(judge=judge))


POSITIONS = [
    ("a comparison", f"SELECT * FROM \"{PAIR}\" WHERE pk = 'x' AND n = ?"),
    ("a new item", f"INSERT INTO \"{PAIR}\" VALUE {{'pk': 'x', 'sk': 's', 'n': ?}}"),
    ("an assignment", f"UPDATE \"{PAIR}\" SET n = ? WHERE pk = 'x' AND sk = 's'"),
    ("a key", f'SELECT * FROM "{PAIR}" WHERE pk = ?'),
]
COMPARES, _, ASSIGNS, _ = [statement for _, statement in POSITIONS]
TWO = f"SELECT * FROM \"{PAIR}\" WHERE pk = 'x' AND a = ? AND b = ?"
TOO_FAR = ["1e99999999999", "-1e99999999999", "1e-99999999999", "1e2147483648", "1e-2147483648"]
FAR = N("1e99999999999")
UNREADABLE = f"{NOT_NUMERIC}: 1e99999999999"

CASES = [
    *[run(f"delete returning {what}", invalid(RETURNING.format(what)), f"DELETE FROM \"{TEXT}\" WHERE pk = 'x' RETURNING {what} *") for what in ("MODIFIED OLD", "ALL NEW", "MODIFIED NEW")],
    together("transaction with a returning statement", invalid(IN_TRANSACTION + "RETURNING clause is not supported in ExecuteTransaction."), (f"UPDATE \"{TEXT}\" SET a = 'v' WHERE pk = 'x' RETURNING ALL NEW *",)),
    together("transaction that reads an index", invalid(IN_TRANSACTION + "Reads on indices are not supported within transactions."), (f"SELECT * FROM \"{INDEXED}\".\"by-g\" WHERE g = 'x'",)),
    run("filter that a global index does not have", invalid("One or more parameter values were invalid: Secondary index by-h does not project one or more filter attributes: [lost]"), f"SELECT pk FROM \"{INDEXED}\".\"by-h\" WHERE h = 'y' AND lost = 'n'"),
    run("filter that a local index does not have", invalid("One or more parameter values were invalid: Secondary index by-l does not project one or more filter attributes: [lost]"), f"SELECT pk FROM \"{INDEXED}\".\"by-l\" WHERE pk = 'y' AND lost = 'n'"),
    run("attribute that a global index does not have", invalid("One or more parameter values were invalid: Global secondary index by-h does not project [lost]"), f"SELECT lost FROM \"{INDEXED}\".\"by-h\" WHERE h = 'y'"),
    run("missing index", invalid(NO_INDEX), f"SELECT * FROM \"{INDEXED}\".\"none\" WHERE pk = 'p'"),
    run("table as its own index", invalid(NO_INDEX), f"SELECT * FROM \"{INDEXED}\".\"{INDEXED}\" WHERE pk = 'p'"),
    run("missing index before a consistent read", invalid(NO_INDEX), f'SELECT * FROM "{INDEXED}"."none"', ConsistentRead=True),
    run("consistent read of a global index", invalid(NOT_CONSISTENT), f'SELECT * FROM "{INDEXED}"."by-g"', ConsistentRead=True),
    run("consistent query of a global index", invalid(NOT_CONSISTENT), f"SELECT * FROM \"{INDEXED}\".\"by-g\" WHERE g = 'x'", ConsistentRead=True),
    run("three names", invalid("A path may contain at most 2 components in the FROM clause"), f"SELECT * FROM \"{INDEXED}\".\"by-g\".\"more\" WHERE pk = 'p'"),
    run("empty name of an index", invalid("Path component cannot be an empty string"), f"SELECT * FROM \"{INDEXED}\".\"\" WHERE pk = 'p'"),
    run("empty name of a table", invalid("Path component cannot be an empty string"), "SELECT * FROM \"\" WHERE pk = 'p'"),
    run("name without its end", invalid_with("Statement wasn't well formed, can't be processed"), f'SELECT * FROM "{TEXT}'),
    run("missing table", Refused("ResourceNotFoundException", fragments=("Requested resource not found",)), f"SELECT * FROM \"{ABSENT}\" WHERE pk = 'p'"),
    run("less than a boolean", invalid("Incorrect operand type for operator or function; operator or function: <, operand type: BOOL"), f"SELECT pk FROM \"{TEXT}\" WHERE pk = 'x' AND v < ?", {"BOOL": True}),
    run("less than a boolean before a missing table", invalid_with("Incorrect operand type"), f'SELECT pk FROM "{ABSENT}" WHERE pk = ? AND v < ?', S("x"), {"BOOL": True}),
    run("missing table with parameters", Refused("ResourceNotFoundException"), f'SELECT pk FROM "{ABSENT}" WHERE pk = ?', S("x")),
    *[
        run(f"{number} as {where}", invalid(f"{NOT_NUMERIC}: {number}"), statement, N(number))
        for number in TOO_FAR
        for where, statement in POSITIONS
    ],
    *[run(f"the largest exponent as {where}", invalid(UNDERFLOW), statement, N("1e2147483647")) for where, statement in POSITIONS],
    *[run(f"no digits as {where}", invalid(NOT_NUMERIC), statement, N("")) for where, statement in POSITIONS],
    run("unreadable number in a list", invalid(UNREADABLE), COMPARES, {"L": [N(1), FAR]}),
    run("unreadable number in a map", invalid(UNREADABLE), COMPARES, {"M": {"x": FAR}}),
    run("unreadable number in a set", invalid(UNREADABLE), COMPARES, {"NS": ["1", "1e99999999999"]}),
    together("unreadable number in a transaction", invalid(UNREADABLE), (ASSIGNS, FAR)),
    in_batch("unreadable number in a batch", UNREADABLE, f"SELECT * FROM \"{PAIR}\" WHERE pk = 'x' AND sk = 's' AND n = ?", FAR),
    *[
        made
        for levels in (40, 100)
        for made in [
            run(f"{levels} levels before letters", invalid(TOO_DEEP), TWO, deep(levels), N("abc")),
            run(f"letters before {levels} levels", invalid(f"{NOT_NUMERIC}: abc"), TWO, N("abc"), deep(levels)),
            run(f"{levels} levels before letters in a map", invalid(TOO_DEEP), COMPARES, {"M": {"d": deep(levels), "x": N("abc")}}),
            run(f"letters before {levels} levels in a map", invalid(f"{NOT_NUMERIC}: abc"), COMPARES, {"M": {"x": N("abc"), "d": deep(levels)}}),
            run(f"letters below {levels} levels", invalid(TOO_DEEP), COMPARES, deep(levels, N("abc"))),
            run(f"{levels} levels before a number past the largest", invalid(TOO_DEEP), TWO, deep(levels), N("1e126")),
            together(f"{levels} levels before letters in a transaction", invalid(TOO_DEEP), (f"UPDATE \"{PAIR}\" SET a = ? SET b = ? WHERE pk = 'x' AND sk = '1'", deep(levels), N("abc"))),
            in_batch(f"{levels} levels before letters in a batch", TOO_DEEP, TWO, deep(levels), N("abc")),
        ]
    ],
]  # fmt: skip
