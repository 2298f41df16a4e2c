//! A rule, its versions, and their stored form.

use std::sync::Arc;

use homeport_item::Item;

use super::document::{ActionDocument, RuleDocument};
use super::name::RuleName;
use crate::documents::Document;
use crate::rules::RuleError;
use crate::rules::execution::stats::RuleCounts;
use crate::time::EpochMillis;

/// The origin of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The store; it can be changed through the API.
    Store,
    /// The server's file of rules, where it is changed. It wins over a stored rule of the same name.
    File,
}

/// A rule, or one of its versions.
#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    pub name: RuleName,
    pub document: Arc<RuleDocument>,
    /// 0 for rules of the file, which have no versions.
    pub version: i64,
    pub created_at: EpochMillis,
    pub updated_at: EpochMillis,
    pub source: Source,
}

/// A past or current version.
#[derive(Debug, Clone, PartialEq)]
pub struct RuleVersion {
    pub rule: Rule,
    /// Whether this is the change that deleted the rule.
    pub is_deletion: bool,
}

/// A rule with its status, for the API.
#[derive(Debug, Clone, PartialEq)]
pub struct RuleView {
    pub rule: Rule,
    /// Hints: members without effect, values that are stored differently, items that never expire, and rules that never run.
    pub notes: Vec<String>,
    /// Why the rule does not run although it is enabled.
    pub problem: Option<String>,
    /// Since this process started.
    pub counts: RuleCounts,
}

impl Rule {
    pub(in crate::rules) fn to_document(&self, is_deletion: bool) -> Document {
        Document {
            name: self.name.to_string(),
            json: self.document.to_json(),
            version: self.version,
            created_at: self.created_at,
            updated_at: self.updated_at,
            is_deletion,
        }
    }

    pub(in crate::rules) fn from_item(item: &Item) -> Result<Self, RuleError> {
        Ok(RuleVersion::from_item(item)?.rule)
    }

    /// Hints about the document.
    pub(in crate::rules) fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let document = &self.document;
        let actions = document.actions.iter().enumerate();
        let places = actions.map(|(at, action)| (format!("actions[{at}]"), action));
        let error = document.error_action.iter();
        for (place, action) in places.chain(error.map(|action| ("errorAction".to_owned(), action)))
        {
            notes.extend(ignored(action).map(|member| {
                format!("{place}.{member} is stored and has no effect here: only AWS uses it")
            }));
        }
        if document.aws_iot_sql_version.is_none() {
            notes.push(
                "awsIotSqlVersion is not given: the rule runs as one of 2016-03-23, on AWS it would run as one of 2015-10-08"
                    .to_owned(),
            );
        }
        notes
    }
}

fn ignored(action: &ActionDocument) -> impl Iterator<Item = &'static str> {
    let dynamodb_v2 = action.dynamodb_v2.as_ref();
    let dynamodb = action.dynamodb.as_ref();
    let republish = action.republish.as_ref();
    let http = action.http.as_ref();
    let sns = action.sns.as_ref();
    [
        dynamodb_v2.and_then(|action| action.role_arn.as_ref().map(|_| "dynamoDBv2.roleArn")),
        dynamodb.and_then(|action| action.role_arn.as_ref().map(|_| "dynamoDB.roleArn")),
        republish.and_then(|action| action.role_arn.as_ref().map(|_| "republish.roleArn")),
        sns.and_then(|action| action.role_arn.as_ref().map(|_| "sns.roleArn")),
        http.and_then(|action| {
            let given = action.confirmation_url.as_ref();
            given.map(|_| "http.confirmationUrl")
        }),
    ]
    .into_iter()
    .flatten()
}

impl RuleVersion {
    pub(in crate::rules) fn from_item(item: &Item) -> Result<Self, RuleError> {
        let malformed = || RuleError::Malformed("a rule has an unknown form".to_owned());
        let stored = Document::from_item(item).map_err(|_| malformed())?;
        let document = serde_json::from_str(&stored.json).map_err(|_| malformed())?;
        Ok(Self {
            rule: Rule {
                name: stored.name.parse().map_err(|_| malformed())?,
                document: Arc::new(document),
                version: stored.version,
                created_at: stored.created_at,
                updated_at: stored.updated_at,
                source: Source::Store,
            },
            is_deletion: stored.is_deletion,
        })
    }
}
