"""The device list, charts, timeline, statistics and commands of devices."""

import json
import re
import time

from conftest import CHARGER, FIVE_MINUTES_MS, SENSOR, SENSOR_NAME, THING, publish, reading, send_readings, wait_until
from playwright.sync_api import expect

MANY = 10_000
# A longer task is a stall. Tasks usually take less than 100 ms, sometimes 400 ms on busy cores; rendering all rows would take many
# seconds.
TASK_MS_MAX = 1_000
DRAW_MS_MAX = 500


def open_sensor(console, query=""):
    console.open(f"devices/sensors/{SENSOR}{query}")
    expect(console.page.get_by_role("heading", name=SENSOR_NAME)).to_be_visible()


def test_search_finds_a_device_by_name(console):
    page = console.page
    console.open("devices")
    page.keyboard.press("/")
    page.keyboard.type("house north")
    row = page.get_by_role("row").filter(has_text=SENSOR)
    expect(row).to_be_visible()
    expect(row).to_contain_text("online")
    row.get_by_role("link").click()
    expect(page.get_by_role("heading", name=SENSOR_NAME)).to_be_visible()
    expect(page.get_by_label("Latest values")).to_contain_text("bme280_temp_c")


def test_device_list_filters_by_system(console):
    console.open("devices")
    console.page.get_by_role("group", name="System").get_by_role("button", name="telemetry").click()
    rows = console.page.get_by_role("cell", name=THING)
    expect(rows).to_be_visible()
    expect(console.page.get_by_role("cell", name=SENSOR)).to_have_count(0)


def test_empty_search_offers_to_show_all(console):
    console.open("devices?search=nothing-has-this-name")
    expect(console.page.get_by_text("No matching devices")).to_be_visible()
    console.page.get_by_role("button", name="Show all devices").click()
    expect(console.page.get_by_role("row").nth(1)).to_be_visible()


def test_drag_zooms_into_a_chart(console):
    page = console.page
    open_sensor(console)
    chart = page.locator('[data-series="bme280_temp_c"] .u-over')
    expect(chart).to_be_visible()
    before = page.get_by_test_id("range").inner_text()
    box = chart.bounding_box()
    with page.expect_response(re.compile("/series")) as answer:
        page.mouse.move(box["x"] + box["width"] * 0.25, box["y"] + 40)
        page.mouse.down()
        page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + 40, steps=5)
        page.mouse.up()
    query = dict(part.split("=") for part in answer.value.url.split("?")[1].split("&"))
    width_hours = (int(query["to"]) - int(query["from"])) / 3_600_000
    assert 5 < width_hours < 7, width_hours
    expect(page.get_by_test_id("range")).not_to_have_text(before)
    page.get_by_role("button", name="Reset zoom").click()
    expect(page.get_by_role("button", name="Reset zoom")).to_have_count(0)


def test_keys_zoom_and_pan_charts(console):
    page = console.page
    open_sensor(console)
    charts = page.get_by_role("group", name=re.compile("^Charts"))
    charts.focus()
    page.keyboard.press("+")
    expect(page.get_by_role("button", name="Reset zoom")).to_be_visible()
    zoomed = page.get_by_test_id("range").inner_text()
    page.keyboard.press("ArrowLeft")
    expect(page.get_by_test_id("range")).not_to_have_text(zoomed)
    page.keyboard.press("0")
    expect(page.get_by_role("button", name="Reset zoom")).to_have_count(0)


def test_empty_range_links_to_latest_values(console):
    page = console.page
    long_ago = int(time.time() * 1000) - 900 * 86_400_000
    open_sensor(console, f"?from={long_ago}&to={long_ago + 3_600_000}")
    expect(page.get_by_text("No values in this range")).to_be_visible()
    page.get_by_role("button", name=re.compile("^Show the day before")).click()
    expect(page.locator('[data-series="bme280_temp_c"]')).to_be_visible()


def test_timeline_shows_new_readings_live(console, fleet):
    page = console.page
    open_sensor(console)
    timeline = page.get_by_role("region", name="Timeline")
    expect(timeline.get_by_text("live", exact=True)).to_be_visible()
    for value in (31.25, 31.75, 32.5):
        send_readings(fleet, fleet.key, [reading(SENSOR, int(time.time() * 1000), bme280_temp_c=value)])
        expect(page.get_by_test_id("timeline").get_by_role("listitem").first).to_contain_text(str(value))
    expect(page.get_by_label("Latest values")).to_contain_text("32.5")


def test_timeline_entry_shows_its_item(console):
    page = console.page
    open_sensor(console)
    entry = page.get_by_test_id("timeline").get_by_role("button").first
    entry.click()
    expect(entry).to_have_attribute("aria-expanded", "true")
    page.get_by_role("button", name="DynamoDB JSON").click()
    item = json.loads(page.get_by_role("region", name="Item").first.inner_text())
    assert item["hardware_id"] == {"S": SENSOR}


def test_timeline_filters_by_type(console, fleet):
    page = console.page
    publish(fleet, THING, "telemetry", {"glycol_temp_c": 50})
    console.open(f"devices/telemetry/{THING}?types=alert")
    entries = page.get_by_test_id("timeline").get_by_role("listitem")
    expect(entries.first).to_contain_text("Battery low")
    expect(entries.filter(has=page.get_by_text("telemetry", exact=True))).to_have_count(0)


def test_charger_timeline_merges_all_event_types(console, fleet):
    page = console.page
    device = fleet.as_operator("GET", f"/v1/chargers/{CHARGER}")["device_id"]
    console.open(f"devices/chargers/{device}")
    entries = page.get_by_test_id("timeline").get_by_role("listitem")
    expect(entries).not_to_have_count(0)
    kinds = [text.strip() for text in page.locator('[data-testid="timeline"] .type').all_inner_texts()]
    assert {"telemetry", "scheduler", "ota"} <= set(kinds), kinds


def test_charger_page_shows_daily_statistics(console, fleet):
    # 19:00 UTC is midday in Mountain Time all year, so both events are on the same day whenever the test runs.
    noon = int(time.time() - 2 * 86_400) // 86_400 * 86_400_000 + 19 * 3_600_000
    charger = "0c5d1f0e-7f6b-4a5e-9d55-6f1c0f2a8b11"
    telemetry = {"wireless_device_id": charger, "event_type": "telemetry"}
    events = [
        {**telemetry, "occurred_at": at, "data": {"j1772_state": "C", "current_ma": current_ma}}
        for at, current_ma in [(noon, 16_000), (noon + FIVE_MINUTES_MS, 15_900)]
    ]
    fleet.call("POST", "/v1/chargers/events", {"events": events}, key=fleet.charger_key)
    device = fleet.as_operator("GET", f"/v1/chargers/{charger}")["device_id"]

    def counted():
        return [day["event_count"] for day in fleet.as_operator("GET", f"/v1/chargers/{device}/daily")["days"]] == [2]

    wait_until("the day has both events", counted)
    console.open(f"devices/chargers/{device}")
    row = console.page.get_by_role("region", name="Daily statistics").get_by_role("row").nth(1)
    expect(row).to_contain_text("16 A")


def test_sensor_can_be_renamed(console, fleet):
    page = console.page
    id = "AA:BB:CC:DD:EE:88"
    send_readings(fleet, fleet.key, [reading(id, int(time.time() * 1000), bme280_temp_c=20)])
    console.open(f"devices/sensors/{id}")
    page.get_by_role("button", name="Rename").click()
    page.get_by_role("dialog").get_by_label("Name").fill("Cold frame")
    page.get_by_role("dialog").get_by_role("button", name="Rename").click()
    expect(page.get_by_role("heading", name="Cold frame")).to_be_visible()
    assert fleet.as_operator("GET", f"/v1/sensors/devices/{id}")["friendly_name"] == "Cold frame"


def test_shown_range_exports_as_csv(console):
    page = console.page
    open_sensor(console)
    expect(page.locator(".u-over").first).to_be_visible()
    with page.expect_download() as download:
        page.get_by_role("link", name="CSV").click()
    lines = download.value.path().read_text().splitlines()
    assert lines[0].startswith("system,device,at,name,value")
    assert sum("bme280_temp_c" in line for line in lines) >= 280


def test_year_of_readings_draws_quickly(console):
    """Draws 105,120 points, more than the server sends, because it downsamples."""
    page = console.page
    step = 300_000
    now = int(time.time() * 1000)
    points = [[now - index * step, 10 + index % 7, 20 + index % 9, 15 + index % 8, 1] for index in range(105_120, 0, -1)]
    answer = json.dumps({"from": "", "to": "", "bucket_ms": step, "series": [{"name": "bme280_temp_c", "points": points}]})
    page.route(re.compile("/series"), lambda route: route.fulfill(body=answer, content_type="application/json"))
    open_sensor(console, "?range=year")
    page.wait_for_function("performance.getEntriesByName('chart-draw').length > 0")
    took = page.evaluate("performance.getEntriesByName('chart-draw').map((entry) => entry.duration)")
    assert max(took) < DRAW_MS_MAX, took


def test_ten_thousand_devices_scroll_smoothly(console, fleet):
    page = console.page
    now = int(time.time() * 1000)
    ids = [f"10:00:{index // 65_536:02X}:{index // 256 % 256:02X}:{index % 256:02X}:FF" for index in range(MANY)]
    send_readings(fleet, fleet.key, [reading(id, now, bme280_temp_c=20) for id in ids])
    # The server refreshes its device list at a limited rate.
    wait_until("all devices are listed", lambda: fleet.as_operator("GET", "/v1/devices?search=10:00:&limit=1")["counts"]["total"] == MANY, 90)
    page.evaluate(
        "() => { window.tasks = []; new PerformanceObserver((list) => window.tasks.push(...list.getEntries().map((entry) => entry.duration))).observe({ type: 'longtask' }); }"
    )
    console.open("devices?system=sensors&search=10:00:")
    table = page.get_by_role("table", name="Devices")
    expect(table).to_be_visible()
    # Scrolls to the end of the loaded rows until the last device is loaded.
    page.wait_for_function(
        """(most) => {
          const box = document.querySelector("[role=table]");
          box.scrollTop = box.scrollHeight;
          return box.querySelector(`[aria-rowindex="${most}"]`) !== null;
        }""",
        arg=MANY,
        polling=50,
        timeout=60_000,
    )
    assert table.get_by_role("row").count() < 100
    expect(table.get_by_role("row").last).to_be_visible()
    tasks = page.evaluate("window.tasks")
    assert max(tasks, default=0) < TASK_MS_MAX, tasks
