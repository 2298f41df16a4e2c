"""What a case is: requests in their order, and the answer that each must get."""

import dataclasses
import json
import re
import urllib.error
import urllib.request

REQUEST_SECS_MAX = 60
SIGNATURE = (
    "AWS4-HMAC-SHA256 Credential=any/20260101/us-east-1/dynamodb/aws4_request, "
    "SignedHeaders=host;x-amz-date, Signature=" + "0" * 64
)
SHOWN_CHARACTERS_MAX = 600


@dataclasses.dataclass
class Refused:
    """An error of this kind whose text is one of `texts`, or holds all `fragments`, or matches `pattern`."""

    kind: str
    texts: tuple = ()
    fragments: tuple = ()
    pattern: str | None = None
    reasons: tuple = ()
    members: dict = dataclasses.field(default_factory=dict)

    def check(self, status, answer):
        assert status == 400, (status, shown(answer))
        assert answer.get("__type", "").rsplit("#", 1)[-1] == self.kind, shown(answer)
        text = answer.get("message", answer.get("Message", ""))
        if self.texts:
            assert text in self.texts, text[:SHOWN_CHARACTERS_MAX]
        for fragment in self.fragments:
            assert fragment in text, text[:SHOWN_CHARACTERS_MAX]
        if self.pattern is not None:
            assert re.fullmatch(self.pattern, text, re.DOTALL), text[:SHOWN_CHARACTERS_MAX]
        for reason, (code, message) in zip(answer.get("CancellationReasons", ()), self.reasons, strict=True):
            assert reason["Code"] == code, shown(answer)
            assert message is None or message in reason["Message"], shown(answer)
        for name, value in self.members.items():
            assert answer.get(name) == value, (name, shown(answer))


@dataclasses.dataclass
class Either:
    """One of several answers, each of which some region of the service gives."""

    answers: tuple

    def check(self, status, answer):
        problems = []
        for allowed in self.answers:
            try:
                return allowed.check(status, answer)
            except AssertionError as problem:
                problems.append(str(problem))
        raise AssertionError(problems)


@dataclasses.dataclass
class Answered:
    """Success whose members are these, with nothing under the names in `without`."""

    members: dict = dataclasses.field(default_factory=dict)
    without: tuple = ()
    judge: object = None

    def check(self, status, answer):
        assert status == 200, (status, shown(answer))
        for name, value in self.members.items():
            assert answer.get(name) == value, (name, shown(answer))
        for name in self.without:
            assert name not in answer, (name, shown(answer))
        if self.judge is not None:
            assert self.judge(answer), shown(answer)


def shown(answer):
    return json.dumps(answer)[:SHOWN_CHARACTERS_MAX]


@dataclasses.dataclass
class Case:
    name: str
    steps: list


def case(name, operation, body, answer):
    """A case of one request."""
    return Case(name, [(operation, body, answer)])


def story(name, *steps):
    """A case of several requests, each (operation, body, answer)."""
    return Case(name, list(steps))


ACCEPTED = Answered()


def invalid(*texts):
    """A ValidationException with one of these texts."""
    return Refused("ValidationException", texts=texts)


def invalid_with(*fragments):
    return Refused("ValidationException", fragments=fragments)


def invalid_like(pattern):
    return Refused("ValidationException", pattern=pattern)


def not_found():
    return Refused("ResourceNotFoundException", texts=("Requested resource not found",))


def condition_failed():
    return Refused("ConditionalCheckFailedException", texts=("The conditional request failed",))


def cancelled(*reasons):
    """A transaction that is cancelled; a reason is a code, or a code and what its message holds."""
    reasons = tuple(reason if isinstance(reason, tuple) else (reason, None) for reason in reasons)
    codes = ", ".join(code for code, _ in reasons)
    text = f"Transaction cancelled, please refer cancellation reasons for specific reasons [{codes}]"
    return Refused("TransactionCanceledException", texts=(text,), reasons=reasons)


def either(*answers):
    return Either(answers)


def send(endpoint, operation, body):
    """Status and answer of a request that no SDK has looked at."""
    headers = {
        "Content-Type": "application/x-amz-json-1.0",
        "X-Amz-Target": f"DynamoDB_20120810.{operation}",
        "X-Amz-Date": "20260101T000000Z",
        "Authorization": SIGNATURE,
    }
    request = urllib.request.Request(endpoint, data=json.dumps(body).encode(), headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=REQUEST_SECS_MAX) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())
