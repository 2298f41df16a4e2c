"""The tasks of an operator: alerts, API keys, rules, tables, notifications, groups."""

import json
import re

from conftest import SENSOR, THING, USER, publish, wait_until
from playwright.sync_api import expect


def test_alert_is_acknowledged_with_a_note(console):
    page = console.page
    console.open("alerts")
    row = page.get_by_role("row").filter(has_text="Battery low")
    row.get_by_role("button", name=re.compile("^Acknowledge")).click()
    dialog = page.get_by_role("dialog", name="Acknowledge alert")
    dialog.get_by_label("Your name").fill("Robin")
    dialog.get_by_label("Note (optional)").fill("Charging it")
    dialog.get_by_role("button", name="Acknowledge").click()
    expect(row).to_contain_text("acknowledged by Robin")
    expect(row.get_by_role("button")).to_have_count(0)
    row.get_by_role("link", name="Battery low").click()
    expect(page.get_by_text("Charging it")).to_be_visible()


def test_alerts_are_selected_and_acknowledged(console, fleet):
    rule = {
        "name": "Voltage of all vans",
        "source": "telemetry",
        "condition": {"threshold": {"attribute": "voltage", "side": "below", "raise": 12, "clear": 12.4}},
    }
    rule_id = fleet.as_operator("POST", "/v1/alerts/definitions", rule)["definition_id"]

    def raised():
        for thing in ("van-11", "van-12"):
            publish(fleet, thing, "telemetry", {"voltage": 11})
        return len(fleet.as_operator("GET", f"/v1/alerts?definition={rule_id}")["alerts"]) == 2

    wait_until("two alerts are raised", raised)
    page = console.page
    console.open("alerts")
    rows = page.get_by_role("row").filter(has_text="Voltage of all vans")
    expect(rows).to_have_count(2)
    for row in rows.all():
        row.get_by_role("checkbox").check()
    page.get_by_role("button", name="Acknowledge selected (2)").click()
    dialog = page.get_by_role("dialog", name="Acknowledge 2 alerts")
    dialog.get_by_label("Your name").fill("Robin")
    dialog.get_by_role("button", name="Acknowledge").click()
    expect(rows.filter(has_text="acknowledged by Robin")).to_have_count(2)


def test_alert_is_snoozed_assigned_and_commented(console):
    page = console.page
    console.open("alerts")
    page.get_by_role("row").filter(has_text="Battery low").get_by_role("link", name="Battery low").click()
    page.get_by_role("button", name="Snooze").click()
    dialog = page.get_by_role("dialog", name="Snooze alert")
    dialog.get_by_label("Snooze for").select_option("4 hours")
    dialog.get_by_label("Your name").fill("Robin")
    dialog.get_by_role("button", name="Snooze").click()
    expect(page.get_by_text("snoozed", exact=True)).to_be_visible()
    page.get_by_role("button", name="End snooze").click()
    expect(page.get_by_role("button", name="Snooze", exact=True)).to_be_visible()
    page.get_by_role("button", name="Assign").click()
    dialog = page.get_by_role("dialog", name="Assign alert")
    dialog.get_by_label("Assign to (empty for nobody)").fill("Kim")
    dialog.get_by_role("button", name="Assign").click()
    expect(page.get_by_text("to Kim by Robin")).to_be_visible()
    comments = page.get_by_role("region", name="Comments")
    comments.get_by_label("Comment").fill("The charger was off")
    comments.get_by_label("Your name").fill("Robin")
    comments.get_by_role("button", name="Add comment").click()
    expect(comments.get_by_text("The charger was off")).to_be_visible()


def test_test_notification_shows_its_result(console, fleet):
    rule = {
        "name": "Unreachable",
        "source": "telemetry",
        "condition": {"threshold": {"attribute": "unknown", "side": "below", "raise": 1}},
        "targets": [{"push": {"user_id": "nobody"}}],
    }
    rule_id = fleet.as_operator("POST", "/v1/alerts/definitions", rule)["definition_id"]
    console.open(f"alerts/definitions/{rule_id}")
    test = console.page.get_by_role("region", name="Test notification")
    test.get_by_role("button", name="Send test notification").click()
    expect(test.get_by_text("the user has no active device").first).to_be_visible()
    expect(test.get_by_text("failed", exact=True)).to_be_visible()


def test_alert_rule_is_created_changed_and_deleted(console):
    page = console.page
    console.open("alerts/definitions")
    page.get_by_role("link", name="Create alert rule").click()
    page.get_by_label("Name", exact=True).fill("Too warm")
    page.get_by_label("Attribute", exact=True).fill("sensors.bme280_temp_c")
    page.get_by_label("Alert when value is").select_option("above")
    page.get_by_label("Threshold", exact=True).fill("forty")
    page.get_by_role("button", name="Create").click()
    expect(page.get_by_role("alert")).to_contain_text("Threshold: “forty” is not a number")
    page.get_by_label("Threshold", exact=True).fill("40")
    page.get_by_role("button", name="Create").click()
    expect(page.get_by_role("heading", name="Too warm")).to_be_visible()
    page.get_by_label("Threshold", exact=True).fill("45.5")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Saved", exact=True)).to_be_visible()
    console.open("alerts/definitions")
    row = page.get_by_role("row").filter(has_text="Too warm")
    expect(row).to_contain_text("sensors.bme280_temp_c above 45.5")
    row.get_by_role("link").click()
    page.get_by_role("button", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.get_by_role("row").filter(has_text="Too warm")).to_have_count(0)


def test_alert_rule_is_previewed_before_it_is_created(console):
    page = console.page
    console.open("alerts/definitions/new")
    page.get_by_label("Name", exact=True).fill("Any firmware")
    page.get_by_label("Condition type").select_option("equality")
    page.get_by_label("Severity").select_option("critical")
    page.get_by_label("Attribute", exact=True).fill("firmware_version")
    page.get_by_label("Value", exact=True).fill("1.0.16")
    page.get_by_role("button", name="Preview").click()
    preview = page.get_by_role("region", name="Preview")
    expect(preview).to_contain_text(re.compile(r"would have raised [1-9]\d* alert"))
    # The preview lists as many devices as its limit permits, of all that other tests have added.
    preview.locator("summary").first.click()
    expect(preview).to_contain_text('firmware_version is "1.0.16"')
    page.get_by_role("button", name="Create").click()
    expect(page.get_by_role("heading", name="Any firmware")).to_be_visible()
    console.open("alerts/definitions")
    row = page.get_by_role("row").filter(has_text="Any firmware")
    expect(row).to_contain_text('firmware_version equals "1.0.16"')
    expect(row).to_contain_text("critical")
    row.get_by_role("link").click()
    page.get_by_role("button", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.get_by_role("row").filter(has_text="Any firmware")).to_have_count(0)


def test_api_key_is_shown_once_and_revoked(console, fleet):
    page = console.page
    console.open("keys")
    page.get_by_role("button", name="Create API key").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Description").fill("of the test")
    dialog.get_by_role("textbox", name="Scopes").fill(SENSOR)
    dialog.get_by_role("button", name="Create").click()
    key = dialog.get_by_test_id("new-key").inner_text()
    assert fleet.call("GET", f"/v1/sensors/devices/{SENSOR}", key=key)["hardware_id"] == SENSOR
    dialog.get_by_role("button", name="Done").click()
    assert key not in page.content()
    row = page.get_by_role("row").filter(has_text="of the test")
    expect(row).to_contain_text("active")
    row.get_by_role("button", name="Revoke of the test").click()
    page.get_by_role("dialog", name="Revoke this API key?").get_by_role("button", name="Revoke").click()
    expect(row).to_contain_text("revoked")
    answer = page.request.get(f"{fleet.url}/v1/sensors/devices/{SENSOR}", headers={"X-API-Key": key, "Cookie": ""})
    assert answer.status == 401


def test_invalid_statement_is_marked_and_not_saved(console, fleet):
    page = console.page
    body = {"sql": "SELECT * FROM 'low/+'", "actions": [{"republish": {"topic": "lower/${topic(2)}"}}]}
    fleet.as_operator("PUT", "/v1/rules/of_the_test", body)
    console.open("rules/of_the_test")
    editor = page.get_by_label("Statement", exact=True)
    editor.fill("SELECT battery_voltage,\n  nonsense(x) AS y\nFROM 'low/+'")
    expect(page.locator("#sql-error")).to_contain_text("Line 2, column 3")
    expect(page.locator("#sql-error")).to_contain_text("nonsense")
    assert page.locator("pre .invalid").inner_text() == "nonsense"
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Cannot save the rule")).to_be_visible()
    assert fleet.as_operator("GET", "/v1/rules/of_the_test")["version"] == 1

    editor.fill("SELECT battery_voltage,\n  topic(2) AS thing\nFROM 'low/+'")
    expect(page.locator("#sql-error")).to_have_count(0)
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Saved as version 2")).to_be_visible()
    assert "topic(2) AS thing" in fleet.as_operator("GET", "/v1/rules/of_the_test")["sql"]
    page.get_by_role("button", name="Compare version 1").click()
    expect(page.get_by_role("region", name="Differences")).to_contain_text("− SELECT * FROM 'low/+'")


def test_invalid_actions_json_shows_its_position(console, fleet):
    page = console.page
    fleet.as_operator("PUT", "/v1/rules/with_actions", {"sql": "SELECT * FROM 'low/+'", "actions": [{"republish": {"topic": "a"}}]})
    console.open("rules/with_actions")
    page.get_by_label("Actions (JSON)").fill('[\n  {"republish": }\n]')
    page.get_by_role("button", name="Save").click()
    expect(page.locator("#actions-error")).to_contain_text("Line 2")


def test_statement_test_explains_its_result(console):
    page = console.page
    console.open("rules/telemetry")
    page.get_by_label("Statement", exact=True).fill("SELECT volts FROM 'van/+/telemetry' WHERE volts < 12")
    page.get_by_label("Topic", exact=True).fill("van/van-01/telemetry")
    page.get_by_label("Message (JSON)").fill('{"volts": 11.000000000000000000001}')
    page.get_by_role("button", name="Test statement").click()
    expect(page.get_by_role("region", name="Result")).to_contain_text("volts")
    page.get_by_label("Message (JSON)").fill('{"volts": 13}')
    page.get_by_role("button", name="Test statement").click()
    expect(page.get_by_text("13 < 12 is false")).to_be_visible()


def test_replay_shows_differences(console):
    """Uses a fixed response that contains every kind of difference."""
    page = console.page
    requests = []
    pages = [
        {
            "messages": [
                {
                    "at": "2026-11-16T12:00:00Z",
                    "topic": "van/van-01/telemetry",
                    "writes": [
                        {
                            "table": "van-telemetry",
                            "key": {"thing_name": "van-01"},
                            "difference": "changed",
                            "changes": [{"attribute": "volts", "is": 12.5, "wouldBe": 13}],
                        },
                        {"table": "other", "difference": "new", "item": {"a": 1}},
                    ],
                    "effects": ["republish on low/van-01"],
                    "failures": [],
                }
            ],
            "totals": {"messages": 100, "same": 98, "different": 2, "failures": 0},
            "next_cursor": "further",
        },
        {"messages": [], "totals": {"messages": 7, "same": 6, "different": 0, "failures": 1}},
    ]

    def answer(route):
        requests.append((route.request.url, route.request.post_data_json))
        route.fulfill(json=pages[len(requests) - 1])

    page.route(re.compile("/v1/rules/telemetry/replay"), answer)
    console.open("rules/telemetry")
    form = page.get_by_role("form", name="Replay")
    form.get_by_label("Thing").fill(THING)
    form.get_by_role("button", name="Replay").click()
    expect(page.get_by_text("volts", exact=True)).to_be_visible()
    expect(page.locator("del")).to_have_text("12.5")
    expect(page.locator("ins")).to_have_text("13")
    expect(page.get_by_text("Would republish on low/van-01")).to_be_visible()
    page.get_by_role("button", name="Load later messages").click()
    expect(page.get_by_text("104 unchanged")).to_be_visible()
    expect(page.get_by_text("1 failed")).to_be_visible()
    assert f"thing={THING}&" in requests[0][0] and "FROM 'van/+/telemetry'" in requests[0][1]["sql"]
    assert "cursor=further" in requests[1][0]


def test_rule_is_disabled_and_enabled(console, fleet):
    page = console.page
    fleet.as_operator("PUT", "/v1/rules/switched", {"sql": "SELECT * FROM 'low/+'", "actions": [{"republish": {"topic": "a"}}]})
    console.open("rules/switched")
    page.get_by_role("button", name="Disable").click()
    expect(page.get_by_role("button", name="Enable")).to_be_visible()
    assert fleet.as_operator("GET", "/v1/rules/switched")["ruleDisabled"] is True
    page.get_by_role("button", name="Enable").click()
    expect(page.get_by_role("button", name="Disable")).to_be_visible()


def test_query_combines_key_range_and_filter(console, fleet):
    page = console.page
    readings = fleet.readings(SENSOR)
    # The sort key begins with the time in 13 digits, so a bound without the rest includes the whole millisecond.
    first, last = readings[10]["timestamp_ms"], readings[20]["timestamp_ms"]
    console.open("tables")
    page.get_by_role("link", name="device_readings").click()
    page.get_by_label("Operation").select_option("query")
    page.get_by_label(re.compile("^hardware_id")).fill(SENSOR)
    page.get_by_label(re.compile("^ts_batch")).select_option("between")
    page.get_by_label("from", exact=True).fill(str(first))
    page.get_by_label("to", exact=True).fill(str(last))
    page.get_by_role("button", name="Query").click()
    rows = page.get_by_role("region", name="Items as a table").get_by_role("row")
    expect(rows).to_have_count(11)

    temperatures = [reading["sensors"]["bme280_temp_c"] for reading in readings[10:20]]
    limit = sorted(temperatures)[5]
    page.get_by_role("button", name="Add filter").click()
    page.get_by_label("Filter: attribute").fill("sensors.bme280_temp_c")
    page.get_by_label("Operator").select_option(">")
    page.get_by_role("combobox", name="Type", exact=True).select_option("N")
    page.get_by_label("Value", exact=True).fill(str(limit))
    page.get_by_role("button", name="Query").click()
    expect(rows).to_have_count(1 + sum(temperature > limit for temperature in temperatures))

    page.get_by_label(re.compile("^ts_batch")).select_option("")
    page.get_by_label("Value", exact=True).fill("not a number")
    page.get_by_role("button", name="Query").click()
    expect(page.get_by_role("alert")).to_contain_text("“not a number” is not a number")


def test_index_is_queried(console):
    page = console.page
    console.open("tables/van-telemetry")
    page.get_by_label("Operation").select_option("query")
    page.get_by_label("Table or index").select_option("MessageTypeIndex")
    page.get_by_label(re.compile("^message_type")).fill("status")
    page.get_by_role("button", name="Query").click()
    rows = page.get_by_role("region", name="Items as a table").get_by_role("row")
    expect(rows.nth(1)).to_contain_text(THING)


def test_item_edit_rejects_concurrent_changes(console, fleet):
    page = console.page
    id = "AA:BB:CC:DD:EE:77"
    body = {"hardware_id": id, "boot_id": "7c9e6679-7425-40de-944b-e07fc1f90ae7", "firmware_version": "1.0.0", "capabilities": {}}
    fleet.call("POST", "/v1/sensors/register", body, key=fleet.key)
    console.open("tables/devices")
    page.get_by_label("Operation").select_option("query")
    page.get_by_label(re.compile("^hardware_id")).fill(id)
    page.get_by_role("button", name="Query").click()
    page.get_by_role("region", name="Items as a table").get_by_role("button", name=id).click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Value of firmware_version").fill("1.0.1")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog).to_have_count(0)
    assert fleet.as_operator("GET", f"/v1/sensors/devices/{id}")["firmware_version"] == "1.0.1"

    page.get_by_role("region", name="Items as a table").get_by_role("button", name=id).click()
    fleet.as_operator("PATCH", f"/v1/sensors/devices/{id}", {"friendly_name": "Changed meanwhile"})
    dialog.get_by_label("Value of firmware_version").fill("1.0.2")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog.get_by_role("alert")).to_contain_text("Cannot save the item")
    assert fleet.as_operator("GET", f"/v1/sensors/devices/{id}")["firmware_version"] == "1.0.1"


def test_query_result_exports_as_ndjson(console):
    page = console.page
    console.open("tables/evse-events")
    rows = page.get_by_role("region", name="Items as a table").get_by_role("row")
    expect(rows.nth(1)).to_be_visible()
    with page.expect_download() as download:
        page.get_by_role("link", name="NDJSON").click()
    lines = download.value.path().read_text().splitlines()
    assert len(lines) == rows.count() - 1
    assert all("event_type" in json.loads(line) for line in lines)


def test_notification_is_sent_with_a_trace(console):
    page = console.page
    console.open("push")
    page.get_by_placeholder("User id").fill(USER)
    page.get_by_role("button", name="Show").click()
    expect(page.get_by_role("cell", name="phone-1")).to_be_visible()
    page.get_by_label("Title").fill("Hello from the test")
    page.get_by_role("button", name="Send to 1 device").click()
    expect(page.get_by_text("Queued", exact=True)).to_be_visible()
    page.get_by_text("Hello from the test").click()
    expect(page.locator("details[open]")).to_contain_text("phone-1")


def test_group_device_and_journal_are_created(console):
    page = console.page
    console.open("groups")
    page.get_by_role("button", name="Create group").click()
    page.get_by_role("dialog").get_by_label("Name").fill("Boat")
    page.get_by_role("dialog").get_by_role("button", name="Create").click()
    expect(page.get_by_role("heading", name="Boat")).to_be_visible()
    page.get_by_role("button", name="Add device").click()
    page.get_by_role("dialog").get_by_label("Name").fill("Mast")
    page.get_by_role("dialog").get_by_role("button", name="Add").click()
    expect(page.get_by_role("heading", name="Mast")).to_be_visible()
    page.get_by_role("button", name="Add journal").click()
    page.get_by_role("dialog").get_by_label("Name", exact=True).fill("Wind")
    page.get_by_role("dialog").get_by_role("button", name="Add").click()
    expect(page.get_by_text("No records yet")).to_be_visible()


def test_group_device_has_charts(console, fleet):
    page = console.page
    console.open(f"groups/{fleet.group}/devices/{fleet.group_device}")
    expect(page.get_by_role("cell", name="temperature").first).to_be_visible()
    page.get_by_role("link", name="Charts and timeline").click()
    expect(page.get_by_role("heading", name="Roof")).to_be_visible()
    expect(page.get_by_role("img", name="Outside")).to_be_visible()


def test_events_filter_by_type(console):
    page = console.page
    console.open("events?type=ota_start")
    row = page.get_by_role("row").filter(has_text="ota_version 1.0.17")
    expect(row).to_be_visible()
    console.open("events?type=never_sent")
    expect(page.get_by_text("No events of type “never_sent”")).to_be_visible()
    expect(page.get_by_role("region", name="Command")).to_contain_text("curl -X POST")


def test_overview_shows_counts_and_live_changes(console, fleet):
    page = console.page
    console.open("")
    row = page.get_by_role("row").filter(has_text="telemetry")

    def things():
        systems = fleet.as_operator("GET", "/v1/overview")["systems"]
        return next(system["devices"] for system in systems if system["system"] == "telemetry")

    # Other tests add things, which are counted at intervals.
    shown = row.get_by_role("cell").nth(1)
    wait_until("the count of things", lambda: shown.inner_text() == str(things()))
    assert things() >= 1
    changes = page.get_by_role("heading", name="Live changes").locator("xpath=ancestor::section")
    expect(changes.get_by_text("live", exact=True)).to_be_visible()
    publish(fleet, THING, "status", {"online": True, "note": "seen by the overview"})
    expect(changes.get_by_role("listitem").filter(has_text=THING).first).to_be_visible()
