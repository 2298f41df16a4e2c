"""What tables have beside their data: time to live, tags, recovery and backups."""

from .steps import ABSENT, Case, Remembered, Satisfies, Until, done, index, put, refused, some_text, table

T, P, K, I = "settings-time", "settings-recovery", "settings-backup", "settings-indexed"
TABLES = [table(T, ["pk"]), table("settings-no-time", ["pk"]), table("settings-tags", ["pk"]), table(P, ["pk"]), table(K, ["pk"]), table(I, ["pk"], GlobalSecondaryIndexes=[index("global", "gk")])]
SEED = [put(K, {"pk": "a"})]
RESTORABLE = Satisfies("a window that ends after it begins", lambda found: found["EarliestRestorableDateTime"] <= found["LatestRestorableDateTime"])
RECOVERABLE = Satisfies(
    "enabled, with restorable times",
    lambda found: found["ContinuousBackupsStatus"] == found["PointInTimeRecoveryDescription"]["PointInTimeRecoveryStatus"] == "ENABLED"
    and RESTORABLE.test(found["PointInTimeRecoveryDescription"]),
)


def time_to_live(name, attribute, enabled=True):
    return "UpdateTimeToLive", {"TableName": name, "TimeToLiveSpecification": {"Enabled": enabled, "AttributeName": attribute}}


def tags(**wanted):
    return Until("ListTagsOfResource", {"ResourceArn": Remembered("arn")},
                 {"Tags": Satisfies(f"{wanted}", lambda found: {each["Key"]: each["Value"] for each in found} == wanted)})  # fmt: skip


def tag(**more):
    return "TagResource", {"ResourceArn": Remembered("arn"), "Tags": [{"Key": key, "Value": value} for key, value in more.items()]}


def untag(*keys):
    return "UntagResource", {"ResourceArn": Remembered("arn"), "TagKeys": list(keys)}


def arn_of(name):
    return done(("DescribeTable", {"TableName": name}), {"Table": {"TableArn": some_text}}, {"arn": ["Table", "TableArn"]})


def insights(name, action, **more):
    return "UpdateContributorInsights", {"TableName": name, "ContributorInsightsAction": action, **more}


def listed(name, status):
    wanted = (name, status)
    return Satisfies(f"{wanted}", lambda found: wanted in [(each["TableName"], each["ContributorInsightsStatus"]) for each in found])


def backup(name):
    return [
        done(("CreateBackup", {"TableName": K, "BackupName": name}), {"BackupDetails": {"BackupArn": some_text}}, {"backup": ["BackupDetails", "BackupArn"]}),
        Until("DescribeBackup", {"BackupArn": Remembered("backup")}, {"BackupDescription": {"BackupDetails": {"BackupStatus": "AVAILABLE"}}}),
    ]  # fmt: skip


CASES = [
    Case("time to live is off, is turned on, and tells its attribute", [
        done(("DescribeTimeToLive", {"TableName": "settings-no-time"}), {"TimeToLiveDescription": {"TimeToLiveStatus": "DISABLED", "AttributeName": ABSENT}}),
        done(time_to_live(T, "expires"), {"TimeToLiveSpecification": {"Enabled": True, "AttributeName": "expires"}}),
        done(("DescribeTimeToLive", {"TableName": T}), {"TimeToLiveDescription": {"TimeToLiveStatus": Satisfies("on", lambda status: status in ("ENABLED", "ENABLING")), "AttributeName": "expires"}}),
    ]),
    Case("time to live needs an attribute and a table", [
        refused(time_to_live("settings-no-time", ""), "ValidationException"),
        refused(time_to_live("settings-none", "expires"), "ResourceNotFoundException"),
        refused(("DescribeTimeToLive", {"TableName": "settings-none"}), "ResourceNotFoundException"),
    ]),
    Case("tags are added, replaced and removed", [
        arn_of("settings-tags"),
        done(tag(env="test", team="platform")),
        tags(env="test", team="platform"),
        done(tag(env="live", more="1")),
        tags(env="live", team="platform", more="1"),
        done(untag("team", "more")),
        tags(env="live"),
        done(untag("env")),
        tags(),
    ]),
    Case("tags consist of letters, digits, spaces and a few signs", [
        arn_of("settings-tags"),
        *(done(tag(**{text: text})) for text in ("a+b-c=d.e_f:g/h@i", "ключ", "café 表", "a\u00a0b\u3000c", "٣")),
        done(tag(empty="")),
        *(refused(tag(**{text: "ok"}), "ValidationException", whole=f"The Tag Key provided is invalid, Key: {text}") for text in ("#", "a,b", "\U0001f511", "(x)", "a\tb")),
        *(refused(tag(ok=text), "ValidationException", whole=f"The Tag Value provided is invalid, Value: {text}") for text in ("100%", "it's", "a&b", "<a>", "~a", "\U0001f511", "a\nb")),
        refused(("TagResource", {"ResourceArn": Remembered("arn"), "Tags": [{"Value": "v"}]}), "ValidationException", whole="The Tag Key provided is invalid, Key: null"),
        refused(("TagResource", {"ResourceArn": Remembered("arn"), "Tags": [{"Key": "k"}]}), "ValidationException", whole="The Tag Value provided is invalid, Value: null"),
        done(untag("a+b-c=d.e_f:g/h@i", "ключ", "café 表", "a\u00a0b\u3000c", "٣", "empty")),
        tags(),
        refused(("CreateTable", table("settings-bad-tag", ["pk"], Tags=[{"Key": "a", "Value": "100%"}])), "ValidationException", "The Tag Value provided is invalid, Value: 100%"),
    ]),
    Case("tags of what is no table", [
        refused(("TagResource", {"ResourceArn": "no-arn", "Tags": [{"Key": "a", "Value": "b"}]}), "ValidationException"),
        refused(("ListTagsOfResource", {"ResourceArn": "arn:aws:dynamodb:us-east-1:000000000000:table/settings-none"}), "AccessDeniedException"),
    ]),
    Case("recovery to a point in time is off and is turned on", [
        done(("DescribeContinuousBackups", {"TableName": P}), {"ContinuousBackupsDescription": {"PointInTimeRecoveryDescription": {"PointInTimeRecoveryStatus": "DISABLED"}}}),
        done(("UpdateContinuousBackups", {"TableName": P, "PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": True}}), {"ContinuousBackupsDescription": RECOVERABLE}, {"at": ["ContinuousBackupsDescription", "PointInTimeRecoveryDescription", "LatestRestorableDateTime"]}),
        done(("RestoreTableToPointInTime", {"SourceTableName": P, "TargetTableName": "settings-recovered", "RestoreDateTime": Remembered("at")})),
        done(("DescribeContinuousBackups", {"TableName": P}), {"ContinuousBackupsDescription": RECOVERABLE}),
        Until("DescribeTable", {"TableName": "settings-recovered"}, {"Table": {"TableStatus": "ACTIVE"}}),
        done(("DeleteTable", {"TableName": "settings-recovered"})),
    ]),
    Case("contributor insights are off, are turned on and listed, and off again", [
        done(("DescribeContributorInsights", {"TableName": T}), {"TableName": T, "ContributorInsightsStatus": "DISABLED", "IndexName": ABSENT}),
        done(insights(T, "ENABLE"), {"TableName": T, "ContributorInsightsStatus": "ENABLING"}),
        Until("DescribeContributorInsights", {"TableName": T}, {"ContributorInsightsStatus": "ENABLED", "LastUpdateDateTime": Satisfies("a time", lambda at: at > 1e9)}),
        done(("ListContributorInsights", {}), {"ContributorInsightsSummaries": listed(T, "ENABLED")}),
        done(insights(T, "DISABLE"), {"ContributorInsightsStatus": "DISABLING"}),
        Until("DescribeContributorInsights", {"TableName": T}, {"ContributorInsightsStatus": "DISABLED"}),
    ]),
    Case("contributor insights of an index are its own, and go with it", [
        done(insights(I, "ENABLE", IndexName="global")),
        done(("DescribeContributorInsights", {"TableName": I}), {"ContributorInsightsStatus": "DISABLED"}),
        done(("DescribeContributorInsights", {"TableName": I, "IndexName": "global"}), {"ContributorInsightsStatus": "ENABLED", "IndexName": "global"}),
        done(("ListContributorInsights", {"TableName": I}), {"ContributorInsightsSummaries": [{"TableName": I, "IndexName": "global", "ContributorInsightsStatus": "ENABLED"}]}),
        done(insights(I, "ENABLE")),
        done(("ListContributorInsights", {"TableName": I, "MaxResults": 1}), {"ContributorInsightsSummaries": [{"IndexName": ABSENT}]}, {"token": ["NextToken"]}),
        done(("ListContributorInsights", {"TableName": I, "NextToken": Remembered("token")}), {"ContributorInsightsSummaries": [{"IndexName": "global"}], "NextToken": ABSENT}),
        done(("UpdateTable", {"TableName": I, "GlobalSecondaryIndexUpdates": [{"Delete": {"IndexName": "global"}}]})),
        done(("ListContributorInsights", {"TableName": I}), {"ContributorInsightsSummaries": [{"TableName": I, "IndexName": ABSENT}]}),
    ]),
    Case("contributor insights of what is not there", [
        refused(insights("settings-none", "ENABLE"), "ResourceNotFoundException"),
        refused(insights(T, "ENABLE", IndexName="none"), "ResourceNotFoundException"),
        refused(("DescribeContributorInsights", {"TableName": "settings-none"}), "ResourceNotFoundException"),
        refused(insights(T, "TOGGLE"), "ValidationException", "contributorInsightsAction", "[ENABLE, DISABLE]"),
    ]),
    Case("a backup is made, described, listed and deleted", [
        *backup("conformance"),
        done(("ListBackups", {"TableName": K}), {"BackupSummaries": [{"BackupArn": some_text, "BackupName": "conformance"}]}),
        done(("DeleteBackup", {"BackupArn": Remembered("backup")}), {"BackupDescription": {"BackupDetails": {"BackupArn": some_text}}}),
        done(("ListBackups", {"TableName": K}), {"BackupSummaries": []}),
        refused(("DescribeBackup", {"BackupArn": Remembered("backup")}), "BackupNotFoundException"),
    ]),
    Case("a backup is restored to a new table", [
        *backup("to-restore"),
        done(("RestoreTableFromBackup", {"TargetTableName": "settings-restored", "BackupArn": Remembered("backup")}),
             {"TableDescription": {"TableName": "settings-restored", "TableStatus": "CREATING", "RestoreSummary": {"RestoreInProgress": True, "SourceBackupArn": some_text}}}),
        Until("DescribeTable", {"TableName": "settings-restored"}, {"Table": {"TableStatus": "ACTIVE"}}),
        done(("GetItem", {"TableName": "settings-restored", "Key": {"pk": {"S": "a"}}}), {"Item": {"pk": {"S": "a"}}}),
        done(("DeleteTable", {"TableName": "settings-restored"})),
        done(("DeleteBackup", {"BackupArn": Remembered("backup")})),
    ]),
]  # fmt: skip
