"""CreateTable, DescribeTable, ListTables and DeleteTable."""

from .steps import ABSENT, Case, Exactly, Satisfies, containing, done, index, key_schema, projection, refused, some_text, table

A = "created-shared"
TABLES = [
    table(A, ["pk"]),
    table(
        "created-indexed",
        ["pk", "sk"],
        LocalSecondaryIndexes=[index("l1-name", "pk", "a"), index("l2-name", "pk", "b", project=projection("INCLUDE", "a"))],
        GlobalSecondaryIndexes=[index("g1-name", "a"), index("g2-name", "a", "b", project=projection("INCLUDE", "data"))],
    ),
]
SEED = []
INITIAL = "https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/on-demand-capacity-mode.html#on-demand-capacity-mode-initial"
THROUGHPUT = {"ReadCapacityUnits": 5, "WriteCapacityUnits": 5}


def create(name, keys=("pk",), attributes=None, **more):
    return "CreateTable", table(name, list(keys), attributes, **more)


def describe(name):
    return "DescribeTable", {"TableName": name}


def drop(name):
    return "DeleteTable", {"TableName": name}


class SameId:
    """The two ids that the steps before remembered are one."""

    def run(self, server):
        assert server.remembered["id"] == server.remembered["again"]


def made(claim, wanted, keys=("pk",), attributes=None, **more):
    """A table that is created, described and deleted."""
    name = "created-turn"
    ended = [done(("UpdateTable", {"TableName": name, "DeletionProtectionEnabled": False}))] if "DeletionProtectionEnabled" in more else []
    return Case(claim, [
        done(create(name, keys, attributes, **more), {"TableDescription": {"TableName": name, "TableId": some_text}}, {"id": ["TableDescription", "TableId"]}),
        done(describe(name), {"Table": {"TableName": name, "TableStatus": "ACTIVE", **wanted}}),
        *ended,
        done(drop(name), {"TableDescription": {"TableName": name}}),
        refused(describe(name), "ResourceNotFoundException"),
    ])  # fmt: skip


def wrong(claim, body, *texts, kind="ValidationException"):
    return Case(claim, [refused(("CreateTable", body), kind, *texts), refused(describe("created-wrong"), "ResourceNotFoundException")])


def bad(keys=("pk",), attributes=None, **more):
    return table("created-wrong", list(keys), attributes, **more)


CASES = [
    made("a table by one key, with throughput",
         {"KeySchema": Exactly(key_schema("pk")), "AttributeDefinitions": Exactly([{"AttributeName": "pk", "AttributeType": "S"}]), "ProvisionedThroughput": THROUGHPUT,
          "BillingModeSummary": ABSENT, "ItemCount": 0, "TableSizeBytes": 0, "TableArn": containing(":table/created-turn"), "CreationDateTime": Satisfies("a time", lambda at: at > 1e9)},
         ProvisionedThroughput=THROUGHPUT),
    made("a table by two keys", {"KeySchema": Exactly(key_schema("pk", "sk"))}, ("pk", "sk"), {"sk": "N"}),
    made("a table on demand", {"BillingModeSummary": {"BillingMode": "PAY_PER_REQUEST"}}),
    made("a table with an index by one key",
         {"GlobalSecondaryIndexes": [{"IndexName": "ggg", "KeySchema": Exactly(key_schema("gk")), "Projection": Exactly({"ProjectionType": "ALL"}), "IndexStatus": "ACTIVE"}]},
         GlobalSecondaryIndexes=[index("ggg", "gk")]),
    made("a table with an index by two keys, without other attributes",
         {"GlobalSecondaryIndexes": [{"KeySchema": Exactly(key_schema("gk", "gs")), "Projection": Exactly({"ProjectionType": "KEYS_ONLY"})}]},
         attributes={"gs": "N"}, GlobalSecondaryIndexes=[index("ggg", "gk", "gs", project=projection("KEYS_ONLY"))]),
    made("a table with an index with some attributes",
         {"GlobalSecondaryIndexes": [{"Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": Satisfies("both", lambda found: sorted(found) == ["x", "y"])}}]},
         GlobalSecondaryIndexes=[index("ggg", "gk", project=projection("INCLUDE", "x", "y"))]),
    made("a table with two indexes", {"GlobalSecondaryIndexes": Satisfies("two", lambda found: len(found) == 2)},
         attributes={"g2": "N"}, GlobalSecondaryIndexes=[index("one", "g1"), index("two", "g2", project=projection("KEYS_ONLY"))]),
    made("a table with a local index", {"LocalSecondaryIndexes": [{"IndexName": "lll", "KeySchema": Exactly(key_schema("pk", "lk"))}]},
         ("pk", "sk"), {"lk": "N"}, LocalSecondaryIndexes=[index("lll", "pk", "lk")]),
    made("a table that is protected", {"DeletionProtectionEnabled": True}, DeletionProtectionEnabled=True),
    made("a table that is not protected, of the standard class, with AWS's own keys",
         {"DeletionProtectionEnabled": False, "SSEDescription": ABSENT, "TableClassSummary": ABSENT}),
    made("a table of the class for infrequent access", {"TableClassSummary": {"TableClass": "STANDARD_INFREQUENT_ACCESS"}}, TableClass="STANDARD_INFREQUENT_ACCESS"),
    made("a table encrypted with a managed key", {"SSEDescription": {"Status": "ENABLED", "SSEType": "KMS", "KMSMasterKeyArn": containing("arn:aws:kms:")}}, SSESpecification={"Enabled": True}),
    made("a table with warm throughput for reads only", {"WarmThroughput": {"ReadUnitsPerSecond": 12001, "WriteUnitsPerSecond": 4000, "Status": "ACTIVE"}}, WarmThroughput={"ReadUnitsPerSecond": 12001}),
    made("a table and an index with their own warm throughput",
         {"WarmThroughput": {"ReadUnitsPerSecond": 12000, "WriteUnitsPerSecond": 4000}, "GlobalSecondaryIndexes": [{"WarmThroughput": {"ReadUnitsPerSecond": 13000, "WriteUnitsPerSecond": 5000, "Status": "ACTIVE"}}]},
         WarmThroughput={}, GlobalSecondaryIndexes=[{**index("ggg", "gk"), "WarmThroughput": {"ReadUnitsPerSecond": 13000, "WriteUnitsPerSecond": 5000}}]),
    made("a table on demand with a maximum", {"OnDemandThroughput": {"MaxReadRequestUnits": 10, "MaxWriteRequestUnits": 5}}, OnDemandThroughput={"MaxReadRequestUnits": 10, "MaxWriteRequestUnits": 5}),
    Case("a table keeps the id that it was created with", [
        done(create("created-id"), {"TableDescription": {"TableId": some_text}}, {"id": ["TableDescription", "TableId"]}),
        done(describe("created-id"), {"Table": {"TableId": some_text}}, {"again": ["Table", "TableId"]}),
        SameId(),
        done(drop("created-id")),
    ]),
    Case("a table with indexes of both kinds is described with all of them", [
        done(describe("created-indexed"), {"Table": {
            "KeySchema": Exactly(key_schema("pk", "sk")),
            "LocalSecondaryIndexes": Satisfies("l1 and l2", lambda found: sorted(each["IndexName"] for each in found) == ["l1-name", "l2-name"]),
            "GlobalSecondaryIndexes": Satisfies("g1 and g2, active", lambda found: sorted((each["IndexName"], each["IndexStatus"]) for each in found) == [("g1-name", "ACTIVE"), ("g2-name", "ACTIVE")]),
        }}),
    ]),
    Case("tables are listed in order, page by page", [
        done(create("created-z")),
        done(("ListTables", {}), {"TableNames": Satisfies("sorted", lambda found: found == sorted(found) and {A, "created-z"} <= set(found))}),
        done(("ListTables", {"Limit": 1}), {"TableNames": Satisfies("one", lambda found: len(found) == 1), "LastEvaluatedTableName": some_text}),
        done(("ListTables", {"ExclusiveStartTableName": "created-y", "Limit": 1}), {"TableNames": ["created-z"]}),
        done(drop("created-z")),
        done(("ListTables", {}), {"TableNames": Satisfies("without created-z", lambda found: "created-z" not in found)}),
    ]),
    Case("a table that is there is not created again", [refused(create(A), "ResourceInUseException", f"Table already exists: {A}")]),
    Case("a table that is not there is neither described nor deleted", [
        refused(describe("created-none"), "ResourceNotFoundException"),
        refused(drop("created-none"), "ResourceNotFoundException"),
    ]),
    Case("a table that is protected is not deleted", [
        done(create("created-protected", DeletionProtectionEnabled=True)),
        refused(drop("created-protected"), "ValidationException", "protected against deletion"),
        done(("UpdateTable", {"TableName": "created-protected", "DeletionProtectionEnabled": False})),
        done(drop("created-protected")),
    ]),
    wrong("a name of two letters", {**bad(), "TableName": "ab"}, "3"),
    wrong("a name of 256 letters", {**bad(), "TableName": "a" * 256}, "255"),
    wrong("a name with a semicolon", {**bad(), "TableName": "created;wrong"}, "[a-zA-Z0-9_.-]+"),
    wrong("no keys", {**bad(), "KeySchema": []}, "keySchema"),
    wrong("a definition too many", bad(("pk",), AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in ("pk", "extra")]), "Number of attributes in KeySchema does not exactly match number of attributes defined in AttributeDefinitions"),
    wrong("throughput on demand", bad(BillingMode="PAY_PER_REQUEST", ProvisionedThroughput=THROUGHPUT), "Neither ReadCapacityUnits nor WriteCapacityUnits can be specified when BillingMode is PAY_PER_REQUEST"),
    wrong("warm throughput below that of every table on demand", bad(BillingMode="PAY_PER_REQUEST", WarmThroughput={"ReadUnitsPerSecond": 1, "WriteUnitsPerSecond": 4000}), f"Requested ReadUnitsPerSecond for WarmThroughput for table is lower than initial throughput for OnDemand. See: {INITIAL}"),
    wrong("warm throughput of an index below that of every index on demand", bad(BillingMode="PAY_PER_REQUEST", GlobalSecondaryIndexes=[{**index("ggg", "gk"), "WarmThroughput": {"WriteUnitsPerSecond": 1}}]), f"Requested WriteUnitsPerSecond for WarmThroughput for index ggg is lower than initial throughput for OnDemand. See: {INITIAL}"),
    wrong("warm throughput below the provisioned", bad(ProvisionedThroughput=THROUGHPUT, WarmThroughput={"ReadUnitsPerSecond": 1}), "Requested ReadUnitsPerSecond for WarmThroughput for table is lower than ReadCapacityUnits of ProvisionedThroughput"),
    wrong("a view of a stream that is off", bad(StreamSpecification={"StreamEnabled": False, "StreamViewType": "NEW_IMAGE"}), "Table is being created with a stream disabled, UpdateViewType should not be specified"),
    wrong("an index with some attributes, none named", bad(GlobalSecondaryIndexes=[index("ggg", "gk", project={"ProjectionType": "INCLUDE"})]), "NonKeyAttributes"),
    wrong("a local index with some attributes, none named", bad(("pk", "sk"), LocalSecondaryIndexes=[index("lll", "pk", "lk", project={"ProjectionType": "INCLUDE"})]), "NonKeyAttributes"),
    wrong("an index without other attributes that names some", bad(GlobalSecondaryIndexes=[index("ggg", "gk", project=projection("KEYS_ONLY", "x"))]), "NonKeyAttributes"),
    wrong("a local index of a table by one key", bad(("pk",), LocalSecondaryIndexes=[index("lll", "pk", "lk")])),
    wrong("a local index by another partition key", bad(("pk", "sk"), LocalSecondaryIndexes=[index("lll", "other", "lk")])),
]  # fmt: skip
