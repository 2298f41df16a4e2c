"""Why an answer differs, by the name of the case. Nobody here has asked the real service: a judgement names its ground.

"Published" means that answers of the real service from 2026 were found published with their texts, by a conformance suite that runs
against it or by a catalogue of its messages; those that matter are rows of crates/wire/tests/http/observed.rs."""

DELIBERATE = "deliberate: see the differences in dynamodb.md"
PARSER = "kept: the other shows its JSON parser's words, which cannot be the service's"
ACCEPTED = "kept: the other accepts a value of the wrong type"
DOCUMENTED = "kept: DynamoDB's documentation forbids it, the other accepts it"
DYNALITE = "kept: dynalite 4.0.0, a third implementation, answers as Homeport"
DYNALITE_UNCOUNTED = "kept: dynalite 4.0.0 has the same text, without the count of newer validation"
LEGACY_UNCOUNTED = "kept: the same text; the other counts what is wrong with Expected and with unknown actions too, but not this"
PUBLISHED = "kept: published with this text"
LIKE_PUBLISHED = "kept: published with this text for another request of the same kind"
SPLIT = "kept: regions of the service differ, and this is one of their two published texts"

JUDGEMENTS = {
    "body is a list": "mended: the text named our own types; the other accepts it",
    "consistent read is a string": ACCEPTED,
    "no table name, no key": "kept: the same faults in another order, which no source fixes",
    "create: only a name": DYNALITE,
    "create: attribute defined twice": PUBLISHED,
    "create: stream without view": PUBLISHED,
    "create: bad table class": PUBLISHED,
    "update table: nothing to do": PUBLISHED,
    "update table: delete a missing index": "kept: the other calls the index a table",
    "update table: create an index that exists": PUBLISHED,
    "update table: index key not defined": LIKE_PUBLISHED,
    "update table: stream is off already": PUBLISHED,
    "time to live: off already": PUBLISHED,
    "time to live: no specification": PARSER,
    "time to live: no attribute": PARSER,
    "tag: no tags": DYNALITE,
    "tag: not an ARN": PUBLISHED,
    "tag: empty key": PUBLISHED,
    "untag: no keys": DYNALITE,
    "put: number is a JSON number": "kept: the other calls a number TRUE_VALUE",
    "put: BOOL is text": "kept: the other and dynalite 4.0.0 accept a value of the wrong type",
    "put: bytes not in base 64": DYNALITE,
    "get: broken projection": "kept: the form that every other expression's syntax error has, in the other too",
    "get: path as list and as map": DYNALITE,
    "condition: too few operands": DYNALITE_UNCOUNTED,
    "condition: too many operands": DYNALITE_UNCOUNTED,
    "condition: size alone": DYNALITE_UNCOUNTED,
    "condition: attribute with itself": DYNALITE_UNCOUNTED,
    "condition: less than a boolean": "kept: published with this text for the same comparison in PartiQL",
    "condition: unknown attribute type": DYNALITE_UNCOUNTED,
    "condition: attribute type is a number": DYNALITE_UNCOUNTED,
    "condition: exists of a value": DYNALITE_UNCOUNTED,
    "condition: update function": "kept: users quote this text from the service",
    "condition: 101 in a list": "kept: 100 operands are the documented limit; the other and dynalite 4.0.0 accept more",
    "condition: more than 300 operators": "kept: 300 operators are the documented limit; the other and dynalite 4.0.0 accept more",
    "update: paths conflict": DYNALITE_UNCOUNTED,
    "update: delete a number": "mended: the service's answer to DELETE was found quoted with this name; the other's is that of ADD",
    "update: condition function": "kept: the counterpart of what users quote for conditions",
    "query: range key not equal": DYNALITE,
    "query: range key in": DYNALITE,
    "query: or": DYNALITE,
    "query: not": DYNALITE,
    "query: empty hash key": "kept: an empty key is refused in every operation whose answer is published",
    "query: contains": DYNALITE,
    "query: attribute exists": DYNALITE,
    "query: undefined value": DYNALITE,
    "query: short index name": DYNALITE,
    "scan: segment beyond total": PUBLISHED,
    "scan: no segments": PUBLISHED,
    "scan: segment below 0": DYNALITE,
    "scan: too many segments": "kept: the form of every other broken constraint; the other leaves the value out",
    "scan: limit 0": PUBLISHED,
    "scan: specific without projection": "kept: no published answer is known; published answers of a scan are not counted",
    "scan: start key incomplete": SPLIT,
    "scan: start key with too much": SPLIT,
    "batch get: nothing": SPLIT,
    "batch get: keys missing": DYNALITE,
    "batch get: broken projection": "kept: the form that every other expression's syntax error has, in the other too",
    "batch write: nothing": PUBLISHED,
    "batch write: put and delete in one": "kept: one request is one write; the other and dynalite 4.0.0 accept two",
    "batch write: 26 requests": DELIBERATE,
    "transact write: nothing": PARSER,
    "transact write: 101 items": DELIBERATE,
    "transact write: check without condition": PARSER,
    "transact write: update without expression": PARSER,
    "transact write: update of a key": "kept: a key cannot be updated; the other accepts it",
    "transact get: nothing": PARSER,
    "transact get: 101 items": DELIBERATE,
    "legacy: update put without value": LEGACY_UNCOUNTED,
    "legacy: update add text": LEGACY_UNCOUNTED,
    "legacy: update delete a number": LEGACY_UNCOUNTED,
    "legacy: query no conditions": "kept: dynalite's source has this text for it",
    "legacy: query range key in": "kept: dynalite's source has this text for it",
    "statement: none": PARSER,
}
