//! What a request needs: its actions, the resources that they are on, and what conditions can ask about them.
//!
//! Requests of credentials with a policy are read here once more, as a tree, before their operation reads them. What cannot be
//! read counts as unknown, which no policy permits where it has a condition on it.

use homeport_engine::Engine;
use serde_json::{Map, Value as Json};

use super::needs_of_items as items;
use super::needs_of_statements as statements;
use super::request_context::{RequestContext, Values};
use super::strict_json;
use crate::streams;
use crate::streams::iterator::ShardIterator;
use crate::tables::arn;

/// One action on one resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Need {
    pub(super) action: String,
    pub(super) resource: String,
    pub(super) context: RequestContext,
}

/// The members that name what an operation on tables is about; the first that is there counts.
const NAMING: [&str; 10] = [
    "TableName",
    "ResourceArn",
    "TableArn",
    "StreamArn",
    "BackupArn",
    "SourceTableArn",
    "SourceTableName",
    "TargetTableName",
    "ExportArn",
    "ImportArn",
];

/// What an operation's request needs.
pub(super) fn of(engine: &Engine, region: &str, operation: &str, body: &[u8]) -> Vec<Need> {
    let Some(request) = strict_json::object(body) else {
        // Nothing is known about it; in most cases its operation refuses it too.
        return vec![unknown(operation)];
    };
    let reader = Reader {
        engine,
        region,
        operation,
    };
    let needs = match operation {
        "GetItem" | "PutItem" | "UpdateItem" | "DeleteItem" | "Query" | "Scan" => {
            vec![items::single(&reader, operation, &request)]
        }
        "BatchGetItem" | "BatchWriteItem" => items::batch(&reader, &request),
        "TransactGetItems" | "TransactWriteItems" => items::transaction(&reader, &request),
        "ExecuteStatement" => vec![statements::one(&reader, &request)],
        "BatchExecuteStatement" => statements::several(&reader, &request, "Statements"),
        "ExecuteTransaction" => statements::several(&reader, &request, "TransactStatements"),
        "GetRecords" => vec![reader.need(reader.stream_arn(&request))],
        // What is restored, and the table that is made of it.
        "RestoreTableFromBackup" | "RestoreTableToPointInTime" => NAMING
            .iter()
            .filter_map(|name| text(&request, name))
            .map(|name| reader.need(Some(reader.table_arn(name))))
            .collect(),
        "ImportTable" => {
            let table = object(&request, "TableCreationParameters");
            let named = table.and_then(|table| text(table, "TableName"));
            vec![reader.need(named.map(|name| reader.table_arn(name)))]
        }
        _ => {
            let named = NAMING.iter().find_map(|name| text(&request, name));
            vec![reader.need(named.map(|name| reader.table_arn(name)))]
        }
    };
    match needs.is_empty() {
        // A request for nothing is refused by its operation; it must not be permitted for that.
        true => vec![unknown(operation)],
        false => needs,
    }
}

/// The resource that a request names, for a record of it.
pub(super) fn named_resource(body: &[u8]) -> Option<String> {
    let request = strict_json::object(body)?;
    let named = NAMING.iter().find_map(|name| text(&request, name))?;
    let shown = named.floor_char_boundary(RECORDED_MAX_BYTES);
    Some(named[..shown].to_owned())
}

/// A longer name is cut off in a record.
const RECORDED_MAX_BYTES: usize = 512;

fn unknown(operation: &str) -> Need {
    Need {
        action: format!("dynamodb:{operation}"),
        resource: "*".to_owned(),
        context: RequestContext {
            leading_keys: Values::Unknown,
            attributes: Values::Unknown,
            ..RequestContext::default()
        },
    }
}

/// What is needed to read requests.
pub(super) struct Reader<'r> {
    pub(super) engine: &'r Engine,
    region: &'r str,
    pub(super) operation: &'r str,
}

impl Reader<'_> {
    /// The operation's own action on a resource, or on any where none is named.
    fn need(&self, resource: Option<String>) -> Need {
        Need {
            action: format!("dynamodb:{}", self.operation),
            resource: resource.unwrap_or_else(|| "*".to_owned()),
            context: RequestContext::default(),
        }
    }

    /// The stream that a shard iterator reads, whatever ARN stands in its text.
    fn stream_arn(&self, request: &Map<String, Json>) -> Option<String> {
        let iterator = ShardIterator::parse(text(request, "ShardIterator")?)?;
        let stream = self.engine.stream(iterator.stream)?;
        Some(streams::arn_of(self.region, &stream))
    }

    /// The ARN of a table that is named, or given as one already.
    pub(super) fn table_arn(&self, name: &str) -> String {
        match arn::table_of(name) {
            Some(table) => arn::of_table(self.region, table),
            None if name.starts_with("arn:") => name.to_owned(),
            None => arn::of_table(self.region, name),
        }
    }

    pub(super) fn index_arn(&self, table: &str, index: &str) -> String {
        arn::of_index(self.region, arn::table_of(table).unwrap_or(table), index)
    }

    /// The name of a table's or an index's partition key; none where there is no such table.
    pub(super) fn partition_name(&self, table: &str, index: Option<&str>) -> Option<String> {
        let view = self
            .engine
            .table(arn::table_of(table).unwrap_or(table))
            .ok()?;
        let schema = view.schema();
        let key = match index {
            None => &schema.key,
            Some(name) => &schema.index(name)?.key,
        };
        Some(key.partition.name.clone())
    }
}

pub(super) fn text<'j>(request: &'j Map<String, Json>, name: &str) -> Option<&'j str> {
    request.get(name).and_then(Json::as_str)
}

pub(super) fn object<'j>(
    request: &'j Map<String, Json>,
    name: &str,
) -> Option<&'j Map<String, Json>> {
    request.get(name).and_then(Json::as_object)
}

/// Whether the request has the member, whatever it is.
pub(super) fn has(request: &Map<String, Json>, name: &str) -> bool {
    request.get(name).is_some_and(|value| !value.is_null())
}
