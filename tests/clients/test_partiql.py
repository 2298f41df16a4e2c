"""PartiQL with boto3 and the AWS CLI."""

import json
import uuid

import pytest

from tables import create_table, index, plain_items, refused, values


@pytest.fixture
def filled(dynamodb):
    """Five items of one partition (id, moment), two of them of kind `odd`."""
    name = f"partiql-{uuid.uuid4()}"
    keys = {"id": "S", "moment": "N", "kind": "S"}
    create_table(dynamodb, name, keys, "id", "moment", GlobalSecondaryIndexes=[index("by-kind", "kind", "moment")])
    for at in range(5):
        dynamodb.execute_statement(
            Statement=f"INSERT INTO \"{name}\" VALUE {{'id': 'a', 'moment': ?, 'kind': ?, 'amount': {at * 10}}}",
            Parameters=[{"N": str(at)}, {"S": "odd" if at % 2 else "even"}],
        )
    yield name
    dynamodb.delete_table(TableName=name)


def times(answer):
    return [int(item["moment"]) for item in plain_items(answer)]


def test_select_reads_a_table_and_an_index(dynamodb, filled):
    answer = dynamodb.execute_statement(Statement=f"SELECT moment FROM \"{filled}\" WHERE id = 'a' AND moment > 2")
    assert times(answer) == [3, 4]
    odd = dynamodb.execute_statement(
        Statement=f"SELECT * FROM \"{filled}\".\"by-kind\" WHERE kind = ? ORDER BY moment DESC", Parameters=[{"S": "odd"}]
    )
    assert times(odd) == [3, 1]


def test_pages_of_a_select_add_up(dynamodb, filled):
    request = {"Statement": f'SELECT * FROM "{filled}" WHERE amount >= 20', "Limit": 2}
    seen, pages = [], 0
    while True:
        answer = dynamodb.execute_statement(**request)
        seen += times(answer)
        pages += 1
        if "NextToken" not in answer:
            break
        request["NextToken"] = answer["NextToken"]
    assert (sorted(seen), pages) == ([2, 3, 4], 3)


def test_update_and_delete_return_requested_values(dynamodb, filled):
    where = "WHERE id = 'a' AND moment = 1"
    answer = dynamodb.execute_statement(
        Statement=f'UPDATE "{filled}" SET amount = amount + 1 {where} RETURNING MODIFIED NEW *'
    )
    assert answer["Items"] == [values({"amount": 11})]
    with refused("ConditionalCheckFailedException"):
        dynamodb.execute_statement(Statement=f'UPDATE "{filled}" SET amount = 0 {where} AND amount > 100')
    answer = dynamodb.execute_statement(Statement=f'DELETE FROM "{filled}" {where} RETURNING ALL OLD *')
    assert plain_items(answer)[0]["amount"] == 11
    with refused("DuplicateItemException"):
        dynamodb.execute_statement(Statement=f"INSERT INTO \"{filled}\" VALUE {{'id': 'a', 'moment': 2}}")


def test_batch_statements_fail_independently(dynamodb, filled):
    answer = dynamodb.batch_execute_statement(
        Statements=[
            {"Statement": f"INSERT INTO \"{filled}\" VALUE {{'id': 'a', 'moment': 1}}"},
            {"Statement": f"INSERT INTO \"{filled}\" VALUE {{'id': 'a', 'moment': 100}}"},
        ]
    )
    assert [response.get("Error", {}).get("Code") for response in answer["Responses"]] == ["DuplicateItem", None]


def test_cancelled_transaction_has_reasons(dynamodb, filled):
    write = f"UPDATE \"{filled}\" SET amount = 7 WHERE id = 'a' AND moment = ?"
    check = f"EXISTS(SELECT * FROM \"{filled}\" WHERE id = 'a' AND moment = 4 AND amount = ?)"
    with pytest.raises(dynamodb.exceptions.TransactionCanceledException) as raised:
        dynamodb.execute_transaction(
            TransactStatements=[
                {"Statement": write, "Parameters": [{"N": "0"}]},
                {"Statement": check, "Parameters": [{"N": "0"}]},
            ]
        )
    reasons = raised.value.response["CancellationReasons"]
    assert [reason["Code"] for reason in reasons] == ["None", "ConditionalCheckFailed"]
    dynamodb.execute_transaction(
        TransactStatements=[
            {"Statement": write, "Parameters": [{"N": "0"}]},
            {"Statement": check, "Parameters": [{"N": "40"}]},
        ]
    )
    answer = dynamodb.execute_transaction(
        TransactStatements=[{"Statement": f"SELECT amount FROM \"{filled}\" WHERE id = 'a' AND moment = 0"}]
    )
    assert answer["Responses"] == [{"Item": values({"amount": 7})}]


def test_invalid_statements_are_rejected(dynamodb, filled):
    with refused("ValidationException", "Statement wasn't well formed, can't be processed"):
        dynamodb.execute_statement(Statement="SELECT FROM")
    with refused("ValidationException", "mandatory equality on all key attributes"):
        dynamodb.execute_statement(Statement=f"DELETE FROM \"{filled}\" WHERE id = 'a'")
    with refused("ResourceNotFoundException"):
        dynamodb.execute_statement(Statement="SELECT * FROM nowhere")


def test_cli_pages_through_select(aws, filled):
    answer = aws("execute-statement", "--statement", f'SELECT * FROM "{filled}"', "--limit", "3")
    assert len(answer["Items"]) == 3 and "NextToken" in answer
    statements = json.dumps([{"Statement": f"SELECT amount FROM \"{filled}\" WHERE id = 'a' AND moment = 3"}])
    answer = aws("batch-execute-statement", "--statements", statements)
    assert answer["Responses"][0]["Item"] == values({"amount": 30})
