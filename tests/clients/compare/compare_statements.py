"""Sends the same random PartiQL statements to Homeport and to another implementation, and shows where they differ.

    python compare_statements.py --ours http://127.0.0.1:8000 --theirs http://127.0.0.1:8001 --seed 1 --count 1000

The table named tab is deleted on both. Items have to be the same, in the same order where the statement asks for one; of two
refusals only the types have to be the same, since the two look for what is wrong in different orders. A statement that one of
them refuses and the other carries out counts as different. The script ends with an error if there are differences.
"""

import argparse
import json
import random
import sys

import boto3
import botocore.config
from botocore.exceptions import ClientError

SHOWN_MAX = 20
TEXTS = ["'a'", "'b'", "'hello'", "'l2'"]
NUMBERS = ["0", "1", "2", "3", "2.5", "-1"]
OTHERS = ["''", "true", "false", "null", "<<'a', 'b'>>", "[0, 'q']", "{'a': 1}"]
PATHS = ["pk", "sk", "g", "l", "n", "s", "m.a", "m.a[0]", "m.a[1]", "m.b", "t", "f", "z", "none", "m", '"s"']
TYPES = ["MISSING", "NULL", "STRING", "NUMERIC", "LIST", "STRUCT", "BOOLEAN"]
KEYS = ["pk = 'a'", "pk = 'b'", "sk = 1", "sk > 1", "g = 'x'", "l > 'l1'", "sk BETWEEN 1 AND 2", "pk IN ['a', 'c']"]
ORDERS = ["", "", "", "", " ORDER BY sk", " ORDER BY sk DESC", " ORDER BY pk DESC, sk", " ORDER BY l"]


def client(endpoint):
    return boto3.client(
        "dynamodb",
        endpoint_url=endpoint,
        region_name="us-east-1",
        aws_access_key_id="any",
        aws_secret_access_key="any",
        config=botocore.config.Config(retries={"total_max_attempts": 1}),
    )


def prepare(dynamodb):
    """Deletes and creates the table, with items of every kind."""
    try:
        dynamodb.delete_table(TableName="tab")
    except dynamodb.exceptions.ResourceNotFoundException:
        pass
    key = lambda *names: [{"AttributeName": n, "KeyType": k} for n, k in zip(names, ("HASH", "RANGE"))]  # noqa: E731
    everything = {"ProjectionType": "ALL"}
    dynamodb.create_table(
        TableName="tab",
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[
            {"AttributeName": n, "AttributeType": k} for n, k in (("pk", "S"), ("sk", "N"), ("g", "S"), ("l", "S"))
        ],
        KeySchema=key("pk", "sk"),
        GlobalSecondaryIndexes=[{"IndexName": "ggg", "KeySchema": key("g", "sk"), "Projection": everything}],
        LocalSecondaryIndexes=[{"IndexName": "lll", "KeySchema": key("pk", "l"), "Projection": everything}],
    )
    dice = random.Random(7)
    for pk in "abc":
        for sk in range(4):
            item = {
                "pk": {"S": pk},
                "sk": {"N": str(sk)},
                "g": {"S": dice.choice("xy")},
                "l": {"S": f"l{sk}"},
                "n": {"N": str(dice.randint(0, 5))},
                "s": {"S": dice.choice(["he", "hello", "x", ""])},
            }
            if dice.random() < 0.5:
                item["m"] = {"M": {"a": {"L": [{"N": str(sk)}, {"S": "q"}]}, "b": {"NULL": True}}}
            if dice.random() < 0.5:
                item["t"] = {"SS": ["a", "b"]}
            if dice.random() < 0.3:
                item["f"] = {"BOOL": dice.random() < 0.5}
            if dice.random() < 0.3:
                item["z"] = {"NULL": True}
            dynamodb.put_item(TableName="tab", Item=item)


class Statements:
    """Random statements; the same ones for the same seed."""

    def __init__(self, seed):
        self.dice = random.Random(seed)

    def condition(self, depth=0):
        kind = self.dice.randint(0, 6 if depth < 3 else 2)
        if kind <= 2:
            return self.comparison()
        if kind == 3:
            return f"NOT {self.comparison()}"
        parts = self.condition(depth + 1), self.condition(depth + 1)
        return f"({parts[0]} OR {parts[1]})" if kind == 4 else f"{parts[0]} AND {parts[1]}"

    def comparison(self):
        choose = self.dice.choice
        path = choose(PATHS)
        scalar = choose(TEXTS + NUMBERS)
        return choose(
            [
                f"{path} {choose(['=', '<>'])} {choose(TEXTS + NUMBERS + OTHERS)}",
                f"{path} {choose(['<', '<=', '>', '>='])} {scalar}",
                f"{path} BETWEEN {choose('01')} AND {choose('23')}",
                f"{path} IN [{scalar}]",
                f"begins_with({path}, 'he')",
                f"contains({path}, {scalar})",
                f"{path} IS {choose(['', 'NOT '])}{choose(TYPES)}",
                f"size({path}) {choose(['=', '>', '<>'])} {self.dice.randint(0, 5)}",
                f"attribute_type({path}, '{choose(['S', 'N', 'SS', 'L', 'M', 'NULL', 'BOOL'])}')",
                f"{choose(['attribute_exists', 'attribute_not_exists'])}({path})",
                choose(KEYS),
                choose(KEYS),
            ]
        )

    def select(self):
        choose = self.dice.choice
        attributes = choose(["*", "*", "pk, sk", "pk, sk, n", "pk, sk, m.a[0]", "pk, sk, m.b, s"])
        source = choose(["tab", '"tab"', '"tab"."ggg"', '"tab"."lll"'])
        where = "" if self.dice.random() < 0.1 else f" WHERE {self.condition()}"
        return f"SELECT {attributes} FROM {source}{where}{choose(ORDERS)}"

    def write(self):
        choose = self.dice.choice
        where = f"WHERE pk = '{choose('abcd')}' AND sk = {self.dice.randint(0, 4)}"
        if self.dice.random() < 0.4:
            where += f" AND {self.comparison()}"
        kind = self.dice.random()
        if kind < 0.6:
            target = choose(["n", "s", "t", "m.a", "m.a[0]", "m.x", "new", "z", "m.a[7]", "f"])
            value = choose(
                TEXTS + NUMBERS + OTHERS
                + ["n + 2", "n - 1", "s + 1", "list_append(m.a, [9])", "set_add(t, <<'q'>>)", "set_delete(t, <<'a'>>)"]
            )  # fmt: skip
            removed = choose(["", "", " REMOVE f", " REMOVE z", " REMOVE m.b", " REMOVE none"])
            returning = choose(["", " RETURNING ALL OLD *", " RETURNING ALL NEW *", " RETURNING MODIFIED NEW *"])
            return f"UPDATE tab SET {target} = {value}{removed} {where}{returning}"
        if kind < 0.8:
            return f"DELETE FROM tab {where}{choose(['', ' RETURNING ALL OLD *'])}"
        values = f"'pk': '{choose('abcd')}', 'sk': {self.dice.randint(0, 4)}, 'n': 1, 's': 'he', 't': <<'a', 'c'>>"
        return f"INSERT INTO tab VALUE {{{values}, 'm': {{'a': [1, 'q'], 'b': null}}}}"


def sorted_sets(value):
    """The same value with the members of its sets in order, which is not fixed."""
    if isinstance(value, dict):
        return {name: sorted(v) if name in ("SS", "NS") else sorted_sets(v) for name, v in value.items()}
    return [sorted_sets(element) for element in value] if isinstance(value, list) else value


def outcome(dynamodb, statement):
    try:
        items = dynamodb.execute_statement(Statement=statement)["Items"]
    except ClientError as error:
        return error.response["Error"]["Code"]
    shown = [json.dumps(sorted_sets(item), sort_keys=True) for item in items]
    return shown if "ORDER BY" in statement else sorted(shown)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ours", required=True)
    parser.add_argument("--theirs", required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=1000)
    arguments = parser.parse_args()

    clients = client(arguments.ours), client(arguments.theirs)
    for dynamodb in clients:
        prepare(dynamodb)
    statements = Statements(arguments.seed)
    differing = refused = 0
    for number in range(arguments.count):
        # What is read first is as it was prepared; later, what was written must show.
        statement = statements.write() if number >= arguments.count // 2 and number % 2 else statements.select()
        answers = [outcome(dynamodb, statement) for dynamodb in clients]
        refused += isinstance(answers[0], str)
        if answers[0] != answers[1]:
            differing += 1
            if differing <= SHOWN_MAX:
                print(statement, *answers, sep="\n    ")
    print(f"{arguments.count} statements, {refused} of them refused: {differing} differ")
    sys.exit(1 if differing else 0)


if __name__ == "__main__":
    main()
