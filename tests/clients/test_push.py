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


def register(push, user, device, push_token="ExponentPushToken[one]", platform="ios"):
    body = {"expoPushToken": push_token, "platform": platform}
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


def test_pattern_1_register(push, dynamodb):
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


def test_pattern_2_refresh(push, dynamodb):
    register(push, "two", "phone")
    first = stored(dynamodb, "two", "phone")
    assert register(push, "two", "phone", "ExpoPushToken[new]", "android")[0] == 200
    second = stored(dynamodb, "two", "phone")
    assert second["registeredAt"] == first["registeredAt"]
    assert second["updatedAt"]["S"] > first["updatedAt"]["S"]
    assert second["expoPushToken"] == {"S": "ExpoPushToken[new]"}
    assert second["platform"] == {"S": "android"}


def test_pattern_3_and_4_read(push, dynamodb):
    for device in ("a", "b", "c"):
        register(push, "three", device)
    assert ask(push, "POST", "/v1/push/devices/b/deactivate", token("three"))[0] == 200
    status, device = ask(push, "GET", "/v1/push/devices/b", token("three"))
    assert (status, device["isActive"]) == (200, False)
    _, listed = ask(push, "GET", "/v1/push/devices", token("three"))
    documented = dynamodb.query(
        TableName=TABLE,
        KeyConditionExpression="userId = :userId",
        FilterExpression="isActive = :true",
        ExpressionAttributeValues={":userId": {"S": "three"}, ":true": {"BOOL": True}},
    )["Items"]
    assert [one["deviceId"] for one in listed["devices"]] == [one["deviceId"]["S"] for one in documented] == ["a", "c"]


def test_pattern_5_deactivate(push, dynamodb):
    register(push, "five", "phone")
    before = stored(dynamodb, "five", "phone")
    ask(push, "POST", "/v1/push/devices/phone/deactivate", token("five"))
    after = stored(dynamodb, "five", "phone")
    assert after.pop("updatedAt")["S"] > before.pop("updatedAt")["S"]
    assert after == {**before, "isActive": {"BOOL": False}}


def test_pattern_6_delete(push, dynamodb):
    register(push, "six", "phone")
    assert ask(push, "DELETE", "/v1/push/devices/phone", token("six"))[0] == 204
    assert stored(dynamodb, "six", "phone") is None
    assert ask(push, "DELETE", "/v1/push/devices/phone", token("six"))[0] == 404


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
