"""The server does what its OpenAPI document says: Schemathesis tries every operation that is in it.

A new route is covered as soon as it is in the document. To look into a failure, start a server and run the command below
by hand; it prints a curl command for each finding.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request

import openapi_spec_validator
import pytest
from conftest import ADMIN_TOKEN

EXAMPLES_PER_OPERATION = "20"
SECS_MAX = 900
DEVICE = "AA:BB:CC:DD:EE:FF"
CHARGER = "b319d001-6b08-4d88-b4ca-4d2d98a6d43c"
# The routes of systems that have keys of their own; all others are tried with a key of the sensors.
ROUTES = {"chargers": "^/v1/chargers", "records": "^/v1/(groups|ids)", "telemetry": "^/v1/telemetry"}

# A stream of events does not end by itself, so that there is no answer to look at.
ENDLESS = "^/v1/live$"


def store_one_reading(server, key):
    """So that there is something to find under the address that the document has as its example."""
    body = f"""{{"readings": [{{"batch_id": "first", "hardware_id": "{DEVICE}", "firmware_version": "1.0.16",
        "boot_id": "7c9e6679-7425-40de-944b-e07fc1f90ae7", "timestamp_ms": {time.time_ns() // 1_000_000},
        "sensors": {{"bme280_temp_c": 22.5}}, "sensor_status": {{}}}}]}}"""
    request = urllib.request.Request(server.url + "/v1/sensors/data", data=body.encode(), headers={"X-API-Key": key})
    urllib.request.urlopen(request, timeout=10).close()


def add_charger(server):
    event = {"wireless_device_id": CHARGER, "event_type": "telemetry", "data": {"current_ma": 16000}}
    server.as_operator("POST", "/v1/chargers/events", event)


def add_journal(server):
    """The ids of a group, a device and a journal that has a record."""
    gid = server.as_operator("POST", "/v1/groups", {"name": "home"})["response"]["gid"]
    devices = f"/v1/groups/{gid}/devices"
    did = server.as_operator("POST", devices, {"name": "roof"})["response"]["did"]
    journals = f"{devices}/{did}/journals"
    jid = server.as_operator("POST", journals, {"name": "outside", "data_type": "any"})["response"]["jid"]
    server.as_operator("POST", f"{journals}/{jid}/records", {"value": 21.5, "unit": "C", "type": "temperature"})
    return {"gid": gid, "did": did, "jid": jid}


def key_of(server, system):
    return server.as_operator("POST", "/v1/api-keys", {"description": "tests", "system": system, "all": True})["api_key"]


def operations(server):
    """The path, the method and the description of every operation in the document."""
    for path, methods in server.as_operator("GET", "/openapi.json")["paths"].items():
        for method, operation in methods.items():
            if method in ("get", "put", "post", "patch", "delete"):
                yield path, method.upper(), operation


def test_document_is_valid_and_complete(start_server, tmp_path):
    server = start_server(tmp_path / "data")
    document = server.as_operator("GET", "/openapi.json")
    openapi_spec_validator.validate(document)
    assert document["servers"]
    ids = [operation["operationId"] for _, _, operation in operations(server)]
    assert len(ids) == len(set(ids))
    for path, method, operation in operations(server):
        # An operation without credentials says so with an empty requirement.
        assert operation["security"], f"{method} {path} names no credentials"
        for parameter in operation.get("parameters", []):
            assert parameter["in"] != "path" or parameter["required"], f"{method} {path}: {parameter['name']}"
    server.stop()


def try_operations(server, home, key, environment, *which, unchecked=()):
    """Lets Schemathesis try some operations, with a key of their system; how many there were."""
    finished = subprocess.run(
        [
            str(pathlib.Path(sys.executable).parent / "st"),
            *("run", server.url + "/openapi.json", "--checks", "all", "--no-color", "--warnings", "off", *which),
            # It takes 429, the answer to too many wrong tokens, for a missing check; the test below knows better.
            *("--exclude-checks", ",".join(["ignored_auth", *unchecked])),
            # The same requests in every run: a finding is there for everyone or for nobody.
            *("--generation-deterministic", "--max-examples", EXAMPLES_PER_OPERATION),
            *("--header", f"Authorization: Bearer {ADMIN_TOKEN}", "--header", f"X-API-Key: {key}"),
        ],
        cwd=home,
        env=environment,
        capture_output=True,
        text=True,
        timeout=SECS_MAX,
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr
    return int(re.search(r"Tested: (\d+)", finished.stdout).group(1))


def test_every_operation_does_what_the_document_says(start_server, tmp_path):
    server = start_server(tmp_path / "data")
    key = server.make_key()
    store_one_reading(server, key)
    add_charger(server)
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "PYTHONPATH": str(pathlib.Path(__file__).parent),
        "SCHEMATHESIS_HOOKS": "openapi_hooks",
        "HOMEPORT_TESTS_KEPT": json.dumps(add_journal(server)),
        "HOMEPORT_TESTS_DOOMED": json.dumps(add_journal(server)),
    }
    # A key of another system would get no further than the door.
    tried = 0
    for system, routes in ROUTES.items():
        which = ("--include-path-regex", routes)
        # Lists below a deleted charger are empty, as below one that never was: other programs store events without registering.
        unchecked = ["use_after_free"] if system == "chargers" else []
        tried += try_operations(server, tmp_path, key_of(server, system), environment, *which, unchecked=unchecked)
    others = ("--exclude-path-regex", "|".join([*ROUTES.values(), ENDLESS]))
    tried += try_operations(server, tmp_path, key, environment, *others)
    assert tried == len(list(operations(server))) - 1
    # With a key that was revoked on the way, the later requests would have tried nothing but the door.
    request = urllib.request.Request(server.url + "/v1/sensors/devices", headers={"X-API-Key": key})
    assert urllib.request.urlopen(request, timeout=10).status == 200
    server.stop()


@pytest.mark.parametrize(
    ("headers", "statuses"),
    [
        ({}, {401, 403}),
        ({"X-API-Key": "0" * 64}, {401, 403}),
        # Too many wrong tokens are refused with 429.
        ({"Authorization": "Bearer wrong"}, {401, 403, 429}),
    ],
    ids=["none", "key", "token"],
)
def test_every_operation_refuses_wrong_credentials(start_server, tmp_path, headers, statuses):
    server = start_server(tmp_path / "data")
    refused = 0
    for path, method, operation in operations(server):
        security = operation.get("security")
        if not security or {} in security:
            continue
        url = server.url + re.sub(r"\{\w+\}", "1", path)
        body = None if method in ("GET", "DELETE") else b"{}"
        request = urllib.request.Request(url, data=body, headers=headers, method=method)
        with pytest.raises(urllib.error.HTTPError) as error:
            urllib.request.urlopen(request, timeout=10).close()
        assert error.value.code in statuses, f"{method} {path}: {error.value.code}"
        refused += 1
    assert refused > 90
    server.stop()
