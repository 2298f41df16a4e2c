//! The forms of rules, which follow AWS IoT's. What a statement or a template may say is beyond what a
//! schema can tell.

use std::borrow::Cow;

use homeport_systems::rules::{
    ACTIONS_MAX, DESCRIPTION_CHARS_MAX, HEADERS_MAX, NAME_LEN_MAX, SQL_VERSION,
};
use serde_json::json;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{
    AdditionalProperties, ArrayBuilder, Object, ObjectBuilder, OneOfBuilder, Schema, Type,
};
use utoipa::{IntoParams, PartialSchema, ToSchema};

use super::{nullable, text};

const NAME: &str = "^[a-zA-Z0-9_]+$";
const STATEMENT: &str =
    "SELECT topic(2) AS thing_name, timestamp() AS timestamp, *\nFROM 'van/+/telemetry'";

/// The part of an address that names a rule.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
#[allow(dead_code, reason = "describes the path in the OpenAPI document")]
pub(crate) struct RulePath {
    /// The rule's name
    #[param(schema_with = name)]
    name: String,
}

/// The parts of an address that name a version of a rule.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
#[allow(dead_code, reason = "describes the path in the OpenAPI document")]
pub(crate) struct RuleVersionPath {
    /// The rule's name
    #[param(schema_with = name)]
    name: String,
    /// The version
    #[param(minimum = 1, maximum = 9_007_199_254_740_991_i64)]
    version: i64,
}

/// The version that a change is for.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
#[allow(dead_code, reason = "describes the header in the OpenAPI document")]
pub(crate) struct IfMatch {
    /// The version that the change is for, as `ETag` has it; another one there is an error
    #[param(rename = "If-Match", schema_with = entity_tag, required = false)]
    if_match: String,
}

fn entity_tag() -> RefOr<Schema> {
    text("^\"[0-9]{1,15}\"$", 3..=17).examples(["\"3\""]).into()
}

pub(crate) fn name() -> RefOr<Schema> {
    text(NAME, 1..=NAME_LEN_MAX).examples(["telemetry"]).into()
}

/// A rule: AWS IoT's `TopicRulePayload`.
#[derive(Debug)]
pub(crate) struct RuleDocumentForm;

/// A rule with its name.
#[derive(Debug)]
pub(crate) struct NewRuleForm;

/// Members of a rule; null removes one.
#[derive(Debug)]
pub(crate) struct RulePatchForm;

macro_rules! named_schema {
    ($form:ident, $name:literal, $schema:expr) => {
        impl PartialSchema for $form {
            fn schema() -> RefOr<Schema> {
                $schema
            }
        }

        impl ToSchema for $form {
            fn name() -> Cow<'static, str> {
                Cow::Borrowed($name)
            }
        }
    };
}

named_schema!(RuleDocumentForm, "RuleDocument", document(false));
named_schema!(RulePatchForm, "RulePatch", document(true));
named_schema!(
    NewRuleForm,
    "NewRule",
    closed()
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
        .description(Some("A statement of AWS IoT SQL"))
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
    let mut document = closed()
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
    let one = |name: &str, form: ObjectBuilder| {
        Schema::from(closed().property(name, form).required(name))
    };
    let put_item = closed()
        .property("tableName", template())
        .required("tableName");
    let dynamodb_v2 = closed()
        .property("roleArn", any_text())
        .property("putItem", put_item)
        .required("putItem");
    let key_type = || {
        ObjectBuilder::new()
            .schema_type(nullable(Type::String))
            .enum_values(Some([json!("STRING"), json!("NUMBER"), json!(null)]))
    };
    let dynamodb = closed()
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
    let headers = closed()
        .property("payloadFormatIndicator", any_text())
        .property("contentType", any_text())
        .property("responseTopic", any_text())
        .property("correlationData", any_text())
        .property("messageExpiry", any_text())
        .property("userProperties", pairs());
    let republish = closed()
        .property("roleArn", any_text())
        .property("topic", template())
        .property("qos", qos)
        .property("headers", headers)
        .required("topic");
    let http = closed()
        .property("url", template())
        .property("confirmationUrl", any_text())
        .property("headers", pairs())
        .required("url");
    let format = ObjectBuilder::new()
        .schema_type(nullable(Type::String))
        .enum_values(Some([json!("RAW"), json!("JSON"), json!(null)]));
    let sns = closed()
        .property("roleArn", any_text())
        .property("targetArn", any_text())
        .property("messageFormat", format)
        .required("targetArn");
    let push = closed()
        .property("userId", template())
        .property("title", template())
        .property("body", template())
        .required("userId")
        .required("title")
        .required("body");
    OneOfBuilder::new()
        .item(one("dynamoDBv2", dynamodb_v2))
        .item(one("dynamoDB", dynamodb))
        .item(one("republish", republish))
        .item(one("http", http))
        .item(one("sns", sns))
        .item(one("push", push))
        .into()
}

/// An object without other members.
fn closed() -> ObjectBuilder {
    let no_others: AdditionalProperties<Schema> = AdditionalProperties::FreeForm(false);
    ObjectBuilder::new().additional_properties(Some(no_others))
}

fn template() -> Object {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .description(Some("May have `${…}`, which the message gives a value"))
        .build()
}

fn any_text() -> Object {
    ObjectBuilder::new()
        .schema_type(nullable(Type::String))
        .build()
}

fn pairs() -> ArrayBuilder {
    let pair = closed()
        .property("key", template())
        .property("value", template())
        .required("key")
        .required("value");
    ArrayBuilder::new().items(pair).max_items(Some(HEADERS_MAX))
}
