"""Sends the same bad requests to Homeport and to another implementation, and writes down where they differ.

    python compare_errors.py --ours http://127.0.0.1:8000 --theirs http://127.0.0.1:8001 \
        --name "dynoxide 3.2.0" --report ../../../docs/dynamodb-errors.md

Tables named ttt, hhh and new are deleted on both. dynoxide needs a larger stack (RUST_MIN_STACK=67108864) for the longest
condition. A difference needs a line in `judgements.py`; without one the report says "open" and the script ends with an
error.
"""

import argparse
import json
import sys
import urllib.error
import urllib.request

from bad_requests import CASES, SETUP
from judgements import JUDGEMENTS

REQUEST_SECS_MAX = 30
SHOWN_CHARACTERS_MAX = 300
SIGNATURE = (
    "AWS4-HMAC-SHA256 Credential=any/20260101/us-east-1/dynamodb/aws4_request, "
    "SignedHeaders=host;x-amz-date, Signature=" + "0" * 64
)


def send(endpoint, operation, body):
    """Status, error type without its namespace (none for a success), and text."""
    data = body if isinstance(body, str) else json.dumps(body)
    headers = {
        "Content-Type": "application/x-amz-json-1.0",
        "X-Amz-Target": f"DynamoDB_20120810.{operation}",
        "X-Amz-Date": "20260101T000000Z",
        "Authorization": SIGNATURE,
    }
    request = urllib.request.Request(endpoint, data=data.encode(), headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=REQUEST_SECS_MAX) as answer:
            answer.read()
            return (answer.status, None, "")
    except urllib.error.HTTPError as error:
        try:
            answer = json.loads(error.read())
        except ValueError:
            return (error.code, "no JSON", "")
        kind = answer.get("__type", "").rsplit("#", 1)[-1]
        return (error.code, kind, answer.get("message", answer.get("Message", "")))


def prepare(endpoint):
    """Deletes and creates the tables."""
    for name in ("ttt", "hhh", "new"):
        send(endpoint, "DeleteTable", {"TableName": name})
    for operation, body in SETUP:
        status, kind, text = send(endpoint, operation, body)
        assert status == 200, (endpoint, operation, kind, text)


def shown(answer):
    status, kind, text = answer
    if kind is None:
        return "accepted"
    text = text if len(text) <= SHOWN_CHARACTERS_MAX else text[:SHOWN_CHARACTERS_MAX] + "…"
    text = text.replace("|", "\\|").replace("\n", " ")
    return f"{status} {kind}: {text}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ours", required=True)
    parser.add_argument("--theirs", required=True)
    parser.add_argument("--name", required=True, help="the other implementation, as the report names it")
    parser.add_argument("--report", required=True)
    arguments = parser.parse_args()

    for endpoint in (arguments.ours, arguments.theirs):
        prepare(endpoint)
    agreeing, differing = [], []
    for name, operation, body in CASES:
        answers = []
        for endpoint in (arguments.ours, arguments.theirs):
            answers.append(send(endpoint, operation, body))
            # What one of them accepts may have changed its tables.
            if answers[-1][1] is None:
                prepare(endpoint)
        if answers[0] == answers[1]:
            agreeing.append((name, operation, answers[0]))
        else:
            differing.append((name, operation, *answers))

    stale = set(JUDGEMENTS) - {case[0] for case in differing}
    missing = [case[0] for case in differing if case[0] not in JUDGEMENTS]
    with open(arguments.report, "w", encoding="utf-8") as report:
        write(report, arguments.name, agreeing, differing)
    print(f"{len(CASES)} cases: {len(agreeing)} agree, {len(differing)} differ, {len(missing)} of them not judged")
    for name in sorted(stale):
        print(f"judged, but no longer different: {name}")
    sys.exit(1 if missing or stale else 0)


def write(report, their_name, agreeing, differing):
    line = lambda text="": print(text, file=report)  # noqa: E731
    line("# Errors compared")
    line()
    line(f"{len(CASES)} bad requests, sent to Homeport and to {their_name} by `tests/clients/compare/compare_errors.py`, which")
    line("writes this file. Status, type and whole text must be equal to count as agreeing. The requests are in")
    line("`bad_requests.py` under the names used here, the judgements in `judgements.py`.")
    line()
    line(f"{len(agreeing)} agree, {len(differing)} differ.")
    line("A judgement says what it rests on.")
    line()
    line("## Where they differ")
    line("| case | operation | Homeport | the other | judgement |")
    line("| --- | --- | --- | --- | --- |")
    for name, operation, ours, theirs in differing:
        line(f"| {name} | {operation} | {shown(ours)} | {shown(theirs)} | {JUDGEMENTS.get(name, 'open')} |")
    line()
    line("## Where they agree")
    line("| case | operation | answer |")
    line("| --- | --- | --- |")
    for name, operation, answer in agreeing:
        line(f"| {name} | {operation} | {shown(answer)} |")


if __name__ == "__main__":
    main()
