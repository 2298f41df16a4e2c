//! `/v1/tables`: looking into any table and index, and changing an item.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use homeport_item::schema::{
    IndexProjection, IndexSchema, KeyAttribute, KeySchema, StreamView, TableSchema,
};
use homeport_item::{Item, KeyKind, Value};
use homeport_systems::browse::{
    Asked, AskedKeys, Expected, Filter, FoundPage, PAGE_MAX, SortOperator,
};
use serde::{Deserialize, Deserializer, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::auth::Admin;
use crate::body::JsonBody;
use crate::console::StoredTable;
use crate::problem::{Problem, ProblemBody};
use crate::state::AppState;
use crate::url::{self, PathPart};
use crate::whole::WholeNumber;

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = TableList)]
pub(super) struct TableListBody {
    tables: Vec<TableBody>,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Table)]
pub(super) struct TableBody {
    name: String,
    /// `ACTIVE`, or what keeps it from being used
    status: &'static str,
    /// About as many, where counting would take long; absent where nobody knows
    #[serde(skip_serializing_if = "Option::is_none")]
    items: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
    keys: KeysBody,
    indexes: Vec<IndexBody>,
    /// The attribute that says when an item expires
    #[serde(skip_serializing_if = "Option::is_none")]
    ttl_attribute: Option<String>,
    /// What its change log keeps, if it has one
    #[serde(skip_serializing_if = "Option::is_none")]
    stream: Option<&'static str>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = TableKeys)]
struct KeysBody {
    partition: KeyBody,
    #[serde(skip_serializing_if = "Option::is_none")]
    sort: Option<KeyBody>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = TableKey)]
struct KeyBody {
    name: String,
    /// `S`, `N` or `B`
    r#type: &'static str,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = TableIndex)]
struct IndexBody {
    name: String,
    keys: KeysBody,
    /// `ALL`, `KEYS_ONLY` or `INCLUDE`
    projection: &'static str,
    /// `ACTIVE`, or `CREATING` while it is being filled
    status: &'static str,
}

/// The part of an address that names a table.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
#[allow(dead_code, reason = "describes the path in the OpenAPI document")]
pub(super) struct TablePath {
    /// The table's name
    #[param(pattern = "^[a-zA-Z0-9_.-]+$", min_length = 3, max_length = 255)]
    table: String,
}

/// An attribute value in DynamoDB's JSON, such as `{"S": "text"}`.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(transparent)]
#[schema(as = AttributeValue, value_type = Object, example = json!({"S": "text"}))]
pub(super) struct ValueBody(Value);

/// An item in DynamoDB's JSON.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(transparent)]
#[schema(as = TableItem, value_type = Object, example = json!({"id": {"S": "a"}}))]
pub(super) struct ItemBody(Item);

#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[schema(as = SortOperator)]
enum OperatorWord {
    #[serde(rename = "=")]
    Equal,
    #[serde(rename = "<")]
    Less,
    #[serde(rename = "<=")]
    LessOrEqual,
    #[serde(rename = ">")]
    Greater,
    #[serde(rename = ">=")]
    GreaterOrEqual,
    #[serde(rename = "begins_with")]
    BeginsWith,
    #[serde(rename = "between")]
    Between,
}

#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = SortCondition)]
struct SortBody {
    op: OperatorWord,
    /// Two for `between`, else one
    #[schema(min_items = 1, max_items = 2)]
    values: Vec<ValueBody>,
}

/// A filter as DynamoDB writes it.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[schema(as = TableFilter)]
struct FilterBody {
    #[serde(default)]
    #[schema(example = "#s = :s")]
    expression: String,
    /// Names by their placeholders, such as `#s`
    #[serde(default)]
    names: BTreeMap<String, String>,
    /// Values by their placeholders, such as `:s`
    #[serde(default)]
    values: BTreeMap<String, ValueBody>,
}

#[derive(Debug, Deserialize, ToSchema)]
pub(super) struct QueryTable {
    /// The table itself, unless given
    index: Option<String>,
    partition: ValueBody,
    sort: Option<SortBody>,
    filter: Option<FilterBody>,
    /// Items of a page
    #[schema(value_type = Option<i32>, minimum = 1, maximum = 1000, default = 100)]
    limit: Option<WholeNumber>,
    /// Where the page before ended
    cursor: Option<String>,
    /// From the greatest sort key down
    #[serde(default)]
    descending: bool,
}

#[derive(Debug, Deserialize, ToSchema)]
pub(super) struct ScanTable {
    /// The table itself, unless given
    index: Option<String>,
    filter: Option<FilterBody>,
    /// Items of a page
    #[schema(value_type = Option<i32>, minimum = 1, maximum = 1000, default = 100)]
    limit: Option<WholeNumber>,
    /// Where the page before ended
    cursor: Option<String>,
}

/// Items of a table without their pages: by keys if there is a partition, else all.
#[derive(Debug, Default, Deserialize)]
pub(super) struct TableSelection {
    index: Option<String>,
    partition: Option<ValueBody>,
    sort: Option<SortBody>,
    filter: Option<FilterBody>,
    #[serde(default)]
    descending: bool,
}

impl TableSelection {
    pub(super) fn asked(self) -> Asked {
        let sort = self.sort.map(Into::into);
        Asked {
            index: self.index,
            keys: self
                .partition
                .map(|ValueBody(partition)| AskedKeys { partition, sort }),
            filter: self.filter.map(Into::into),
            descending: self.descending,
            ..Asked::default()
        }
    }
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = TableItemList)]
pub(super) struct ItemListBody {
    /// In DynamoDB's JSON
    #[schema(value_type = Vec<Object>)]
    items: Vec<Item>,
    /// How many items were looked at
    scanned: usize,
    /// Absent on the last page. A page may have fewer items than asked for, or none, and not be the last
    #[serde(skip_serializing_if = "Option::is_none")]
    cursor: Option<String>,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct PutTableItem {
    item: ItemBody,
    /// The item as it was looked at: it is replaced only if it is still so. Null creates an item, and
    /// replaces none; absent, whatever is there is replaced
    #[serde(default, deserialize_with = "given")]
    if_unchanged: Option<Option<ItemBody>>,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct DeleteTableItem {
    /// Exactly the key's attributes
    key: ItemBody,
    /// The item as it was looked at: it is removed only if it is still so
    if_unchanged: Option<ItemBody>,
}

/// Tells null from nothing.
fn given<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Option<ItemBody>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

impl From<&KeySchema> for KeysBody {
    fn from(key: &KeySchema) -> Self {
        let body = |attribute: &KeyAttribute| KeyBody {
            name: attribute.name.clone(),
            r#type: match attribute.kind {
                KeyKind::S => "S",
                KeyKind::N => "N",
                KeyKind::B => "B",
            },
        };
        Self {
            partition: body(&key.partition),
            sort: key.sort.as_ref().map(body),
        }
    }
}

impl From<StoredTable> for TableBody {
    fn from(table: StoredTable) -> Self {
        let filling = table.indexes_filling;
        let indexes = table
            .schema
            .indexes
            .iter()
            .map(|index: &IndexSchema| IndexBody {
                name: index.name.clone(),
                keys: (&index.key).into(),
                projection: match index.projection {
                    IndexProjection::All => "ALL",
                    IndexProjection::KeysOnly => "KEYS_ONLY",
                    IndexProjection::Include(_) => "INCLUDE",
                },
                status: match filling.contains(&index.name) {
                    true => "CREATING",
                    false => "ACTIVE",
                },
            });
        Self {
            status: table.status,
            items: table.items,
            bytes: table.bytes,
            keys: (&table.schema.key).into(),
            indexes: indexes.collect(),
            ttl_attribute: table.schema.ttl_attribute,
            stream: table.schema.stream.map(|view| match view {
                StreamView::KeysOnly => "KEYS_ONLY",
                StreamView::NewImage => "NEW_IMAGE",
                StreamView::OldImage => "OLD_IMAGE",
                StreamView::NewAndOldImages => "NEW_AND_OLD_IMAGES",
            }),
            name: table.schema.name,
        }
    }
}

impl From<FilterBody> for Filter {
    fn from(body: FilterBody) -> Self {
        let values = body.values.into_iter();
        Self {
            expression: body.expression,
            names: body.names.into_iter().collect(),
            values: values
                .map(|(name, ValueBody(value))| (name, value))
                .collect(),
        }
    }
}

impl From<SortBody> for (SortOperator, Vec<Value>) {
    fn from(body: SortBody) -> Self {
        let operator = match body.op {
            OperatorWord::Equal => SortOperator::Equal,
            OperatorWord::Less => SortOperator::Less,
            OperatorWord::LessOrEqual => SortOperator::LessOrEqual,
            OperatorWord::Greater => SortOperator::Greater,
            OperatorWord::GreaterOrEqual => SortOperator::GreaterOrEqual,
            OperatorWord::BeginsWith => SortOperator::BeginsWith,
            OperatorWord::Between => SortOperator::Between,
        };
        let values = body.values.into_iter();
        (operator, values.map(|ValueBody(value)| value).collect())
    }
}

impl From<FoundPage> for ItemListBody {
    fn from(page: FoundPage) -> Self {
        Self {
            items: page.items,
            scanned: page.scanned,
            cursor: page.next.map(|cursor| cursor.encode()),
        }
    }
}

impl QueryTable {
    pub(super) fn asked(self) -> Result<Asked, Problem> {
        Ok(Asked {
            index: self.index,
            keys: Some(AskedKeys {
                partition: self.partition.0,
                sort: self.sort.map(Into::into),
            }),
            filter: self.filter.map(Into::into),
            limit: limit(self.limit)?,
            cursor: url::cursor(self.cursor.as_deref())?,
            descending: self.descending,
        })
    }
}

fn limit(given: Option<WholeNumber>) -> Result<usize, Problem> {
    // What is below zero is as wrong as zero.
    let given = given.map(|WholeNumber(limit)| usize::try_from(limit).unwrap_or(0));
    url::limit(given, PAGE_MAX)
}

/// The table that an address names, as it is now.
pub(super) async fn schema(state: &AppState, name: &str) -> Result<TableSchema, Problem> {
    Ok(described(state, name).await?.schema)
}

async fn described(state: &AppState, name: &str) -> Result<StoredTable, Problem> {
    let table = state.console.storage.table(name).await?;
    table.ok_or_else(|| {
        Problem::new(
            StatusCode::NOT_FOUND,
            "TABLE_NOT_FOUND",
            format!("there is no table {name}"),
        )
    })
}

/// All tables, with their keys and indexes
#[utoipa::path(get, path = "/v1/tables", tag = "console", security(("admin_token" = [])), responses(
    (status = 200, description = "All tables, by their names", body = TableListBody),
    (status = 401, description = "No operator", body = ProblemBody, content_type = "application/problem+json"),
    (status = 503, description = "The store cannot answer", body = ProblemBody, content_type = "application/problem+json")
))]
pub(super) async fn list_tables(
    _: Admin,
    State(state): State<AppState>,
) -> Result<Json<TableListBody>, Problem> {
    let tables = state.console.storage.tables().await?;
    Ok(Json(TableListBody {
        tables: tables.into_iter().map(Into::into).collect(),
    }))
}

/// One table, with its keys and indexes
#[utoipa::path(get, path = "/v1/tables/{table}", tag = "console", security(("admin_token" = [])), params(TablePath), responses(
    (status = 200, description = "The table", body = TableBody),
    (status = 401, description = "No operator", body = ProblemBody, content_type = "application/problem+json"),
    (status = 404, description = "There is no such table", body = ProblemBody, content_type = "application/problem+json"),
    (status = 503, description = "The store cannot answer", body = ProblemBody, content_type = "application/problem+json")
))]
pub(super) async fn get_table(
    _: Admin,
    State(state): State<AppState>,
    PathPart(table): PathPart<String>,
) -> Result<Json<TableBody>, Problem> {
    Ok(Json(described(&state, &table).await?.into()))
}

/// Items by the keys of a table or an index
#[utoipa::path(post, path = "/v1/tables/{table}/query", tag = "console", security(("admin_token" = [])),
    params(TablePath), request_body = QueryTable, responses(
    (status = 200, description = "A page of items, in the order of the sort key", body = ItemListBody),
    (status = 400, description = "The keys, the filter, the limit or the cursor is not right", body = ProblemBody, content_type = "application/problem+json"),
    (status = 401, description = "No operator", body = ProblemBody, content_type = "application/problem+json"),
    (status = 403, description = "Not sent by the console's own page", body = ProblemBody, content_type = "application/problem+json"),
    (status = 404, description = "There is no such table or index", body = ProblemBody, content_type = "application/problem+json"),
    (status = 503, description = "The store cannot answer", body = ProblemBody, content_type = "application/problem+json")
))]
pub(super) async fn query_table(
    _: Admin,
    State(state): State<AppState>,
    PathPart(table): PathPart<String>,
    JsonBody(body): JsonBody<QueryTable>,
) -> Result<Json<ItemListBody>, Problem> {
    let table = schema(&state, &table).await?;
    let page = state.console.tables.find(&table, body.asked()?).await?;
    Ok(Json(page.into()))
}

/// All items of a table or an index
#[utoipa::path(post, path = "/v1/tables/{table}/scan", tag = "console", security(("admin_token" = [])),
    params(TablePath), request_body = ScanTable, responses(
    (status = 200, description = "A page of items, in no particular order", body = ItemListBody),
    (status = 400, description = "The filter, the limit or the cursor is not right", body = ProblemBody, content_type = "application/problem+json"),
    (status = 401, description = "No operator", body = ProblemBody, content_type = "application/problem+json"),
    (status = 403, description = "Not sent by the console's own page", body = ProblemBody, content_type = "application/problem+json"),
    (status = 404, description = "There is no such table or index", body = ProblemBody, content_type = "application/problem+json"),
    (status = 503, description = "The store cannot answer", body = ProblemBody, content_type = "application/problem+json")
))]
pub(super) async fn scan_table(
    _: Admin,
    State(state): State<AppState>,
    PathPart(table): PathPart<String>,
    JsonBody(body): JsonBody<ScanTable>,
) -> Result<Json<ItemListBody>, Problem> {
    let table = schema(&state, &table).await?;
    let asked = Asked {
        index: body.index,
        filter: body.filter.map(Into::into),
        limit: limit(body.limit)?,
        cursor: url::cursor(body.cursor.as_deref())?,
        ..Asked::default()
    };
    let page = state.console.tables.find(&table, asked).await?;
    Ok(Json(page.into()))
}

/// Creates or replaces an item
///
/// The systems' own rules about their tables are not checked: it is for operators who know them.
#[utoipa::path(put, path = "/v1/tables/{table}/items", tag = "console", security(("admin_token" = [])),
    params(TablePath), request_body = PutTableItem, responses(
    (status = 204, description = "It is stored"),
    (status = 400, description = "It cannot be an item of the table", body = ProblemBody, content_type = "application/problem+json"),
    (status = 401, description = "No operator", body = ProblemBody, content_type = "application/problem+json"),
    (status = 403, description = "Not sent by the console's own page", body = ProblemBody, content_type = "application/problem+json"),
    (status = 404, description = "There is no such table", body = ProblemBody, content_type = "application/problem+json"),
    (status = 409, description = "The item is no longer as it was", body = ProblemBody, content_type = "application/problem+json"),
    (status = 503, description = "The store cannot answer", body = ProblemBody, content_type = "application/problem+json")
))]
pub(super) async fn put_table_item(
    _: Admin,
    State(state): State<AppState>,
    PathPart(table): PathPart<String>,
    JsonBody(body): JsonBody<PutTableItem>,
) -> Result<StatusCode, Problem> {
    let table = schema(&state, &table).await?;
    let expected = match body.if_unchanged {
        None => Expected::Anything,
        Some(None) => Expected::Absent,
        Some(Some(ItemBody(old))) => Expected::Unchanged(old),
    };
    let ItemBody(item) = body.item;
    state.console.tables.put(&table, item, expected).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Removes an item
#[utoipa::path(delete, path = "/v1/tables/{table}/items", tag = "console", security(("admin_token" = [])),
    params(TablePath), request_body = DeleteTableItem, responses(
    (status = 204, description = "There is no such item any more"),
    (status = 400, description = "The key is none of the table", body = ProblemBody, content_type = "application/problem+json"),
    (status = 401, description = "No operator", body = ProblemBody, content_type = "application/problem+json"),
    (status = 403, description = "Not sent by the console's own page", body = ProblemBody, content_type = "application/problem+json"),
    (status = 404, description = "There is no such table", body = ProblemBody, content_type = "application/problem+json"),
    (status = 409, description = "The item is no longer as it was", body = ProblemBody, content_type = "application/problem+json"),
    (status = 503, description = "The store cannot answer", body = ProblemBody, content_type = "application/problem+json")
))]
pub(super) async fn delete_table_item(
    _: Admin,
    State(state): State<AppState>,
    PathPart(table): PathPart<String>,
    JsonBody(body): JsonBody<DeleteTableItem>,
) -> Result<StatusCode, Problem> {
    let table = schema(&state, &table).await?;
    let expected = match body.if_unchanged {
        None => Expected::Anything,
        Some(ItemBody(old)) => Expected::Unchanged(old),
    };
    let ItemBody(key) = body.key;
    state.console.tables.delete(&table, key, expected).await?;
    Ok(StatusCode::NO_CONTENT)
}
