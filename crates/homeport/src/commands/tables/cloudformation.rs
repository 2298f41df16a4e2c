//! Renders the tables and permissions as a CloudFormation template in JSON.

use std::collections::BTreeMap;

use homeport_item::schema::{IndexSchema, KeySchema, TableSchema};
use homeport_systems::schema::System;
use serde_json::{Map, Value, json};

use crate::config::StoreSettings;

use super::policies::{self, Policy, Statement};
use super::{rights, shape};

const HAS_KEY: &str = "HasKmsKey";
const KEY_PARAMETER: &str = "KmsKeyArn";
const RECOVERY_PARAMETER: &str = "PointInTimeRecovery";
const PROTECTION_PARAMETER: &str = "DeletionProtection";

pub(super) fn render(systems: &[System], settings: &StoreSettings) -> String {
    let tables = || systems.iter().flat_map(|system| &system.tables);
    let mut resources: Map<String, Value> = tables()
        .map(|table| (logical_id(&table.schema), resource(&table.schema, settings)))
        .collect();
    let policies = policies::policies(systems);
    let policy_ids: Vec<_> = (1..=policies.len())
        .map(|number| format!("HomeportPolicy{number}"))
        .collect();
    resources.extend(policy_ids.iter().cloned().zip(policies.iter().map(policy)));
    let policy_arns: Vec<_> = policy_ids.iter().map(|id| json!({ "Ref": id })).collect();
    let template = json!({
        "AWSTemplateFormatVersion": "2010-09-09",
        "Description": "Homeport's tables and the permissions it needs on them.",
        "Parameters": {
            KEY_PARAMETER: {
                "Type": "String",
                "Default": settings.kms_key_id.as_deref().unwrap_or_default(),
                "Description": "ARN of the KMS key that encrypts the tables; if empty, a key that AWS owns.",
            },
            RECOVERY_PARAMETER: boolean(settings.point_in_time_recovery, "Whether tables can be restored to any second of the last 35 days."),
            PROTECTION_PARAMETER: boolean(settings.deletion_protection, "Whether tables are protected from being deleted."),
        },
        "Conditions": {
            HAS_KEY: { "Fn::Not": [{ "Fn::Equals": [{ "Ref": KEY_PARAMETER }, ""] }] },
        },
        "Resources": resources,
        "Outputs": {
            "PolicyArns": {
                "Description": "Comma-separated. Attach all of them to the role that Homeport runs as.",
                "Value": { "Fn::Join": [",", policy_arns] },
            },
        },
    });
    format!("{:#}\n", sorted(template))
}

/// Sorts the members of all objects, independent of the JSON library.
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
        // A stack deleted by mistake must not delete data. A failed creation has no data, and its tables would block
        // the next attempt.
        "DeletionPolicy": "RetainExceptOnCreate",
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

fn policy(policy: &Policy<'_>) -> Value {
    let mut statements: Vec<Value> = policy.statements.iter().map(statement).collect();
    if policy.has_key {
        statements.push(json!({ "Fn::If": [
            HAS_KEY,
            {
                "Effect": "Allow",
                "Action": rights::USE_KEY,
                "Resource": { "Ref": KEY_PARAMETER },
                "Condition": { "StringLike": { "kms:ViaService": rights::VIA_SERVICE } },
            },
            { "Ref": "AWS::NoValue" },
        ] }));
    }
    json!({
        "Type": "AWS::IAM::ManagedPolicy",
        "Properties": {
            "Description": "Homeport's access to its tables.",
            "PolicyDocument": { "Version": "2012-10-17", "Statement": statements },
        },
    })
}

fn statement(statement: &Statement<'_>) -> Value {
    let resources = statement.resources.iter().map(|resource| {
        let id = logical_id(resource.table);
        match &resource.below {
            Some(below) => json!({ "Fn::Sub": format!("${{{id}.Arn}}/{below}") }),
            None => json!({ "Fn::GetAtt": [id, "Arn"] }),
        }
    });
    json!({
        "Effect": "Allow",
        "Action": statement.actions,
        "Resource": resources.collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_schema_feature_is_rendered() {
        let rendered = render(&shape::sample::systems(), &shape::sample::settings());
        assert_eq!(rendered, include_str!("expected/sample.json"));
    }
}
