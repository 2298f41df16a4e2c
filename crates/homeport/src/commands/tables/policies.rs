//! Packs the permissions into IAM policies. Statements with equal actions are merged, and each policy is filled to its
//! limit. Only what `rights` lists is granted.

use homeport_item::schema::TableSchema;
use homeport_systems::schema::System;
use serde_json::json;

use super::rights::{self, Grant, Part};

/// Maximum length of a resolved policy. IAM rejects a managed policy of more than 6,144 characters without white space;
/// the difference is room for what a tool adds when printing.
const POLICY_LEN_MAX: usize = 5_500;

/// The longest beginning of a table's ARN: no partition and no region has a longer name.
const TABLE_ARN_LONGEST: &str = "arn:aws-us-gov:dynamodb:ap-southeast-1:111122223333:table/";
/// The longest ARN of a key.
const KEY_ARN_LONGEST: &str =
    "arn:aws-us-gov:kms:ap-southeast-1:111122223333:key/mrk-1234abcd12ab34cd56ef1234567890ab";

/// One policy. By default AWS allows ten per role.
#[derive(Clone, Default)]
pub(super) struct Policy<'a> {
    pub(super) statements: Vec<Statement<'a>>,
    /// Whether this policy contains the statement about the key, if there is a key.
    pub(super) has_key: bool,
}

/// Actions on resources.
#[derive(Clone)]
pub(super) struct Statement<'a> {
    pub(super) actions: Vec<&'static str>,
    pub(super) resources: Vec<Resource<'a>>,
}

/// A table or one of its parts.
#[derive(Clone)]
pub(super) struct Resource<'a> {
    pub(super) table: &'a TableSchema,
    /// The rest of the ARN after the table and a slash; `None` for the table itself.
    pub(super) below: Option<String>,
}

/// All permissions in as few policies as their order allows. The permissions of a system share a policy if they fit
/// into one.
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

    /// The maximum length of the resolved policy, without white space.
    fn len(&self) -> usize {
        let statements = self.statements.iter().map(|statement| {
            let resources: Vec<_> = statement.resources.iter().map(Resource::longest).collect();
            // Some versions of Terraform print the empty Sid.
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
