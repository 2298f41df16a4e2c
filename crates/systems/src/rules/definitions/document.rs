//! The document of a rule: AWS IoT's `TopicRulePayload`, so that rules can be migrated. Unsupported
//! members are rejected with their place in the text. Members that only AWS needs, such as `roleArn`,
//! are accepted and stored.

use serde::{Deserialize, Serialize};

use super::name::RuleName;
use crate::json_object;

/// A rule with its name, in the format of `aws iot create-topic-rule`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct NewRule {
    pub rule_name: RuleName,
    #[serde(deserialize_with = "json_object::deserialize")]
    pub topic_rule_payload: RuleDocument,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct RuleDocument {
    pub sql: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(default)]
    pub rule_disabled: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aws_iot_sql_version: Option<String>,
    #[serde(deserialize_with = "json_object::list")]
    pub actions: Vec<ActionDocument>,
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "json_object::optional"
    )]
    pub error_action: Option<ActionDocument>,
}

/// An action: exactly one member is set.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ActionDocument {
    /// Puts an item with the members of the result as attributes.
    #[serde(
        rename = "dynamoDBv2",
        skip_serializing_if = "Option::is_none",
        deserialize_with = "json_object::given"
    )]
    pub dynamodb_v2: Option<DynamoDbV2Document>,
    /// Puts the result into one attribute of an item. Templates give its key.
    #[serde(
        rename = "dynamoDB",
        skip_serializing_if = "Option::is_none",
        deserialize_with = "json_object::given"
    )]
    pub dynamodb: Option<DynamoDbDocument>,
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "json_object::given"
    )]
    pub republish: Option<RepublishDocument>,
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "json_object::given"
    )]
    pub http: Option<HttpDocument>,
    /// DIFFERENCE: instead of SNS, the notification is posted to the URL that the settings give for the
    /// topic.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "json_object::given"
    )]
    pub sns: Option<SnsDocument>,
    /// DIFFERENCE: an action of Homeport; on AWS, push goes through SNS.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "json_object::given"
    )]
    pub push: Option<PushDocument>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct DynamoDbV2Document {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role_arn: Option<String>,
    #[serde(deserialize_with = "json_object::deserialize")]
    pub put_item: PutItemDocument,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct PutItemDocument {
    pub table_name: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct DynamoDbDocument {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role_arn: Option<String>,
    pub table_name: String,
    /// INSERT, UPDATE, DELETE, or a template for one of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<String>,
    pub hash_key_field: String,
    pub hash_key_value: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash_key_type: Option<KeyType>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range_key_field: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range_key_value: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range_key_type: Option<KeyType>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload_field: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum KeyType {
    String,
    Number,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct RepublishDocument {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role_arn: Option<String>,
    pub topic: String,
    /// 0 unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub qos: Option<u8>,
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "json_object::given"
    )]
    pub headers: Option<RepublishHeaders>,
}

/// The MQTT 5 properties of the new message; each is a template.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct RepublishHeaders {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload_format_indicator: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_topic: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub correlation_data: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_expiry: Option<String>,
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "json_object::list"
    )]
    pub user_properties: Vec<KeyValue>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeyValue {
    pub key: String,
    pub value: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct HttpDocument {
    pub url: String,
    /// AWS confirms a destination there; Homeport signs its requests instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirmation_url: Option<String>,
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "json_object::list"
    )]
    pub headers: Vec<KeyValue>,
}

/// A notification to the subscribers of an SNS topic.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct SnsDocument {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role_arn: Option<String>,
    pub target_arn: String,
    /// RAW unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_format: Option<SnsFormat>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum SnsFormat {
    /// The result is the message.
    Raw,
    /// The result has a message for each kind of receiver, and a default.
    Json,
}

/// A notification to the devices of one user; each member is a template.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct PushDocument {
    pub user_id: String,
    pub title: String,
    pub body: String,
}

impl RuleDocument {
    /// The document as JSON.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("a rule has string keys only")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: &str = r#"{
        "sql": "SELECT * FROM 'a'",
        "ruleDisabled": true,
        "awsIotSqlVersion": "2016-03-23",
        "actions": [
            {"dynamoDBv2": {"roleArn": "arn:aws:iam::1:role/r", "putItem": {"tableName": "t"}}},
            {"republish": {"topic": "b", "qos": 1}}
        ],
        "errorAction": {"republish": {"topic": "errors"}}
    }"#;

    #[test]
    fn aws_rule_round_trips() {
        let rule: RuleDocument = serde_json::from_str(RULE).expect("a rule");
        assert!(rule.rule_disabled);
        assert_eq!(rule.actions.len(), 2);
        let again: RuleDocument = serde_json::from_str(&rule.to_json()).expect("a rule");
        assert_eq!(again, rule);
        let role = again.actions[0].dynamodb_v2.as_ref().expect("an action");
        assert_eq!(role.role_arn.as_deref(), Some("arn:aws:iam::1:role/r"));
    }

    #[test]
    fn unknown_member_is_rejected_with_its_place() {
        for (from, to, place) in [
            ("\"qos\"", "\"quality\"", "line 7 column 50"),
            (
                "republish\": {\"topic\": \"b",
                "lambda\": {\"functionArn\": \"f",
                "line 7",
            ),
            ("\"sql\"", "\"statement\"", "line 2 column 19"),
            ("\"qos\": 1", "\"qos\": \"1\"", "line 7"),
        ] {
            let error = serde_json::from_str::<RuleDocument>(&RULE.replacen(from, to, 1));
            let error = error.expect_err(to).to_string();
            assert!(error.contains(place), "{error}");
        }
    }

    #[test]
    fn array_and_null_are_no_objects() {
        for wrong in [
            r#"{"sql": "s", "actions": [[null]]}"#,
            r#"{"sql": "s", "actions": [{"dynamoDBv2": ["r", {"tableName": "t"}]}]}"#,
            r#"{"sql": "s", "actions": [], "errorAction": []}"#,
            r#"{"sql": "s", "actions": [{"republish": {"topic": "a"}, "http": null}]}"#,
        ] {
            assert!(
                serde_json::from_str::<RuleDocument>(wrong).is_err(),
                "{wrong}"
            );
        }
    }
}
