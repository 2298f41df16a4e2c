"""Bad requests, one a line: operation, body, name. The tables they meet are in `SETUP`."""

S = lambda text: {"S": text}  # noqa: E731
N = lambda number: {"N": str(number)}  # noqa: E731

# Tables: `ttt` (pk S, sk N; index `ggg` by gk S; local index `lll` by lk N) and `hhh` (id S). One item in each.
SETUP = [
    ("CreateTable", {
        "TableName": "ttt",
        "AttributeDefinitions": [{"AttributeName": n, "AttributeType": k} for n, k in (("pk", "S"), ("sk", "N"), ("gk", "S"), ("lk", "N"))],
        "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
        "GlobalSecondaryIndexes": [{"IndexName": "ggg", "KeySchema": [{"AttributeName": "gk", "KeyType": "HASH"}], "Projection": {"ProjectionType": "KEYS_ONLY"}}],
        "LocalSecondaryIndexes": [{"IndexName": "lll", "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "lk", "KeyType": "RANGE"}], "Projection": {"ProjectionType": "ALL"}}],
        "BillingMode": "PAY_PER_REQUEST",
    }),
    ("CreateTable", {
        "TableName": "hhh",
        "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
        "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
        "BillingMode": "PAY_PER_REQUEST",
    }),
    ("PutItem", {"TableName": "ttt", "Item": {"pk": S("a"), "sk": N(1), "gk": S("g"), "n": N(5), "s": S("x"), "l": {"L": [N(1)]}, "m": {"M": {"k": N(1)}}, "ss": {"SS": ["a"]}}}),
    ("PutItem", {"TableName": "hhh", "Item": {"id": S("a"), "n": N(5), "s": S("x")}}),
]  # fmt: skip

KEY = {"pk": S("a"), "sk": N(1)}
ID = {"id": S("a")}
HASH_ONLY = [{"AttributeName": "id", "KeyType": "HASH"}]
ID_TYPE = [{"AttributeName": "id", "AttributeType": "S"}]
NEW = {"TableName": "new", "AttributeDefinitions": ID_TYPE, "KeySchema": HASH_ONLY, "BillingMode": "PAY_PER_REQUEST"}
ALL = {"ProjectionType": "ALL"}
G = {"IndexName": "ggg", "KeySchema": HASH_ONLY, "Projection": ALL}


def put(**more):
    return ("PutItem", {"TableName": "hhh", "Item": ID, **more})


def item(**attributes):
    return put(Item={**ID, **attributes})


def get(**more):
    return ("GetItem", {"TableName": "hhh", "Key": ID, **more})


def update(expression=None, values=None, names=None, **more):
    body = {"TableName": "ttt", "Key": KEY, **more}
    if expression is not None:
        body["UpdateExpression"] = expression
    if values is not None:
        body["ExpressionAttributeValues"] = values
    if names is not None:
        body["ExpressionAttributeNames"] = names
    return ("UpdateItem", body)


def delete(**more):
    return ("DeleteItem", {"TableName": "hhh", "Key": ID, **more})


def query(condition=None, values=None, **more):
    body = {"TableName": "ttt", **more}
    if condition is not None:
        body["KeyConditionExpression"] = condition
    if values is not None:
        body["ExpressionAttributeValues"] = values
    return ("Query", body)


def scan(**more):
    return ("Scan", {"TableName": "ttt", **more})


def condition(expression, values=None, **more):
    body = {"ConditionExpression": expression, **more}
    if values is not None:
        body["ExpressionAttributeValues"] = values
    return put(**body)


def create(**more):
    return ("CreateTable", {**NEW, **more})


def batch_get(**tables):
    return ("BatchGetItem", {"RequestItems": tables})


def batch_write(**tables):
    return ("BatchWriteItem", {"RequestItems": tables})


def transact(*items, **more):
    return ("TransactWriteItems", {"TransactItems": list(items), **more})


def transact_get(*items):
    return ("TransactGetItems", {"TransactItems": list(items)})


A = {":a": S("a")}
ONE = {":a": S("a"), ":n": N(1)}
ARN = "arn:aws:dynamodb:us-east-1:000000000000:table/"

def statement(text, **more):
    return ("ExecuteStatement", {"Statement": text, **more})


def transact_statements(*texts):
    return ("ExecuteTransaction", {"TransactStatements": [{"Statement": text} for text in texts]})


CASES = [
    # The protocol itself.
    ("unknown operation", "NoSuchOperation", {}),
    ("body is no JSON", "ListTables", "{"),
    ("body is a list", "ListTables", "[]"),
    ("body is a string", "GetItem", '"x"'),
    ("table name is a number", "GetItem", {"TableName": 5, "Key": ID}),
    ("table name is a list", "GetItem", {"TableName": ["hhh"], "Key": ID}),
    ("key is a string", "GetItem", {"TableName": "hhh", "Key": "a"}),
    ("key is a list", "GetItem", {"TableName": "hhh", "Key": []}),
    ("limit is a string", "Scan", {"TableName": "hhh", "Limit": "5"}),
    ("limit is a fraction", "Scan", {"TableName": "hhh", "Limit": 1.5}),
    ("consistent read is a string", "GetItem", {"TableName": "hhh", "Key": ID, "ConsistentRead": "yes"}),
    ("attribute value is a string", "PutItem", {"TableName": "hhh", "Item": {"id": "a"}}),
    # Table names.
    ("no table name", "GetItem", {"Key": ID}),
    ("no table name, no key", "GetItem", {}),
    ("empty table name", *get(TableName="")),
    ("short table name", *get(TableName="ab")),
    ("long table name", *get(TableName="a" * 256)),
    ("table name with a space", *get(TableName="a b c")),
    ("table name with an umlaut", *get(TableName="täbel")),
    ("missing table: get", *get(TableName="none")),
    ("missing table: put", *put(TableName="none")),
    ("missing table: update", *update(TableName="none")),
    ("missing table: delete", *delete(TableName="none")),
    ("missing table: query", *query("pk = :a", A, TableName="none")),
    ("missing table: scan", *scan(TableName="none")),
    ("missing table: describe", "DescribeTable", {"TableName": "none"}),
    ("missing table: delete table", "DeleteTable", {"TableName": "none"}),
    ("missing table: update table", "UpdateTable", {"TableName": "none", "BillingMode": "PAY_PER_REQUEST"}),
    ("missing table: batch get", *batch_get(none={"Keys": [ID]})),
    ("missing table: batch write", *batch_write(none=[{"PutRequest": {"Item": ID}}])),
    ("missing table: transact get", *transact_get({"Get": {"TableName": "none", "Key": ID}})),
    ("missing table: transact write", *transact({"Put": {"TableName": "none", "Item": ID}})),
    ("missing table: describe time to live", "DescribeTimeToLive", {"TableName": "none"}),
    ("missing table: update time to live", "UpdateTimeToLive", {"TableName": "none", "TimeToLiveSpecification": {"Enabled": True, "AttributeName": "x"}}),
    ("missing table: tags", "ListTagsOfResource", {"ResourceArn": ARN + "none"}),
    ("describe: no name", "DescribeTable", {}),
    ("describe: short name", "DescribeTable", {"TableName": "a"}),
    ("delete table: no name", "DeleteTable", {}),
    ("list tables: limit 0", "ListTables", {"Limit": 0}),
    ("list tables: limit 101", "ListTables", {"Limit": 101}),
    ("list tables: bad start name", "ListTables", {"ExclusiveStartTableName": "a b"}),
    # CreateTable.
    ("create: nothing", "CreateTable", {}),
    ("create: only a name", "CreateTable", {"TableName": "new"}),
    ("create: short name", *create(TableName="n")),
    ("create: exists", *create(TableName="hhh")),
    ("create: empty key schema", *create(KeySchema=[])),
    ("create: three keys", *create(KeySchema=[{"AttributeName": n, "KeyType": "HASH"} for n in ("id", "b", "c")])),
    ("create: range key first", *create(KeySchema=[{"AttributeName": "id", "KeyType": "RANGE"}])),
    ("create: two hash keys", *create(AttributeDefinitions=[*ID_TYPE, {"AttributeName": "b", "AttributeType": "S"}], KeySchema=[*HASH_ONLY, {"AttributeName": "b", "KeyType": "HASH"}])),
    ("create: the same key twice", *create(KeySchema=[*HASH_ONLY, {"AttributeName": "id", "KeyType": "RANGE"}])),
    ("create: bad key type", *create(KeySchema=[{"AttributeName": "id", "KeyType": "PRIMARY"}])),
    ("create: bad attribute type", *create(AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "BOOL"}])),
    ("create: key not defined", *create(AttributeDefinitions=[{"AttributeName": "x", "AttributeType": "S"}])),
    ("create: unused definition", *create(AttributeDefinitions=[*ID_TYPE, {"AttributeName": "x", "AttributeType": "S"}])),
    ("create: attribute defined twice", *create(AttributeDefinitions=ID_TYPE * 2)),
    ("create: no definitions", *create(AttributeDefinitions=[])),
    ("create: bad billing mode", *create(BillingMode="FREE")),
    ("create: on demand with throughput", *create(ProvisionedThroughput={"ReadCapacityUnits": 1, "WriteCapacityUnits": 1})),
    ("create: provisioned without throughput", *create(BillingMode="PROVISIONED")),
    ("create: zero throughput", *create(BillingMode="PROVISIONED", ProvisionedThroughput={"ReadCapacityUnits": 0, "WriteCapacityUnits": 1})),
    ("create: half a throughput", *create(BillingMode="PROVISIONED", ProvisionedThroughput={"ReadCapacityUnits": 1})),
    ("create: empty list of indexes", *create(GlobalSecondaryIndexes=[])),
    ("create: empty list of local indexes", *create(LocalSecondaryIndexes=[])),
    ("create: index without projection", *create(GlobalSecondaryIndexes=[{"IndexName": "ggg", "KeySchema": HASH_ONLY}])),
    ("create: index with an empty projection", *create(GlobalSecondaryIndexes=[{**G, "Projection": {}}])),
    ("create: index with a bad projection", *create(GlobalSecondaryIndexes=[{**G, "Projection": {"ProjectionType": "SOME"}}])),
    ("create: include without attributes", *create(GlobalSecondaryIndexes=[{**G, "Projection": {"ProjectionType": "INCLUDE"}}])),
    ("create: all with attributes", *create(GlobalSecondaryIndexes=[{**G, "Projection": {"ProjectionType": "ALL", "NonKeyAttributes": ["x"]}}])),
    ("create: index key not defined", *create(GlobalSecondaryIndexes=[{**G, "KeySchema": [{"AttributeName": "x", "KeyType": "HASH"}]}])),
    ("create: the same index twice", *create(GlobalSecondaryIndexes=[G, G])),
    ("create: short index name", *create(GlobalSecondaryIndexes=[{**G, "IndexName": "g"}])),
    ("create: local index on a table without range key", *create(LocalSecondaryIndexes=[{"IndexName": "lll", "KeySchema": [*HASH_ONLY, {"AttributeName": "id", "KeyType": "RANGE"}], "Projection": ALL}])),
    ("create: 21 indexes", *create(GlobalSecondaryIndexes=[{**G, "IndexName": f"ggg{n}"} for n in range(21)])),
    ("create: stream without view", *create(StreamSpecification={"StreamEnabled": True})),
    ("create: view without stream", *create(StreamSpecification={"StreamEnabled": False, "StreamViewType": "NEW_IMAGE"})),
    ("create: bad table class", *create(TableClass="GLACIER")),
    # UpdateTable, time to live, tags.
    ("update table: nothing to do", "UpdateTable", {"TableName": "hhh"}),
    ("update table: delete a missing index", "UpdateTable", {"TableName": "hhh", "GlobalSecondaryIndexUpdates": [{"Delete": {"IndexName": "none"}}]}),
    ("update table: an empty index update", "UpdateTable", {"TableName": "hhh", "GlobalSecondaryIndexUpdates": [{}]}),
    ("update table: create an index that exists", "UpdateTable", {"TableName": "ttt", "AttributeDefinitions": ID_TYPE, "GlobalSecondaryIndexUpdates": [{"Create": G}]}),
    ("update table: index key not defined", "UpdateTable", {"TableName": "hhh", "GlobalSecondaryIndexUpdates": [{"Create": {**G, "KeySchema": [{"AttributeName": "q", "KeyType": "HASH"}]}}]}),
    ("update table: throughput on demand", "UpdateTable", {"TableName": "hhh", "ProvisionedThroughput": {"ReadCapacityUnits": 1, "WriteCapacityUnits": 1}}),
    ("update table: stream is off already", "UpdateTable", {"TableName": "hhh", "StreamSpecification": {"StreamEnabled": False}}),
    ("time to live: off already", "UpdateTimeToLive", {"TableName": "hhh", "TimeToLiveSpecification": {"Enabled": False, "AttributeName": "x"}}),
    ("time to live: empty attribute", "UpdateTimeToLive", {"TableName": "hhh", "TimeToLiveSpecification": {"Enabled": True, "AttributeName": ""}}),
    ("time to live: no specification", "UpdateTimeToLive", {"TableName": "hhh"}),
    ("time to live: no attribute", "UpdateTimeToLive", {"TableName": "hhh", "TimeToLiveSpecification": {"Enabled": True}}),
    ("tag: no tags", "TagResource", {"ResourceArn": ARN + "hhh"}),
    ("tag: empty list", "TagResource", {"ResourceArn": ARN + "hhh", "Tags": []}),
    ("tag: not an ARN", "TagResource", {"ResourceArn": "hhh", "Tags": [{"Key": "a", "Value": "b"}]}),
    ("tag: empty key", "TagResource", {"ResourceArn": ARN + "hhh", "Tags": [{"Key": "", "Value": "b"}]}),
    ("untag: no keys", "UntagResource", {"ResourceArn": ARN + "hhh"}),
    ("untag: empty list", "UntagResource", {"ResourceArn": ARN + "hhh", "TagKeys": []}),
    ("tags: no ARN", "ListTagsOfResource", {}),
    # Items and values.
    ("put: no item", "PutItem", {"TableName": "hhh"}),
    ("put: empty item", *put(Item={})),
    ("put: no key", *put(Item={"x": S("y")})),
    ("put: key of the wrong type", *put(Item={"id": N(1)})),
    ("put: empty key", *put(Item={"id": S("")})),
    ("put: key is null", *put(Item={"id": {"NULL": True}})),
    ("put: key of 2049 bytes", *put(Item={"id": S("x" * 2049)})),
    ("put: no range key", *put(TableName="ttt", Item={"pk": S("a")})),
    ("put: range key of the wrong type", *put(TableName="ttt", Item={"pk": S("a"), "sk": S("1")})),
    ("put: index key of the wrong type", *put(TableName="ttt", Item={**KEY, "gk": N(1)})),
    ("put: empty index key", *put(TableName="ttt", Item={**KEY, "gk": S("")})),
    ("put: local index key of the wrong type", *put(TableName="ttt", Item={**KEY, "lk": S("1")})),
    ("put: value without a type", *item(x={})),
    ("put: value of two types", *item(x={"S": "a", "N": "1"})),
    ("put: value of an unknown type", *item(x={"X": "a"})),
    ("put: number is text", *item(x={"N": "abc"})),
    ("put: number is empty", *item(x={"N": ""})),
    ("put: number with spaces", *item(x={"N": " 1 "})),
    ("put: number of 39 digits", *item(x={"N": "1" * 39})),
    ("put: number too large", *item(x={"N": "1e126"})),
    ("put: number too small", *item(x={"N": "1e-131"})),
    ("put: number is a JSON number", *item(x={"N": 5})),
    ("put: NULL is false", *item(x={"NULL": False})),
    ("put: BOOL is text", *item(x={"BOOL": "true"})),
    ("put: bytes not in base 64", *item(x={"B": "$$$"})),
    ("put: empty set of strings", *item(x={"SS": []})),
    ("put: empty set of numbers", *item(x={"NS": []})),
    ("put: empty set of bytes", *item(x={"BS": []})),
    ("put: string twice in a set", *item(x={"SS": ["a", "a"]})),
    ("put: number twice in a set", *item(x={"NS": ["1", "1.0"]})),
    ("put: bytes twice in a set", *item(x={"BS": ["YQ==", "YQ=="]})),
    ("put: text in a set of numbers", *item(x={"NS": ["a"]})),
    ("put: bad value within a list", *item(x={"L": [{"N": "x"}]})),
    ("put: bad value within a map", *item(x={"M": {"y": {"SS": []}}})),
    ("put: item of 400 KB and a bit", *item(x=S("x" * 410_000))),
    ("put: return values NEW", *put(ReturnValues="ALL_NEW")),
    ("put: return values unknown", *put(ReturnValues="SOME")),
    ("put: capacity unknown", *put(ReturnConsumedCapacity="SOME")),
    ("put: metrics unknown", *put(ReturnItemCollectionMetrics="SOME")),
    ("put: names without expression", *put(ExpressionAttributeNames={"#a": "b"})),
    ("put: values without expression", *put(ExpressionAttributeValues=A)),
    # Keys.
    ("get: no key", "GetItem", {"TableName": "hhh"}),
    ("get: empty key map", *get(Key={})),
    ("get: other attribute", *get(Key={"x": S("a")})),
    ("get: key of the wrong type", *get(Key={"id": N(1)})),
    ("get: one attribute too many", *get(Key={**ID, "x": S("a")})),
    ("get: empty key value", *get(Key={"id": S("")})),
    ("get: no range key", *get(TableName="ttt", Key={"pk": S("a")})),
    ("get: bad number in key", *get(TableName="ttt", Key={"pk": S("a"), "sk": {"N": "x"}})),
    ("get: key too long", *get(Key={"id": S("x" * 2049)})),
    ("get: names without expression", *get(ExpressionAttributeNames={"#a": "b"})),
    ("get: unused name", *get(ProjectionExpression="x", ExpressionAttributeNames={"#a": "b"})),
    ("get: undefined name", *get(ProjectionExpression="#b")),
    ("get: empty projection", *get(ProjectionExpression="")),
    ("get: reserved word", *get(ProjectionExpression="size")),
    ("get: broken projection", *get(ProjectionExpression="a,,b")),
    ("get: path twice", *get(ProjectionExpression="a, a")),
    ("get: path within a path", *get(ProjectionExpression="a, a.b")),
    ("get: path as list and as map", *get(ProjectionExpression="a[0], a.b")),
    ("get: name without a sign", *get(ProjectionExpression="#a", ExpressionAttributeNames={"a": "b"})),
    ("get: empty name", *get(ProjectionExpression="#a", ExpressionAttributeNames={"#a": ""})),
    ("get: no names", *get(ProjectionExpression="a", ExpressionAttributeNames={})),
    ("delete: no key", "DeleteItem", {"TableName": "hhh"}),
    ("delete: wrong key", *delete(Key={"x": S("a")})),
    ("delete: return values NEW", *delete(ReturnValues="ALL_NEW")),
    ("delete: condition fails", *delete(ConditionExpression="attribute_not_exists(id)")),
    # Conditions.
    ("condition: fails", *condition("attribute_not_exists(id)")),
    ("condition: empty", *condition("")),
    ("condition: broken", *condition("id = ")),
    ("condition: unknown function", *condition("no_such(id)")),
    ("condition: too few operands", *condition("begins_with(id)", None)),
    ("condition: too many operands", *condition("attribute_exists(id, s)")),
    ("condition: size alone", *condition("size(id)")),
    ("condition: undefined value", *condition("id = :b", A)),
    ("condition: undefined value, none given", *condition("id = :a")),
    ("condition: unused value", *condition("id = :a", ONE)),
    ("condition: undefined name", *condition("#x = :a", A)),
    ("condition: no values", *condition("attribute_exists(id)", {})),
    ("condition: bad value name", *condition("id = :a", {"a": S("a")})),
    ("condition: bad value", *condition("id = :a", {":a": {"N": "x"}})),
    ("condition: empty value", *condition("id = :a", {":a": {}})),
    ("condition: value with itself", *condition(":a = :a", A)),
    ("condition: attribute with itself", *condition("id = id")),
    ("condition: between the wrong way", *condition("n BETWEEN :b AND :a", {":a": N(1), ":b": N(2)})),
    ("condition: between two types", *condition("n BETWEEN :a AND :n", ONE)),
    ("condition: less than a boolean", *condition("n < :a", {":a": {"BOOL": True}})),
    ("condition: begins with a number", *condition("begins_with(id, :n)", {":n": N(1)})),
    ("condition: unknown attribute type", *condition("attribute_type(id, :a)", {":a": S("STRING")})),
    ("condition: attribute type is a number", *condition("attribute_type(id, :n)", {":n": N(1)})),
    ("condition: exists of a value", *condition("attribute_exists(:a)", A)),
    ("condition: update function", *condition("if_not_exists(id, :a) = :a", A)),
    ("condition: reserved word", *condition("status = :a", A)),
    ("condition: brackets twice", *condition("((attribute_exists(id)))")),
    ("condition: bracket not closed", *condition("(attribute_exists(id)")),
    ("condition: 101 in a list", *condition("id IN (" + ",".join([":a"] * 101) + ")", A)),
    ("condition: longer than 4 KB", *condition(" OR ".join(["attribute_exists(abcdefgh)"] * 160))),
    ("condition: more than 300 operators", *condition(" OR ".join(["a=:a"] * 302), A)),
    # Updates.
    ("update: no key", "UpdateItem", {"TableName": "ttt"}),
    ("update: empty", *update("")),
    ("update: broken", *update("SET")),
    ("update: unknown clause", *update("PUT a = :a", A)),
    ("update: clause twice", *update("SET a = :a SET b = :a", A)),
    ("update: path twice", *update("SET a = :a, a = :a", A)),
    ("update: paths overlap", *update("SET m.k = :a REMOVE m", A)),
    ("update: paths conflict", *update("SET m.k = :a, m[0] = :a", A)),
    ("update: hash key", *update("SET pk = :a", A)),
    ("update: range key", *update("REMOVE sk")),
    ("update: undefined value", *update("SET a = :a")),
    ("update: unused value", *update("SET a = :a", ONE)),
    ("update: undefined name", *update("SET #a = :a", A)),
    ("update: unused name", *update("SET a = :a", A, {"#b": "b"})),
    ("update: reserved word", *update("SET name = :a", A)),
    ("update: add text", *update("ADD n :a", A)),
    ("update: add a number to text", *update("ADD s :n", {":n": N(1)})),
    ("update: add a set of another type", *update("ADD ss :n", {":n": {"NS": ["1"]}})),
    ("update: add a list", *update("ADD l :l", {":l": {"L": []}})),
    ("update: delete a number", *update("DELETE n :n", {":n": N(1)})),
    ("update: delete from a number", *update("DELETE n :n", {":n": {"SS": ["a"]}})),
    ("update: plus text", *update("SET n = n + :a", A)),
    ("update: plus on text", *update("SET s = s + :n", {":n": N(1)})),
    ("update: plus a missing attribute", *update("SET n = zz + :n", {":n": N(1)})),
    ("update: plus beyond the largest", *update("SET n = n + :n", {":n": N("9.9e125")})),
    ("update: missing attribute", *update("SET a = zz")),
    ("update: append to text", *update("SET l = list_append(l, :a)", A)),
    ("update: append to a number", *update("SET n = list_append(n, :l)", {":l": {"L": []}})),
    ("update: append one operand", *update("SET l = list_append(l)")),
    ("update: unknown function", *update("SET a = no_such(:a)", A)),
    ("update: condition function", *update("SET a = size(l)")),
    ("update: within a missing map", *update("SET zz.k = :a", A)),
    ("update: within text", *update("SET s.k = :a", A)),
    ("update: index into a map", *update("SET m[0] = :a", A)),
    ("update: remove within a missing map", *update("REMOVE zz.k")),
    ("update: index key to the wrong type", *update("SET gk = :n", {":n": N(1)})),
    ("update: index key to nothing", *update("SET gk = :n", {":n": S("")})),
    ("update: item grows beyond 400 KB", *update("SET a = :a", {":a": S("x" * 410_000)})),
    ("update: return values unknown", *update("SET a = :a", A, ReturnValues="NEW")),
    ("update: three pluses", *update("SET n = n + :n + :n", {":n": N(1)})),
    # Query and Scan.
    ("query: no condition", *query()),
    ("query: empty condition", *query("")),
    ("query: broken condition", *query("pk =", A)),
    ("query: no hash key", *query("sk = :n", {":n": N(1)})),
    ("query: other attribute", *query("pk = :a AND x = :n", ONE)),
    ("query: hash key less than", *query("pk < :a", A)),
    ("query: hash key begins with", *query("begins_with(pk, :a)", A)),
    ("query: range key begins with a number", *query("pk = :a AND begins_with(sk, :n)", ONE)),
    ("query: range key not equal", *query("pk = :a AND sk <> :n", ONE)),
    ("query: range key in", *query("pk = :a AND sk IN (:n)", ONE)),
    ("query: or", *query("pk = :a OR sk = :n", ONE)),
    ("query: not", *query("NOT pk = :a", A)),
    ("query: hash key twice", *query("pk = :a AND pk = :a", A)),
    ("query: range key twice", *query("pk = :a AND sk > :n AND sk < :n", ONE)),
    ("query: hash key of the wrong type", *query("pk = :n", {":n": N(1)})),
    ("query: range key of the wrong type", *query("pk = :a AND sk = :a", A)),
    ("query: between the wrong way", *query("pk = :a AND sk BETWEEN :b AND :c", {**A, ":b": N(2), ":c": N(1)})),
    ("query: empty hash key", *query("pk = :a", {":a": S("")})),
    ("query: contains", *query("pk = :a AND contains(sk, :n)", ONE)),
    ("query: attribute exists", *query("pk = :a AND attribute_exists(sk)", A)),
    ("query: undefined value", *query("pk = :b", A)),
    ("query: unused value", *query("pk = :a", ONE)),
    ("query: filter on a key", *query("pk = :a", ONE, FilterExpression="sk = :n")),
    ("query: broken filter", *query("pk = :a", A, FilterExpression="x =")),
    ("query: empty filter", *query("pk = :a", A, FilterExpression="")),
    ("query: missing index", *query("pk = :a", A, IndexName="none")),
    ("query: short index name", *query("pk = :a", A, IndexName="g")),
    ("query: consistent read of a global index", *query("gk = :a", A, IndexName="ggg", ConsistentRead=True)),
    ("query: all attributes of an index that has not", *query("gk = :a", A, IndexName="ggg", Select="ALL_ATTRIBUTES")),
    ("query: table key on an index", *query("pk = :a", A, IndexName="ggg")),
    ("query: limit 0", *query("pk = :a", A, Limit=0)),
    ("query: limit below 0", *query("pk = :a", A, Limit=-1)),
    ("query: unknown select", *query("pk = :a", A, Select="SOME")),
    ("query: projected without an index", *query("pk = :a", A, Select="ALL_PROJECTED_ATTRIBUTES")),
    ("query: specific without projection", *query("pk = :a", A, Select="SPECIFIC_ATTRIBUTES")),
    ("query: count with projection", *query("pk = :a", A, Select="COUNT", ProjectionExpression="x")),
    ("query: all with projection", *query("pk = :a", A, Select="ALL_ATTRIBUTES", ProjectionExpression="x")),
    ("query: start key of another partition", *query("pk = :a", A, ExclusiveStartKey={"pk": S("b"), "sk": N(1)})),
    ("query: start key incomplete", *query("pk = :a", A, ExclusiveStartKey={"pk": S("a")})),
    ("query: start key of the wrong type", *query("pk = :a", A, ExclusiveStartKey={"pk": S("a"), "sk": S("1")})),
    ("query: empty start key", *query("pk = :a", A, ExclusiveStartKey={})),
    ("query: start key outside the range", *query("pk = :a AND sk > :n", ONE, ExclusiveStartKey={"pk": S("a"), "sk": N(0)})),
    ("query: expression and old parameters", *query("pk = :a", A, KeyConditions={"pk": {"ComparisonOperator": "EQ", "AttributeValueList": [S("a")]}})),
    ("scan: segment without total", *scan(Segment=0)),
    ("scan: total without segment", *scan(TotalSegments=2)),
    ("scan: segment beyond total", *scan(Segment=2, TotalSegments=2)),
    ("scan: no segments", *scan(Segment=0, TotalSegments=0)),
    ("scan: segment below 0", *scan(Segment=-1, TotalSegments=2)),
    ("scan: too many segments", *scan(Segment=0, TotalSegments=1_000_001)),
    ("scan: limit 0", *scan(Limit=0)),
    ("scan: missing index", *scan(IndexName="none")),
    ("scan: consistent read of a global index", *scan(IndexName="ggg", ConsistentRead=True)),
    ("scan: broken filter", *scan(FilterExpression="x = = y")),
    ("scan: empty filter", *scan(FilterExpression="")),
    ("scan: values without filter", *scan(ExpressionAttributeValues=A)),
    ("scan: start key incomplete", *scan(ExclusiveStartKey={"pk": S("a")})),
    ("scan: start key with too much", *scan(ExclusiveStartKey={**KEY, "x": S("a")})),
    ("scan: specific without projection", *scan(Select="SPECIFIC_ATTRIBUTES")),
    ("scan: unknown select", *scan(Select="SOME")),
    # Batches.
    ("batch get: nothing", "BatchGetItem", {}),
    ("batch get: no tables", *batch_get()),
    ("batch get: no keys", *batch_get(hhh={"Keys": []})),
    ("batch get: keys missing", *batch_get(hhh={})),
    ("batch get: the same key twice", *batch_get(hhh={"Keys": [ID, ID]})),
    ("batch get: 101 keys", *batch_get(hhh={"Keys": [{"id": S(str(n))} for n in range(101)]})),
    ("batch get: wrong key", *batch_get(hhh={"Keys": [{"x": S("a")}]})),
    ("batch get: key of the wrong type", *batch_get(hhh={"Keys": [{"id": N(1)}]})),
    ("batch get: broken projection", *batch_get(hhh={"Keys": [ID], "ProjectionExpression": "a,"})),
    ("batch write: nothing", "BatchWriteItem", {}),
    ("batch write: no tables", *batch_write()),
    ("batch write: no requests", *batch_write(hhh=[])),
    ("batch write: empty request", *batch_write(hhh=[{}])),
    ("batch write: put and delete in one", *batch_write(hhh=[{"PutRequest": {"Item": ID}, "DeleteRequest": {"Key": ID}}])),
    ("batch write: the same key twice", *batch_write(hhh=[{"PutRequest": {"Item": ID}}, {"DeleteRequest": {"Key": ID}}])),
    ("batch write: 26 requests", *batch_write(hhh=[{"PutRequest": {"Item": {"id": S(str(n))}}} for n in range(26)])),
    ("batch write: no key", *batch_write(hhh=[{"PutRequest": {"Item": {"x": S("a")}}}])),
    ("batch write: wrong key", *batch_write(hhh=[{"DeleteRequest": {"Key": {"x": S("a")}}}])),
    ("batch write: bad value", *batch_write(hhh=[{"PutRequest": {"Item": {**ID, "x": {"N": "x"}}}}])),
    # Transactions.
    ("transact write: nothing", "TransactWriteItems", {}),
    ("transact write: empty list", *transact()),
    ("transact write: empty item", *transact({})),
    ("transact write: two in one", *transact({"Put": {"TableName": "hhh", "Item": ID}, "Delete": {"TableName": "hhh", "Key": ID}})),
    ("transact write: the same key twice", *transact({"Put": {"TableName": "hhh", "Item": ID}}, {"Delete": {"TableName": "hhh", "Key": ID}})),
    ("transact write: 101 items", *transact(*({"Put": {"TableName": "hhh", "Item": {"id": S(str(n))}}} for n in range(101)))),
    ("transact write: condition fails", *transact({"Put": {"TableName": "hhh", "Item": ID, "ConditionExpression": "attribute_not_exists(id)"}})),
    ("transact write: check without condition", *transact({"ConditionCheck": {"TableName": "hhh", "Key": ID}})),
    ("transact write: check fails", *transact({"ConditionCheck": {"TableName": "hhh", "Key": ID, "ConditionExpression": "attribute_not_exists(id)"}})),
    ("transact write: no key", *transact({"Put": {"TableName": "hhh", "Item": {"x": S("a")}}})),
    ("transact write: wrong key", *transact({"Delete": {"TableName": "hhh", "Key": {"x": S("a")}}})),
    ("transact write: update without expression", *transact({"Update": {"TableName": "hhh", "Key": ID}})),
    ("transact write: update of a key", *transact({"Update": {"TableName": "hhh", "Key": ID, "UpdateExpression": "SET id = :a", "ExpressionAttributeValues": A}})),
    ("transact write: add to text", *transact({"Update": {"TableName": "hhh", "Key": ID, "UpdateExpression": "ADD s :n", "ExpressionAttributeValues": {":n": N(1)}}})),
    ("transact write: token too long", *transact({"Put": {"TableName": "hhh", "Item": ID}}, ClientRequestToken="x" * 37)),
    ("transact write: broken condition", *transact({"Put": {"TableName": "hhh", "Item": ID, "ConditionExpression": "id ="}})),
    ("transact get: nothing", "TransactGetItems", {}),
    ("transact get: empty list", *transact_get()),
    ("transact get: empty item", *transact_get({})),
    ("transact get: 101 items", *transact_get(*({"Get": {"TableName": "hhh", "Key": {"id": S(str(n))}}} for n in range(101)))),
    ("transact get: wrong key", *transact_get({"Get": {"TableName": "hhh", "Key": {"x": S("a")}}})),
    ("transact get: the same key twice", *transact_get({"Get": {"TableName": "hhh", "Key": ID}}, {"Get": {"TableName": "hhh", "Key": ID}})),
    # Parameters from before expressions.
    ("legacy: operator without conditions", *put(ConditionalOperator="OR")),
    ("legacy: operator with one condition", *put(ConditionalOperator="OR", Expected={"x": {"Exists": False}})),
    ("legacy: unknown operator", *put(ConditionalOperator="XOR", Expected={"x": {"Exists": False}, "y": {"Exists": False}})),
    ("legacy: expected and expression", *put(Expected={"x": {"Exists": False}}, ConditionExpression="attribute_exists(id)")),
    ("legacy: expected nothing", *put(Expected={"x": {}})),
    ("legacy: expected to exist without value", *put(Expected={"x": {"Exists": True}})),
    ("legacy: expected not to exist with value", *put(Expected={"x": {"Exists": False, "Value": N(1)}})),
    ("legacy: expected with exists and comparison", *put(Expected={"x": {"Exists": True, "ComparisonOperator": "NULL"}})),
    ("legacy: expected with value and list", *put(Expected={"x": {"Value": N(1), "AttributeValueList": [N(1)], "ComparisonOperator": "EQ"}})),
    ("legacy: expected list without comparison", *put(Expected={"x": {"AttributeValueList": [N(1)]}})),
    ("legacy: expected comparison without value", *put(Expected={"x": {"ComparisonOperator": "EQ"}})),
    ("legacy: expected comparison with empty list", *put(Expected={"x": {"ComparisonOperator": "EQ", "AttributeValueList": []}})),
    ("legacy: expected comparison unknown", *put(Expected={"x": {"ComparisonOperator": "eq", "Value": N(1)}})),
    ("legacy: expected null with a value", *put(Expected={"x": {"ComparisonOperator": "NULL", "Value": N(1)}})),
    ("legacy: expected in of sets", *put(Expected={"x": {"ComparisonOperator": "IN", "AttributeValueList": [{"SS": ["a"]}]}})),
    ("legacy: expected in of two types", *put(Expected={"x": {"ComparisonOperator": "IN", "AttributeValueList": [N(1), S("a")]}})),
    ("legacy: expected between the wrong way", *put(Expected={"x": {"ComparisonOperator": "BETWEEN", "AttributeValueList": [N(2), N(1)]}})),
    ("legacy: expected fails", *put(Expected={"id": {"Exists": False}})),
    ("legacy: expected empty value", *put(Expected={"x": {"Value": {}}})),
    ("legacy: update unknown action", "UpdateItem", {"TableName": "hhh", "Key": ID, "AttributeUpdates": {"x": {"Action": "put", "Value": N(1)}}}),
    ("legacy: update put without value", "UpdateItem", {"TableName": "hhh", "Key": ID, "AttributeUpdates": {"x": {"Action": "PUT"}}}),
    ("legacy: update add text", "UpdateItem", {"TableName": "hhh", "Key": ID, "AttributeUpdates": {"x": {"Action": "ADD", "Value": S("a")}}}),
    ("legacy: update delete a number", "UpdateItem", {"TableName": "hhh", "Key": ID, "AttributeUpdates": {"x": {"Action": "DELETE", "Value": N(1)}}}),
    ("legacy: update add to text", "UpdateItem", {"TableName": "hhh", "Key": ID, "AttributeUpdates": {"s": {"Action": "ADD", "Value": N(1)}}}),
    ("legacy: update of a key", "UpdateItem", {"TableName": "hhh", "Key": ID, "AttributeUpdates": {"id": {"Value": S("b")}}}),
    ("legacy: update and expression", "UpdateItem", {"TableName": "hhh", "Key": ID, "AttributeUpdates": {"x": {"Value": N(1)}}, "UpdateExpression": "SET y = x"}),
    ("legacy: get no attributes", "GetItem", {"TableName": "hhh", "Key": ID, "AttributesToGet": []}),
    ("legacy: get an attribute twice", "GetItem", {"TableName": "hhh", "Key": ID, "AttributesToGet": ["a", "a"]}),
    ("legacy: scan without comparison", *scan(ScanFilter={"x": {"AttributeValueList": [N(1)]}})),
    ("legacy: scan unknown comparison", *scan(ScanFilter={"x": {"ComparisonOperator": "FOO"}})),
    ("legacy: scan too few values", *scan(ScanFilter={"x": {"ComparisonOperator": "BETWEEN", "AttributeValueList": [N(1)]}})),
    ("legacy: scan less than a set", *scan(ScanFilter={"x": {"ComparisonOperator": "LT", "AttributeValueList": [{"SS": ["a"]}]}})),
    ("legacy: scan contains a map", *scan(ScanFilter={"x": {"ComparisonOperator": "CONTAINS", "AttributeValueList": [{"M": {}}]}})),
    ("legacy: scan begins with a number", *scan(ScanFilter={"x": {"ComparisonOperator": "BEGINS_WITH", "AttributeValueList": [N(1)]}})),
    ("legacy: scan operator with one condition", *scan(ScanFilter={"x": {"ComparisonOperator": "NULL"}}, ConditionalOperator="AND")),
    ("legacy: scan filter and expression", *scan(ScanFilter={"x": {"ComparisonOperator": "NULL"}}, FilterExpression="x = y")),
    ("legacy: scan an attribute twice", *scan(AttributesToGet=["a", "a"])),
    ("legacy: query no conditions", "Query", {"TableName": "ttt", "KeyConditions": {}}),
    ("legacy: query without hash key", "Query", {"TableName": "ttt", "KeyConditions": {"x": {"ComparisonOperator": "EQ", "AttributeValueList": [S("a")]}}}),
    ("legacy: query hash key greater", "Query", {"TableName": "ttt", "KeyConditions": {"pk": {"ComparisonOperator": "GT", "AttributeValueList": [S("a")]}}}),
    ("legacy: query hash key of the wrong type", "Query", {"TableName": "ttt", "KeyConditions": {"pk": {"ComparisonOperator": "EQ", "AttributeValueList": [N(1)]}}}),
    ("legacy: query range key in", "Query", {"TableName": "ttt", "KeyConditions": {"pk": {"ComparisonOperator": "EQ", "AttributeValueList": [S("a")]}, "sk": {"ComparisonOperator": "IN", "AttributeValueList": [N(1)]}}}),
    ("legacy: query filter on a key", "Query", {"TableName": "ttt", "KeyConditions": {"pk": {"ComparisonOperator": "EQ", "AttributeValueList": [S("a")]}}, "QueryFilter": {"sk": {"ComparisonOperator": "NULL"}}}),
    # PartiQL.
    ("statement: none", "ExecuteStatement", {}),
    ("statement: empty", *statement("")),
    ("statement: limit 0", *statement("SELECT * FROM ttt", Limit=0)),
    ("statement: no parameters", *statement("SELECT * FROM ttt", Parameters=[])),
    ("statement: bad parameter", *statement("SELECT * FROM ttt", Parameters=[{"N": "x"}])),
    ("statement: too few parameters", *statement("SELECT * FROM ttt WHERE pk = ?")),
    ("statement: bad token", *statement("SELECT * FROM ttt", NextToken="x")),
    ("statement: one word", *statement("FOO")),
    ("statement: misspelt", *statement("INSRT INTO ttt VALUE {}")),
    ("statement: only select", *statement("SELECT")),
    ("statement: count", *statement("SELECT COUNT(*) FROM ttt")),
    ("statement: alias", *statement("SELECT * FROM ttt t")),
    ("statement: missing table", *statement("SELECT * FROM nowhere")),
    ("statement: missing index", *statement('SELECT * FROM "ttt"."none"')),
    ("statement: three names", *statement('SELECT * FROM "a"."b"."c"')),
    ("statement: empty name", *statement('SELECT * FROM ""')),
    ("statement: nothing after where", *statement("SELECT * FROM ttt WHERE")),
    ("statement: nothing after equals", *statement("SELECT * FROM ttt WHERE a =")),
    ("statement: nothing after and", *statement("SELECT * FROM ttt WHERE a = 1 AND")),
    ("statement: a value is no condition", *statement("SELECT * FROM ttt WHERE a = MISSING")),
    ("statement: less than a boolean", *statement("SELECT * FROM ttt WHERE a < true")),
    ("statement: begins with a number", *statement("SELECT * FROM ttt WHERE begins_with(a, 1)")),
    ("statement: between the wrong way", *statement("SELECT * FROM ttt WHERE a BETWEEN 2 AND 1")),
    ("statement: unknown function", *statement("SELECT * FROM ttt WHERE foo(a)")),
    ("statement: unknown type", *statement("SELECT * FROM ttt WHERE attribute_type(a, 'X')")),
    ("statement: 101 choices", *statement(f"SELECT * FROM ttt WHERE a IN [{','.join('1' * 101)}]")),
    ("statement: 301 operators", *statement("SELECT * FROM ttt WHERE " + " OR ".join(["a = 1"] * 151))),
    ("statement: key of the wrong type", *statement("SELECT * FROM ttt WHERE pk = 1")),
    ("statement: key that is a boolean", *statement("SELECT * FROM ttt WHERE pk = true")),
    ("statement: order without where", *statement("SELECT * FROM ttt ORDER BY pk")),
    ("statement: order by another attribute", *statement("SELECT * FROM ttt WHERE pk = 'a' ORDER BY x")),
    ("statement: order without hash key", *statement("SELECT * FROM ttt WHERE x = 'a' ORDER BY pk")),
    ("statement: consistent read of a global index", *statement('SELECT * FROM "ttt"."ggg" WHERE gk = \'g\'', ConsistentRead=True)),
    ("statement: index that does not project", *statement('SELECT n FROM "ttt"."ggg" WHERE gk = \'g\'')),
    ("statement: filter that an index does not project", *statement('SELECT * FROM "ttt"."ggg" WHERE gk = \'g\' AND n = 5')),
    ("statement: insert what is there", *statement("INSERT INTO hhh VALUE {'id': 'a'}")),
    ("statement: insert without key", *statement("INSERT INTO hhh VALUE {'x': 'a'}")),
    ("statement: insert key of the wrong type", *statement("INSERT INTO hhh VALUE {'id': 1}")),
    ("statement: insert into an index", *statement("INSERT INTO \"ttt\".\"ggg\" VALUE {'pk': 'a', 'sk': 1}")),
    ("statement: insert a mixed set", *statement("INSERT INTO hhh VALUE {'id': 'b', 'x': <<1, 'a'>>}")),
    ("statement: update without where", *statement("UPDATE hhh SET x = 1")),
    ("statement: update half a key", *statement("UPDATE ttt SET x = 1 WHERE pk = 'a'")),
    ("statement: update what is not there", *statement("UPDATE hhh SET x = 1 WHERE id = 'none'")),
    ("statement: update a key", *statement("UPDATE hhh SET id = 'b' WHERE id = 'a'")),
    ("statement: update two items", *statement("UPDATE hhh SET x = 1 WHERE id = 'a' AND id = 'b'")),
    ("statement: update an index", *statement('UPDATE "ttt"."ggg" SET x = 1 WHERE pk = \'a\' AND sk = 1')),
    ("statement: update a path twice", *statement("UPDATE hhh SET x = 1 SET x = 2 WHERE id = 'a'")),
    ("statement: update add to text", *statement("UPDATE hhh SET s = s + 1 WHERE id = 'a'")),
    ("statement: update within text", *statement("UPDATE hhh SET s.x = 1 WHERE id = 'a'")),
    ("statement: delete condition fails", *statement("DELETE FROM hhh WHERE id = 'a' AND s = 'no'")),
    ("statement: delete without where", *statement("DELETE FROM hhh")),
    ("statement: delete returning new", *statement("DELETE FROM hhh WHERE id = 'a' RETURNING ALL NEW *")),
    ("statement: two statements", *statement("SELECT * FROM hhh; SELECT * FROM hhh")),
    ("statement: exists alone", *statement("EXISTS(SELECT * FROM hhh WHERE id = 'a')")),
    ("batch statement: none", "BatchExecuteStatement", {"Statements": []}),
    ("batch statement: reads and writes", "BatchExecuteStatement", {"Statements": [{"Statement": "SELECT * FROM hhh WHERE id = 'a'"}, {"Statement": "DELETE FROM hhh WHERE id = 'b'"}]}),
    ("batch statement: the same key twice", "BatchExecuteStatement", {"Statements": [{"Statement": "DELETE FROM hhh WHERE id = 'b'"}] * 2}),
    ("transact statement: none", *transact_statements()),
    ("transact statement: reads and writes", *transact_statements("SELECT * FROM hhh WHERE id = 'a'", "DELETE FROM hhh WHERE id = 'b'")),
    ("transact statement: not by key", *transact_statements("SELECT * FROM ttt WHERE pk = 'a'")),
    ("transact statement: an index", *transact_statements("SELECT * FROM \"ttt\".\"ggg\" WHERE gk = 'g'")),
    ("transact statement: returning", *transact_statements("DELETE FROM hhh WHERE id = 'a' RETURNING ALL OLD *")),
    ("transact statement: insert what is there", *transact_statements("INSERT INTO hhh VALUE {'id': 'a'}")),
    ("transact statement: condition fails", *transact_statements("UPDATE hhh SET x = 1 WHERE id = 'a' AND s = 'no'")),
    ("transact statement: the same key twice", *transact_statements("DELETE FROM hhh WHERE id = 'b'", "DELETE FROM hhh WHERE id = 'b'")),
    ("transact statement: not well formed", *transact_statements("DELETE FROM hhh WHERE id = 'b'", "SELECT")),
    ("transact statement: missing table", *transact_statements("DELETE FROM nowhere WHERE id = 'b'")),
]
