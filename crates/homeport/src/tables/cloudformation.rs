//! The tables and the rights on them as a CloudFormation template, in JSON.

use std::collections::BTreeMap;

use homeport_item::schema::{IndexSchema, KeySchema, TableSchema};
use homeport_systems::schema::System;
use serde_json::{Map, Value, json};

use crate::config::StoreSettings;

use super::rights::{self, Grant, Part};
use super::shape;

const HAS_KEY: &str = "HasKmsKey";
const KEY_PARAMETER: &str = "KmsKeyArn";
const RECOVERY_PARAMETER: &str = "PointInTimeRecovery";
const PROTECTION_PARAMETER: &str = "DeletionProtection";

pub(super) fn render(systems: &[System], settings: &StoreSettings) -> String {
    let tables = || systems.iter().flat_map(|system| &system.tables);
    let mut resources: Map<String, Value> = tables()
        .map(|table| (logical_id(&table.schema), resource(&table.schema, settings)))
        .collect();
    let all: Vec<_> = tables().map(|table| arn(&table.schema)).collect();
    resources.insert("HomeportPolicy".to_owned(), policy(systems, all));
    let template = json!({
        "AWSTemplateFormatVersion": "2010-09-09",
        "Description": "Homeport's tables and the rights that it needs on them.",
        "Parameters": {
            KEY_PARAMETER: {
                "Type": "String",
                "Default": settings.kms_key_id.as_deref().unwrap_or_default(),
                "Description": "The ARN of the KMS key that the tables are encrypted with; a key that AWS owns when empty.",
            },
            RECOVERY_PARAMETER: boolean(settings.point_in_time_recovery, "Whether tables can be restored to any second of the last 35 days."),
            PROTECTION_PARAMETER: boolean(settings.deletion_protection, "Whether tables are protected from being deleted."),
        },
        "Conditions": {
            HAS_KEY: { "Fn::Not": [{ "Fn::Equals": [{ "Ref": KEY_PARAMETER }, ""] }] },
        },
        "Resources": resources,
        "Outputs": {
            "PolicyArn": {
                "Description": "To be attached to the role that Homeport runs as.",
                "Value": { "Ref": "HomeportPolicy" },
            },
        },
    });
    format!("{:#}\n", sorted(template))
}

/// With the names of every object in order, whatever order the JSON library keeps.
fn sorted(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let members: BTreeMap<_, _> = members.into_iter().collect();
            let members = members.into_iter();
            Value::Object(members.map(|(name, value)| (name, sorted(value))).collect())
        }
        Value::Array(values) => values.into_iter().map(sorted).collect(),
        other => other,
    }
}

fn boolean(default: bool, description: &str) -> Value {
    json!({
        "Type": "String",
        "AllowedValues": ["true", "false"],
        "Default": default.to_string(),
        "Description": description,
    })
}

fn logical_id(table: &TableSchema) -> String {
    format!("{}Table", shape::camel(&table.name))
}

fn arn(table: &TableSchema) -> Value {
    json!({ "Fn::GetAtt": [logical_id(table), "Arn"] })
}

fn resource(table: &TableSchema, settings: &StoreSettings) -> Value {
    let attributes: Vec<_> = shape::key_attributes(table)
        .into_iter()
        .map(|attribute| {
            json!({
                "AttributeName": attribute.name,
                "AttributeType": shape::kind(attribute.kind),
            })
        })
        .collect();
    let mut properties = json!({
        "TableName": table.name,
        "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": attributes,
        "KeySchema": key_schema(&table.key),
        "DeletionProtectionEnabled": { "Ref": PROTECTION_PARAMETER },
        "PointInTimeRecoverySpecification": {
            "PointInTimeRecoveryEnabled": { "Ref": RECOVERY_PARAMETER },
        },
        "SSESpecification": { "Fn::If": [
            HAS_KEY,
            { "SSEEnabled": true, "SSEType": "KMS", "KMSMasterKeyId": { "Ref": KEY_PARAMETER } },
            { "Ref": "AWS::NoValue" },
        ] },
    });
    for (name, local) in [
        ("GlobalSecondaryIndexes", false),
        ("LocalSecondaryIndexes", true),
    ] {
        let of_kind = table.indexes.iter().filter(|index| index.local == local);
        let indexes: Vec<_> = of_kind.map(index).collect();
        if !indexes.is_empty() {
            properties[name] = indexes.into();
        }
    }
    if let Some(attribute) = &table.ttl_attribute {
        properties["TimeToLiveSpecification"] =
            json!({ "AttributeName": attribute, "Enabled": true });
    }
    if let Some(view) = table.stream {
        properties["StreamSpecification"] = json!({ "StreamViewType": shape::stream_view(view) });
    }
    if !settings.tags.0.is_empty() {
        let tags = settings.tags.0.iter();
        properties["Tags"] = tags
            .map(|(name, value)| json!({ "Key": name, "Value": value }))
            .collect();
    }
    json!({
        "Type": "AWS::DynamoDB::Table",
        // A stack that is removed by mistake must not take the data with it.
        "DeletionPolicy": "Retain",
        "UpdateReplacePolicy": "Retain",
        "Properties": properties,
    })
}

fn key_schema(key: &KeySchema) -> Vec<Value> {
    let attributes = key.attributes().zip(["HASH", "RANGE"]);
    attributes
        .map(|(attribute, role)| json!({ "AttributeName": attribute.name, "KeyType": role }))
        .collect()
}

fn index(index: &IndexSchema) -> Value {
    let (kind, names) = shape::projection(index);
    let mut projection = json!({ "ProjectionType": kind });
    if !names.is_empty() {
        projection["NonKeyAttributes"] = names.into();
    }
    json!({
        "IndexName": index.name,
        "KeySchema": key_schema(&index.key),
        "Projection": projection,
    })
}

fn policy(systems: &[System], all: Vec<Value>) -> Value {
    let mut statements: Vec<Value> = rights::grants(systems).iter().map(statement).collect();
    statements.push(json!({
        "Sid": "LookAtTables",
        "Effect": "Allow",
        "Action": rights::LOOK,
        "Resource": all,
    }));
    statements.push(json!({ "Fn::If": [
        HAS_KEY,
        {
            "Sid": "UseKey",
            "Effect": "Allow",
            "Action": rights::USE_KEY,
            "Resource": { "Ref": KEY_PARAMETER },
            "Condition": { "StringLike": { "kms:ViaService": "dynamodb.*.amazonaws.com" } },
        },
        { "Ref": "AWS::NoValue" },
    ] }));
    json!({
        "Type": "AWS::IAM::ManagedPolicy",
        "Properties": {
            "Description": "What Homeport does with its tables.",
            "PolicyDocument": { "Version": "2012-10-17", "Statement": statements },
        },
    })
}

fn statement(grant: &Grant<'_>) -> Value {
    let table = &grant.table.schema;
    let name = shape::camel(&table.name);
    let id = logical_id(table);
    let below = |path: String| json!({ "Fn::Sub": format!("${{{id}.Arn}}/{path}") });
    let (sid, resources) = match &grant.on {
        Part::Table => (name, vec![arn(table)]),
        Part::Indexes(indexes) => {
            let indexes = indexes.iter();
            let resources = indexes.map(|index| below(format!("index/{index}")));
            (format!("{name}Indexes"), resources.collect())
        }
        Part::Streams => (format!("{name}Streams"), vec![below("stream/*".to_owned())]),
    };
    json!({
        "Sid": sid,
        "Effect": "Allow",
        "Action": grant.actions,
        "Resource": resources,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_that_a_table_can_have_is_in_the_template() {
        let rendered = render(&shape::sample::systems(), &shape::sample::settings());
        assert_eq!(rendered, include_str!("expected/sample.json"));
    }
}
