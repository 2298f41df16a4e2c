//! What Homeport must be allowed to do in Amazon DynamoDB, and nothing more.

use homeport_systems::schema::{Operation, System, UsedTable};

/// Rights on one table, or on what belongs to it.
pub(super) struct Grant<'a> {
    pub(super) table: &'a UsedTable,
    pub(super) on: Part<'a>,
    pub(super) actions: Vec<&'static str>,
}

/// What of a table rights are on.
pub(super) enum Part<'a> {
    Table,
    /// These indexes.
    Indexes(Vec<&'a str>),
    /// Its streams, as each time that one is switched on it has another name.
    Streams,
}

/// What following the changes of a table takes.
const FOLLOW: [&str; 3] = [
    "dynamodb:DescribeStream",
    "dynamodb:GetRecords",
    "dynamodb:GetShardIterator",
];

/// What alerts do with a table when a definition first needs its changes.
const SWITCH_STREAM_ON: &str = "dynamodb:UpdateTable";

/// What a server does with every table when it starts, to see that all is as it should be.
const LOOK: [&str; 4] = [
    "dynamodb:DescribeContinuousBackups",
    "dynamodb:DescribeTable",
    "dynamodb:DescribeTimeToLive",
    "dynamodb:ListTagsOfResource",
];

/// What DynamoDB does in the name of who asks when tables are encrypted with a key of one's own.
pub(super) const USE_KEY: [&str; 6] = [
    "kms:CreateGrant",
    "kms:Decrypt",
    "kms:DescribeKey",
    "kms:Encrypt",
    "kms:GenerateDataKey*",
    "kms:ReEncrypt*",
];

/// The service through which alone the key may be used, in whichever region.
pub(super) const VIA_SERVICE: &str = "dynamodb.*.amazonaws.com";

/// The rights on tables, table by table.
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

/// The actions that operations need, sorted. Those of a transaction need their own action each, and
/// none for the transaction. An update of an item that has expired but is not yet removed starts
/// anew, with a put.
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
    fn an_update_needs_a_put_where_items_expire() {
        let update = [Operation::Update];
        assert_eq!(actions(&update, false), ["dynamodb:UpdateItem"]);
        assert_eq!(
            actions(&update, true),
            ["dynamodb:PutItem", "dynamodb:UpdateItem"]
        );
    }
}
