"""PartiQL statements that cannot be read, and literals that are no numbers here."""

from .case import case, invalid
from .tables import NUMBER, TEXT
from .values import OVERFLOW, TOO_PRECISE, UNDERFLOW

NOT_WELL_FORMED = "Statement wasn't well formed, can't be processed: "
LEFT_OVER = NOT_WELL_FORMED + "Unexpected token after expression"
ALIAS = "Aliasing is not supported"
N, T = f'"{NUMBER}"', f'"{TEXT}"'

# A statement and the whole text of its refusal.
STATEMENTS = [
    (f"SELECT * FROM {N} WHERE pk = 1 foo", LEFT_OVER),
    (f"SELECT * FROM {N} WHERE pk = 1 e5", LEFT_OVER),
    (f"SELECT * FROM {N} WHERE pk = 1)", LEFT_OVER),
    (f"SELECT * FROM {N} ORDER BY pk WHERE pk = 1", LEFT_OVER),
    (f"INSERT INTO {N} VALUE {{'pk': 1}} foo", LEFT_OVER),
    (f"INSERT INTO {T} t VALUE {{'pk': 'x'}}", LEFT_OVER),
    (f"UPDATE {N} SET a = 9 WHERE pk = 1 foo", LEFT_OVER),
    (f"DELETE FROM {N} WHERE pk = 1 foo", LEFT_OVER),
    (f"DELETE FROM {N} WHERE pk = 1 ORDER BY pk", LEFT_OVER),
    (f"SELECT * FROM {N} WHERE pk = 1e2147483648", NOT_WELL_FORMED),
    (f"SELECT * FROM {N} WHERE pk = 1e99999999999", NOT_WELL_FORMED),
    (f"SELECT * FROM {N} WHERE pk = 1.5e-2147483647", NOT_WELL_FORMED),
    (f"SELECT * FROM {N} WHERE pk = 1 # note", NOT_WELL_FORMED),
    (f"SELECT * FROM {N} WHERE pk = 1 /* note", NOT_WELL_FORMED),
    (f"SELECT * FROM {T} t WHERE pk = 'x'", ALIAS),
    (f"SELECT * FROM {T} AS t WHERE pk = 'x'", ALIAS),
    (f"UPDATE {T} t SET a = 3 WHERE pk = 'x'", ALIAS),
    (f"DELETE FROM {T} t WHERE pk = 'x'", ALIAS),
    (f"SELECT * FROM {N} WHERE pk = 1e126", f"{OVERFLOW} under root"),
    (f"SELECT * FROM {N} WHERE pk = 1e-131", f"{UNDERFLOW} under root"),
    (f"SELECT * FROM {N} WHERE pk = 123456789012345678901234567890123456789", f"{TOO_PRECISE} under root"),
    (f"INSERT INTO {N} VALUE {{'pk': 1e126}}", f"{OVERFLOW} under root"),
    (f"UPDATE {N} SET a = 1e-131 WHERE pk = 1", f"{UNDERFLOW} under root"),
    (f"INSERT INTO {N} VALUE {{'pk': 1, 'm': {{'x': 1e126}}}}", f"{OVERFLOW} under root.x"),
    (f"INSERT INTO {N} VALUE {{'pk': 1, 'l': [1, 1e126]}}", f"{OVERFLOW} under root[1]"),
]

CASES = [case(statement, "ExecuteStatement", {"Statement": statement}, invalid(text)) for statement, text in STATEMENTS]
