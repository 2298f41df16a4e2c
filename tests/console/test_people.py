"""People in the console: the set-up link, signing in with a second factor, roles and personal access tokens."""

import base64
import hmac
import os
import re
import struct
import subprocess
import time
import urllib.error
import urllib.request

from conftest import clients
from playwright.sync_api import expect

PASSWORD = "correct horse battery"
PAGES_OF_A_VIEWER = ("", "devices", "events", "alerts", "alerts/definitions", "rules", "push", "groups")
CHANGES = re.compile("^(Create|Delete|Acknowledge|Rename|Send|Save|Add|Revoke|Enable|Disable|Replay|Test)")


def code(secret, step):
    """The code that an authenticator app shows."""
    digest = hmac.digest(base64.b32decode(secret), struct.pack(">q", step), "sha1")
    at = digest[19] & 15
    return f"{(struct.unpack('>I', digest[at : at + 4])[0] & 0x7FFFFFFF) % 1_000_000:06}"


def create(server, name, role):
    server.as_operator("POST", "/v1/people", {"name": name, "password": PASSWORD, "roles": [{"role": role}]})


def test_setup_link_creates_the_first_administrator(open_console, tmp_path):
    # The link is printed before the address, which the fixture reads, so this server is started by hand.
    process = subprocess.Popen(
        [os.environ["HOMEPORT_BIN"], "serve", "--data-dir", str(tmp_path / "data"), "--http-listen", "127.0.0.1:0"]
        + ["--dynamodb-listen", "off", "--mqtt-listen", "127.0.0.1:0"],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        link = next(found for line in process.stdout if (found := re.search(r"set up the first administrator .*: (http\S+)", line)))[1]
        next(line for line in process.stdout if "listening on" in line)
        server = type("Started", (), {"url": link.split("/#")[0]})()
        console = open_console(server)
        page = console.page
        page.goto(link)
        page.get_by_label("Name", exact=True).fill("anna")
        page.get_by_label("Password (at least 12 characters)").fill(PASSWORD)
        page.get_by_label("Repeat the password").fill(PASSWORD)
        page.get_by_role("button", name="Create administrator").click()
        expect(page.get_by_role("heading", name="Overview")).to_be_visible()
        expect(page.get_by_role("link", name="People", exact=True)).to_be_visible()
        page.get_by_role("button", name="Sign out").click()
        page.goto(link)
        page.get_by_label("Name", exact=True).fill("bert")
        page.get_by_label("Password (at least 12 characters)").fill(PASSWORD)
        page.get_by_label("Repeat the password").fill(PASSWORD)
        page.get_by_role("button", name="Create administrator").click()
        expect(page.get_by_role("alert")).to_contain_text("the set-up link is invalid")
    finally:
        process.kill()
        process.wait()


def test_second_factor_is_set_up_and_required(open_console, fleet):
    create(fleet, "second-factor", "viewer")
    console = open_console()
    page = console.page
    console.open()
    console.enter_password("second-factor", "wrong")
    expect(page.get_by_role("alert")).to_contain_text("Wrong name or password")
    console.enter_password("second-factor", PASSWORD)
    expect(page.get_by_role("heading", name="Overview")).to_be_visible()
    console.open("account")
    form = page.get_by_role("form", name="Second factor")
    form.get_by_label("Password").fill(PASSWORD)
    form.get_by_role("button", name="Set up second factor").click()
    secret = form.get_by_test_id("second-factor-secret").inner_text()
    step = int(time.time()) // 30
    form.get_by_label("Code").fill(code(secret, step))
    form.get_by_role("button", name="Confirm").click()
    recovery = form.get_by_test_id("recovery-codes").inner_text().split()
    assert len(recovery) == 10
    page.get_by_role("button", name="Sign out").click()
    console.enter_password("second-factor", PASSWORD)
    page.get_by_label("Code of your authenticator app").fill("000000")
    page.get_by_role("button", name="Sign in", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("Wrong code")
    page.get_by_label("Code of your authenticator app").fill(code(secret, step + 1))
    page.get_by_role("button", name="Sign in", exact=True).click()
    expect(page.get_by_role("heading", name=re.compile("Account|Overview"))).to_be_visible()


def test_viewer_sees_no_button_that_would_fail(open_console, fleet):
    create(fleet, "viewer", "viewer")
    console = open_console()
    page = console.page
    console.open()
    console.enter_password("viewer", PASSWORD)
    expect(page.get_by_role("heading", name="Overview")).to_be_visible()
    for name in ("Tables", "API keys", "People"):
        expect(page.get_by_role("link", name=name, exact=True)).to_have_count(0)
    refused = []
    page.on("response", lambda response: refused.append(response.url) if response.status == 403 else None)
    group = f"groups/{fleet.group}"
    for route in (*PAGES_OF_A_VIEWER, "devices/telemetry/van-01", group, f"{group}/devices/{fleet.group_device}"):
        console.open(route)
        expect(page.locator("main h1")).to_be_visible()
        page.wait_for_load_state("networkidle") if route not in ("", "events") else None
        buttons = page.locator("main").get_by_role("button").or_(page.locator("main a.button"))
        names = [name.strip() for name in buttons.all_inner_texts()]
        assert [name for name in names if CHANGES.match(name)] == [], route
    assert refused == []


def test_administrator_creates_and_disables_a_person(console, open_console):
    page = console.page
    console.open("people")
    page.get_by_role("button", name="Create person").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name").fill("carla")
    dialog.get_by_role("combobox").select_option("operator")
    dialog.get_by_label("Limited to (optional)").fill("sensors telemetry/van-01")
    dialog.get_by_role("button", name="Create", exact=True).click()
    password = page.get_by_test_id("new-password").inner_text()
    page.get_by_role("button", name="Done").click()
    row = page.get_by_role("row", name=re.compile("carla"))
    expect(row).to_contain_text("operator of sensors, telemetry/van-01")
    other = open_console()
    other.open()
    other.enter_password("carla", password)
    expect(other.page.get_by_role("heading", name="Overview")).to_be_visible()
    page.get_by_role("button", name="Disable carla").click()
    page.get_by_role("dialog").get_by_role("button", name="Disable").click()
    expect(row).to_contain_text("disabled")
    other.open("devices")
    expect(other.page.get_by_text("Your session has ended")).to_be_visible()


def test_token_is_created_used_and_revoked(open_console, fleet):
    create(fleet, "tokens", "operator")
    console = open_console()
    page = console.page
    console.open()
    console.enter_password("tokens", PASSWORD)
    expect(page.get_by_role("heading", name="Overview")).to_be_visible()
    console.open("account")
    page.get_by_role("button", name="Create token").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name").fill("Grafana")
    dialog.get_by_role("combobox").select_option("viewer")
    dialog.get_by_role("button", name="Create", exact=True).click()
    token = page.get_by_test_id("new-token").inner_text()
    page.get_by_role("button", name="Done").click()

    def status():
        request = urllib.request.Request(f"{fleet.url}/v1/devices", headers={"Authorization": f"Bearer {token}"})
        try:
            with urllib.request.urlopen(request, timeout=clients.COMMAND_SECS_MAX) as response:
                return response.status
        except urllib.error.HTTPError as error:
            return error.code

    assert status() == 200
    page.get_by_role("button", name="Revoke Grafana").click()
    expect(page.get_by_role("button", name="Revoke Grafana")).to_have_count(0)
    assert status() == 401
