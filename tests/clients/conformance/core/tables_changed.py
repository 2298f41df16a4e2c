"""UpdateTable: throughput, billing, settings and indexes."""

from .steps import ABSENT, Case, Satisfies, Until, done, get, index, item, projection, put, query, refused, rows, stored, table

TABLES = [
    table("changed-provisioned", ["pk"], ProvisionedThroughput={"ReadCapacityUnits": 5, "WriteCapacityUnits": 5}),
    table("changed-cold", ["pk"], ProvisionedThroughput={"ReadCapacityUnits": 2, "WriteCapacityUnits": 1}),
    table("changed-warm", ["pk"], GlobalSecondaryIndexes=[index("old", "gk")]),
    *(table(f"changed-demand-{at}", ["pk"]) for at in range(3)),
    *(table(f"changed-base-{at}", ["pk", "sk"]) for at in range(9)),
    *(table(f"changed-indexed-{at}", ["pk", "sk"], GlobalSecondaryIndexes=[index("old", "gk")]) for at in range(3)),
]  # fmt: skip
SEED = []
INVALID = "One or more parameter values were invalid: "
SIMPLE, PROVISIONED = "changed-demand-0", "changed-provisioned"


def change(name, **more):
    return "UpdateTable", {"TableName": name, **more}


def described(name, wanted):
    return Until("DescribeTable", {"TableName": name}, {"Table": {"TableStatus": "ACTIVE", **wanted}})


def warm(read, write):
    return {"ReadUnitsPerSecond": read, "WriteUnitsPerSecond": write, "Status": "ACTIVE"}


def units(read, write):
    return {"ReadCapacityUnits": read, "WriteCapacityUnits": write}


def definitions(**types):
    return [{"AttributeName": name, "AttributeType": kind} for name, kind in types.items()]


def defined(**types):
    wanted = sorted(types.items())
    return Satisfies(f"{wanted}", lambda found: sorted((each["AttributeName"], each["AttributeType"]) for each in found) == wanted)


def add(name, created, **types):
    return change(name, AttributeDefinitions=definitions(**types), GlobalSecondaryIndexUpdates=[{"Create": created}])


def remove(name, index_name):
    return change(name, GlobalSecondaryIndexUpdates=[{"Delete": {"IndexName": index_name}}])


def active(name, *names):
    wanted = sorted((each, "ACTIVE") for each in names)
    return described(name, {"GlobalSecondaryIndexes": Satisfies(f"{wanted}", lambda found: sorted((each["IndexName"], each["IndexStatus"]) for each in found) == wanted)})


def added(at, claim, created, wanted, **types):
    name = f"changed-base-{at}"
    return Case(claim, [done(add(name, created, **types)), described(name, {"GlobalSecondaryIndexes": [{"IndexStatus": "ACTIVE", **wanted}]})])


CASES = [
    Case("throughput changes", [
        done(change(PROVISIONED, ProvisionedThroughput=units(20, 15))),
        described(PROVISIONED, {"ProvisionedThroughput": units(20, 15)}),
    ]),
    Case("throughput that is the same already is refused", [
        refused(change(PROVISIONED, BillingMode="PROVISIONED", ProvisionedThroughput=units(20, 15)), "ValidationException", "The provisioned throughput for the table will not change"),
    ]),
    Case("throughput is at least one", [
        refused(change(PROVISIONED, ProvisionedThroughput=units(0, 5)), "ValidationException"),
        described(PROVISIONED, {"ProvisionedThroughput": units(20, 15)}),
    ]),
    Case("a table on demand has no throughput", [
        refused(change(PROVISIONED, BillingMode="PAY_PER_REQUEST", ProvisionedThroughput=units(5, 5)), "ValidationException", "Neither ReadCapacityUnits nor WriteCapacityUnits can be specified when BillingMode is PAY_PER_REQUEST"),
        described(PROVISIONED, {"ProvisionedThroughput": units(20, 15)}),
    ]),
    Case("a table goes on demand and back", [
        done(change(PROVISIONED, BillingMode="PAY_PER_REQUEST")),
        described(PROVISIONED, {"BillingModeSummary": {"BillingMode": "PAY_PER_REQUEST"}}),
        done(change(PROVISIONED, BillingMode="PROVISIONED", ProvisionedThroughput=units(5, 5))),
        described(PROVISIONED, {"ProvisionedThroughput": units(5, 5)}),
    ]),
    Case("a table on demand may be put on demand again", [
        done(change(SIMPLE, BillingMode="PAY_PER_REQUEST")),
        described(SIMPLE, {"BillingModeSummary": {"BillingMode": "PAY_PER_REQUEST"}}),
    ]),
    Case("protection, class and maximum change", [
        done(change(SIMPLE, DeletionProtectionEnabled=True)),
        described(SIMPLE, {"DeletionProtectionEnabled": True}),
        done(change(SIMPLE, DeletionProtectionEnabled=False)),
        done(change("changed-demand-1", TableClass="STANDARD_INFREQUENT_ACCESS")),
        described("changed-demand-1", {"TableClassSummary": {"TableClass": "STANDARD_INFREQUENT_ACCESS"}}),
        done(change("changed-demand-2", OnDemandThroughput={"MaxReadRequestUnits": 20, "MaxWriteRequestUnits": 15})),
        described("changed-demand-2", {"OnDemandThroughput": {"MaxReadRequestUnits": 20, "MaxWriteRequestUnits": 15}}),
    ]),
    Case("a table that is not there", [refused(change("changed-none", ProvisionedThroughput=units(10, 10)), "ResourceNotFoundException")]),
    added(0, "an index by one key is added", index("ggg", "gk"), {"IndexName": "ggg", "Projection": {"ProjectionType": "ALL"}}, gk="S"),
    added(1, "an index by two keys is added", index("ggg", "gk", "gs"), {"KeySchema": index("ggg", "gk", "gs")["KeySchema"]}, gk="S", gs="N"),
    added(2, "an index without other attributes is added", index("ggg", "gk", project=projection("KEYS_ONLY")), {"Projection": {"ProjectionType": "KEYS_ONLY"}}, gk="S"),
    added(3, "an index with some attributes is added", index("ggg", "gk", project=projection("INCLUDE", "x", "y")),
          {"Projection": {"NonKeyAttributes": Satisfies("both", lambda found: sorted(found) == ["x", "y"])}}, gk="S"),
    Case("an index has what was in the table before it", [
        *(done(put("changed-base-4", {"pk": str(at), "sk": "s", "gk": "one" if at < 2 else "two"})) for at in range(3)),
        done(add("changed-base-4", index("ggg", "gk"), gk="S")),
        active("changed-base-4", "ggg"),
        done(query("changed-base-4", "gk = :g", {":g": "one"}, IndexName="ggg"), {"Items": rows("pk", "0", "1"), "Count": 2}),
    ]),
    Case("indexes are added one after the other, and their definitions with them", [
        done(add("changed-base-5", index("first", "a"), a="S")),
        active("changed-base-5", "first"),
        done(add("changed-base-5", index("second", "b", project=projection("KEYS_ONLY")), b="N")),
        active("changed-base-5", "first", "second"),
        described("changed-base-5", {"AttributeDefinitions": defined(pk="S", sk="S", a="S", b="N")}),
        done(put("changed-base-5", {"pk": "p", "sk": "s"})),
        stored("changed-base-5", {"pk": "p", "sk": "s"}, {}),
    ]),
    Case("a definition that changes the type of a key does not", [
        done(add("changed-base-6", index("ggg", "gk", project=projection("KEYS_ONLY")), pk="N", gk="S"), {"TableDescription": {"AttributeDefinitions": defined(pk="S", sk="S", gk="S")}}),
        active("changed-base-6", "ggg"),
        described("changed-base-6", {"AttributeDefinitions": defined(pk="S", sk="S", gk="S")}),
        done(put("changed-base-6", {"pk": "p", "sk": "s"})),
    ]),
    Case("a definition that no key needs is dropped", [
        done(add("changed-base-7", index("ggg", "gk"), gk="S", unused="S"), {"TableDescription": {"AttributeDefinitions": defined(pk="S", sk="S", gk="S")}}),
        active("changed-base-7", "ggg"),
        described("changed-base-7", {"AttributeDefinitions": defined(pk="S", sk="S", gk="S")}),
    ]),
    Case("an index goes, its definition with it, and the table stays", [
        done(remove("changed-indexed-0", "old")),
        described("changed-indexed-0", {"GlobalSecondaryIndexes": ABSENT, "AttributeDefinitions": defined(pk="S", sk="S")}),
        done(put("changed-indexed-0", {"pk": "p", "sk": "s", "gk": 5})),
        done(get("changed-indexed-0", {"pk": "p", "sk": "s"}), {"Item": item(gk=5)}),
        done(query("changed-indexed-0", "pk = :p", {":p": "p"}), {"Count": 1}),
    ]),
    Case("an index that is there is not added, and one that is not is not removed", [
        refused(add("changed-indexed-1", index("old", "gk"), gk="S"), "ValidationException"),
        refused(remove("changed-base-8", "none"), "ResourceNotFoundException"),
    ]),
    Case("a second change of an index is refused before unknown names are", [
        refused(change("changed-base-8", GlobalSecondaryIndexUpdates=[{"Delete": {"IndexName": name}} for name in ("none", "nobody")]), "LimitExceededException", "Only 1 online index can be created or deleted simultaneously per table"),
        refused(change("changed-indexed-1", AttributeDefinitions=definitions(gs="S"), GlobalSecondaryIndexUpdates=[{"Create": index("new", "gs")}, {"Delete": {"IndexName": "none"}}]), "LimitExceededException", "Only 1 online index"),
    ]),
    Case("warm throughput starts at that of the billing mode and only grows", [
        described("changed-warm", {"WarmThroughput": warm(12000, 4000)}),
        done(change("changed-warm", WarmThroughput={"ReadUnitsPerSecond": 12001, "WriteUnitsPerSecond": 4001})),
        described("changed-warm", {"WarmThroughput": warm(12001, 4001)}),
        done(change("changed-warm", WarmThroughput={"WriteUnitsPerSecond": 4002})),
        described("changed-warm", {"WarmThroughput": warm(12001, 4002)}),
        *(refused(change("changed-warm", WarmThroughput=given), "ValidationException", whole=f"{INVALID}Requested {unit} for WarmThroughput for table is lower than current WarmThroughput, decreasing WarmThroughput is not supported")
          for given, unit in (({"ReadUnitsPerSecond": 12000}, "ReadUnitsPerSecond"), ({"WriteUnitsPerSecond": 1}, "WriteUnitsPerSecond"))),
        refused(change("changed-warm", WarmThroughput={}), "ValidationException", "At least one of ProvisionedThroughput"),
        refused(change("changed-warm", WarmThroughput={"ReadUnitsPerSecond": 13000}, DeletionProtectionEnabled=True), "ValidationException", "DeletionProtection modification must be the only operation in the request"),
        refused(change("changed-warm", WarmThroughput={"ReadUnitsPerSecond": 13000}, BillingMode="PAY_PER_REQUEST"), "ValidationException", whole=f"{INVALID}WarmThroughput must be the only operation in the request"),
        refused(change("changed-warm", AttributeDefinitions=definitions(gs="S"), WarmThroughput={"ReadUnitsPerSecond": 13000}, GlobalSecondaryIndexUpdates=[{"Create": index("new", "gs")}]), "ValidationException", whole=f"{INVALID}Create global secondary index cannot be specified when updating WarmThroughput"),
    ]),
    Case("warm throughput of an index", [
        described("changed-warm", {"GlobalSecondaryIndexes": [{"IndexName": "old", "WarmThroughput": warm(12000, 4000)}]}),
        done(change("changed-warm", GlobalSecondaryIndexUpdates=[{"Update": {"IndexName": "old", "WarmThroughput": {"ReadUnitsPerSecond": 12002}}}])),
        described("changed-warm", {"GlobalSecondaryIndexes": [{"IndexName": "old", "WarmThroughput": warm(12002, 4000)}]}),
        refused(change("changed-warm", GlobalSecondaryIndexUpdates=[{"Update": {"IndexName": "old", "WarmThroughput": {"ReadUnitsPerSecond": 100}}}]), "ValidationException", whole=f"{INVALID}Requested ReadUnitsPerSecond for WarmThroughput for index old is lower than current WarmThroughput, decreasing WarmThroughput is not supported"),
        refused(change("changed-none", GlobalSecondaryIndexUpdates=[{"Update": {"IndexName": "old", "WarmThroughput": {}}}]), "ValidationException", whole=f"{INVALID}WarmThroughput must have at least one of ReadUnitsPerSecond or WriteUnitsPerSecond specified for index: old"),
        refused(change("changed-warm", GlobalSecondaryIndexUpdates=[{"Update": {"IndexName": "none", "WarmThroughput": {"ReadUnitsPerSecond": 13000}}}]), "ResourceNotFoundException"),
        done(change("changed-warm", AttributeDefinitions=definitions(gs="S"), GlobalSecondaryIndexUpdates=[{"Create": {**index("new", "gs"), "WarmThroughput": {"WriteUnitsPerSecond": 5000}}}])),
        active("changed-warm", "new", "old"),
        described("changed-warm", {"GlobalSecondaryIndexes": [{"IndexName": "old"}, {"IndexName": "new", "WarmThroughput": warm(12000, 5000)}]}),
    ]),
    Case("warm throughput of a provisioned table is its highest throughput so far", [
        described("changed-cold", {"WarmThroughput": warm(2, 1)}),
        done(change("changed-cold", ProvisionedThroughput=units(3, 4))),
        done(change("changed-cold", ProvisionedThroughput=units(1, 1))),
        described("changed-cold", {"WarmThroughput": warm(3, 4)}),
        done(change("changed-cold", BillingMode="PAY_PER_REQUEST")),
        described("changed-cold", {"WarmThroughput": warm(12000, 4000)}),
        done(change("changed-cold", BillingMode="PROVISIONED", ProvisionedThroughput=units(1, 1))),
        described("changed-cold", {"WarmThroughput": warm(12000, 4000)}),
    ]),
    Case("the keys of a new index are defined in its request", [
        refused(change("changed-base-8", GlobalSecondaryIndexUpdates=[{"Create": index("ggg", "unknown")}]), "ValidationException"),
        refused(add("changed-base-8", index("ggg", "pk", "gs"), gs="S"), "ValidationException"),
        described("changed-base-8", {"GlobalSecondaryIndexes": ABSENT}),
    ]),
]  # fmt: skip
