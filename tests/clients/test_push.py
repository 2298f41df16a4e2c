"""Push as an app uses it over HTTP; what each pattern stores is read with boto3."""

import base64
import hashlib
import hmac
import json
import time
import urllib.error
import urllib.request

import pytest
from conftest import Server, client
from tables import plain, values

TABLE = "photoeditor-dev-device-tokens"
SECRET = "a secret of users that only the tests know"
NINETY_DAYS = 90 * 24 * 60 * 60
TIMEOUT_SECS = 30


@pytest.fixture(scope="module")
def push(tmp_path_factory):
    # No message leaves this machine: nobody listens on this port of it.
    options = ["--user-jwt-secret", SECRET, "--push-expo-url", "http://127.0.0.1:1"]
    server = Server(tmp_path_factory.mktemp("push"), options=options)
    yield server
    server.stop()


@pytest.fixture(scope="module")
def dynamodb(push):
    return client(push.endpoint)


def encode(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def token(user):
    message = ".".join(
        encode(json.dumps(part).encode())
        for part in ({"alg": "HS256", "typ": "JWT"}, {"sub": user, "exp": int(time.time()) + 600})
    )
    signature = hmac.new(SECRET.encode(), message.encode(), hashlib.sha256).digest()
    return f"{message}.{encode(signature)}"


def ask(push, method, path, bearer, body=None, headers=()):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(push.http + path, data=data, method=method, headers=dict(headers))
    request.add_header("Authorization", f"Bearer {bearer}")
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_SECS) as answer:
            text = answer.read()
            return answer.status, json.loads(text) if text else None
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())


def register(push, user, device, push_token=None, platform="ios"):
    # A token has one user.
    body = {"expoPushToken": push_token or f"ExponentPushToken[{user}]", "platform": platform}
    return ask(push, "PUT", f"/v1/push/devices/{device}", token(user), body)


def stored(dynamodb, user, device):
    key = {"userId": {"S": user}, "deviceId": {"S": device}}
    return dynamodb.get_item(TableName=TABLE, Key=key, ConsistentRead=True).get("Item")


def test_the_table_has_the_documents_keys_and_expiry(dynamodb):
    description = dynamodb.describe_table(TableName=TABLE)["Table"]
    assert description["KeySchema"] == [
        {"AttributeName": "userId", "KeyType": "HASH"},
        {"AttributeName": "deviceId", "KeyType": "RANGE"},
    ]
    assert "GlobalSecondaryIndexes" not in description
    expiry = dynamodb.describe_time_to_live(TableName=TABLE)["TimeToLiveDescription"]
    assert (expiry["AttributeName"], expiry["TimeToLiveStatus"]) == ("expiresAt", "ENABLED")


def test_pattern_1_register_or_update_device_token(push, dynamodb):
    before = int(time.time())
    assert register(push, "one", "phone")[0] == 201
    item = stored(dynamodb, "one", "phone")
    expires = int(item.pop("expiresAt")["N"])
    assert before + NINETY_DAYS <= expires <= int(time.time()) + NINETY_DAYS
    assert item.pop("registeredAt") == item.pop("updatedAt")
    assert item == {
        "userId": {"S": "one"},
        "deviceId": {"S": "phone"},
        "expoPushToken": {"S": "ExponentPushToken[one]"},
        "platform": {"S": "ios"},
        "isActive": {"BOOL": True},
    }


def test_pattern_2_update_existing_device_token(push, dynamodb):
    register(push, "two", "phone")
    first = stored(dynamodb, "two", "phone")
    assert register(push, "two", "phone", "ExpoPushToken[new]", "android")[0] == 200
    second = stored(dynamodb, "two", "phone")
    assert second["registeredAt"] == first["registeredAt"]
    assert second["updatedAt"]["S"] > first["updatedAt"]["S"]
    assert second["expoPushToken"] == {"S": "ExpoPushToken[new]"}
    assert second["platform"] == {"S": "android"}


def test_pattern_3_get_single_device_token(push, dynamodb):
    register(push, "three", "phone", "ExpoPushToken[three]", "android")
    status, device = ask(push, "GET", "/v1/push/devices/phone", token("three"))
    assert status == 200
    assert device == plain(stored(dynamodb, "three", "phone"))
    assert ask(push, "GET", "/v1/push/devices/tablet", token("three"))[0] == 404
    # What someone else wrote a moment ago is there already.
    key = {"userId": {"S": "three"}, "deviceId": {"S": "phone"}}
    update = {":false": {"BOOL": False}}
    dynamodb.update_item(
        TableName=TABLE, Key=key, UpdateExpression="SET isActive = :false", ExpressionAttributeValues=update
    )
    assert ask(push, "GET", "/v1/push/devices/phone", token("three"))[1]["isActive"] is False


def test_pattern_4_get_all_devices_for_user(push, dynamodb):
    for device in ("a", "b", "c"):
        register(push, "four", device)
    register(push, "four-and-more", "other")
    assert ask(push, "POST", "/v1/push/devices/b/deactivate", token("four"))[0] == 200
    _, listed = ask(push, "GET", "/v1/push/devices", token("four"))
    documented = dynamodb.query(
        TableName=TABLE,
        KeyConditionExpression="userId = :userId",
        FilterExpression="isActive = :true",
        ExpressionAttributeValues={":userId": {"S": "four"}, ":true": {"BOOL": True}},
    )["Items"]
    assert listed["devices"] == [plain(item) for item in documented]
    assert [one["deviceId"] for one in listed["devices"]] == ["a", "c"]


def test_a_hundred_devices_of_one_user_are_all_found_and_notified(push):
    for number in range(100):
        register(push, "hundred", f"device-{number:03}", f"ExpoPushToken[{number}]")
    _, listed = ask(push, "GET", "/v1/push/devices?limit=1000", token("hundred"))
    assert len(listed["devices"]) == 100
    body = {"title": "Done", "body": "Ready"}
    path = "/v1/push/users/hundred/notifications"
    assert len(ask(push, "POST", path, push.admin_token, body)[1]["devices"]) == 100
    register(push, "hundred", "one-more")
    assert len(ask(push, "POST", path, push.admin_token, body)[1]["devices"]) == 101


def test_pattern_5_deactivate_device_token(push, dynamodb):
    register(push, "five", "phone")
    before = stored(dynamodb, "five", "phone")
    ask(push, "POST", "/v1/push/devices/phone/deactivate", token("five"))
    after = stored(dynamodb, "five", "phone")
    assert after.pop("updatedAt")["S"] > before.pop("updatedAt")["S"]
    assert after == {**before, "isActive": {"BOOL": False}}


def test_pattern_6_delete_device_token(push, dynamodb):
    register(push, "six", "phone")
    assert ask(push, "DELETE", "/v1/push/devices/phone", token("six"))[0] == 204
    assert stored(dynamodb, "six", "phone") is None
    assert ask(push, "DELETE", "/v1/push/devices/phone", token("six"))[0] == 404


def documented_cleanup(dynamodb):
    """What the document's scan finds: inactive, and not updated for 30 days."""
    cutoff = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(time.time() - 30 * 24 * 60 * 60))
    answer = dynamodb.scan(
        TableName=TABLE,
        FilterExpression="isActive = :false AND updatedAt < :cutoff",
        ProjectionExpression="userId, deviceId",
        ExpressionAttributeValues={":false": {"BOOL": False}, ":cutoff": {"S": cutoff}},
    )
    return sorted(item["deviceId"]["S"] for item in answer["Items"])


def test_maintenance_bulk_token_cleanup(push, dynamodb):
    for device in ("old", "old-and-active", "fresh"):
        register(push, "clean", device)
        if device != "old-and-active":
            ask(push, "POST", f"/v1/push/devices/{device}/deactivate", token("clean"))
    for device in ("old", "old-and-active"):
        dynamodb.update_item(
            TableName=TABLE,
            Key={"userId": {"S": "clean"}, "deviceId": {"S": device}},
            UpdateExpression="SET updatedAt = :old",
            ExpressionAttributeValues={":old": {"S": "2020-01-01T00:00:00.000Z"}},
        )
    assert documented_cleanup(dynamodb) == ["old"]
    dry = ask(push, "POST", "/v1/push/cleanup", push.admin_token, {"dry_run": True})
    assert dry == (200, {"found": 1, "deleted": 0})
    assert documented_cleanup(dynamodb) == ["old"]
    assert ask(push, "POST", "/v1/push/cleanup", push.admin_token, {}) == (200, {"found": 1, "deleted": 1})
    assert documented_cleanup(dynamodb) == []
    assert stored(dynamodb, "clean", "old-and-active") and stored(dynamodb, "clean", "fresh")


def metric(push, name):
    with urllib.request.urlopen(f"{push.http}/metrics", timeout=TIMEOUT_SECS) as answer:
        lines = answer.read().decode().splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith(f"{name} "))


def test_alarms_user_errors_system_errors_and_conditional_check_failures(push):
    failures = "homeport_push_conditional_check_failed_total"
    before = metric(push, failures)
    register(push, "alarm", "phone")
    register(push, "alarm", "phone")
    assert metric(push, failures) == before, "a refresh is no failure"
    assert ask(push, "DELETE", "/v1/push/devices/none", token("alarm"))[0] == 404
    assert metric(push, failures) == before + 1
    for name in ("homeport_push_user_errors_total", "homeport_push_system_errors_total"):
        assert metric(push, name) == 0


def test_runbook_stale_tokens_accumulating(push, dynamodb):
    """Every registration has an expiry; what somebody else wrote without one, or with a wrong token, is told."""
    _, before = ask(push, "GET", "/v1/push/check", push.admin_token)
    assert (before["without_expiry"], before["wrong_token"]) == (0, 0)
    strange = {"userId": "stale", "deviceId": "phone", "expoPushToken": "abc", "platform": "ios", "isActive": True}
    dynamodb.put_item(TableName=TABLE, Item=values(strange))
    _, after = ask(push, "GET", "/v1/push/check", push.admin_token)
    assert (after["without_expiry"], after["wrong_token"]) == (1, 1)
    assert after["devices"] == before["devices"] + 1


def test_a_notification_waits_in_the_outbox_while_expo_is_away(push):
    register(push, "seven", "phone")
    path = "/v1/push/users/seven/notifications"
    body = {"title": "Done", "body": "Your photo is ready"}
    headers = {"Idempotency-Key": "job-7"}
    status, sent = ask(push, "POST", path, push.admin_token, body, headers)
    assert (status, sent["devices"][0]["device_id"]) == (202, "phone")
    status, again = ask(push, "POST", path, push.admin_token, body, headers)
    assert (status, again["notification_id"]) == (200, sent["notification_id"])
    assert ask(push, "POST", path, token("seven"), body)[0] == 403
    deadline = time.monotonic() + TIMEOUT_SECS
    while True:
        _, fate = ask(push, "GET", f"{path}/{sent['notification_id']}", token("seven"))
        if any("next attempt" in step["step"] for step in fate["devices"][0]["trace"]):
            break
        assert time.monotonic() < deadline, fate
        time.sleep(0.05)
    assert fate["devices"][0]["unanswered"] == 0
