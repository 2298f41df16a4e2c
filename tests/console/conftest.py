"""Fixtures: Debian's Chromium, and a server process with a small fleet."""

import importlib.util
import json
import math
import os
import pathlib
import shutil
import subprocess
import time
import urllib.request

import pytest
from playwright.sync_api import expect, sync_playwright

# The server is started as in the client tests. Their conftest.py cannot be imported by name, because this file has the same name.
_spec = importlib.util.spec_from_file_location("clients_conftest", pathlib.Path(__file__).parents[1] / "clients" / "conftest.py")
clients = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(clients)

WAIT_MS = 20_000
SIMULATION_SECS_MAX = 120
BOOT_ID = "7c9e6679-7425-40de-944b-e07fc1f90ae7"
SENSOR = "AA:BB:CC:DD:EE:01"
SENSOR_NAME = "Greenhouse north"
THING = "van-01"
CHARGER = "b319d001-6b08-4d88-b4ca-4d2d98a6d43c"
USER = "user-1"
FIVE_MINUTES_MS = 300_000

expect.set_options(timeout=WAIT_MS)


def reading(hardware_id, at_ms, **sensors):
    return {
        "batch_id": f"{hardware_id}_{at_ms}",
        "hardware_id": hardware_id,
        "boot_id": BOOT_ID,
        "firmware_version": "1.0.16",
        "timestamp_ms": at_ms,
        "sensors": sensors,
        "sensor_status": {},
    }


def send_readings(server, key, readings):
    for start in range(0, len(readings), 100):
        answer = server.call("POST", "/v1/sensors/data", {"readings": readings[start : start + 100]}, key=key)
        assert {result["status"] for result in answer["results"]} == {"stored"}, answer


def publish(server, thing, kind, payload):
    request = urllib.request.Request(
        f"{server.url}/v1/topics/van/{thing}/{kind}?qos=1",
        method="POST",
        data=json.dumps(payload).encode(),
        headers={"Authorization": f"Bearer {server.admin_token}"},
    )
    urllib.request.urlopen(request, timeout=clients.COMMAND_SECS_MAX).close()


def wait_until(state, condition, secs=WAIT_MS / 1000):
    """Waits for a state of the server."""
    end = time.monotonic() + secs
    while time.monotonic() < end:
        if condition():
            return
        time.sleep(0.1)
    raise AssertionError(f"timed out waiting: {state}")


def fill(server):
    """Adds simulated sensors, and devices of every system with known values."""
    key = server.make_key()
    server.key = key
    subprocess.run(
        [os.environ["HOMEPORT_BIN"], "simulate", "--url", server.url, "--api-key", key, "--sensors", "20"]
        + ["--readings-per-sensor", "12", "--speed-up", "3000", "--disconnects", "0"],
        check=True,
        timeout=SIMULATION_SECS_MAX,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )

    now = int(time.time() * 1000)
    server.call(
        "POST",
        "/v1/sensors/register",
        {
            "hardware_id": SENSOR,
            "boot_id": BOOT_ID,
            "firmware_version": "1.0.16",
            "friendly_name": SENSOR_NAME,
            "capabilities": {"sensors": ["bme280", "soil"]},
        },
        key=key,
    )
    day = range(now - 288 * FIVE_MINUTES_MS, now, FIVE_MINUTES_MS)
    values = [
        reading(
            SENSOR,
            at,
            bme280_temp_c=round(21 + 5 * math.sin(index / 45) + math.sin(index / 4) / 3, 2),
            bme280_humidity_pct=round(55 - 12 * math.sin(index / 45) + math.sin(index / 3), 1),
            soil_moisture=round(0.62 - index % 150 / 700, 3),
        )
        for index, at in enumerate(day)
    ]
    send_readings(server, key, values)

    charger_key = server.as_operator("POST", "/v1/api-keys", {"system": "chargers", "description": "chargers", "all": True})["api_key"]
    events = [
        {
            "wireless_device_id": CHARGER,
            "event_type": kind,
            "occurred_at": now - minutes * 60_000,
            "data": data,
        }
        for minutes, kind, data in [
            (90, "telemetry", {"j1772_state": "B", "current_ma": 0}),
            (60, "scheduler", {"scheduler_paused": True}),
            (45, "ota_start", {"ota_version": "1.0.17"}),
            (30, "telemetry", {"j1772_state": "C", "current_ma": 16_000}),
            (5, "telemetry", {"j1772_state": "C", "current_ma": 15_900}),
        ]
    ]
    server.call("POST", "/v1/chargers/events", {"events": events}, key=charger_key)
    server.charger_key = charger_key

    server.as_operator(
        "POST",
        "/v1/alerts/definitions",
        {
            "name": "Battery low",
            "source": "telemetry",
            "condition": {"threshold": {"attribute": "battery_voltage", "side": "below", "raise": 12, "clear": 12.4}},
            "where": {"attribute": "message_type", "equals": "telemetry"},
        },
    )
    # Values stored before the alert rule takes effect are not evaluated, so send until the alert is raised.
    publish(server, THING, "telemetry", {"battery_voltage": 12.6, "hvac_mode": "heat", "glycol_temp_c": 51})

    def raised():
        publish(server, THING, "telemetry", {"battery_voltage": 11.8, "hvac_mode": "heat", "glycol_temp_c": 52})
        return server.as_operator("GET", "/v1/alerts?state=open")["alerts"]

    wait_until("an alert is raised", raised)
    publish(server, THING, "status", {"online": True})

    group = server.as_operator("POST", "/v1/groups", {"name": "Home"})["response"]["gid"]
    device = server.as_operator("POST", f"/v1/groups/{group}/devices", {"name": "Roof", "model": "M1"})["response"]["did"]
    base = f"/v1/groups/{group}/devices/{device}/journals"
    journal = server.as_operator("POST", base, {"name": "Outside", "data_type": "number"})["response"]["jid"]
    for index in range(12):
        record = {"value": 15 + index / 2, "unit": "C", "type": "temperature", "timestamp": now - index * FIVE_MINUTES_MS}
        server.as_operator("POST", f"{base}/{journal}/records", record)
    server.group, server.group_device = group, device

    token = {"expoPushToken": "ExponentPushToken[xxxxxxxxxxxxxxxxxxxxxx]", "platform": "ios"}
    server.as_operator("PUT", f"/v1/push/devices/phone-1?userId={USER}", token)


@pytest.fixture(scope="session")
def fleet(tmp_path_factory):
    """The server that all tests share. Each test changes only its own items."""
    # Notifications cannot be delivered: the discard port refuses connections.
    server = clients.Server(tmp_path_factory.mktemp("fleet"), options=("--push-expo-url", "http://127.0.0.1:9"))
    try:
        fill(server)
        yield server
    finally:
        server.kill()


@pytest.fixture(scope="session")
def chromium():
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    assert program, "Chromium is missing: install Debian's package chromium"
    # Chromium's sandbox does not work as root, which is usual in containers.
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=arguments)
        yield browser
        browser.close()


class Console:
    """A page of the console, with the errors that its browser reports."""

    def __init__(self, server, context):
        self.server = server
        self.context = context
        self.page = context.new_page()
        self.errors = []
        self.requests = []
        self.page.on("console", self._note)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))

    def _note(self, message):
        # Some tests expect 4xx responses, and Chromium reports each of them.
        if message.type == "error" and not message.text.startswith("Failed to load resource"):
            self.errors.append(message.text)

    def open(self, route=""):
        self.page.goto(f"{self.server.url}/#/{route}")

    def enter_token(self, token=None):
        """Signs in with the admin token on the page that is shown."""
        self.page.get_by_role("button", name="Use the admin token").click()
        self.page.get_by_label("Admin token").fill(token or self.server.admin_token)
        self.page.get_by_role("button", name="Sign in", exact=True).click()

    def enter_password(self, name, password):
        self.page.get_by_label("Name").fill(name)
        self.page.get_by_label("Password").fill(password)
        self.page.get_by_role("button", name="Sign in", exact=True).click()

    def sign_in(self):
        self.page.goto(self.server.url)
        self.enter_token()
        expect(self.page.get_by_role("heading", name="Overview")).to_be_visible()


@pytest.fixture
def open_console(request, chromium):
    """Opens consoles in separate browser contexts, and checks at the end that no browser reported an error."""
    opened = []

    def open_one(server=None, **options):
        options.setdefault("viewport", {"width": 1280, "height": 800})
        context = chromium.new_context(**options)
        context.set_default_timeout(WAIT_MS)
        opened.append(Console(server or request.getfixturevalue("fleet"), context))
        return opened[-1]

    yield open_one
    for console in opened:
        console.context.close()
        assert console.errors == []


@pytest.fixture
def console(open_console):
    """A signed-in console."""
    console = open_console()
    console.sign_in()
    return console
