"""Sign-in, sessions, and the security headers of the console."""

import gzip
import re

from playwright.sync_api import expect

FIRST_LOAD_BYTES_MAX = 200_000


def test_wrong_token_shows_an_error(open_console):
    console = open_console()
    console.open()
    console.enter_token("not the token")
    expect(console.page.get_by_role("alert")).to_contain_text("Invalid admin token")
    expect(console.page.get_by_role("heading", name="Overview")).to_have_count(0)


def test_session_survives_reload_until_sign_out(console):
    page = console.page
    page.reload()
    expect(page.get_by_role("heading", name="Overview")).to_be_visible()
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_label("Password")).to_be_visible()
    page.reload()
    expect(page.get_by_label("Password")).to_be_visible()


def test_scripts_cannot_read_the_session(console):
    cookies = console.context.cookies()
    assert [(cookie["name"], cookie["httpOnly"], cookie["sameSite"]) for cookie in cookies] == [("homeport_session", True, "Strict")]
    assert console.page.evaluate("document.cookie") == ""
    stored = console.page.evaluate("JSON.stringify(localStorage) + JSON.stringify(sessionStorage)")
    assert console.server.admin_token not in stored


def test_sign_in_returns_to_the_same_page(console):
    console.open("keys")
    expect(console.page.get_by_role("heading", name="API keys")).to_be_visible()
    console.context.clear_cookies()
    console.open("rules")
    expect(console.page.get_by_text("Your session has ended")).to_be_visible()
    console.enter_token()
    expect(console.page.get_by_role("heading", name="Rules")).to_be_visible()


def test_pages_load_nothing_from_other_hosts(console):
    for route in ("devices", "alerts", "rules", "keys", "push", "groups", "tables", "events"):
        console.open(route)
        expect(console.page.locator("main h1")).to_be_visible()
    assert [url for url in console.requests if not url.startswith(console.server.url)] == []


def test_policy_forbids_inline_scripts_and_styles(console):
    policy = console.page.request.get(console.server.url).headers["content-security-policy"]
    assert "unsafe-inline" not in policy and "unsafe-eval" not in policy
    assert re.search(r"default-src 'self'", policy) or re.search(r"default-src 'none'", policy)
    assert "frame-ancestors 'none'" in policy


def test_first_load_is_small(open_console):
    console = open_console()
    sizes = {}
    console.page.on("response", lambda response: sizes.update({response.url: len(gzip.compress(response.body()))}))
    console.open()
    expect(console.page.get_by_label("Password")).to_be_visible()
    console.page.wait_for_load_state("networkidle")
    assert len(sizes) >= 3, sizes
    assert sum(sizes.values()) < FIRST_LOAD_BYTES_MAX, sizes
