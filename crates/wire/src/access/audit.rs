//! A record of who changed which table, and of what was refused: lines of the log with the target `homeport::audit`.
//!
//! Nothing of a request's content is written but the names of operation and tables.

use crate::config::Credential;
use crate::failure::{ACCESS_DENIED, Failure};

/// Operations on items: they are recorded only where access was denied.
const ITEM_OPERATIONS: [&str; 14] = [
    "BatchExecuteStatement",
    "BatchGetItem",
    "BatchWriteItem",
    "DeleteItem",
    "ExecuteStatement",
    "ExecuteTransaction",
    "GetItem",
    "GetRecords",
    "PutItem",
    "Query",
    "Scan",
    "TransactGetItems",
    "TransactWriteItems",
    "UpdateItem",
];

/// A call, as far as it is recorded.
#[derive(Debug)]
pub(crate) struct Call<'a> {
    pub(crate) operation: &'a str,
    /// Who asked; nobody where no credentials are set.
    pub(crate) who: Option<&'a Credential>,
    pub(crate) body: &'a [u8],
}

/// Records a call once it has ended, if it is one of those that are recorded.
pub(crate) fn record(call: &Call<'_>, outcome: Result<(), &Failure>) {
    let outcome = outcome.map_or_else(Failure::kind, |()| "Success");
    let changes_tables = is_control(call.operation) && !is_look(call.operation);
    if !changes_tables && outcome != ACCESS_DENIED {
        return;
    }
    let resource = super::needs::named_resource(call.body);
    tracing::info!(
        target: "homeport::audit",
        operation = call.operation,
        user = call.who.map_or("-", Credential::user_name),
        access_key_id = call.who.map_or("-", |who| who.access_key_id.as_str()),
        resource = resource.as_deref().unwrap_or("-"),
        outcome,
        "a call of DynamoDB's protocol"
    );
}

fn is_control(operation: &str) -> bool {
    !ITEM_OPERATIONS.contains(&operation)
}

/// Operations that change nothing.
fn is_look(operation: &str) -> bool {
    ["Describe", "List", "Get"]
        .iter()
        .any(|start| operation.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_changes_of_tables_are_recorded_where_nothing_is_denied() {
        for (operation, recorded) in [
            ("CreateTable", true),
            ("TagResource", true),
            ("RestoreTableFromBackup", true),
            ("DescribeTable", false),
            ("ListTables", false),
            ("PutItem", false),
            ("ExecuteStatement", false),
        ] {
            let changes = is_control(operation) && !is_look(operation);
            assert_eq!(changes, recorded, "{operation}");
        }
    }
}
