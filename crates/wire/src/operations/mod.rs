//! The operations, one file each: parse, validate, call the engine, answer.

mod batch_execute_statement;
mod batch_get_item;
mod batch_write_item;
mod create_table;
mod delete_item;
mod delete_table;
mod describe_continuous_backups;
mod describe_endpoints;
mod describe_limits;
mod describe_table;
mod describe_time_to_live;
mod execute_statement;
mod execute_transaction;
mod get_item;
mod list_tables;
mod list_tags_of_resource;
mod put_item;
mod query;
mod reading;
mod scan;
mod tag_resource;
mod transact_get_items;
mod transact_write_items;
mod untag_resource;
mod update_item;
mod update_table;
mod update_time_to_live;
mod writing;

use bytes::Bytes;

use crate::failure::Failure;
use crate::service::Service;

macro_rules! operations {
    ($($name:ident => $module:ident),* $(,)?) => {
        /// What a client can ask for.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Operation {
            $($name,)*
        }

        impl Operation {
            pub(crate) fn from_name(name: &str) -> Option<Self> {
                match name {
                    $(stringify!($name) => Some(Self::$name),)*
                    _ => None,
                }
            }
        }

        /// Carries an operation out; the answer is the JSON of its body.
        pub(crate) async fn run(
            service: &Service,
            operation: Operation,
            body: &Bytes,
        ) -> Result<Vec<u8>, Failure> {
            match operation {
                $(Operation::$name => $module::run(service, body).await,)*
            }
        }
    };
}

operations! {
    BatchExecuteStatement => batch_execute_statement,
    BatchGetItem => batch_get_item,
    BatchWriteItem => batch_write_item,
    CreateTable => create_table,
    DeleteItem => delete_item,
    DeleteTable => delete_table,
    DescribeContinuousBackups => describe_continuous_backups,
    DescribeEndpoints => describe_endpoints,
    DescribeLimits => describe_limits,
    DescribeTable => describe_table,
    DescribeTimeToLive => describe_time_to_live,
    ExecuteStatement => execute_statement,
    ExecuteTransaction => execute_transaction,
    GetItem => get_item,
    ListTables => list_tables,
    ListTagsOfResource => list_tags_of_resource,
    PutItem => put_item,
    Query => query,
    Scan => scan,
    TagResource => tag_resource,
    TransactGetItems => transact_get_items,
    TransactWriteItems => transact_write_items,
    UntagResource => untag_resource,
    UpdateItem => update_item,
    UpdateTable => update_table,
    UpdateTimeToLive => update_time_to_live,
}
