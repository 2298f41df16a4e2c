"""The language that cases are written in: requests, what they must answer, and how both are compared.

A case is a claim and its steps. A step is sent to the server and compared; the first that differs fails the case.
"""

import dataclasses
import json
import time
import typing
import urllib.error
import urllib.request

from .values import item, plain, typed

REQUEST_SECS_MAX = 30
PAGES_MAX = 60
SIGNATURE = (
    "AWS4-HMAC-SHA256 Credential=any/20260101/us-east-1/dynamodb/aws4_request, "
    "SignedHeaders=host;x-amz-date, Signature=" + "0" * 64
)
STREAMS = ("ListStreams", "DescribeStream", "GetShardIterator", "GetRecords")


@dataclasses.dataclass
class Case:
    claim: str
    steps: list


class Refusal(Exception):
    """The server refused a request."""

    def __init__(self, status, body):
        self.status = status
        self.body = body
        self.kind = body.get("__type", "").rsplit("#", 1)[-1]
        self.text = body.get("message", body.get("Message", ""))
        super().__init__(f"{status} {self.kind}: {self.text}")


class Server:
    """An endpoint that speaks DynamoDB's JSON, and what the steps of one case remember of its answers."""

    def __init__(self, endpoint):
        self.endpoint = endpoint
        self.remembered = {}

    def send(self, operation, body):
        service = "DynamoDBStreams_20120810" if operation in STREAMS else "DynamoDB_20120810"
        request = urllib.request.Request(
            self.endpoint,
            data=json.dumps(self.filled(body)).encode(),
            headers={
                "Content-Type": "application/x-amz-json-1.0",
                "X-Amz-Target": f"{service}.{operation}",
                "X-Amz-Date": "20260101T000000Z",
                "Authorization": SIGNATURE,
            },
        )
        try:
            with urllib.request.urlopen(request, timeout=REQUEST_SECS_MAX) as answer:
                text = answer.read()
                # Some operations answer nothing at all.
                return json.loads(text) if text else {}
        except urllib.error.HTTPError as error:
            raise Refusal(error.code, json.load(error)) from None

    def filled(self, body):
        """The body with what earlier steps remembered in its places."""
        if isinstance(body, Remembered):
            return self.remembered[body.name]
        if isinstance(body, dict):
            return {name: self.filled(value) for name, value in body.items()}
        if isinstance(body, list):
            return [self.filled(value) for value in body]
        return body


@dataclasses.dataclass
class Remembered:
    """A place in a body for what an earlier step took from its answer."""

    name: str


ABSENT = object()


@dataclasses.dataclass
class Exactly:
    """Nothing more and nothing else than this."""

    value: typing.Any


@dataclasses.dataclass
class Satisfies:
    """A value that a test on it holds for."""

    words: str
    test: typing.Callable


def compare(found, wanted, at="the answer"):
    """Fails where `found` is not what is wanted. A dictionary may have more fields than are wanted, a list may not."""
    if isinstance(wanted, Exactly):
        assert found == wanted.value, f"{at} is {found!r}, not {wanted.value!r}"
    elif isinstance(wanted, Satisfies):
        assert wanted.test(found), f"{at} is {found!r}, not {wanted.words}"
    elif isinstance(wanted, dict):
        assert isinstance(found, dict), f"{at} is {found!r}, no object"
        for name, value in wanted.items():
            if value is ABSENT:
                assert name not in found, f"{at} has {name}: {found.get(name)!r}"
            else:
                assert name in found, f"{at} has no {name}: {found!r}"
                compare(found[name], value, f"{at}.{name}")
    elif isinstance(wanted, list):
        assert isinstance(found, list) and len(found) == len(wanted), f"{at} is {found!r}, not {len(wanted)} long"
        for position, (one, other) in enumerate(zip(found, wanted)):
            compare(one, other, f"{at}[{position}]")
    else:
        assert found == wanted, f"{at} is {found!r}, not {wanted!r}"


def column(name, *wanted):
    """A list of items whose attribute `name` has these values, in this order."""
    return Satisfies(f"{name} of {list(wanted)}", lambda items: [shown(found, name) for found in items] == list(wanted))


def rows(name, *wanted):
    """A list of items whose attribute `name` has these values, in whatever order."""
    return Satisfies(
        f"{name} of {sorted(wanted)}", lambda items: sorted(shown(found, name) for found in items) == sorted(wanted)
    )


def shown(found, name):
    return plain(found[name]) if name in found else None


def exact_items(*items):
    return [Exactly(item(each)) for each in items]


def containing(wanted):
    return Satisfies(f"something with {wanted!r}", lambda found: wanted in found)


zero = Satisfies("zero, without a sign", lambda found: str(found) in ("0", "0.0"))
positive = Satisfies("positive", lambda found: found > 0)
some_text = Satisfies("a text", lambda found: isinstance(found, str) and found != "")


class Answers:
    """A request that must succeed, and what its answer must have."""

    def __init__(self, operation, body, wanted=None, remember=None):
        self.operation, self.body, self.wanted = operation, body, wanted
        self.remember = remember or {}

    def run(self, server):
        answer = server.send(self.operation, self.body)
        if self.wanted is not None:
            compare(answer, self.wanted)
        for name, path in self.remember.items():
            found = answer
            for part in path:
                found = found[part]
            server.remembered[name] = found


class Refuses:
    """A request that must be refused as a client's error of this type, its text holding each of `texts`."""

    def __init__(self, operation, body, kind, *texts, whole=None, wanted=None):
        self.operation, self.body, self.kind, self.texts = operation, body, kind, texts
        self.whole, self.wanted = whole, wanted

    def run(self, server):
        try:
            answer = server.send(self.operation, self.body)
        except Refusal as refusal:
            assert (refusal.status, refusal.kind) == (400, self.kind), str(refusal)
            for text in self.texts:
                assert text.lower() in refusal.text.lower(), f"{refusal} has no {text!r}"
            if self.whole is not None:
                assert refusal.text == self.whole, str(refusal)
            if self.wanted is not None:
                compare(refusal.body, self.wanted, "the error")
        else:
            raise AssertionError(f"{self.operation} was accepted: {answer!r}")


class Walks:
    """Reads page after page; every item must come once, and each cursor must have exactly these attributes."""

    def __init__(self, operation, body, attribute, wanted, cursor=None, pages_min=1):
        self.operation, self.body, self.attribute, self.wanted = operation, body, attribute, wanted
        self.cursor, self.pages_min = cursor, pages_min

    def run(self, server):
        body, seen = dict(self.body), []
        for pages in range(1, PAGES_MAX):
            answer = server.send(self.operation, body)
            seen += [plain(found[self.attribute]) for found in answer["Items"]]
            cursor = answer.get("LastEvaluatedKey")
            if cursor is None:
                break
            if self.cursor is not None:
                assert sorted(cursor) == sorted(self.cursor), f"the cursor is {cursor!r}"
            body["ExclusiveStartKey"] = cursor
        else:
            raise AssertionError(f"not read after {PAGES_MAX} pages: {seen!r}")
        assert sorted(seen) == sorted(self.wanted), f"{sorted(seen)!r} came, not {sorted(self.wanted)!r}"
        assert pages >= self.pages_min, f"it took {pages} pages"


class Until:
    """Repeats a request until its answer is as wanted, for a bounded time."""

    def __init__(self, operation, body, wanted, secs_max=20):
        self.operation, self.body, self.wanted, self.secs_max = operation, body, wanted, secs_max

    def run(self, server):
        deadline = time.monotonic() + self.secs_max
        while True:
            try:
                return compare(server.send(self.operation, self.body), self.wanted)
            except AssertionError:
                if time.monotonic() > deadline:
                    raise


# Requests in few words. `more` are further fields of the body.


def put(table, attributes, **more):
    return "PutItem", {"TableName": table, "Item": item(attributes), **more}


def get(table, key, **more):
    return "GetItem", {"TableName": table, "Key": item(key), **more}


def update(table, key, expression=None, values=None, **more):
    return "UpdateItem", {**keyed(table, key), **expressed("UpdateExpression", expression, values), **more}


def delete(table, key, **more):
    return "DeleteItem", {**keyed(table, key), **more}


def query(table, condition, values, **more):
    return "Query", {"TableName": table, **expressed("KeyConditionExpression", condition, values), **more}


def scan(table, filtered=None, values=None, **more):
    return "Scan", {"TableName": table, **expressed("FilterExpression", filtered, values), **more}


def execute(statement, *parameters, **more):
    body = {"Statement": statement, **more}
    if parameters:
        body["Parameters"] = [typed(parameter) for parameter in parameters]
    return "ExecuteStatement", body


def keyed(table, key):
    return {"TableName": table, "Key": item(key)}


def expressed(field, expression, values):
    """An expression and its values, where they are given."""
    body = {} if expression is None else {field: expression}
    if values:
        body["ExpressionAttributeValues"] = item(values)
    return body


def condition(expression, values=None, names=None):
    """The fields of a condition on a write."""
    body = expressed("ConditionExpression", expression, values)
    if names:
        body["ExpressionAttributeNames"] = names
    return body


def done(request, wanted=None, remember=None):
    return Answers(*request, wanted, remember)


def refused(request, kind, *texts, **more):
    return Refuses(*request, kind, *texts, **more)


def stored(table, key, attributes):
    """An item is there, with these attributes and no others beside its key."""
    return Answers(*get(table, key, ConsistentRead=True), {"Item": Exactly(item({**key, **attributes}))})


def missing(table, key):
    """No item is there."""
    return Answers(*get(table, key, ConsistentRead=True), {"Item": ABSENT})


# Tables in few words.


def key_schema(*names):
    return [{"AttributeName": name, "KeyType": kind} for name, kind in zip(names, ("HASH", "RANGE"))]


def projection(kind="ALL", *attributes):
    return {"ProjectionType": kind, **({"NonKeyAttributes": list(attributes)} if attributes else {})}


def index(name, *keys, project=None):
    return {"IndexName": name, "KeySchema": key_schema(*keys), "Projection": project or projection()}


def table(name, keys, attributes=None, **more):
    """The body that creates a table; `attributes` are the types of the keys, text where none is given."""
    attributes = attributes or {}
    used = list(keys)
    for kind in ("LocalSecondaryIndexes", "GlobalSecondaryIndexes"):
        for each in more.get(kind, []):
            used += [part["AttributeName"] for part in each["KeySchema"]]
    definitions = [{"AttributeName": name, "AttributeType": attributes.get(name, "S")} for name in dict.fromkeys(used)]
    return {
        "TableName": name,
        "AttributeDefinitions": definitions,
        "KeySchema": key_schema(*keys),
        **({} if "ProvisionedThroughput" in more else {"BillingMode": "PAY_PER_REQUEST"}),
        **more,
    }
