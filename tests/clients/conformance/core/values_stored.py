"""What items can hold: types, numbers, sets and keys, as they are written and as they come back."""

from .steps import ABSENT, Case, Exactly, delete, done, get, index, item, missing, put, refused, stored, table
from .values import typed

H, C, N, NS, B = (f"values-{name}" for name in ("hash", "composite", "number", "number-sorted", "bytes-sorted"))
X = "values-indexed"
TABLES = [
    table(H, ["pk"]),
    table(C, ["pk", "sk"]),
    table(N, ["pk"], {"pk": "N"}),
    table(NS, ["pk", "sk"], {"sk": "N"}),
    table(B, ["pk", "sk"], {"sk": "B"}),
    table(X, ["pk", "sk"], LocalSecondaryIndexes=[index("local", "pk", "lk")], GlobalSecondaryIndexes=[index("global", "lk")]),
]
SEED = []

ROUND_TRIPS = {
    "every type": {
        "s": "hello", "b": b"\x01\x02\x03", "yes": True, "no": False, "nothing": None, "ss": {"a", "b", "c"}, "ns": {1, 2, 3},
        "bs": {b"\x01", b"\x02"}, "l": ["one", 99, True], "m": {"in": "value", "n": 7},
    },
    "a map three levels deep": {"m": {"a": {"b": {"c": "deep"}}}},
    "a list of all kinds": {"l": ["text", 1, True, None, {"x": "y"}, [1, [2]], {"a", "b"}]},
    "maps in a list in a map": {"m": {"l": [{"name": "first", "n": 100}, {"name": "second", "n": 200}]}},
    "an empty text": {"s": ""},
    "no bytes": {"b": b""},
    "an empty list and an empty map": {"l": [], "m": {}},
    "a hundred kilobytes": {"s": "x" * 100 * 1024},
    "every byte": {"b": bytes(range(256))},
    "a set with an empty text": {"ss": {"", "a"}},
    "a set with no bytes": {"bs": {b"", b"\x01"}},
}  # fmt: skip

# Numbers as they are sent, and as they come back.
NUMBERS = {
    "+5": "5", "+1.5": "1.5", "+0": "0", "-0": "0", "+0.0": "0", "+1e2": "100", "1e+2": "100", "1.5E+3": "1500", "+.5": "0.5",
    ".5": "0.5", "5.": "5", "1.": "1", "1.e5": "100000", "00042": "42", "+1e-2": "0.01", "1.23E10": "12300000000",
    "123.456": "123.456", "12345678901234567890123456789012345678": "12345678901234567890123456789012345678",
    "9.9999999999999999999999999999999999999E+125": "99999999999999999999999999999999999999" + "0" * 88,
    "-9.9999999999999999999999999999999999999E+125": "-99999999999999999999999999999999999999" + "0" * 88,
    "1E-130": "0." + "0" * 129 + "1",
}  # fmt: skip
NO_NUMBERS = [
    "+e2", "e2", "+1+2", "1+2", "+1.2.3", "1.2.3", "++5", "+-5", "-+5", "+", "-", "1e", "1e+", ".", "1.2e3.4", "0x5", "NaN",
    "Infinity", "1_000", " 5", "5 ", "1 5", "",
]  # fmt: skip

# Sets that no item may hold, and what is said of them.
NO_SETS = [
    ({"SS": []}, "empty"),
    ({"NS": []}, "empty"),
    ({"BS": []}, "empty"),
    ({"SS": ["a", "a"]}, "duplicates"),
    ({"SS": ["", ""]}, "duplicates"),
    ({"NS": ["1", "1", "2"]}, "duplicates"),
    ({"NS": ["1", "1.0"]}, "duplicates"),
    ({"BS": ["AQ==", "AQ=="]}, "duplicates"),
    ({"BS": ["", ""]}, "duplicates"),
    ({"NS": [""]}, ""),
]


def raw(table, attributes, **more):
    return "PutItem", {"TableName": table, "Item": attributes, **more}


def key_case(claim, table, key):
    return Case(claim, [
        done(put(table, {**key, "a": 1})),
        stored(table, key, {"a": 1}),
        done(delete(table, key)),
        missing(table, key),
    ])  # fmt: skip


CASES = [
    *(Case(f"comes back: {name}", [done(put(H, {"pk": name, **attributes})), stored(H, {"pk": name}, attributes)])
      for name, attributes in ROUND_TRIPS.items()),
    *(Case(f"the number {sent!r}", [
        done(raw(H, {"pk": {"S": "number"}, "n": {"N": sent}})),
        done(get(H, {"pk": "number"}), {"Item": {"n": Exactly({"N": back})}}),
    ]) for sent, back in NUMBERS.items()),
    *(Case(f"no number: {sent!r}", [
        refused(raw(H, {"pk": {"S": "no number"}, "n": {"N": sent}}), "ValidationException"),
        missing(H, {"pk": "no number"}),
    ]) for sent in NO_NUMBERS),
    *(Case(f"no set: {value!r}", [
        refused(raw(H, {"pk": {"S": "no set"}, "bad": value}), "ValidationException", text),
        missing(H, {"pk": "no set"}),
    ]) for value, text in NO_SETS),
    Case("a number is the same key however it is written", [
        done(raw(NS, {"pk": {"S": "a"}, "sk": {"N": "+5"}, "a": typed(1)})),
        stored(NS, {"pk": "a", "sk": 5}, {"a": 1}),
        done(("GetItem", {"TableName": NS, "Key": {"pk": {"S": "a"}, "sk": {"N": "5.0e0"}}}), {"Item": item(sk=5)}),
    ]),
    key_case("a text is a key", H, {"pk": "text"}),
    key_case("two texts are a key", C, {"pk": "text", "sk": "more"}),
    key_case("a number is a key", N, {"pk": 42}),
    key_case("a negative number is a key", N, {"pk": -100}),
    Case("a fraction is a key", [
        done(raw(N, {"pk": {"N": "3.14"}, "a": typed(1)})),
        done(("GetItem", {"TableName": N, "Key": {"pk": {"N": "3.140"}}}), {"Item": Exactly({"pk": {"N": "3.14"}, "a": {"N": "1"}})}),
    ]),
    key_case("a number sorts", NS, {"pk": "p", "sk": 99}),
    key_case("bytes sort", B, {"pk": "p", "sk": b"\x01\x02\x03"}),
    key_case("bytes that are no text sort", B, {"pk": "p", "sk": b"\xff\x00\x7f\x80"}),
    Case("a put replaces the whole item", [
        done(put(H, {"pk": "replaced", "old": 1})),
        done(put(H, {"pk": "replaced", "new": 1})),
        stored(H, {"pk": "replaced"}, {"new": 1}),
    ]),
    Case("a put returns what it replaced, where that is asked for", [
        done(put(H, {"pk": "returned", "old": 1}, ReturnValues="ALL_OLD"), {"Attributes": ABSENT}),
        done(put(H, {"pk": "returned", "new": 1}, ReturnValues="ALL_OLD"), {"Attributes": Exactly(item(pk="returned", old=1))}),
        done(put(H, {"pk": "returned"}), {"Attributes": ABSENT}),
    ]),
    Case("a delete returns what it deleted, where that is asked for", [
        done(put(H, {"pk": "deleted", "old": 1})),
        done(delete(H, {"pk": "deleted"}, ReturnValues="ALL_OLD"), {"Attributes": Exactly(item(pk="deleted", old=1))}),
        done(delete(H, {"pk": "deleted"}, ReturnValues="ALL_OLD"), {"Attributes": ABSENT}),
        done(delete(H, {"pk": "deleted"}), Exactly({})),
    ]),
    Case("reads may be consistent or not", [
        done(get(H, {"pk": "none"}, ConsistentRead=True), Exactly({})),
        done(get(H, {"pk": "none"}, ConsistentRead=False), Exactly({})),
        done(put(C, {"pk": "half", "sk": "1"})),
        done(get(C, {"pk": "half", "sk": "1"}), {"Item": item(pk="half", sk="1")}),
        done(get(C, {"pk": "half", "sk": "2"}), Exactly({})),
    ]),
    Case("an item needs its key", [
        refused(put(H, {"other": "x"}), "ValidationException", "Missing the key pk in the item"),
        refused(get(C, {"pk": "x"}), "ValidationException", "The provided key element does not match the schema"),
    ]),
    Case("keys of indexes have their types too, where an item has them", [
        refused(put(X, {"pk": "a", "sk": "b", "lk": 5}), "ValidationException", "Type mismatch for Index Key lk Expected: S Actual: N"),
        refused(put(X, {"pk": "a", "sk": "b", "lk": ["x"]}), "ValidationException"),
        refused(put(X, {"pk": "a", "sk": "b", "lk": ""}), "ValidationException", "secondary index key"),
        missing(X, {"pk": "a", "sk": "b"}),
    ]),
    Case("return values that are none", [
        refused(put(H, {"pk": "x"}, ReturnValues="INVALID"), "ValidationException", "ALL_OLD"),
    ]),
    Case("expressions and what came before them do not mix", [
        refused(put(H, {"pk": "x"}, Expected={"pk": {"Exists": False}}, ConditionExpression="attribute_not_exists(pk)"),
                "ValidationException", "Can not use both expression and non-expression parameters in the same request"),
    ]),
    Case("a table that is not there", [
        refused(put("values-none", {"pk": "x"}), "ResourceNotFoundException"),
        refused(get("values-none", {"pk": "x"}), "ResourceNotFoundException"),
        refused(delete("values-none", {"pk": "x"}), "ResourceNotFoundException"),
    ]),
]  # fmt: skip
