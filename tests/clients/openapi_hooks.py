"""What Schemathesis cannot read from the OpenAPI document. Only requests that are meant to be valid are touched."""

import decimal
import json
import os

import schemathesis
from conftest import ADMIN_TOKEN
from schemathesis import GenerationMode

# Ids of a group, a device and a journal that are there, and of others that may be removed: which texts are ids depends on
# salts that no document tells.
KEPT = json.loads(os.environ["HOMEPORT_TESTS_KEPT"])
DOOMED = json.loads(os.environ["HOMEPORT_TESTS_DOOMED"])
# What JSON Schema cannot say of free-form values: how deep and how large they may be, and how long their numbers.
STATE_LIMITS = {"levels": 8, "size": 1024}
POLICY_LIMITS = {"levels": 16, "size": 16 * 1024}
ATTRIBUTES_LIMITS = {"levels": 16, "size": 16 * 1024}
ATTRIBUTES_MAX = 50
# Attributes that the record store gives a meaning.
RECORD_ATTRIBUTES = {"PK", "SK", "name", "retention_secs", "external_id", "model", "acl_policy", "data_type"}
DIGITS_MAX = 38

# A table that nothing else in here reads, and a key of it.
TABLE = "evse-daily-stats"
ITEM_KEY = {"device_id": {"S": "SC-00000000"}, "date": {"S": "2027-01-15"}}

# A payload decoder: how its members depend on each other, no schema can tell.
DECODER = {"fields": [{"name": "current_ma", "offset": 0, "type": "u16", "optional": True}]}

# Every id that the server told.
told = {name: {KEPT[name], DOOMED[name]} for name in KEPT}


@schemathesis.hook
def before_call(context, case, kwargs):
    if case.meta is None or case.meta.generation.mode != GenerationMode.POSITIVE:
        return
    # Only a cursor that a page before gave is good.
    if case.query:
        case.query.pop("cursor", None)
        # A range must not end before it starts, which no schema can say.
        if "from" in case.query:
            case.query.pop("to", None)
            # Without an end, a chart ends now.
            if case.operation.path.endswith("/series"):
                case.query["from"] = "-1h"
    for name in KEPT.keys() & (case.path_parameters or {}).keys():
        given, removes = case.path_parameters[name], case.method.upper() == "DELETE"
        if given not in told[name] or (removes and given == KEPT[name]):
            case.path_parameters[name] = (DOOMED if removes else KEPT)[name]
    if case.operation.path.startswith(("/v1/tables/{table}", "/v1/export/tables/{table}")):
        case.path_parameters["table"] = TABLE
        # A query within a query, which has no schema.
        if case.query:
            case.query.pop("q", None)
    # An app's user is named by the token, and only operators have to name one.
    if case.operation.path.startswith("/v1/push/devices"):
        case.query = {**(case.query or {}), "userId": "user-1"}
    # A list of all things is of a type or of a severity.
    if case.operation.path == "/v1/telemetry" and not {"message_type", "severity"} & (case.query or {}).keys():
        case.query = {**(case.query or {}), "severity": "critical"}
    # Which version a rule has depends on what was tried before.
    if case.headers:
        case.headers.pop("If-Match", None)
        # The header and the member are the same id.
        if isinstance(case.body, dict) and "record_id" in case.body:
            case.headers.pop("Idempotency-Key", None)
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
    elif path == "/v1/api-keys":
        # Which scopes and permissions a key may have depends on its system.
        body = {name: value for name, value in body.items() if name in ("description", "system")} | {"all": True}
    elif path == "/v1/ids/decode":
        body = {"idtag": "gid", "encoded": KEPT["gid"]}
    elif path.endswith("/state"):
        body = {name: storable(value, **STATE_LIMITS) for name, value in body.items()}
    elif path.endswith("/replay"):
        # A statement, or a whole rule with its own.
        if body.get("topicRulePayload") is not None:
            body = {"topicRulePayload": ruled(body["topicRulePayload"])}
        else:
            body = ruled({"sql": body.get("sql")})
    elif path == "/v1/session":
        body = {"token": ADMIN_TOKEN}
    elif path.startswith(("/v1/people", "/v1/setup")):
        body = personal(body)
    elif path == "/v1/alerts/acknowledge":
        # Listed alerts, or a filter.
        body.pop("filter" if body.get("alert_ids") else "alert_ids", None)
        if not body.get("alert_ids"):
            body["filter"] = body.get("filter") or {}
    elif path.endswith("/snooze"):
        # Until a time, or for some seconds.
        body.pop("until", None)
        body["for_secs"] = body.get("for_secs") or 3600
    elif path.startswith("/v1/tables"):
        body = tabled(path, body)
    elif path.startswith("/v1/chargers/decoders/test"):
        # Either a decoder or a name, and either form of the payload. Whether a name exists depends on what was tried before.
        body = {"decoder": DECODER, "payload_hex": body.get("payload_hex") or ""}
    elif path.startswith("/v1/chargers/decoders"):
        body = DECODER
    elif path == "/v1/chargers/events":
        body = charged(body)
    elif path == "/v1/chargers/uplinks":
        body = uplinked(body)
    elif path.startswith("/v1/rules"):
        body = ruled(body)
    elif path.startswith("/v1/alerts/definitions"):
        body = fitting_definition(body)
    elif path.startswith("/v1/groups"):
        if "acl_policy" in body:
            body["acl_policy"] = storable(body["acl_policy"], **POLICY_LIMITS)
        # Which values a journal takes depends on its data type.
        if "data_type" in body:
            body["data_type"] = "any"
        if body.get("attributes") is not None:
            body["attributes"] = storable(further(body["attributes"]), **ATTRIBUTES_LIMITS)
        if "value" in body:
            body["value"] = with_numbers(body["value"])
        # A record must not be far in the future.
        body.pop("timestamp", None)
    return body


def further(attributes):
    """The attributes with names that a group, a device or a journal can have."""
    names = [name for name in attributes if 1 <= len(name) <= 128 and name not in RECORD_ATTRIBUTES]
    return {name: attributes[name] for name in names[:ATTRIBUTES_MAX]}


def ruled(body):
    """The body with a statement and with actions that can be: a schema cannot tell these from other texts."""
    if "topicRulePayload" in body:
        return {**body, "ruleName": unreserved(body["ruleName"]), "topicRulePayload": ruled(body["topicRulePayload"])}
    fixed = {"sql": "SELECT * FROM 'a/+'", "topic": "a/b", "actions": [{"republish": {"topic": "c"}}]}
    fixed["errorAction"] = {"republish": {"topic": "d"}}
    return {name: fixed.get(name, value) if value is not None else None for name, value in body.items()}


def personal(body):
    """A person with a free name, a password that is not one of the most common ones, and roles for the whole server."""
    if body.get("name") == "admin":
        body["name"] = "anna"
    if body.get("password") is not None:
        body["password"] = "correct horse battery"
    if body.get("roles"):
        body["roles"] = [{"role": "viewer"}]
    return body


def charged(body):
    """A single event that names its charger once, whose data is within its limits, and which is not in the future."""
    if "events" in body:
        return body
    event = {"wireless_device_id": "b319d001-6b08-4d88-b4ca-4d2d98a6d43c", "event_type": body["event_type"]}
    if body.get("sequence") is not None:
        event["sequence"] = body["sequence"]
    return event


def uplinked(body):
    """The uplinks without times, which must not be far in the future, and with bytes that fill their last Base64 character."""
    if isinstance(body.get("uplinks"), list):
        return body
    metadata = body.get("WirelessMetadata")
    if isinstance(metadata, dict):
        body["WirelessMetadata"] = {
            name: {"Seq": 7} if name == "Sidewalk" else {"FCnt": 7, "FPort": 2}
            for name in list(metadata)
            if name in ("Sidewalk", "LoRaWAN")
        }
    body["PayloadData"] = "AQIDPoA="
    known = ("WirelessDeviceId", "PayloadData", "WirelessMetadata")
    return {name: body[name] for name in known if name in body}


def tabled(path, body):
    """The body with keys of the table: which attributes and indexes it has, no schema can tell."""
    if path.endswith("/items"):
        name = "item" if "item" in body else "key"
        return {name: ITEM_KEY}
    kept = {name: value for name, value in body.items() if name in ("limit", "descending")}
    return {"partition": ITEM_KEY["device_id"], **kept} if path.endswith("/query") else kept


def unreserved(name):
    return "tests" if name == "test" else name


def storable(value, levels, size):
    """The value itself if it is within its limits, but for numbers that are none of the store's; else an empty one."""
    value = with_numbers(value)
    fits = levels_of(value) <= levels and len(json.dumps(value).encode()) <= size
    return value if fits or not isinstance(value, (str, list, dict)) else type(value)()


def fitting_definition(body):
    """A definition whose limits are in order, whose zone exists and whose addresses are short enough."""
    kind, condition = next(iter(body["condition"].items()))
    condition = dict(condition)
    if kind == "threshold":
        condition["raise"] = with_numbers(condition["raise"])
        condition["clear"] = condition["raise"]
    elif kind == "rate":
        condition["per_minute"] = abs(with_numbers(condition["per_minute"])) or 1
        condition["clear_per_minute"] = 0
    elif kind == "equality":
        condition["value"] = with_numbers(condition["value"])
    elif kind == "fault" and condition["attribute"] == "*":
        condition["attribute"] = "data.*"
    body["condition"] = {kind: condition}
    if body.get("quiet"):
        body["quiet"] = {"from": "22:00", "to": "07:00", "zone": "Europe/Berlin"}
    # The parts of an address have greatest lengths too.
    body["targets"] = [
        {"email": {"to": "anna@example.com"}} if len(target.get("email", {}).get("to", "")) > 64 else target
        for target in body.get("targets") or []
    ]
    return body


def with_numbers(value):
    if isinstance(value, list):
        return [with_numbers(element) for element in value]
    if isinstance(value, dict):
        return {name: with_numbers(member) for name, member in value.items()}
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return value if is_number(value) else 1.5
    return value


def is_number(value):
    """Whether it is 0, or between 1e-130 and 1e126 with few enough digits."""
    exact = decimal.Decimal(repr(value))
    digits = "".join(map(str, exact.as_tuple().digits)).strip("0")
    return not digits or (-130 <= exact.adjusted() < 126 and len(digits) <= DIGITS_MAX)


def levels_of(value):
    """How deep it is: 1 for what has nothing in it."""
    inside = value if isinstance(value, list) else value.values() if isinstance(value, dict) else ()
    return 1 + max(map(levels_of, inside), default=0)
