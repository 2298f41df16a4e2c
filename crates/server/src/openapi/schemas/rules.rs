//! Schemas of rules, which follow AWS IoT. A schema cannot describe the syntax of statements and templates.

use std::borrow::Cow;

use homeport_systems::rules::{
    ACTIONS_MAX, DESCRIPTION_CHARS_MAX, HEADERS_MAX, RuleName, SQL_VERSION,
};
use serde_json::json;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ArrayBuilder, Object, ObjectBuilder, OneOfBuilder, Schema, Type};
use utoipa::{IntoParams, PartialSchema, ToSchema};

use super::{closed_object, nullable, of, parameters, single_member, text, text_schemas};

const STATEMENT: &str =
    "SELECT topic(2) AS thing_name, timestamp() AS timestamp, *\nFROM 'van/+/telemetry'";

parameters! {
    RulePath in Path {
        /// Rule name
        name: name;
    }
    IfMatch in Header {
        /// `ETag` of the version to change; the request fails with 412 if the rule has another version
        if_match: entity_tag, rename = "If-Match", required = false;
    }
}

text_schemas! {
    entity_tag = text("^\"[0-9]{1,15}\"$", 3..=17).examples(["\"3\""]);
    name = of::<RuleName>();
}

#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
#[allow(
    dead_code,
    reason = "only describes parameters in the OpenAPI document"
)]
pub(crate) struct RuleVersionPath {
    /// Rule name
    #[param(schema_with = name)]
    name: String,
    /// Version
    #[param(minimum = 1, maximum = 9_007_199_254_740_991_i64)]
    version: i64,
}

/// Schema of AWS IoT's `TopicRulePayload`.
#[derive(Debug)]
pub(crate) struct RuleDocumentSchema;

/// Schema of a rule with its name.
#[derive(Debug)]
pub(crate) struct NewRuleSchema;

/// Schema of the members of a rule to change; null removes one.
#[derive(Debug)]
pub(crate) struct RulePatchSchema;

macro_rules! named_schema {
    ($marker:ident, $name:literal, $schema:expr) => {
        impl PartialSchema for $marker {
            fn schema() -> RefOr<Schema> {
                $schema
            }
        }

        impl ToSchema for $marker {
            fn name() -> Cow<'static, str> {
                Cow::Borrowed($name)
            }
        }
    };
}

named_schema!(RuleDocumentSchema, "RuleDocument", document(false));
named_schema!(RulePatchSchema, "RulePatch", document(true));
named_schema!(
    NewRuleSchema,
    "NewRule",
    closed_object()
        .property("ruleName", name())
        .property("topicRulePayload", document(false))
        .required("ruleName")
        .required("topicRulePayload")
        .into()
);

fn document(is_patch: bool) -> RefOr<Schema> {
    let sql = ObjectBuilder::new()
        .schema_type(Type::String)
        .min_length(Some(1))
        .description(Some("AWS IoT SQL statement"))
        .examples([STATEMENT]);
    let description = ObjectBuilder::new()
        .schema_type(nullable(Type::String))
        .max_length(Some(DESCRIPTION_CHARS_MAX));
    let version = ObjectBuilder::new()
        .schema_type(nullable(Type::String))
        .enum_values(Some([json!(SQL_VERSION), json!(null)]));
    let disabled = ObjectBuilder::new().schema_type(Type::Boolean);
    let actions = ArrayBuilder::new()
        .items(action())
        .max_items(Some(ACTIONS_MAX));
    let mut document = closed_object()
        .property("sql", sql)
        .property("description", description)
        .property("ruleDisabled", disabled)
        .property("awsIotSqlVersion", version)
        .property("actions", actions)
        .property(
            "errorAction",
            OneOfBuilder::new()
                .item(ObjectBuilder::new().schema_type(Type::Null))
                .item(action()),
        );
    if !is_patch {
        document = document.required("sql").required("actions");
    }
    document
        .examples([json!({
            "sql": STATEMENT,
            "actions": [{"dynamoDBv2": {"putItem": {"tableName": "van-telemetry"}}}],
        })])
        .into()
}

fn action() -> RefOr<Schema> {
    let put_item = single_member("tableName", template());
    let dynamodb_v2 = closed_object()
        .property("roleArn", any_text())
        .property("putItem", put_item)
        .required("putItem");
    let key_type = || {
        ObjectBuilder::new()
            .schema_type(nullable(Type::String))
            .enum_values(Some([json!("STRING"), json!("NUMBER"), json!(null)]))
    };
    let dynamodb = closed_object()
        .property("roleArn", any_text())
        .property("tableName", template())
        .property("operation", any_text())
        .property("hashKeyField", template())
        .property("hashKeyValue", template())
        .property("hashKeyType", key_type())
        .property("rangeKeyField", any_text())
        .property("rangeKeyValue", any_text())
        .property("rangeKeyType", key_type())
        .property("payloadField", any_text())
        .required("tableName")
        .required("hashKeyField")
        .required("hashKeyValue");
    let qos = ObjectBuilder::new()
        .schema_type(nullable(Type::Integer))
        .enum_values(Some([json!(0), json!(1), json!(null)]));
    let headers = closed_object()
        .property("payloadFormatIndicator", any_text())
        .property("contentType", any_text())
        .property("responseTopic", any_text())
        .property("correlationData", any_text())
        .property("messageExpiry", any_text())
        .property("userProperties", pairs());
    let republish = closed_object()
        .property("roleArn", any_text())
        .property("topic", template())
        .property("qos", qos)
        .property("headers", headers)
        .required("topic");
    let http = closed_object()
        .property("url", template())
        .property("confirmationUrl", any_text())
        .property("headers", pairs())
        .required("url");
    let format = ObjectBuilder::new()
        .schema_type(nullable(Type::String))
        .enum_values(Some([json!("RAW"), json!("JSON"), json!(null)]));
    let sns = closed_object()
        .property("roleArn", any_text())
        .property("targetArn", any_text())
        .property("messageFormat", format)
        .required("targetArn");
    let push = closed_object()
        .property("userId", template())
        .property("title", template())
        .property("body", template())
        .required("userId")
        .required("title")
        .required("body");
    OneOfBuilder::new()
        .item(single_member("dynamoDBv2", dynamodb_v2))
        .item(single_member("dynamoDB", dynamodb))
        .item(single_member("republish", republish))
        .item(single_member("http", http))
        .item(single_member("sns", sns))
        .item(single_member("push", push))
        .into()
}

fn template() -> Object {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .description(Some("May contain substitution templates: `${…}`"))
        .build()
}

fn any_text() -> Object {
    ObjectBuilder::new()
        .schema_type(nullable(Type::String))
        .build()
}

fn pairs() -> ArrayBuilder {
    let pair = closed_object()
        .property("key", template())
        .property("value", template())
        .required("key")
        .required("value");
    ArrayBuilder::new().items(pair).max_items(Some(HEADERS_MAX))
}
