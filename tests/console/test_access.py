"""For everyone: with the keyboard alone, in light and dark, on a phone, and as axe-core checks it."""

import re

import pytest
from axe_playwright_python.sync_playwright import Axe
from conftest import SENSOR, SENSOR_NAME, USER
from playwright.sync_api import expect

TABS_MAX = 60
PHONE = {"width": 390, "height": 844}
PLACES = [
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
    """Waits until what a page fetches is there."""
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
def test_axe_finds_nothing_on_any_page(open_console, fleet, scheme, size):
    options = {"viewport": PHONE} if size == "phone" else {}
    console = open_console(color_scheme=scheme, **options)
    console.open()
    expect(console.page.get_by_label("Admin token")).to_be_visible()
    found = {"sign-in": violations(console.page)}
    console.sign_in()
    for place in [*PLACES, f"groups/{fleet.group}", f"groups/{fleet.group}/devices/{fleet.group_device}"]:
        console.open(place)
        settle(console.page)
        found[place] = violations(console.page)
    assert {place: problems for place, problems in found.items() if problems} == {}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_in_dialogs(open_console, scheme):
    console = open_console(color_scheme=scheme)
    console.sign_in()
    page = console.page
    found = {}
    for place, opener in {
        "keys": page.get_by_role("button", name="Make a key"),
        "groups": page.get_by_role("button", name="Add a group"),
        "tables/devices": page.get_by_role("region", name="Items as a table").get_by_role("button").first,
        f"devices/sensors/{SENSOR}": page.get_by_role("button", name="Rename"),
    }.items():
        console.open(place)
        settle(page)
        opener.click()
        expect(page.get_by_role("dialog")).to_be_visible()
        found[place] = violations(page)
        page.keyboard.press("Escape")
    assert {place: problems for place, problems in found.items() if problems} == {}


@pytest.mark.parametrize("place", PLACES)
def test_no_page_is_wider_than_a_phone(open_console, place):
    console = open_console(viewport=PHONE)
    console.sign_in()
    console.open(place)
    settle(console.page)
    assert console.page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


def test_the_theme_is_chosen_against_the_system_and_kept(console):
    page = console.page
    light = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
    page.get_by_label("Theme").select_option("dark")
    expect(page.locator("html")).not_to_have_css("background-color", light)
    page.reload()
    expect(page.get_by_label("Theme")).to_have_value("dark")
    expect(page.locator("html")).not_to_have_css("background-color", light)


def tab_to(page, role, name):
    """Presses Tab until the focus is on something with this role and name."""
    wanted = page.get_by_role(role, name=name).first
    for _ in range(TABS_MAX):
        page.keyboard.press("Tab")
        if wanted.count() and wanted.evaluate("(element) => element === document.activeElement"):
            outline = wanted.evaluate("(element) => getComputedStyle(element).outlineStyle")
            assert outline != "none", f"nobody can see that {name} has the focus"
            return
    raise AssertionError(f"Tab does not lead to {name}")


def test_the_main_ways_can_be_gone_with_the_keyboard_alone(open_console):
    console = open_console()
    page = console.page
    console.open()
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
    tab_to(page, "button", "Make a key")
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog")
    expect(dialog).to_be_visible()
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    expect(page.get_by_role("button", name="Make a key")).to_be_focused()


def test_arrows_go_through_the_list_of_devices(console):
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
