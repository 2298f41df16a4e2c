//! A compiled rule: its statement and templates are parsed, its tables are resolved. Every error of a
//! rule is found here, before the rule is stored.

use std::collections::HashMap;
use std::sync::Arc;

use homeport_item::schema::TableSchema;
use homeport_rules::{Statement, Template, topic};

use super::document::{
    ActionDocument, DynamoDbDocument, HttpDocument, KeyType, KeyValue, PushDocument,
    RepublishDocument, RepublishHeaders, RuleDocument, SnsDocument, SnsFormat,
};
use super::name::RuleName;
use crate::api_keys;
use crate::messages::Delivery;
use crate::rules::RuleError;
use crate::rules::execution::stats::RuleStats;
use crate::rules::schema::OWN_PREFIX;

/// The supported version of the rule language.
pub const SQL_VERSION: &str = "2016-03-23";
/// Levels of a rule's topic filter.
pub const FILTER_LEVELS_MAX: usize = 64;
/// Actions of a rule, as in AWS IoT.
pub const ACTIONS_MAX: usize = 10;
/// Longest description.
pub const DESCRIPTION_CHARS_MAX: usize = 1024;
/// Longest template, and headers or properties of an action.
pub const TEMPLATE_BYTES_MAX: usize = 4096;
pub const HEADERS_MAX: usize = 50;

/// The default attribute for the payload of the older DynamoDB action.
const PAYLOAD_FIELD: &str = "payload";

#[derive(Debug)]
pub(in crate::rules) struct Compiled {
    pub(in crate::rules) name: RuleName,
    pub(in crate::rules) statement: Statement,
    pub(in crate::rules) actions: Vec<Action>,
    pub(in crate::rules) error_action: Option<Action>,
    pub(in crate::rules) stats: Arc<RuleStats>,
}

#[derive(Debug)]
pub(in crate::rules) enum Action {
    /// The result is the item.
    PutItem(Target),
    /// The result is one attribute of an item.
    PutPayload(PutPayload),
    Republish(Republish),
    Http(Http),
    Sns(Sns),
    Push(Push),
}

/// A table to write into.
#[derive(Debug, Clone)]
pub(in crate::rules) struct Target {
    pub(in crate::rules) name: String,
    /// `None` for tables that are not Homeport's.
    pub(in crate::rules) schema: Option<Arc<TableSchema>>,
    /// Whether it is the table of telemetry, where no message may replace another.
    pub(in crate::rules) is_telemetry: bool,
}

#[derive(Debug)]
pub(in crate::rules) struct PutPayload {
    pub(in crate::rules) table: Target,
    pub(in crate::rules) hash: KeyField,
    pub(in crate::rules) range: Option<KeyField>,
    pub(in crate::rules) payload_field: String,
    pub(in crate::rules) operation: Option<Template>,
}

#[derive(Debug)]
pub(in crate::rules) struct KeyField {
    pub(in crate::rules) name: String,
    pub(in crate::rules) value: Template,
    pub(in crate::rules) is_number: bool,
}

#[derive(Debug)]
pub(in crate::rules) struct Republish {
    pub(in crate::rules) topic: Template,
    pub(in crate::rules) delivery: Delivery,
    pub(in crate::rules) headers: Headers,
}

#[derive(Debug, Default)]
pub(in crate::rules) struct Headers {
    pub(in crate::rules) payload_format_indicator: Option<Template>,
    pub(in crate::rules) content_type: Option<Template>,
    pub(in crate::rules) response_topic: Option<Template>,
    pub(in crate::rules) correlation_data: Option<Template>,
    pub(in crate::rules) message_expiry: Option<Template>,
    pub(in crate::rules) user_properties: Vec<(Template, Template)>,
}

#[derive(Debug)]
pub(in crate::rules) struct Http {
    pub(in crate::rules) url: Template,
    pub(in crate::rules) headers: Vec<(String, Template)>,
}

/// A notification of an SNS topic, delivered over HTTP.
#[derive(Debug)]
pub(in crate::rules) struct Sns {
    pub(in crate::rules) topic_arn: String,
    pub(in crate::rules) url: String,
    pub(in crate::rules) format: SnsFormat,
}

#[derive(Debug)]
pub(in crate::rules) struct Push {
    pub(in crate::rules) user_id: Template,
    pub(in crate::rules) title: Template,
    pub(in crate::rules) body: Template,
}

impl Action {
    /// The kind of the action, as in error messages of AWS IoT.
    pub(in crate::rules) fn kind(&self) -> &'static str {
        match self {
            Self::PutItem(_) => "DynamoDBv2Action",
            Self::PutPayload(_) => "DynamoDBAction",
            Self::Republish(_) => "RepublishAction",
            Self::Http(_) => "HttpAction",
            Self::Sns(_) => "SnsAction",
            Self::Push(_) => "PushAction",
        }
    }

    pub(in crate::rules) fn target(&self) -> Option<&Target> {
        match self {
            Self::PutItem(table) | Self::PutPayload(PutPayload { table, .. }) => Some(table),
            _ => None,
        }
    }
}

/// The tables and notification topics that rules can use.
#[derive(Debug)]
pub(in crate::rules) struct KnownTables {
    schemas: HashMap<String, Arc<TableSchema>>,
    telemetry: String,
    /// The URL that receives the notifications of a topic, by the topic's ARN.
    sns_topics: HashMap<String, String>,
}

impl KnownTables {
    pub(in crate::rules) fn new(
        schemas: Vec<TableSchema>,
        telemetry: &str,
        sns_topics: HashMap<String, String>,
    ) -> Self {
        let by_name = |schema: TableSchema| (schema.name.clone(), Arc::new(schema));
        Self {
            schemas: schemas.into_iter().map(by_name).collect(),
            telemetry: telemetry.to_owned(),
            sns_topics,
        }
    }

    fn target(&self, name: &str, place: &str) -> Result<Target, RuleError> {
        // IMPORTANT: a message must not create a rule, a notification or a key.
        if name.starts_with(OWN_PREFIX) || name == api_keys::schema::API_KEYS {
            return Err(RuleError::invalid(
                place,
                format!("rules may not write into {name:?}"),
            ));
        }
        Ok(Target {
            name: name.to_owned(),
            schema: self.schemas.get(name).cloned(),
            is_telemetry: name == self.telemetry,
        })
    }
}

/// Compiles a rule.
///
/// # Errors
/// The first error, with its place in the document.
pub(in crate::rules) fn compile(
    name: &RuleName,
    document: &RuleDocument,
    tables: &KnownTables,
    stats: Arc<RuleStats>,
) -> Result<Compiled, RuleError> {
    check_texts(document)?;
    let statement =
        Statement::parse(&document.sql).map_err(|error| RuleError::Statement(error.to_string()))?;
    if statement.filter().as_str().split('/').count() > FILTER_LEVELS_MAX {
        return Err(RuleError::invalid(
            "sql",
            format!("a topic filter may have {FILTER_LEVELS_MAX} levels at most"),
        ));
    }
    let actions = document.actions.iter().enumerate();
    let parts = Parts {
        tables,
        statement: Some(&statement),
    };
    let actions = actions.map(|(at, action)| parts.action(action, &format!("actions[{at}]")));
    let actions = actions.collect::<Result<_, _>>()?;
    // An error action runs on a different message and has no variables of the statement.
    let parts = Parts {
        tables,
        statement: None,
    };
    let error_action = document.error_action.as_ref();
    let error_action = error_action
        .map(|action| parts.action(action, "errorAction"))
        .transpose()?;
    Ok(Compiled {
        name: name.clone(),
        statement,
        actions,
        error_action,
        stats,
    })
}

fn check_texts(document: &RuleDocument) -> Result<(), RuleError> {
    let description = document.description.as_deref().unwrap_or_default();
    if description.chars().count() > DESCRIPTION_CHARS_MAX {
        let reason = format!("a description may have {DESCRIPTION_CHARS_MAX} characters at most");
        return Err(RuleError::invalid("description", reason));
    }
    match document.aws_iot_sql_version.as_deref() {
        // DIFFERENCE: AWS assumes version 2015-10-08 for a rule without a version.
        None | Some(SQL_VERSION) => {}
        Some(other) => {
            let reason = format!("{other:?} is not supported; use {SQL_VERSION}");
            return Err(RuleError::invalid("awsIotSqlVersion", reason));
        }
    }
    if document.actions.len() > ACTIONS_MAX {
        let reason = format!("a rule may have {ACTIONS_MAX} actions at most");
        return Err(RuleError::invalid("actions", reason));
    }
    Ok(())
}

/// The context of compiling the parts of a rule.
struct Parts<'a> {
    tables: &'a KnownTables,
    /// The statement whose variables templates may use.
    statement: Option<&'a Statement>,
}

impl Parts<'_> {
    fn action(&self, document: &ActionDocument, place: &str) -> Result<Action, RuleError> {
        let ActionDocument {
            dynamodb_v2,
            dynamodb,
            republish,
            http,
            sns,
            push,
        } = document;
        let actions = [
            dynamodb_v2.as_ref().map(|action| {
                let place = format!("{place}.dynamoDBv2.putItem.tableName");
                let table = self.tables.target(&action.put_item.table_name, &place)?;
                Ok(Action::PutItem(table))
            }),
            dynamodb
                .as_ref()
                .map(|action| self.put_payload(action, &format!("{place}.dynamoDB"))),
            republish
                .as_ref()
                .map(|action| self.republish(action, &format!("{place}.republish"))),
            http.as_ref()
                .map(|action| self.http(action, &format!("{place}.http"))),
            sns.as_ref()
                .map(|action| self.sns(action, &format!("{place}.sns"))),
            push.as_ref()
                .map(|action| self.push(action, &format!("{place}.push"))),
        ];
        let mut actions = actions.into_iter().flatten();
        match (actions.next(), actions.next()) {
            (Some(action), None) => action,
            _ => Err(RuleError::invalid(
                place,
                "exactly one of dynamoDBv2, dynamoDB, republish, http, sns and push must be there",
            )),
        }
    }

    fn put_payload(&self, document: &DynamoDbDocument, place: &str) -> Result<Action, RuleError> {
        let at = |member: &str| format!("{place}.{member}");
        let hash = self.key_field(
            &document.hash_key_field,
            &document.hash_key_value,
            document.hash_key_type,
            &at("hashKeyValue"),
        )?;
        let range = match (&document.range_key_field, &document.range_key_value) {
            (Some(field), Some(value)) => {
                Some(self.key_field(field, value, document.range_key_type, &at("rangeKeyValue"))?)
            }
            (None, None) => None,
            _ => {
                return Err(RuleError::invalid(
                    place,
                    "rangeKeyField and rangeKeyValue must be given together",
                ));
            }
        };
        let operation = document.operation.as_deref();
        Ok(Action::PutPayload(PutPayload {
            table: self.tables.target(&document.table_name, &at("tableName"))?,
            hash,
            range,
            payload_field: document
                .payload_field
                .clone()
                .unwrap_or_else(|| PAYLOAD_FIELD.to_owned()),
            operation: operation
                .map(|text| self.template(text, &at("operation")))
                .transpose()?,
        }))
    }

    fn key_field(
        &self,
        name: &str,
        value: &str,
        kind: Option<KeyType>,
        place: &str,
    ) -> Result<KeyField, RuleError> {
        Ok(KeyField {
            name: name.to_owned(),
            value: self.template(value, place)?,
            is_number: kind == Some(KeyType::Number),
        })
    }

    fn republish(&self, document: &RepublishDocument, place: &str) -> Result<Action, RuleError> {
        let headers = document.headers.as_ref();
        let headers = headers.map(|headers| self.headers(headers, &format!("{place}.headers")));
        Ok(Action::Republish(Republish {
            topic: self.topic(&document.topic, &format!("{place}.topic"))?,
            delivery: match document.qos {
                None | Some(0) => Delivery::AtMostOnce,
                Some(1) => Delivery::AtLeastOnce,
                Some(_) => {
                    return Err(RuleError::invalid(
                        &format!("{place}.qos"),
                        "the QoS of a republished message is 0 or 1",
                    ));
                }
            },
            headers: headers.transpose()?.unwrap_or_default(),
        }))
    }

    /// The topic to publish on. A topic without templates is validated now.
    fn topic(&self, text: &str, place: &str) -> Result<Template, RuleError> {
        let template = self.template(text, place)?;
        if template.is_constant() {
            topic::check_name(text)
                .map_err(|error| RuleError::invalid(place, error.to_string()))?;
        }
        Ok(template)
    }

    fn headers(&self, headers: &RepublishHeaders, place: &str) -> Result<Headers, RuleError> {
        let one = |member: &str, text: &Option<String>| {
            let place = format!("{place}.{member}");
            text.as_deref()
                .map(|text| self.template(text, &place))
                .transpose()
        };
        let place = format!("{place}.userProperties");
        check_count(&headers.user_properties, &place)?;
        let user_properties = headers.user_properties.iter().map(|pair| {
            Ok((
                self.template(&pair.key, &place)?,
                self.template(&pair.value, &place)?,
            ))
        });
        Ok(Headers {
            payload_format_indicator: one(
                "payloadFormatIndicator",
                &headers.payload_format_indicator,
            )?,
            content_type: one("contentType", &headers.content_type)?,
            response_topic: one("responseTopic", &headers.response_topic)?,
            correlation_data: one("correlationData", &headers.correlation_data)?,
            message_expiry: one("messageExpiry", &headers.message_expiry)?,
            user_properties: user_properties.collect::<Result<_, RuleError>>()?,
        })
    }

    fn http(&self, document: &HttpDocument, place: &str) -> Result<Action, RuleError> {
        let url_place = format!("{place}.url");
        // IMPORTANT: a host from the payload would let devices send requests anywhere.
        let scheme = ["https://", "http://"]
            .into_iter()
            .find(|scheme| document.url.starts_with(scheme));
        let host = scheme
            .and_then(|scheme| document.url.strip_prefix(scheme))
            .and_then(|rest| rest.split(['/', '?', '#']).next());
        match host {
            Some(host) if !host.is_empty() && !host.contains("${") && !host.contains('@') => {}
            _ => {
                return Err(RuleError::invalid(
                    &url_place,
                    "expected a URL that begins with https:// or http:// and a host without templates",
                ));
            }
        }
        let headers_place = format!("{place}.headers");
        check_count(&document.headers, &headers_place)?;
        let headers = document.headers.iter().map(|KeyValue { key, value }| {
            if !is_header_name(key) {
                let reason = format!("{key:?} cannot be the name of a header of this request");
                return Err(RuleError::invalid(&headers_place, reason));
            }
            Ok((key.clone(), self.template(value, &headers_place)?))
        });
        Ok(Action::Http(Http {
            url: self.template(&document.url, &url_place)?,
            headers: headers.collect::<Result<_, RuleError>>()?,
        }))
    }

    fn sns(&self, document: &SnsDocument, place: &str) -> Result<Action, RuleError> {
        let topic_arn = &document.target_arn;
        let Some(url) = self.tables.sns_topics.get(topic_arn) else {
            // SNS itself does not exist here.
            let reason = format!(
                "nobody receives notifications of {topic_arn:?} here: the setting rules.sns_topics gives topics an address, or use http or push instead"
            );
            return Err(RuleError::invalid(&format!("{place}.targetArn"), reason));
        };
        Ok(Action::Sns(Sns {
            topic_arn: topic_arn.clone(),
            url: url.clone(),
            format: document.message_format.unwrap_or(SnsFormat::Raw),
        }))
    }

    fn push(&self, document: &PushDocument, place: &str) -> Result<Action, RuleError> {
        let one = |member: &str, text: &str| self.template(text, &format!("{place}.{member}"));
        Ok(Action::Push(Push {
            user_id: one("userId", &document.user_id)?,
            title: one("title", &document.title)?,
            body: one("body", &document.body)?,
        }))
    }

    fn template(&self, text: &str, place: &str) -> Result<Template, RuleError> {
        if text.len() > TEMPLATE_BYTES_MAX {
            let reason = format!("a template may have {TEMPLATE_BYTES_MAX} bytes at most");
            return Err(RuleError::invalid(place, reason));
        }
        let parsed = match self.statement {
            Some(statement) => Template::parse_for(text, statement),
            None => Template::parse(text),
        };
        parsed.map_err(|error| RuleError::invalid(place, error.to_string()))
    }
}

/// Whether a rule may set the header. Headers of the transport and of the signature are reserved.
fn is_header_name(name: &str) -> bool {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    let lower = name.to_ascii_lowercase();
    !name.is_empty()
        && name.len() <= 128
        && name.bytes().all(is_token)
        && !lower.starts_with("webhook-")
        && !["host", "content-length", "transfer-encoding", "connection"].contains(&lower.as_str())
}

fn check_count(pairs: &[KeyValue], place: &str) -> Result<(), RuleError> {
    if pairs.len() > HEADERS_MAX {
        let reason = format!("there may be {HEADERS_MAX} at most");
        return Err(RuleError::invalid(place, reason));
    }
    Ok(())
}
