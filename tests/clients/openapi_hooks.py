"""What Schemathesis cannot read from the OpenAPI document. Only requests that are meant to be valid are touched."""

import json
import os

import schemathesis
from schemathesis import GenerationMode

# Ids of a group, a device and a journal that are there, and of others that may be removed: which texts are ids depends on
# salts that no document tells.
KEPT = json.loads(os.environ["HOMEPORT_TESTS_KEPT"])
DOOMED = json.loads(os.environ["HOMEPORT_TESTS_DOOMED"])
TEXT_LEN_MAX = 100
DEPTH_MAX = 4

# Every id that the server told.
told = {name: {KEPT[name], DOOMED[name]} for name in KEPT}


@schemathesis.hook
def before_call(context, case, kwargs):
    if case.meta is None or case.meta.generation.mode != GenerationMode.POSITIVE:
        return
    # Only a cursor that a page before gave is good.
    if case.query:
        case.query.pop("cursor", None)
    for name in KEPT.keys() & (case.path_parameters or {}).keys():
        given, removes = case.path_parameters[name], case.method.upper() == "DELETE"
        if given not in told[name] or (removes and given == KEPT[name]):
            case.path_parameters[name] = (DOOMED if removes else KEPT)[name]
    # An app's user is named by the token, and only operators have to name one.
    if case.operation.path.startswith("/v1/push/devices"):
        case.query = {**(case.query or {}), "userId": "user-1"}
    if isinstance(case.body, dict):
        case.body = fitting(case.operation.path, case.body)


@schemathesis.hook
def after_call(context, case, response):
    try:
        learn(response.json())
    except ValueError:
        pass


def learn(answer):
    if isinstance(answer, dict):
        for name, value in answer.items():
            if name in told and isinstance(value, str):
                told[name].add(value)
            learn(value)
    elif isinstance(answer, list):
        for element in answer:
            learn(element)


def fitting(path, body):
    """The body with what holds between its fields, or for free-form values as a whole."""
    body = dict(body)
    if path == "/v1/chargers/daily/rebuild":
        body.pop("cursor", None)
        # The range has a greatest length.
        body["to"] = body.get("from", body.get("to"))
    elif path == "/v1/ids/decode":
        body = {"idtag": "gid", "encoded": KEPT["gid"]}
    elif path.endswith("/state"):
        body = {name: storable(value) for name, value in body.items()}
    elif path.startswith("/v1/alerts/definitions"):
        body = fitting_definition(body)
    elif path.startswith("/v1/groups"):
        for name in {"acl_policy", "value"} & body.keys():
            body[name] = storable(body[name])
    return body


def fitting_definition(body):
    """A definition whose limits are in order, whose zone exists and whose addresses are short enough."""
    kind, condition = next(iter(body["condition"].items()))
    condition = dict(condition)
    if kind == "threshold":
        condition["raise"] = storable(condition["raise"])
        condition["clear"] = condition["raise"]
    elif kind == "rate":
        condition["per_minute"] = abs(storable(condition["per_minute"])) or 1
        condition["clear_per_minute"] = 0
    body["condition"] = {kind: condition}
    if body.get("quiet"):
        body["quiet"] = {"from": "22:00", "to": "07:00", "zone": "Europe/Berlin"}
    # The parts of an address have greatest lengths too.
    body["targets"] = [
        {"email": {"to": "anna@example.com"}} if len(target.get("email", {}).get("to", "")) > 64 else target
        for target in body.get("targets") or []
    ]
    return body


def storable(value, depth=0):
    """The value with numbers of at most 38 digits, and neither too large nor too deep."""
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, (int, float)):
        return value if value == 0 or 1e-100 < abs(value) < 1e37 else 1.5
    if isinstance(value, str):
        return value[:TEXT_LEN_MAX]
    if depth == DEPTH_MAX:
        return None
    if isinstance(value, list):
        return [storable(element, depth + 1) for element in value[:DEPTH_MAX]]
    return {name[:TEXT_LEN_MAX]: storable(member, depth + 1) for name, member in list(value.items())[:DEPTH_MAX]}
