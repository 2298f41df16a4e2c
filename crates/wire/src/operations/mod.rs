//! The operations, in the folder of their resource: read the request, check it, call the engine, respond.

mod archives;
mod items;
mod page;
mod statements;
mod streams;
mod tables;

use crate::access::Call;
use crate::config::Credential;
use crate::failure::Failure;
use crate::service::Service;

macro_rules! operations {
    ($($name:ident => $run:path),* $(,)?) => {
        /// An operation of DynamoDB or DynamoDB Streams.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Operation {
            $($name,)*
        }

        /// The names of all supported operations, including those of streams.
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

        /// Reads the request of an operation, authorizes the caller and runs the operation. Returns the JSON of the response.
        ///
        /// IMPORTANT: this is the only way to run an operation, so none can run without authorization.
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
                    let answer = $run(service, input).await;
                    entry.record(answer.as_ref().map(|_| ()));
                    answer
                })*
            }
        }
    };
}

/// The services in the targets of requests.
const TABLES_TARGET: &str = "DynamoDB_20120810";
const STREAMS_TARGET: &str = "DynamoDBStreams_20120810";

impl Operation {
    /// The operation in the target of a request.
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
    BatchExecuteStatement => statements::batch_execute_statement::run,
    BatchGetItem => items::batch_get_item::run,
    BatchWriteItem => items::batch_write_item::run,
    CreateBackup => archives::backups::create_backup,
    CreateTable => tables::create_table::run,
    DeleteBackup => archives::backups::delete_backup,
    DeleteItem => items::delete_item::run,
    DeleteTable => tables::delete_table::run,
    DescribeBackup => archives::backups::describe_backup,
    DescribeContinuousBackups => archives::describe_continuous_backups::run,
    DescribeContributorInsights => tables::contributor_insights::describe,
    DescribeEndpoints => tables::service::describe_endpoints,
    DescribeExport => archives::transfers::describe_export,
    DescribeImport => archives::transfers::describe_import,
    DescribeLimits => tables::service::describe_limits,
    DescribeStream => streams::describe_stream::run,
    DescribeTable => tables::describe_table::run,
    DescribeTimeToLive => tables::describe_time_to_live::run,
    ExecuteStatement => statements::execute_statement::run,
    ExecuteTransaction => statements::execute_transaction::run,
    ExportTableToPointInTime => archives::export_table_to_point_in_time::run,
    GetItem => items::get_item::run,
    GetRecords => streams::get_records::run,
    GetShardIterator => streams::get_shard_iterator::run,
    ImportTable => archives::import_table::run,
    ListBackups => archives::list_backups::run,
    ListContributorInsights => tables::contributor_insights::list,
    ListExports => archives::transfers::list_exports,
    ListImports => archives::transfers::list_imports,
    ListStreams => streams::list_streams::run,
    ListTables => tables::list_tables::run,
    ListTagsOfResource => tables::tags::list_tags_of_resource,
    PutItem => items::put_item::run,
    Query => items::query::run,
    RestoreTableFromBackup => archives::restore_table_from_backup::run,
    RestoreTableToPointInTime => archives::restore_table_to_point_in_time::run,
    Scan => items::scan::run,
    TagResource => tables::tags::tag_resource,
    TransactGetItems => items::transact_get_items::run,
    TransactWriteItems => items::transact_write_items::run,
    UntagResource => tables::tags::untag_resource,
    UpdateContinuousBackups => archives::update_continuous_backups::run,
    UpdateContributorInsights => tables::contributor_insights::update,
    UpdateItem => items::update_item::run,
    UpdateTable => tables::update_table::run,
    UpdateTimeToLive => tables::update_time_to_live::run,
}
