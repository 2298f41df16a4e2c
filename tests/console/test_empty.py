"""A server without data: every empty page shows a command that works."""

import re

import pytest
from conftest import clients
from playwright.sync_api import expect

COMMANDS = {
    "": r"curl -X POST {url}/v1/sensors/data",
    "devices": r"curl -X POST {url}/v1/sensors/register",
    "events": r"curl -X POST {url}/v1/chargers/events",
    "alerts?state=all": r"curl {url}/v1/alerts/definitions",
    "groups": r"curl {url}/v1/groups",
    "push": r"curl -X PUT {url}/v1/push/devices",
    "keys": r"homeport keys create",
}


@pytest.fixture(scope="module")
def empty_server(tmp_path_factory):
    server = clients.Server(tmp_path_factory.mktemp("empty"))
    yield server
    server.kill()


@pytest.mark.parametrize("route", COMMANDS)
def test_empty_page_shows_a_command(open_console, empty_server, route):
    console = open_console(empty_server)
    console.sign_in()
    console.open(route)
    blocks = console.page.get_by_role("region", name="Command")
    expect(blocks.first).to_contain_text(re.compile(COMMANDS[route].format(url=re.escape(empty_server.url))))


def test_empty_rule_list_explains_the_effect(open_console, empty_server):
    for name in ("alerts", "status", "telemetry"):
        empty_server.call_for_nothing("DELETE", f"/v1/rules/{name}")
    console = open_console(empty_server)
    console.sign_in()
    console.open("rules")
    expect(console.page.get_by_text("No rules: messages from things are not stored")).to_be_visible()
