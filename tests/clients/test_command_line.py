"""A dozen commands of the AWS command line, as one would type them."""

import json

TABLE = "command-line"


def test_a_tables_life_in_commands(aws):
    created = aws(
        "create-table", "--table-name", TABLE,
        "--attribute-definitions", "AttributeName=id,AttributeType=S", "AttributeName=at,AttributeType=N",
        "--key-schema", "AttributeName=id,KeyType=HASH", "AttributeName=at,KeyType=RANGE",
        "--billing-mode", "PAY_PER_REQUEST",
    )  # fmt: skip
    assert created["TableDescription"]["TableStatus"] == "ACTIVE"
    aws("wait", "table-exists", "--table-name", TABLE)
    assert TABLE in aws("list-tables")["TableNames"]

    for at in range(3):
        aws("put-item", "--table-name", TABLE, "--item", item(at))
    key = json.dumps({"id": {"S": "a"}, "at": {"N": "1"}})
    assert aws("get-item", "--table-name", TABLE, "--key", key)["Item"]["note"] == {"S": "n1"}

    updated = aws(
        "update-item", "--table-name", TABLE, "--key", key,
        "--update-expression", "SET note = :note",
        "--expression-attribute-values", '{":note": {"S": "changed"}}',
        "--return-values", "UPDATED_NEW",
    )  # fmt: skip
    assert updated["Attributes"] == {"note": {"S": "changed"}}

    newest = aws(
        "query", "--table-name", TABLE, "--key-condition-expression", "id = :id",
        "--expression-attribute-values", '{":id": {"S": "a"}}', "--no-scan-index-forward", "--max-items", "1",
    )  # fmt: skip
    assert newest["Items"][0]["at"] == {"N": "2"}
    assert aws("scan", "--table-name", TABLE, "--select", "COUNT")["Count"] == 3

    requests = {TABLE: [{"DeleteRequest": {"Key": {"id": {"S": "a"}, "at": {"N": "0"}}}}]}
    assert aws("batch-write-item", "--request-items", json.dumps(requests))["UnprocessedItems"] == {}
    keys = {TABLE: {"Keys": [{"id": {"S": "a"}, "at": {"N": "2"}}]}}
    assert len(aws("batch-get-item", "--request-items", json.dumps(keys))["Responses"][TABLE]) == 1
    put = [{"Put": {"TableName": TABLE, "Item": json.loads(item(7))}}]
    aws("transact-write-items", "--transact-items", json.dumps(put))

    aws("update-time-to-live", "--table-name", TABLE, "--time-to-live-specification", "Enabled=true,AttributeName=ttl")
    described = aws("describe-time-to-live", "--table-name", TABLE)
    assert described["TimeToLiveDescription"]["TimeToLiveStatus"] == "ENABLED"
    arn = aws("describe-table", "--table-name", TABLE)["Table"]["TableArn"]
    aws("tag-resource", "--resource-arn", arn, "--tags", "Key=env,Value=dev")
    assert aws("list-tags-of-resource", "--resource-arn", arn)["Tags"] == [{"Key": "env", "Value": "dev"}]

    aws("delete-item", "--table-name", TABLE, "--key", key)
    aws("delete-table", "--table-name", TABLE)
    aws("wait", "table-not-exists", "--table-name", TABLE)


def item(at):
    return json.dumps({"id": {"S": "a"}, "at": {"N": str(at)}, "note": {"S": f"n{at}"}})


def test_an_error_is_shown_with_its_type_and_text(aws):
    outcome = aws.run("describe-table", "--table-name", "missing")
    assert outcome.code != 0
    assert "(ResourceNotFoundException)" in outcome.error
    assert "Requested resource not found: Table: missing not found" in outcome.error
