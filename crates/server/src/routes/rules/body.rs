//! Rules in responses.

use axum::Json;
use axum::http::{HeaderName, HeaderValue};
use homeport_systems::rules::{
    ActionDocument, Failure, Rule, RuleCounts, RuleVersion, RuleView, Source,
};
use homeport_systems::time::UtcMillis;
use serde::Serialize;
use utoipa::ToSchema;

use crate::request::entity_tag;

/// A rule: the members of AWS IoT, and its state in Homeport.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Rule)]
pub struct RuleBody {
    #[serde(flatten)]
    pub(super) definition: RuleDefinition,
    /// `store`, or `file` for a rule of the server's rules file
    #[schema(example = "store")]
    source: &'static str,
    /// Notes, such as members without effect in Homeport
    notes: Vec<String>,
    /// Why an enabled rule does not run
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
    counts: CountsBody,
}

/// The definition of a rule or of one of its versions.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RuleDefinition {
    rule_name: String,
    sql: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    rule_disabled: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    aws_iot_sql_version: Option<String>,
    #[schema(value_type = Vec<Object>)]
    actions: Vec<ActionDocument>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    error_action: Option<ActionDocument>,
    /// Increases with every change; 0 for rules of the rules file
    pub(super) version: i64,
    created_at: String,
    updated_at: String,
}

/// Counts since the start of the process.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = RuleCounts)]
pub(crate) struct CountsBody {
    /// Messages that matched the statement
    matched: u64,
    /// Messages on its topics that `WHERE` excluded
    not_matched: u64,
    /// Messages on which the statement failed
    failed: u64,
    actions_done: u64,
    actions_failed: u64,
    /// Mean time from receiving a message to all its writes being durable
    mean_micros: u64,
    max_micros: u64,
}

/// A version of a rule.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = RuleVersion)]
pub(in crate::routes) struct VersionBody {
    #[serde(flatten)]
    definition: RuleDefinition,
    /// Whether this version is the deletion of the rule
    deleted: bool,
}

/// A permanent failure: a repeat of the message would fail again.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = RuleError)]
pub(in crate::routes) struct FailureBody {
    at: String,
    topic: String,
    /// Absent if the statement failed
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "DynamoDBv2Action")]
    failed_action: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failed_resource: Option<String>,
    error_message: String,
}

/// A rule, with its version as the `ETag` of the response.
pub(super) type RuleWithEtag = ([(HeaderName, HeaderValue); 1], Json<RuleBody>);

pub(super) fn with_etag(view: RuleView) -> RuleWithEtag {
    let body = RuleBody::from(view);
    (entity_tag(body.definition.version), Json(body))
}

impl From<Rule> for RuleDefinition {
    fn from(rule: Rule) -> Self {
        let document = &rule.document;
        Self {
            rule_name: rule.name.to_string(),
            sql: document.sql.clone(),
            description: document.description.clone(),
            rule_disabled: document.rule_disabled,
            aws_iot_sql_version: document.aws_iot_sql_version.clone(),
            actions: document.actions.clone(),
            error_action: document.error_action.clone(),
            version: rule.version,
            created_at: UtcMillis::new(rule.created_at).to_string(),
            updated_at: UtcMillis::new(rule.updated_at).to_string(),
        }
    }
}

impl From<RuleView> for RuleBody {
    fn from(view: RuleView) -> Self {
        Self {
            source: match view.rule.source {
                Source::Store => "store",
                Source::File => "file",
            },
            definition: view.rule.into(),
            notes: view.notes,
            problem: view.problem,
            counts: view.counts.into(),
        }
    }
}

impl From<RuleCounts> for CountsBody {
    fn from(counts: RuleCounts) -> Self {
        Self {
            matched: counts.matched,
            not_matched: counts.not_matched,
            failed: counts.failed,
            actions_done: counts.actions_done,
            actions_failed: counts.actions_failed,
            mean_micros: counts.mean_micros,
            max_micros: counts.max_micros,
        }
    }
}

impl From<RuleVersion> for VersionBody {
    fn from(version: RuleVersion) -> Self {
        Self {
            definition: version.rule.into(),
            deleted: version.is_deletion,
        }
    }
}

impl From<Failure> for FailureBody {
    fn from(failure: Failure) -> Self {
        Self {
            at: UtcMillis::new(failure.at).to_string(),
            topic: failure.topic,
            failed_action: failure.action,
            failed_resource: failure.resource,
            error_message: failure.reason,
        }
    }
}
