"""Accessibility: keyboard only, light and dark themes, phone width, and the rules of axe-core."""

import re

import pytest
from axe_playwright_python.sync_playwright import Axe
from conftest import SENSOR, SENSOR_NAME, USER
from playwright.sync_api import expect

TABS_MAX = 60
PHONE = {"width": 390, "height": 844}
ROUTES = [
    "",
    "devices",
    f"devices/sensors/{SENSOR}",
    "events",
    "alerts",
    "alerts?state=all",
    "alerts/definitions",
    "alerts/definitions/new",
    "rules",
    "rules/telemetry",
    "rules/new",
    "push",
    f"push/{USER}",
    "groups",
    "tables",
    "tables/device_readings",
    "keys",
]


def settle(page):
    """Waits until a page has loaded its data."""
    expect(page.locator("main h1")).to_be_visible()
    expect(page.locator("main .card").first).to_be_visible()
    expect(page.get_by_text("Loading…", exact=True)).to_have_count(0)
    expect(page.locator("[aria-busy=true]")).to_have_count(0)


def violations(page):
    found = Axe().run(page, options={"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]})
    return [
        f"{violation['id']}: {node['html'][:200]} {node.get('failureSummary', '')[:300]}"
        for violation in found.response["violations"]
        for node in violation["nodes"]
    ]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", ["desktop", "phone"])
def test_pages_pass_axe(open_console, fleet, scheme, size):
    options = {"viewport": PHONE} if size == "phone" else {}
    console = open_console(color_scheme=scheme, **options)
    console.open()
    expect(console.page.get_by_label("Password")).to_be_visible()
    found = {"sign-in": violations(console.page)}
    console.sign_in()
    for route in [*ROUTES, f"groups/{fleet.group}", f"groups/{fleet.group}/devices/{fleet.group_device}"]:
        console.open(route)
        settle(console.page)
        found[route] = violations(console.page)
    assert {route: problems for route, problems in found.items() if problems} == {}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_dialogs_pass_axe(open_console, scheme):
    console = open_console(color_scheme=scheme)
    console.sign_in()
    page = console.page
    found = {}
    for route, opener in {
        "keys": page.get_by_role("button", name="Create API key"),
        "groups": page.get_by_role("button", name="Create group"),
        "tables/devices": page.get_by_role("region", name="Items as a table").get_by_role("button").first,
        f"devices/sensors/{SENSOR}": page.get_by_role("button", name="Rename"),
    }.items():
        console.open(route)
        settle(page)
        opener.click()
        expect(page.get_by_role("dialog")).to_be_visible()
        found[route] = violations(page)
        page.keyboard.press("Escape")
    assert {route: problems for route, problems in found.items() if problems} == {}


@pytest.mark.parametrize("route", ROUTES)
def test_pages_fit_a_phone(open_console, route):
    console = open_console(viewport=PHONE)
    console.sign_in()
    console.open(route)
    settle(console.page)
    assert console.page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


def test_chosen_theme_survives_reload(console):
    page = console.page
    light = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
    page.get_by_label("Theme").select_option("dark")
    expect(page.locator("html")).not_to_have_css("background-color", light)
    page.reload()
    expect(page.get_by_label("Theme")).to_have_value("dark")
    expect(page.locator("html")).not_to_have_css("background-color", light)


def tab_to(page, role, name):
    """Presses Tab until an element with this role and name has the focus."""
    target = page.get_by_role(role, name=name).first
    for _ in range(TABS_MAX):
        page.keyboard.press("Tab")
        if target.count() and target.evaluate("(element) => element === document.activeElement"):
            outline = target.evaluate("(element) => getComputedStyle(element).outlineStyle")
            assert outline != "none", f"{name} has the focus but no visible outline"
            return
    raise AssertionError(f"Tab does not reach {name}")


def test_main_tasks_work_with_keyboard_only(open_console):
    console = open_console()
    page = console.page
    console.open()
    expect(page.get_by_label("Name", exact=True)).to_be_focused()
    tab_to(page, "button", "Use the admin token")
    page.keyboard.press("Enter")
    expect(page.get_by_label("Admin token")).to_be_focused()
    page.keyboard.type(console.server.admin_token)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Overview")).to_be_visible()

    tab_to(page, "link", "Devices")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Devices")).to_be_visible()
    page.keyboard.press("/")
    page.keyboard.type(SENSOR)
    row = page.get_by_role("row").filter(has_text=SENSOR)
    expect(row).to_be_visible()
    tab_to(page, "link", SENSOR_NAME)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name=SENSOR_NAME)).to_be_visible()

    tab_to(page, "button", "Week")
    page.keyboard.press("Space")
    expect(page.get_by_role("button", name="Week")).to_have_attribute("aria-pressed", "true")
    tab_to(page, "group", re.compile("^Charts: "))
    page.keyboard.press("+")
    expect(page.get_by_role("button", name="Reset zoom")).to_be_visible()
    tab_to(page, "checkbox", "Follow")
    page.keyboard.press("Space")
    expect(page.get_by_role("checkbox", name="Follow")).not_to_be_checked()

    console.open("keys")
    tab_to(page, "button", "Create API key")
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog")
    expect(dialog).to_be_visible()
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    expect(page.get_by_role("button", name="Create API key")).to_be_focused()


def test_arrow_keys_move_through_device_list(console):
    page = console.page
    console.open("devices?system=sensors")
    rows = page.locator("[data-index]")
    expect(rows.nth(3)).to_be_visible()
    rows.nth(0).get_by_role("link").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    expect(rows.nth(2).get_by_role("link")).to_be_focused()
    page.keyboard.press("ArrowUp")
    expect(rows.nth(1).get_by_role("link")).to_be_focused()
