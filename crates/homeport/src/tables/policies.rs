//! The rights as policies that IAM takes. Statements that allow the same are one, and a policy gets as
//! many of them as there is room for. Nothing is granted that `rights` does not name.

use homeport_item::schema::TableSchema;
use homeport_systems::schema::System;
use serde_json::json;

use super::rights::{self, Grant, Part};

/// Characters that a policy may have when everything in it is resolved. IAM refuses a managed policy of
/// more than 6,144, not counting whitespace; the rest is room for what a tool adds when it prints one.
const POLICY_LEN_MAX: usize = 5_500;

/// What the ARNs of tables begin with, at its longest: no partition and no region has a longer name.
const TABLE_ARN_LONGEST: &str = "arn:aws-us-gov:dynamodb:ap-southeast-1:111122223333:table/";
/// The ARN of a key, at its longest.
const KEY_ARN_LONGEST: &str =
    "arn:aws-us-gov:kms:ap-southeast-1:111122223333:key/mrk-1234abcd12ab34cd56ef1234567890ab";

/// One policy: a role has ten at most unless AWS is asked for more.
#[derive(Clone, Default)]
pub(super) struct Policy<'a> {
    pub(super) statements: Vec<Statement<'a>>,
    /// Whether the statement about the key is in this one, which it is where there is a key.
    pub(super) has_key: bool,
}

/// Actions on resources.
#[derive(Clone)]
pub(super) struct Statement<'a> {
    pub(super) actions: Vec<&'static str>,
    pub(super) resources: Vec<Resource<'a>>,
}

/// A table or what belongs to it.
#[derive(Clone)]
pub(super) struct Resource<'a> {
    pub(super) table: &'a TableSchema,
    /// What follows the table's ARN and a slash; nothing for the table itself.
    pub(super) below: Option<String>,
}

/// All rights in as few policies as their order allows. What one system needs is in one policy, unless
/// that alone is too much for one.
pub(super) fn policies(systems: &[System]) -> Vec<Policy<'_>> {
    let mut full = Vec::new();
    let mut last = Policy {
        has_key: true,
        ..Policy::default()
    };
    for system in systems {
        let grants = rights::grants(std::slice::from_ref(system));
        let fits_alone = Policy::default().with(&grants).len() <= POLICY_LEN_MAX;
        let is_piece = |one: &Grant<'_>, next: &Grant<'_>| {
            fits_alone || one.table.schema.name == next.table.schema.name
        };
        for piece in grants.chunk_by(is_piece) {
            let grown = last.with(piece);
            if grown.len() <= POLICY_LEN_MAX || last.statements.is_empty() {
                last = grown;
            } else {
                full.push(std::mem::replace(&mut last, Policy::default().with(piece)));
            }
        }
    }
    full.push(last);
    full
}

impl<'a> Policy<'a> {
    fn with(&self, grants: &[Grant<'a>]) -> Self {
        let mut policy = self.clone();
        for grant in grants {
            let resources = resources(grant);
            let same = policy
                .statements
                .iter_mut()
                .find(|statement| statement.actions == grant.actions);
            match same {
                Some(statement) => statement.resources.extend(resources),
                None => policy.statements.push(Statement {
                    actions: grant.actions.clone(),
                    resources,
                }),
            }
        }
        policy
    }

    /// The characters of the policy, resolved at its longest, without whitespace.
    fn len(&self) -> usize {
        let statements = self.statements.iter().map(|statement| {
            let resources: Vec<_> = statement.resources.iter().map(Resource::longest).collect();
            // Some versions of Terraform print the empty name.
            json!({ "Sid": "", "Effect": "Allow", "Action": statement.actions, "Resource": resources })
        });
        let key = self.has_key.then(|| {
            json!({
                "Sid": "",
                "Effect": "Allow",
                "Action": rights::USE_KEY,
                "Resource": [KEY_ARN_LONGEST],
                "Condition": { "StringLike": { "kms:ViaService": [rights::VIA_SERVICE] } },
            })
        });
        let statements: Vec<_> = statements.chain(key).collect();
        json!({ "Version": "2012-10-17", "Statement": statements })
            .to_string()
            .len()
    }
}

impl Resource<'_> {
    fn longest(&self) -> String {
        let slash = if self.below.is_some() { "/" } else { "" };
        let below = self.below.as_deref().unwrap_or_default();
        format!("{TABLE_ARN_LONGEST}{}{slash}{below}", self.table.name)
    }
}

fn resources<'a>(grant: &Grant<'a>) -> Vec<Resource<'a>> {
    let table = &grant.table.schema;
    let resource = |below| Resource { table, below };
    match &grant.on {
        Part::Table => vec![resource(None)],
        Part::Indexes(indexes) => {
            let below = indexes.iter().map(|index| format!("index/{index}"));
            below.map(|below| resource(Some(below))).collect()
        }
        Part::Streams => vec![resource(Some("stream/*".to_owned()))],
    }
}
