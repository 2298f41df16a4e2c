//! A rule, its versions, and their stored form.

use std::sync::Arc;

use homeport_item::{Item, Value};

use super::document::{ActionDocument, RuleDocument};
use super::name::RuleName;
use crate::rules::execution::stats::RuleCounts;
use crate::rules::{RuleError, schema};
use crate::time::EpochMillis;

/// Digits of a version in its key.
const VERSION_DIGITS: usize = 10;

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
    pub(in crate::rules) fn to_item(&self) -> Item {
        self.fields(schema::key(schema::CURRENT, self.name.as_str()))
    }

    pub(in crate::rules) fn to_version_item(&self, is_deletion: bool) -> Item {
        let mut item = self.fields(version_key(&self.name, self.version));
        if is_deletion {
            item.insert(schema::DELETED, true);
        }
        item
    }

    fn fields(&self, key: Item) -> Item {
        key.with(schema::NAME, self.name.as_str())
            .with(schema::DOCUMENT, self.document.to_json())
            .with(schema::VERSION, self.version)
            .with(schema::CREATED_AT, self.created_at.0)
            .with(schema::UPDATED_AT, self.updated_at.0)
    }

    pub(in crate::rules) fn from_item(item: &Item) -> Result<Self, RuleError> {
        let malformed = || RuleError::Malformed("a rule has an unknown form".to_owned());
        parse(item).ok_or_else(malformed)
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

fn parse(item: &Item) -> Option<Rule> {
    let text = |name| item.get(name).and_then(Value::as_str);
    let whole = |name| item.get(name)?.as_number()?.to_i64();
    Some(Rule {
        name: text(schema::NAME)?.parse().ok()?,
        document: Arc::new(serde_json::from_str(text(schema::DOCUMENT)?).ok()?),
        version: whole(schema::VERSION)?,
        created_at: EpochMillis(whole(schema::CREATED_AT)?),
        updated_at: EpochMillis(whole(schema::UPDATED_AT)?),
        source: Source::Store,
    })
}

impl RuleVersion {
    pub(in crate::rules) fn from_item(item: &Item) -> Result<Self, RuleError> {
        Ok(Self {
            rule: Rule::from_item(item)?,
            is_deletion: item.get(schema::DELETED).and_then(Value::as_bool) == Some(true),
        })
    }
}

pub(in crate::rules) fn version_key(name: &RuleName, version: i64) -> Item {
    schema::key(
        versions_partition(name),
        format!("{version:0width$}", width = VERSION_DIGITS),
    )
}

pub(in crate::rules) fn versions_partition(name: &RuleName) -> String {
    format!("{}{name}", schema::VERSIONS)
}
