"""CreateTable and the indexes of a table: wording and order of checks."""

from .case import Refused, case, invalid, invalid_with
from .tables import INDEXED, TEXT, THROUGHPUT, index, key_schema
from .values import INVALID, S, one, violation

NEW = "strict-new"


def create(name, answer, **more):
    given = {"TableName": NEW, "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}], "KeySchema": key_schema("pk"), "ProvisionedThroughput": THROUGHPUT}  # fmt: skip
    body = {name: value for name, value in {**given, **more}.items() if value is not None}
    return case(f"create: {name}", "CreateTable", body, answer)


def types(*names):
    return [{"AttributeName": name, "AttributeType": "S"} for name in names]


def short(name, member):
    return violation(name, f"{member}.1.member.indexName", "Member must have length greater than or equal to 3")


def both_kinds(name, of_local, of_global):
    return create(
        name,
        invalid(f"2 validation errors detected: {short(of_global, 'globalSecondaryIndexes')}; {short(of_local, 'localSecondaryIndexes')}"),
        AttributeDefinitions=types("pk", "sk"),
        KeySchema=key_schema("pk", "sk"),
        LocalSecondaryIndexes=[index(of_local, "pk", "lr")],
        GlobalSecondaryIndexes=[index(of_global, "gh")],
        ProvisionedThroughput=None,
        BillingMode="PAY_PER_REQUEST",
    )  # fmt: skip


WRONG_TYPE = [{"AttributeName": "pk", "KeyType": "X"}]
THREE_KEYS = [*key_schema("pk", "sk"), {"AttributeName": "tk", "KeyType": "RANGE"}]
THREE_SHOWN = (
    "[KeySchemaElement(attributeName=pk, keyType=HASH), KeySchemaElement(attributeName=sk, keyType=RANGE), "
    "KeySchemaElement(attributeName=tk, keyType=RANGE)]"
)
NO_INDEX = "The table does not have the specified index"

CASES = [
    create("no name", invalid("The parameter 'TableName' is required but was not present in the request"), TableName=None),
    create("short name", invalid(one(violation("ab", "tableName", "Member must have length greater than or equal to 3"))), TableName="ab"),
    create("empty name and nothing else", invalid_with("tableName"), TableName="", KeySchema=[], AttributeDefinitions=[], ProvisionedThroughput=None),
    create("characters that no name has", invalid_with("tableName"), TableName="x!", KeySchema=[], ProvisionedThroughput=None),
    create("one attribute as both keys", invalid("Invalid KeySchema: Some index key attribute have no definition"), KeySchema=key_schema("pk", "pk")),
    create("three keys", invalid(one(violation(THREE_SHOWN, "keySchema", "Member must have length less than or equal to 2"))), AttributeDefinitions=types("pk", "sk", "tk"), KeySchema=THREE_KEYS),
    create("unknown kind of key", invalid(one(violation("X", "keySchema.1.member.keyType", "Member must satisfy enum value set: [HASH, RANGE]"))), KeySchema=WRONG_TYPE),
    create("unknown kind of key without throughput", invalid_with("keyType"), KeySchema=WRONG_TYPE, BillingMode="PROVISIONED", ProvisionedThroughput=None),
    create("unknown kind of key and of billing", invalid_with("2 validation errors detected", "keyType", "billingMode"), KeySchema=WRONG_TYPE, BillingMode="X", ProvisionedThroughput=None),
    create("unknown billing", invalid_with("billingMode", "[PROVISIONED, PAY_PER_REQUEST]"), BillingMode="X", ProvisionedThroughput=None),
    create(
        "unknown type of an attribute",
        invalid(one(violation("X", "attributeDefinitions.1.member.attributeType", "Member must satisfy enum value set: [B, N, S]"))),
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "X"}],
    ),
    create(
        "local index without a sort key",
        invalid(INVALID + "Table KeySchema does not have a range key, which is required when specifying a LocalSecondaryIndex"),
        AttributeDefinitions=types("pk", "l"),
        LocalSecondaryIndexes=[index("lll", "pk", "l")],
    ),
    create(
        "two indexes of one name",
        invalid(INVALID + "Duplicate index name: same"),
        AttributeDefinitions=types("pk", "g", "h"),
        GlobalSecondaryIndexes=[{**index("same", name), "ProvisionedThroughput": THROUGHPUT} for name in ("g", "h")],
    ),
    create("throughput on demand", invalid(INVALID + "Neither ReadCapacityUnits nor WriteCapacityUnits can be specified when BillingMode is PAY_PER_REQUEST"), BillingMode="PAY_PER_REQUEST"),
    create(
        "view of a stream that is off",
        invalid(INVALID + "Table is being created with a stream disabled, UpdateViewType should not be specified"),
        StreamSpecification={"StreamEnabled": False, "StreamViewType": "NEW_AND_OLD_IMAGES"},
    ),
    create(
        "global index that includes nothing",
        invalid(INVALID + "ProjectionType is INCLUDE, but NonKeyAttributes is not specified"),
        AttributeDefinitions=types("pk", "g"), ProvisionedThroughput=None, BillingMode="PAY_PER_REQUEST",
        GlobalSecondaryIndexes=[index("ggg", "g", ProjectionType="INCLUDE")],
    ),
    create(
        "local index that includes nothing",
        invalid(INVALID + "ProjectionType is INCLUDE, but NonKeyAttributes is not specified"),
        AttributeDefinitions=types("pk", "sk", "l"), KeySchema=key_schema("pk", "sk"), ProvisionedThroughput=None, BillingMode="PAY_PER_REQUEST",
        LocalSecondaryIndexes=[index("lll", "pk", "l", ProjectionType="INCLUDE")],
    ),
    both_kinds("short names of both kinds of index", "l1", "g1"),
    both_kinds("short names of both kinds, whatever they sort to", "aa", "zz"),
    case("query of a missing index", "Query", {"TableName": TEXT, "IndexName": "none", "KeyConditionExpression": "pk = :v", "ExpressionAttributeValues": {":v": S("x")}}, invalid_with(NO_INDEX)),
    case("scan of a missing index", "Scan", {"TableName": TEXT, "IndexName": "none"}, invalid_with(NO_INDEX)),
    case(
        "removal of a missing index",
        "UpdateTable",
        {"TableName": TEXT, "GlobalSecondaryIndexUpdates": [{"Delete": {"IndexName": "none"}}]},
        Refused("ResourceNotFoundException", fragments=("Requested resource not found",)),
    ),
    case("consistent scan of a global index", "Scan", {"TableName": INDEXED, "IndexName": "by-g", "ConsistentRead": True}, invalid("Consistent reads are not supported on global secondary indexes")),
    case(
        "consistent query of a global index",
        "Query",
        {"TableName": INDEXED, "IndexName": "by-g", "ConsistentRead": True, "KeyConditionExpression": "g = :v", "ExpressionAttributeValues": {":v": S("x")}},
        invalid("Consistent reads are not supported on global secondary indexes"),
    ),
]  # fmt: skip
