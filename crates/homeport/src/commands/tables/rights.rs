//! The exact permissions that Homeport needs in Amazon DynamoDB.

use homeport_systems::schema::{Operation, System, UsedTable};

/// Permissions on a table or one of its parts.
pub(super) struct Grant<'a> {
    pub(super) table: &'a UsedTable,
    pub(super) on: Part<'a>,
    pub(super) actions: Vec<&'static str>,
}

/// The part of a table that permissions apply to.
pub(super) enum Part<'a> {
    Table,
    /// These indexes.
    Indexes(Vec<&'a str>),
    /// Its streams. Every new stream has a new name.
    Streams,
}

/// Actions for reading a table's stream.
const FOLLOW: [&str; 3] = [
    "dynamodb:DescribeStream",
    "dynamodb:GetRecords",
    "dynamodb:GetShardIterator",
];

/// Actions of alerts, when a definition first needs a table's changes.
const SWITCH_STREAM_ON: &str = "dynamodb:UpdateTable";

/// Actions at a server's start, which verifies every table.
const LOOK: [&str; 4] = [
    "dynamodb:DescribeContinuousBackups",
    "dynamodb:DescribeTable",
    "dynamodb:DescribeTimeToLive",
    "dynamodb:ListTagsOfResource",
];

/// Actions that DynamoDB takes on behalf of the caller when a customer key encrypts the tables.
pub(super) const USE_KEY: [&str; 6] = [
    "kms:CreateGrant",
    "kms:Decrypt",
    "kms:DescribeKey",
    "kms:Encrypt",
    "kms:GenerateDataKey*",
    "kms:ReEncrypt*",
];

/// The only service that may use the key, in any region.
pub(super) const VIA_SERVICE: &str = "dynamodb.*.amazonaws.com";

/// The permissions, table by table.
pub(super) fn grants(systems: &[System]) -> Vec<Grant<'_>> {
    let mut grants = Vec::new();
    for table in systems.iter().flat_map(|system| &system.tables) {
        let mut on_table = actions(table.operations, table.schema.ttl_attribute.is_some());
        if table.may_be_watched {
            on_table.push(SWITCH_STREAM_ON);
        }
        grants.push(Grant {
            table,
            on: Part::Table,
            actions: on_table,
        });
        grants.push(Grant {
            table,
            on: Part::Table,
            actions: LOOK.to_vec(),
        });
        let indexes: Vec<_> = table
            .schema
            .indexes
            .iter()
            .map(|index| index.name.as_str())
            .collect();
        if !indexes.is_empty() {
            grants.push(Grant {
                table,
                on: Part::Indexes(indexes),
                actions: actions(table.index_operations, false),
            });
        }
        if table.schema.stream.is_some() || table.may_be_watched {
            grants.push(Grant {
                table,
                on: Part::Streams,
                actions: FOLLOW.to_vec(),
            });
        }
    }
    grants.retain(|grant| !grant.actions.is_empty());
    grants
}

/// The actions that operations need, sorted. Operations of a transaction need their own action. Updating an expired item
/// that is not yet removed replaces it, which needs a put.
fn actions(operations: &[Operation], expires: bool) -> Vec<&'static str> {
    let mut actions: Vec<_> = operations
        .iter()
        .map(|operation| match operation {
            Operation::Get => "dynamodb:GetItem",
            Operation::Put => "dynamodb:PutItem",
            Operation::Update => "dynamodb:UpdateItem",
            Operation::Delete => "dynamodb:DeleteItem",
            Operation::Check => "dynamodb:ConditionCheckItem",
            Operation::Query => "dynamodb:Query",
            Operation::Scan => "dynamodb:Scan",
            Operation::BatchGet => "dynamodb:BatchGetItem",
            Operation::BatchWrite => "dynamodb:BatchWriteItem",
        })
        .collect();
    if expires && operations.contains(&Operation::Update) {
        actions.push("dynamodb:PutItem");
    }
    actions.sort_unstable();
    actions.dedup();
    actions
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn update_needs_put_if_items_expire() {
        let update = [Operation::Update];
        assert_eq!(actions(&update, false), ["dynamodb:UpdateItem"]);
        assert_eq!(
            actions(&update, true),
            ["dynamodb:PutItem", "dynamodb:UpdateItem"]
        );
    }
}
