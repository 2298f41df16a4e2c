//! `/v1/export`: downloads of device data and of tables.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use futures_util::{StreamExt as _, stream};
use homeport_systems::export::{DeviceExport, Export, Format};
use homeport_systems::fleet::DeviceRef;
use homeport_systems::time::EpochMillis;
use serde::Deserialize;
use tokio::sync::OwnedSemaphorePermit;
use utoipa::IntoParams;

use super::tables::{self, TablePath, TableSelection};
use crate::auth::needs::{ManageTables, Read};
use crate::auth::{Action, Authenticated, Everywhere, People, Subject};
use crate::openapi::enums::{DeviceFileFormat, ExportedSystem, ItemFileFormat};
use crate::openapi::schemas;
use crate::problem::Problem;
use crate::request::{Object, PathPart, RequestTimes, UrlQuery};
use crate::state::AppState;

/// Wait before a retry while too many exports are running.
const RETRY_AFTER_SECS: u64 = 10;
/// Maximum characters of a query in the URL, which must fit into the request head.
const SELECTION_LEN_MAX: usize = 4096;

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(super) struct ExportPath {
    #[param(inline)]
    system: ExportedSystem,
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct ExportQuery {
    /// Id from the list of devices; all devices of the system if absent
    #[param(max_length = 600)]
    device: Option<String>,
    /// Oldest time, included
    #[param(schema_with = schemas::time, required = false)]
    from: Option<String>,
    /// Newest time, included
    #[param(schema_with = schemas::time, required = false)]
    to: Option<String>,
    /// CSV (default) and Parquet have a row for each value, NDJSON a line for each stored item
    #[param(inline)]
    format: Option<DeviceFileFormat>,
    /// CSV only: write texts as stored. Otherwise a text that a spreadsheet could evaluate as a formula (one that
    /// starts with `=`, `+`, `-` or `@`, also after white space, or with a tab or line break) gets the prefix `'`
    #[param(default = false)]
    raw: Option<bool>,
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct ExportTableQuery {
    /// The body of a query or scan of the table as JSON, without limit and cursor; all items if absent
    #[param(max_length = 4096)]
    q: Option<String>,
    /// Default `csv`
    #[param(inline)]
    format: Option<ItemFileFormat>,
    /// CSV only: write texts as stored. Otherwise a text that a spreadsheet could evaluate as a formula (one that
    /// starts with `=`, `+`, `-` or `@`, also after white space, or with a tab or line break) gets the prefix `'`
    #[param(default = false)]
    raw: Option<bool>,
}

/// Export the data of a system's devices to a file
///
/// The file is streamed. If the connection is closed early, it is incomplete.
#[utoipa::path(get, path = "/v1/export/{system}", tag = "console", security(("admin_token" = [])),
    params(ExportPath, ExportQuery), responses(
    (status = 200, description = "The file", content((String = "text/csv"), (serde_json::Value = "application/x-ndjson"), (String = "application/vnd.apache.parquet"))),
    (status = 404, description = "Device not found"),
    (status = 503, description = "Too many exports are running, or the store is unavailable; retry later")
))]
pub(super) async fn export_devices(
    caller: Authenticated<People<Read>>,
    State(state): State<AppState>,
    Path(path): Path<ExportPath>,
    UrlQuery(query): UrlQuery<ExportQuery>,
) -> Result<Response, Problem> {
    let times = RequestTimes::new(&state, None);
    let (from, to) = times.bounds(query.from.as_deref(), query.to.as_deref())?;
    let selection = DeviceExport {
        system: path.system.0,
        device: query.device.filter(|device| !device.is_empty()),
        from: from.unwrap_or(EpochMillis(0)),
        to: to.unwrap_or(EpochMillis(i64::MAX)),
    };
    match &selection.device {
        Some(id) => {
            let device = DeviceRef {
                system: selection.system.clone(),
                id: id.clone(),
            };
            caller.check_device(Action::Read, &device)?;
        }
        None => caller.check(Action::Read, selection.system.as_str(), Subject::All)?,
    }
    let format = format(query.format.map(|format| format.0), query.raw);
    let name = match &selection.device {
        Some(device) => format!("{}-{device}", selection.system),
        None => selection.system.to_string(),
    };
    let permit = permit(&state)?;
    let export = Export::of_devices(&state.console.fleet, selection, format).await?;
    Ok(body(export, None, permit, &name, format))
}

/// Export the items of a table, or of a query or scan of it, to a file
#[utoipa::path(get, path = "/v1/export/tables/{table}", tag = "console", security(("admin_token" = [])),
    params(TablePath, ExportTableQuery), responses(
    (status = 200, description = "The file", content((String = "text/csv"), (serde_json::Value = "application/x-ndjson"))),
    (status = 404, description = "Table or index not found"),
    (status = 503, description = "Too many exports are running, or the store is unavailable; retry later")
))]
pub(super) async fn export_table(
    _: Authenticated<Everywhere<ManageTables>>,
    State(state): State<AppState>,
    PathPart(table): PathPart<String>,
    UrlQuery(query): UrlQuery<ExportTableQuery>,
) -> Result<Response, Problem> {
    let schema = tables::table_schema(&state, &table).await?;
    let selection = match query.q.as_deref().map(str::trim) {
        None | Some("") => TableSelection::default(),
        Some(text) if text.chars().count() > SELECTION_LEN_MAX => {
            return Err(Problem::invalid("q must have at most 4096 characters"));
        }
        Some(text) => serde_json::from_str(text)
            .map(|Object(selection)| selection)
            .map_err(|error| Problem::invalid(format!("invalid q: {error}")))?,
    };
    let format = format(query.format.map(|format| format.0), query.raw);
    let permit = permit(&state)?;
    let browser = &state.console.tables;
    let mut export = Export::of_table(browser, schema, selection.into_request(), format)?;
    // An invalid query fails here and not after the file has started.
    let first = export.next_bytes().await?.unwrap_or_default();
    Ok(body(export, Some(first), permit, &table, format))
}

fn format(format: Option<Format>, raw: Option<bool>) -> Format {
    let format = format.unwrap_or(Format::CSV);
    match raw {
        Some(true) => format.raw(),
        _ => format,
    }
}

fn permit(state: &AppState) -> Result<OwnedSemaphorePermit, Problem> {
    let permit = Arc::clone(&state.console.exports).try_acquire_owned();
    permit.map_err(|_| {
        Problem::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "TOO_MANY_EXPORTS",
            "too many exports are running; try again later",
        )
        .retry_after(RETRY_AFTER_SECS)
    })
}

/// The file as a stream. The next part is read when the client has received the previous one.
fn body(
    export: Export,
    first: Option<Vec<u8>>,
    permit: OwnedSemaphorePermit,
    name: &str,
    format: Format,
) -> Response {
    let parts = stream::unfold(Some((export, first, permit)), |state| async move {
        let (mut export, first, permit) = state?;
        let part = match first {
            Some(first) => Ok(Some(first)),
            None => export.next_bytes().await,
        };
        match part {
            Ok(Some(part)) => Some((Ok(Bytes::from(part)), Some((export, None, permit)))),
            Ok(None) => None,
            Err(error) => {
                tracing::warn!(%error, "an export failed");
                // The connection is closed, so the client notices that the file is incomplete.
                Some((Err(error), None))
            }
        }
    });
    // Device ids can contain characters that file names cannot.
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    let name: String = name
        .chars()
        .map(|letter| if is_plain(letter) { letter } else { '-' })
        .collect();
    let disposition = format!("attachment; filename=\"{name}.{}\"", format.as_str());
    // IMPORTANT: fused, because the compression layer polls once more after the end.
    let mut response = Body::from_stream(parts.fuse()).into_response();
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static(format.media_type()),
    );
    if let Ok(disposition) = HeaderValue::from_str(&disposition) {
        headers.insert(header::CONTENT_DISPOSITION, disposition);
    }
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
