//! The operations, one file each: parse, validate, call the engine, answer.

mod batch_execute_statement;
mod batch_get_item;
mod batch_write_item;
mod create_backup;
mod create_table;
mod delete_backup;
mod delete_item;
mod delete_table;
mod describe_backup;
mod describe_continuous_backups;
mod describe_contributor_insights;
mod describe_endpoints;
mod describe_export;
mod describe_import;
mod describe_limits;
mod describe_stream;
mod describe_table;
mod describe_time_to_live;
mod execute_statement;
mod execute_transaction;
mod export_table_to_point_in_time;
mod get_item;
mod get_records;
mod get_shard_iterator;
mod import_table;
mod list_backups;
mod list_contributor_insights;
mod list_exports;
mod list_imports;
mod list_streams;
mod list_tables;
mod list_tags_of_resource;
mod put_item;
mod query;
mod reading;
mod restore_table_from_backup;
mod restore_table_to_point_in_time;
mod scan;
mod tag_resource;
mod transact_get_items;
mod transact_write_items;
mod untag_resource;
mod update_continuous_backups;
mod update_contributor_insights;
mod update_item;
mod update_table;
mod update_time_to_live;
mod writing;

use crate::access::Call;
use crate::config::Credential;
use crate::failure::Failure;
use crate::service::Service;

macro_rules! operations {
    ($($name:ident => $module:ident),* $(,)?) => {
        /// What a client can ask for.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Operation {
            $($name,)*
        }

        /// The names of all operations that are answered, those of streams too.
        pub const OPERATIONS: &[&str] = &[$(stringify!($name)),*];

        impl Operation {
            pub(crate) fn from_name(name: &str) -> Option<Self> {
                match name {
                    $(stringify!($name) => Some(Self::$name),)*
                    _ => None,
                }
            }

            pub(crate) fn name(self) -> &'static str {
                match self {
                    $(Self::$name => stringify!($name),)*
                }
            }
        }

        /// Reads the request of an operation, checks that the caller is permitted what it needs, and runs it; the answer is
        /// the JSON of its body.
        ///
        /// IMPORTANT: this is the only way to an operation, so that none can be run without authorization.
        pub(crate) async fn run(
            service: &Service,
            operation: Operation,
            caller: Option<&Credential>,
            body: &[u8],
        ) -> Result<Vec<u8>, Failure> {
            let call = Call {
                engine: service.engine(),
                config: service.config(),
                operation: operation.name(),
                caller,
            };
            match operation {
                $(Operation::$name => {
                    let input = call.read(body)?;
                    let entry = call.authorize(&input)?;
                    let answer = $module::run(service, input).await;
                    entry.record(answer.as_ref().map(|_| ()));
                    answer
                })*
            }
        }
    };
}

/// What the targets of requests begin with. DynamoDB and its streams are two services.
const TABLES_TARGET: &str = "DynamoDB_20120810";
const STREAMS_TARGET: &str = "DynamoDBStreams_20120810";

impl Operation {
    /// The operation that a request's target names.
    pub(crate) fn from_target(target: &str) -> Option<Self> {
        let (service, name) = target.split_once('.')?;
        let operation = Self::from_name(name)?;
        let of_streams = matches!(
            operation,
            Self::DescribeStream | Self::GetRecords | Self::GetShardIterator | Self::ListStreams
        );
        let expected = if of_streams {
            STREAMS_TARGET
        } else {
            TABLES_TARGET
        };
        (service == expected).then_some(operation)
    }
}

operations! {
    BatchExecuteStatement => batch_execute_statement,
    BatchGetItem => batch_get_item,
    BatchWriteItem => batch_write_item,
    CreateBackup => create_backup,
    CreateTable => create_table,
    DeleteBackup => delete_backup,
    DeleteItem => delete_item,
    DeleteTable => delete_table,
    DescribeBackup => describe_backup,
    DescribeContinuousBackups => describe_continuous_backups,
    DescribeContributorInsights => describe_contributor_insights,
    DescribeEndpoints => describe_endpoints,
    DescribeExport => describe_export,
    DescribeImport => describe_import,
    DescribeLimits => describe_limits,
    DescribeStream => describe_stream,
    DescribeTable => describe_table,
    DescribeTimeToLive => describe_time_to_live,
    ExecuteStatement => execute_statement,
    ExecuteTransaction => execute_transaction,
    ExportTableToPointInTime => export_table_to_point_in_time,
    GetItem => get_item,
    GetRecords => get_records,
    GetShardIterator => get_shard_iterator,
    ImportTable => import_table,
    ListBackups => list_backups,
    ListContributorInsights => list_contributor_insights,
    ListExports => list_exports,
    ListImports => list_imports,
    ListStreams => list_streams,
    ListTables => list_tables,
    ListTagsOfResource => list_tags_of_resource,
    PutItem => put_item,
    Query => query,
    RestoreTableFromBackup => restore_table_from_backup,
    RestoreTableToPointInTime => restore_table_to_point_in_time,
    Scan => scan,
    TagResource => tag_resource,
    TransactGetItems => transact_get_items,
    TransactWriteItems => transact_write_items,
    UntagResource => untag_resource,
    UpdateContinuousBackups => update_continuous_backups,
    UpdateContributorInsights => update_contributor_insights,
    UpdateItem => update_item,
    UpdateTable => update_table,
    UpdateTimeToLive => update_time_to_live,
}
