"""A server that has nothing yet: every page says what to do next, in commands that can be run."""

import re

import pytest
from conftest import clients
from playwright.sync_api import expect

NEXT = {
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


@pytest.mark.parametrize("place", NEXT)
def test_an_empty_page_has_a_command_to_go_on_with(open_console, empty_server, place):
    console = open_console(empty_server)
    console.sign_in()
    console.open(place)
    commands = console.page.get_by_role("region", name="Command")
    expect(commands.first).to_contain_text(re.compile(NEXT[place].format(url=re.escape(empty_server.url))))


def test_the_last_rule_being_gone_is_explained(open_console, empty_server):
    for name in ("alerts", "status", "telemetry"):
        empty_server.call_for_nothing("DELETE", f"/v1/rules/{name}")
    console = open_console(empty_server)
    console.sign_in()
    console.open("rules")
    expect(console.page.get_by_text("There are no rules: nothing is kept")).to_be_visible()
