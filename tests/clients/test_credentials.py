"""A server with credentials takes requests signed with them and no others."""

import urllib.error
import urllib.request

import pytest

from conftest import ACCESS_KEY_ID, SECRET_ACCESS_KEY, client
from tables import create_table, plain_items, refused, values


def test_signed_requests_read_and_write(guarded_server):
    signed = client(guarded_server.endpoint, ACCESS_KEY_ID, SECRET_ACCESS_KEY)
    create_table(signed, "guarded", {"id": "S"}, "id")
    item = {"id": "übermäßig # /?&=", "note": "line\nbreak"}
    signed.put_item(TableName="guarded", Item=values(item))
    assert plain_items(signed.scan(TableName="guarded")) == [item]
    signed.delete_table(TableName="guarded")


def test_a_wrong_secret_is_refused(guarded_server):
    with refused("InvalidSignatureException", "signature we calculated does not match"):
        client(guarded_server.endpoint, ACCESS_KEY_ID, "wrong").list_tables()


def test_an_unknown_key_is_refused(guarded_server):
    with refused("UnrecognizedClientException", "security token"):
        client(guarded_server.endpoint, "AKIASOMEONEELSE", SECRET_ACCESS_KEY).list_tables()


def test_an_unsigned_request_is_refused(guarded_server):
    request = urllib.request.Request(
        guarded_server.endpoint,
        data=b"{}",
        headers={"Content-Type": "application/x-amz-json-1.0", "X-Amz-Target": "DynamoDB_20120810.ListTables"},
    )
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(request, timeout=10)
    assert caught.value.code == 400
    assert b"MissingAuthenticationTokenException" in caught.value.read()


def test_the_command_line_signs_too(guarded_aws):
    assert "devices" in guarded_aws()("list-tables")["TableNames"]
    outcome = guarded_aws(secret_access_key="wrong").run("list-tables")
    assert outcome.code != 0
    assert "InvalidSignatureException" in outcome.error
