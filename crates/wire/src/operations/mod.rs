//! The operations, one file each in the folder of their resource: read the request, check it, call the engine, respond.

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
    ($($name:ident => $folder:ident :: $module:ident),* $(,)?) => {
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
                    let answer = $folder::$module::run(service, input).await;
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
    BatchExecuteStatement => statements::batch_execute_statement,
    BatchGetItem => items::batch_get_item,
    BatchWriteItem => items::batch_write_item,
    CreateBackup => archives::create_backup,
    CreateTable => tables::create_table,
    DeleteBackup => archives::delete_backup,
    DeleteItem => items::delete_item,
    DeleteTable => tables::delete_table,
    DescribeBackup => archives::describe_backup,
    DescribeContinuousBackups => archives::describe_continuous_backups,
    DescribeContributorInsights => tables::describe_contributor_insights,
    DescribeEndpoints => tables::describe_endpoints,
    DescribeExport => archives::describe_export,
    DescribeImport => archives::describe_import,
    DescribeLimits => tables::describe_limits,
    DescribeStream => streams::describe_stream,
    DescribeTable => tables::describe_table,
    DescribeTimeToLive => tables::describe_time_to_live,
    ExecuteStatement => statements::execute_statement,
    ExecuteTransaction => statements::execute_transaction,
    ExportTableToPointInTime => archives::export_table_to_point_in_time,
    GetItem => items::get_item,
    GetRecords => streams::get_records,
    GetShardIterator => streams::get_shard_iterator,
    ImportTable => archives::import_table,
    ListBackups => archives::list_backups,
    ListContributorInsights => tables::list_contributor_insights,
    ListExports => archives::list_exports,
    ListImports => archives::list_imports,
    ListStreams => streams::list_streams,
    ListTables => tables::list_tables,
    ListTagsOfResource => tables::list_tags_of_resource,
    PutItem => items::put_item,
    Query => items::query,
    RestoreTableFromBackup => archives::restore_table_from_backup,
    RestoreTableToPointInTime => archives::restore_table_to_point_in_time,
    Scan => items::scan,
    TagResource => tables::tag_resource,
    TransactGetItems => items::transact_get_items,
    TransactWriteItems => items::transact_write_items,
    UntagResource => tables::untag_resource,
    UpdateContinuousBackups => archives::update_continuous_backups,
    UpdateContributorInsights => tables::update_contributor_insights,
    UpdateItem => items::update_item,
    UpdateTable => tables::update_table,
    UpdateTimeToLive => tables::update_time_to_live,
}
