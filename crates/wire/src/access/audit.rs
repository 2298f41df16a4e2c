//! The audit log: one log line with the target `homeport::audit` for every call that changes a table, and for every denied call.
//!
//! A line has the names of the operation, the caller and the resources, and no other part of the request.

use super::permission::Permission;
use crate::config::Credential;
use crate::failure::{ACCESS_DENIED, Failure};

/// Operations on items, which are recorded only if access is denied.
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

/// Longer lists of resources are truncated. Every valid request that changes a table has a shorter one: three names and an S3
/// prefix.
const RESOURCES_MAX_BYTES: usize = 2048;

/// A log line, which is written when the call ends.
#[derive(Debug)]
pub(crate) struct Entry<'s> {
    operation: &'static str,
    caller: Option<&'s Credential>,
    /// The resources of the permissions that were checked, each once.
    resources: String,
}

impl<'s> Entry<'s> {
    pub(super) fn new(
        operation: &'static str,
        caller: Option<&'s Credential>,
        permissions: &[Permission],
    ) -> Self {
        let mut names: Vec<String> = Vec::new();
        let mut len = 0;
        for permission in permissions {
            let name = short(&permission.resource.to_string());
            if len <= RESOURCES_MAX_BYTES && !names.contains(&name) {
                len += name.len();
                names.push(name);
            }
        }
        let mut resources = names.join(", ");
        resources.truncate(resources.floor_char_boundary(RESOURCES_MAX_BYTES));
        Self {
            operation,
            caller,
            resources,
        }
    }

    /// Writes the line if the call changes a table or was denied.
    pub(crate) fn record(&self, outcome: Result<(), &Failure>) {
        let outcome = outcome.map_or_else(Failure::kind, |()| "Success");
        if !changes_tables(self.operation) && outcome != ACCESS_DENIED {
            return;
        }
        let resource = match self.resources.as_str() {
            "" => "-",
            resources => resources,
        };
        tracing::info!(
            target: "homeport::audit",
            operation = self.operation,
            user = self.caller.map_or("-", Credential::user_name),
            access_key_id = self.caller.map_or("-", |caller| caller.access_key_id.as_str()),
            resource,
            outcome,
            "DynamoDB API call"
        );
    }
}

/// The name of a table or of its part, without the common beginning of their ARNs. Commas separate resources, so commas in an S3
/// prefix are encoded.
fn short(arn: &str) -> String {
    let of_dynamodb = arn.strip_prefix("arn:aws:dynamodb:");
    let resource = of_dynamodb.and_then(|rest| rest.splitn(3, ':').nth(2));
    let name = resource.and_then(|resource| resource.strip_prefix("table/"));
    name.unwrap_or(arn).replace(',', "%2C")
}

pub(super) fn is_item_operation(operation: &str) -> bool {
    ITEM_OPERATIONS.contains(&operation)
}

fn changes_tables(operation: &str) -> bool {
    let reads = ["Describe", "List", "Get"];
    !is_item_operation(operation) && !reads.iter().any(|verb| operation.starts_with(verb))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::permission::Resource;

    #[test]
    fn table_changes_are_always_recorded() {
        for (operation, recorded) in [
            ("CreateTable", true),
            ("TagResource", true),
            ("RestoreTableFromBackup", true),
            ("DescribeTable", false),
            ("ListTables", false),
            ("PutItem", false),
            ("ExecuteStatement", false),
        ] {
            assert_eq!(changes_tables(operation), recorded, "{operation}");
        }
    }

    #[test]
    fn each_resource_is_recorded_once() {
        let permission = |arn: &str| Permission::new("a".to_owned(), Resource::One(arn.to_owned()));
        let entry = Entry::new(
            "RestoreTableFromBackup",
            None,
            &[
                permission("arn:aws:dynamodb:us-east-1:000000000000:table/one/backup/1"),
                permission("arn:aws:dynamodb:us-east-1:000000000000:table/two"),
                permission("arn:aws:dynamodb:us-east-1:000000000000:table/two"),
                permission("arn:aws:s3:::bucket/key, three"),
            ],
        );
        assert_eq!(
            entry.resources,
            "one/backup/1, two, arn:aws:s3:::bucket/key%2C three"
        );
    }
}
