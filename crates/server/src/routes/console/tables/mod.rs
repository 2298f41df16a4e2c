//! `/v1/tables`: reads any table and index, and changes items.

mod bodies;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use homeport_item::schema::TableSchema;
use homeport_systems::browse::Expected;
use utoipa::IntoParams;

use crate::auth::needs::ManageTables;
use crate::auth::{Authenticated, Everywhere};
use crate::console::StoredTable;
use crate::problem::Problem;
use crate::request::{JsonBody, PathPart};
use crate::state::AppState;

pub(super) use bodies::TableSelection;
use bodies::{
    DeleteTableItem, ItemBody, ItemListBody, PutTableItem, QueryTable, ScanTable, TableBody,
    TableListBody,
};

#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
#[allow(
    dead_code,
    reason = "only describes parameters in the OpenAPI document"
)]
pub(super) struct TablePath {
    /// Table name
    #[param(pattern = "^[a-zA-Z0-9_.-]+$", min_length = 3, max_length = 255)]
    table: String,
}

/// The schema of a table.
pub(super) async fn table_schema(state: &AppState, name: &str) -> Result<TableSchema, Problem> {
    Ok(find_table(state, name).await?.schema)
}

async fn find_table(state: &AppState, name: &str) -> Result<StoredTable, Problem> {
    let table = state.console.storage.table(name).await?;
    table.ok_or_else(|| {
        Problem::new(
            StatusCode::NOT_FOUND,
            "TABLE_NOT_FOUND",
            format!("table {name} not found"),
        )
    })
}

/// List tables with their keys and indexes
#[utoipa::path(get, path = "/v1/tables", tag = "console", security(("admin_token" = [])), responses(
    (status = 200, description = "All tables, sorted by name", body = TableListBody),
))]
pub(super) async fn list_tables(
    _: Authenticated<Everywhere<ManageTables>>,
    State(state): State<AppState>,
) -> Result<Json<TableListBody>, Problem> {
    let tables = state.console.storage.tables().await?;
    Ok(Json(TableListBody {
        tables: tables.into_iter().map(Into::into).collect(),
    }))
}

/// Get a table with its keys and indexes
#[utoipa::path(get, path = "/v1/tables/{table}", tag = "console", security(("admin_token" = [])), params(TablePath), responses(
    (status = 200, description = "The table", body = TableBody),
    (status = 404, description = "Table not found"),
))]
pub(super) async fn get_table(
    _: Authenticated<Everywhere<ManageTables>>,
    State(state): State<AppState>,
    PathPart(table): PathPart<String>,
) -> Result<Json<TableBody>, Problem> {
    Ok(Json(find_table(&state, &table).await?.into()))
}

/// Query items by the keys of a table or an index
#[utoipa::path(post, path = "/v1/tables/{table}/query", tag = "console", security(("admin_token" = [])),
    params(TablePath), request_body = QueryTable, responses(
    (status = 200, description = "Items in the order of the sort key", body = ItemListBody),
    (status = 404, description = "Table or index not found"),
))]
pub(super) async fn query_table(
    _: Authenticated<Everywhere<ManageTables>>,
    State(state): State<AppState>,
    PathPart(table): PathPart<String>,
    JsonBody(body): JsonBody<QueryTable>,
) -> Result<Json<ItemListBody>, Problem> {
    let table = table_schema(&state, &table).await?;
    let page = state
        .console
        .tables
        .find(&table, body.into_request()?)
        .await?;
    Ok(Json(page.into()))
}

/// Scan the items of a table or an index
#[utoipa::path(post, path = "/v1/tables/{table}/scan", tag = "console", security(("admin_token" = [])),
    params(TablePath), request_body = ScanTable, responses(
    (status = 200, description = "Items in no particular order", body = ItemListBody),
    (status = 404, description = "Table or index not found"),
))]
pub(super) async fn scan_table(
    _: Authenticated<Everywhere<ManageTables>>,
    State(state): State<AppState>,
    PathPart(table): PathPart<String>,
    JsonBody(body): JsonBody<ScanTable>,
) -> Result<Json<ItemListBody>, Problem> {
    let table = table_schema(&state, &table).await?;
    let page = (state.console.tables)
        .find(&table, body.into_request()?)
        .await?;
    Ok(Json(page.into()))
}

/// Create or replace an item
///
/// The systems' rules for their tables are not checked.
#[utoipa::path(put, path = "/v1/tables/{table}/items", tag = "console", security(("admin_token" = [])),
    params(TablePath), request_body = PutTableItem, responses(
    (status = 204, description = "Stored"),
    (status = 404, description = "Table not found"),
    (status = 409, description = "The item has changed"),
))]
pub(super) async fn put_table_item(
    _: Authenticated<Everywhere<ManageTables>>,
    State(state): State<AppState>,
    PathPart(table): PathPart<String>,
    JsonBody(body): JsonBody<PutTableItem>,
) -> Result<StatusCode, Problem> {
    let table = table_schema(&state, &table).await?;
    let expected = match body.if_unchanged {
        None => Expected::Anything,
        Some(None) => Expected::Absent,
        Some(Some(ItemBody(old))) => Expected::Unchanged(old),
    };
    let ItemBody(item) = body.item;
    state.console.tables.put(&table, item, expected).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Delete an item
#[utoipa::path(delete, path = "/v1/tables/{table}/items", tag = "console", security(("admin_token" = [])),
    params(TablePath), request_body = DeleteTableItem, responses(
    (status = 204, description = "Deleted"),
    (status = 404, description = "Table not found"),
    (status = 409, description = "The item has changed"),
))]
pub(super) async fn delete_table_item(
    _: Authenticated<Everywhere<ManageTables>>,
    State(state): State<AppState>,
    PathPart(table): PathPart<String>,
    JsonBody(body): JsonBody<DeleteTableItem>,
) -> Result<StatusCode, Problem> {
    let table = table_schema(&state, &table).await?;
    let expected = match body.if_unchanged {
        None => Expected::Anything,
        Some(ItemBody(old)) => Expected::Unchanged(old),
    };
    let ItemBody(key) = body.key;
    state.console.tables.delete(&table, key, expected).await?;
    Ok(StatusCode::NO_CONTENT)
}
