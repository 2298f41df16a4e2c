"""Takes the screenshots in docs/console: every page in light and dark, on a desktop and on a phone.

HOMEPORT_BIN=target/debug/homeport target/clients-venv/bin/python tests/console/screenshots.py [page …]
"""

import base64
import os
import pathlib
import shutil
import sys
import tempfile

import conftest
from playwright.sync_api import expect, sync_playwright

SCREENSHOTS = pathlib.Path(__file__).parents[2] / "docs" / "console"
SIZES = {"desktop": {"width": 1280, "height": 860}, "phone": {"width": 390, "height": 844}}
ZONE = "Europe/Berlin"
QUALITY = 0.86
SCREENSHOT_BYTES_MAX = 150_000
# WebP is a third of the size of PNG, and the browser can encode it.
TO_WEBP = """async ([png, quality]) => {
  const image = new Image();
  image.src = `data:image/png;base64,${png}`;
  await image.decode();
  const canvas = new OffscreenCanvas(image.width, image.height);
  canvas.getContext("2d").drawImage(image, 0, 0);
  const blob = await canvas.convertToBlob({ type: "image/webp", quality });
  const bytes = new Uint8Array(await blob.arrayBuffer());
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return btoa(text);
}"""


def write_invalid_statement(page):
    page.get_by_label("Statement", exact=True).fill("SELECT battery_voltage,\n  topc(2) AS thing\nFROM 'van/+/telemetry'\nWHERE battery_voltage < 12")
    expect(page.locator("#sql-error")).to_be_visible()


def query_one_sensor(page):
    page.get_by_label("Operation").select_option("query")
    page.get_by_label("hardware_id (String)").fill(conftest.SENSOR)
    page.get_by_label("ts_batch (String)").select_option("begins_with")
    page.get_by_label("value", exact=True).fill("1")
    page.get_by_role("button", name="Query").click()
    expect(page.get_by_role("region", name="Items as a table")).to_contain_text(conftest.SENSOR)


def open_first_item(page):
    page.get_by_role("region", name="Items as a table").get_by_role("button").first.click()


def follow(server):
    """Sends messages while the overview is open."""

    def prepare(page):
        expect(page.get_by_text("live", exact=True)).to_have_count(2)
        for number in range(12):
            conftest.publish(server, conftest.THING, "telemetry", {"battery_voltage": round(12.1 - number / 50, 2), "glycol_temp_c": 51})
        expect(page.get_by_role("listitem").filter(has_text="battery_voltage 11.88")).to_be_visible()
        expect(page.locator("polyline")).to_be_visible()

    return prepare


def wait_for_charts(page):
    expect(page.locator(".u-over").first).to_be_visible()
    expect(page.get_by_test_id("timeline")).to_be_visible()


def open_timeline(page):
    wait_for_charts(page)
    page.get_by_role("heading", name="Timeline").evaluate("(heading) => heading.scrollIntoView()")
    page.get_by_test_id("timeline").get_by_role("button").first.click()


def no_preparation(page):
    pass


def pages(server):
    """Routes and preparation steps by the name of the screenshot."""
    group = f"groups/{server.group}"
    charger = server.as_operator("GET", f"/v1/chargers/{conftest.CHARGER}")["device_id"]
    return {
        "overview": ("", follow(server)),
        "devices": ("devices", no_preparation),
        "device": (f"devices/sensors/{conftest.SENSOR}", wait_for_charts),
        "charger": (f"devices/chargers/{charger}", wait_for_charts),
        "timeline": (f"devices/telemetry/{conftest.THING}", open_timeline),
        "events": ("events", no_preparation),
        "alerts": ("alerts", no_preparation),
        "alert-rule": ("alerts/definitions/new", no_preparation),
        "rules": ("rules", no_preparation),
        "rule": ("rules/telemetry", write_invalid_statement),
        "push": (f"push/{conftest.USER}", no_preparation),
        "group": (group, no_preparation),
        "journal": (f"{group}/devices/{server.group_device}", no_preparation),
        "tables": ("tables", no_preparation),
        "table": ("tables/device_readings", query_one_sensor),
        "item": ("tables/devices", open_first_item),
        "keys": ("keys", no_preparation),
    }


def settle(page):
    expect(page.locator("main h1")).to_be_visible()
    expect(page.locator("main .card").first).to_be_visible()
    expect(page.get_by_text("Loading…", exact=True)).to_have_count(0)
    expect(page.locator("[aria-busy=true]")).to_have_count(0)


def take_screenshot(page, encoder, name):
    png = base64.b64encode(page.screenshot(animations="disabled")).decode()
    webp = base64.b64decode(encoder.evaluate(TO_WEBP, [png, QUALITY]))
    assert len(webp) <= SCREENSHOT_BYTES_MAX, f"{name} has {len(webp)} bytes"
    (SCREENSHOTS / f"{name}.webp").write_bytes(webp)
    print(f"{name}.webp {len(webp)}")


def main(wanted):
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    program = shutil.which("chromium")
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with tempfile.TemporaryDirectory() as directory, sync_playwright() as playwright:
        server = conftest.clients.Server(directory, options=("--push-expo-url", "http://127.0.0.1:9"))
        try:
            conftest.fill(server)
            browser = playwright.chromium.launch(executable_path=program, args=arguments)
            encoder = browser.new_page()
            for scheme in ("light", "dark"):
                for size, viewport in SIZES.items():
                    context = browser.new_context(color_scheme=scheme, viewport=viewport, timezone_id=ZONE)
                    console = conftest.Console(server, context)
                    console.open()
                    expect(console.page.get_by_label("Password")).to_be_visible()
                    if not wanted or "sign-in" in wanted:
                        take_screenshot(console.page, encoder, f"sign-in-{size}-{scheme}")
                    console.sign_in()
                    for name, (route, prepare) in pages(server).items():
                        if wanted and name not in wanted:
                            continue
                        console.open(route)
                        settle(console.page)
                        prepare(console.page)
                        settle(console.page)
                        take_screenshot(console.page, encoder, f"{name}-{size}-{scheme}")
                    context.close()
            browser.close()
        finally:
            server.kill()


if __name__ == "__main__":
    main(sys.argv[1:])
