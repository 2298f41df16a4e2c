"""Credentials with policies: allowed calls, denied calls and the audit log."""

import hashlib
import json
import urllib.error
import urllib.request

import botocore.auth
import botocore.awsrequest
import botocore.credentials
import pytest

from conftest import ACCESS_KEY_ID, REGION, SECRET_ACCESS_KEY, client
from tables import create_table, refused, values

# The policy in the documentation of the push system.
DOCUMENTED = {
    "Version": "2012-10-17",
    "Statement": [
        {
            "Effect": "Allow",
            "Action": [
                "dynamodb:PutItem",
                "dynamodb:GetItem",
                "dynamodb:UpdateItem",
                "dynamodb:DeleteItem",
                "dynamodb:Query",
            ],
            "Resource": "arn:aws:dynamodb:REGION:ACCOUNT:table/photoeditor-ENV-device-tokens",
        },
        {
            "Effect": "Allow",
            "Action": ["kms:Decrypt", "kms:GenerateDataKey"],
            "Resource": "arn:aws:kms:REGION:ACCOUNT:key/KMS_KEY_ID",
        },
    ],
}
OWN_ITEMS = {
    "Version": "2012-10-17",
    "Statement": [
        {
            "Effect": "Allow",
            "Action": ["dynamodb:*Item", "dynamodb:Query"],
            "Resource": "arn:aws:dynamodb:*:*:table/notes",
            "Condition": {"ForAllValues:StringEquals": {"dynamodb:LeadingKeys": ["${aws:username}"]}},
        }
    ],
}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A server with credentials for an owner, the backend of the push system, and a user with items of her own."""
    from conftest import Server

    directory = tmp_path_factory.mktemp("policies")
    (directory / "own.json").write_text(json.dumps(OWN_ITEMS))
    (directory / "secret").write_text("ann's secret\n")
    (directory / "credentials.toml").write_text(
        f"""
[[credentials]]
name = "push-backend"
access_key_id = "AKIAPUSH"
secret_access_key = "the backend's secret"
policy = '''{json.dumps(DOCUMENTED)}'''

[[credentials]]
name = "ann"
access_key_id = "AKIAANN"
secret_access_key_file = "secret"
policy_file = "own.json"
"""
    )
    options = ["--dynamodb-credentials-file", str(directory / "credentials.toml")]
    server = Server(directory / "data", ACCESS_KEY_ID, SECRET_ACCESS_KEY, options=options)
    owner = client(server.endpoint, ACCESS_KEY_ID, SECRET_ACCESS_KEY)
    create_table(owner, "photoeditor-ENV-device-tokens", {"userId": "S"}, "userId")
    create_table(owner, "notes", {"user": "S", "at": "N"}, "user", "at")
    yield server
    server.stop()


@pytest.fixture
def backend(server):
    return client(server.endpoint, "AKIAPUSH", "the backend's secret")


@pytest.fixture
def ann(server):
    return client(server.endpoint, "AKIAANN", "ann's secret")


def test_documented_policy_permits_its_backend(backend):
    table = "photoeditor-ENV-device-tokens"
    backend.put_item(TableName=table, Item=values({"userId": "u"}))
    assert backend.get_item(TableName=table, Key=values({"userId": "u"}))["Item"] == values({"userId": "u"})
    text = (
        "User: arn:aws:iam::000000000000:user/push-backend is not authorized to perform: dynamodb:Scan on resource: "
        f"arn:aws:dynamodb:us-east-1:000000000000:table/{table} because no identity-based policy allows the dynamodb:Scan action"
    )
    with refused("AccessDeniedException", text):
        backend.scan(TableName=table)
    with refused("AccessDeniedException", "dynamodb:PutItem"):
        backend.put_item(TableName="notes", Item=values({"user": "u", "at": 1}))


def test_users_reach_only_their_own_items(ann):
    ann.put_item(TableName="notes", Item=values({"user": "ann", "at": 1}))
    query = {"TableName": "notes", "KeyConditionExpression": "#u = :u", "ExpressionAttributeNames": {"#u": "user"}}
    assert ann.query(**query, ExpressionAttributeValues=values({":u": "ann"}))["Count"] == 1
    with refused("AccessDeniedException", "dynamodb:Query"):
        ann.query(**query, ExpressionAttributeValues=values({":u": "bob"}))
    with refused("AccessDeniedException", "dynamodb:PutItem"):
        ann.put_item(TableName="notes", Item=values({"user": "bob", "at": 1}))
    put = lambda user: {"Put": {"TableName": "notes", "Item": values({"user": user, "at": 2})}}  # noqa: E731
    with refused("AccessDeniedException", "dynamodb:PutItem"):
        ann.transact_write_items(TransactItems=[put("ann"), put("bob")])
    ann.transact_write_items(TransactItems=[put("ann")])


def presigned(server, operation, body, secret, expires):
    """A request with a signature by botocore in the URL."""
    credentials = botocore.credentials.Credentials("AKIAANN", secret)
    headers = {"X-Amz-Target": f"DynamoDB_20120810.{operation}"}
    request = botocore.awsrequest.AWSRequest("POST", server.endpoint + "/", headers=headers)
    signer = botocore.auth.SigV4QueryAuth(credentials, "dynamodb", REGION, expires=expires)
    # botocore would move a body into the URL; the signature covers the hash of the body.
    signer.payload = lambda _: hashlib.sha256(body).hexdigest()
    signer.add_auth(request)
    headers["Content-Type"] = "application/x-amz-json-1.0"
    return urllib.request.Request(request.url, data=body, headers=headers)


def test_presigned_requests_are_accepted(server, ann):
    body = json.dumps({"TableName": "notes", "Key": values({"user": "ann", "at": 7})}).encode()
    ann.put_item(TableName="notes", Item=values({"user": "ann", "at": 7}))
    with urllib.request.urlopen(presigned(server, "GetItem", body, "ann's secret", 60), timeout=10) as answer:
        assert json.load(answer)["Item"] == values({"user": "ann", "at": 7})
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(presigned(server, "GetItem", body, "wrong", 60), timeout=10)
    assert b"InvalidSignatureException" in caught.value.read()
    other = presigned(server, "GetItem", body, "ann's secret", 60)
    other.headers["X-amz-target"] = "DynamoDB_20120810.DeleteItem"
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(other, timeout=10)
    assert b"InvalidSignatureException" in caught.value.read()


def test_table_changes_and_denials_are_recorded(capfd, start_server, tmp_path):
    credentials = tmp_path / "credentials.toml"
    nothing = json.dumps({"Statement": []})
    credentials.write_text(
        f"[[credentials]]\nname = 'ann'\naccess_key_id = 'AKIAANN'\nsecret_access_key = 'x'\npolicy = '{nothing}'\n"
    )
    options = ["--dynamodb-credentials-file", str(credentials), "--log", "homeport::audit=info", "--log-format", "json"]
    server = start_server(tmp_path / "data", ACCESS_KEY_ID, SECRET_ACCESS_KEY, options=options)
    owner = client(server.endpoint, ACCESS_KEY_ID, SECRET_ACCESS_KEY)
    create_table(owner, "recorded", {"id": "S"}, "id")
    owner.put_item(TableName="recorded", Item=values({"id": "not to be seen"}))
    owner.list_tables()
    with refused("ResourceNotFoundException"):
        owner.delete_table(TableName="missing")
    with refused("AccessDeniedException"):
        client(server.endpoint, "AKIAANN", "x").get_item(TableName="recorded", Key=values({"id": "not to be seen"}))
    server.stop()
    logged = capfd.readouterr().err
    fields = [json.loads(line) for line in logged.splitlines() if '"homeport::audit"' in line]
    assert [(f["operation"], f["user"], f["resource"], f["outcome"]) for f in fields] == [
        ("CreateTable", ACCESS_KEY_ID, "recorded", "Success"),
        ("DeleteTable", ACCESS_KEY_ID, "missing", "ResourceNotFoundException"),
        ("GetItem", "ann", "recorded", "AccessDeniedException"),
    ]
    assert "not to be seen" not in logged and SECRET_ACCESS_KEY not in logged
