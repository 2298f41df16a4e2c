//! `/v1/export`: what devices stored, and what a table has, as files.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use futures_util::{StreamExt as _, stream};
use homeport_systems::export::{DeviceExport, Export, ExportError, Format};
use homeport_systems::fleet::FleetError;
use homeport_systems::time::EpochMillis;
use serde::{Deserialize, Serialize};
use tokio::sync::OwnedSemaphorePermit;
use utoipa::{IntoParams, ToSchema};

use super::devices::SystemWord;
use super::tables::{self, TablePath, TableSelection};
use crate::auth::Admin;
use crate::forms;
use crate::problem::{Problem, ProblemBody};
use crate::state::AppState;
use crate::url::{self, PathPart, UrlQuery};

/// When to come back while others export.
const RETRY_AFTER_SECS: u64 = 10;
/// Characters of a selection of items in an address, which has to fit into the head of a request.
const SELECTION_LEN_MAX: usize = 4096;

#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum FormatWord {
    #[default]
    Csv,
    Ndjson,
    Parquet,
}

#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum ItemFormatWord {
    #[default]
    Csv,
    Ndjson,
}

/// A system whose devices store something over time.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum ExportedSystem {
    Sensors,
    Chargers,
    Telemetry,
    Records,
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(super) struct ExportPath {
    #[param(inline)]
    system: ExportedSystem,
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct ExportQuery {
    /// One device, by its id in the list of devices; all of the system unless given
    #[param(max_length = 600)]
    device: Option<String>,
    /// The oldest time wanted: milliseconds since 1970, or RFC 3339
    #[param(schema_with = forms::time, required = false)]
    from: Option<String>,
    /// The newest time wanted
    #[param(schema_with = forms::time, required = false)]
    to: Option<String>,
    /// CSV and Parquet have a row for each value, NDJSON a line for each stored item; `csv` unless given
    #[param(inline)]
    format: Option<FormatWord>,
    /// CSV only: texts as stored. Unless `true`, a text that a spreadsheet could evaluate as a formula
    /// (one that begins with `=`, `+`, `-` or `@`, also after white space, or with a tab or line break) gets
    /// the prefix `'`
    #[param(default = false)]
    raw: Option<bool>,
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct ExportTableQuery {
    /// The body of a query or a scan of the table as JSON, without limit and cursor; everything unless
    /// given
    #[param(max_length = 4096)]
    q: Option<String>,
    /// `csv` unless given
    #[param(inline)]
    format: Option<ItemFormatWord>,
    /// CSV only: texts as stored. Unless `true`, a text that a spreadsheet could evaluate as a formula
    /// (one that begins with `=`, `+`, `-` or `@`, also after white space, or with a tab or line break) gets
    /// the prefix `'`
    #[param(default = false)]
    raw: Option<bool>,
}

impl From<FormatWord> for Format {
    fn from(word: FormatWord) -> Self {
        match word {
            FormatWord::Csv => Self::CSV,
            FormatWord::Ndjson => Self::Ndjson,
            FormatWord::Parquet => Self::Parquet,
        }
    }
}

impl From<ItemFormatWord> for Format {
    fn from(word: ItemFormatWord) -> Self {
        match word {
            ItemFormatWord::Csv => Self::CSV,
            ItemFormatWord::Ndjson => Self::Ndjson,
        }
    }
}

impl From<ExportedSystem> for SystemWord {
    fn from(system: ExportedSystem) -> Self {
        match system {
            ExportedSystem::Sensors => Self::Sensors,
            ExportedSystem::Chargers => Self::Chargers,
            ExportedSystem::Telemetry => Self::Telemetry,
            ExportedSystem::Records => Self::Records,
        }
    }
}

/// What devices of a system stored in a range of time, both ends included, as a file
///
/// The file comes as it is made. If the connection breaks off, it is not whole.
#[utoipa::path(get, path = "/v1/export/{system}", tag = "console", security(("admin_token" = [])),
    params(ExportPath, ExportQuery), responses(
    (status = 200, description = "The file", content((String = "text/csv"), (serde_json::Value = "application/x-ndjson"), (String = "application/vnd.apache.parquet"))),
    (status = 400, description = "There is no such system, or the range or the format is not right", body = ProblemBody, content_type = "application/problem+json"),
    (status = 401, description = "No operator", body = ProblemBody, content_type = "application/problem+json"),
    (status = 404, description = "There is no such device", body = ProblemBody, content_type = "application/problem+json"),
    (status = 503, description = "The store cannot answer, or others export now", body = ProblemBody, content_type = "application/problem+json")
))]
pub(super) async fn export_devices(
    _: Admin,
    State(state): State<AppState>,
    Path(path): Path<ExportPath>,
    UrlQuery(query): UrlQuery<ExportQuery>,
) -> Result<Response, Problem> {
    let bound = |name, text: Option<&String>| text.map(|text| url::time(name, text)).transpose();
    let word = SystemWord::from(path.system);
    let asked = DeviceExport {
        system: word.into(),
        device: query.device.filter(|device| !device.is_empty()),
        from: bound("from", query.from.as_ref())?.unwrap_or(EpochMillis(0)),
        to: bound("to", query.to.as_ref())?.unwrap_or(EpochMillis(i64::MAX)),
    };
    let format = format(query.format.unwrap_or_default(), query.raw);
    let name = match &asked.device {
        Some(device) => format!("{}-{device}", asked.system),
        None => asked.system.to_string(),
    };
    let permit = permit(&state)?;
    let export = match Export::of_devices(&state.console.fleet, asked, format).await {
        // What cannot be an id of the system is the id of no device.
        Err(ExportError::Fleet(FleetError::Invalid(_))) => {
            return Err(FleetError::DeviceMissing.into());
        }
        export => export?,
    };
    Ok(body(export, None, permit, &name, format))
}

/// The items of a table, or of a query or scan of it, as a file
#[utoipa::path(get, path = "/v1/export/tables/{table}", tag = "console", security(("admin_token" = [])),
    params(TablePath, ExportTableQuery), responses(
    (status = 200, description = "The file", content((String = "text/csv"), (serde_json::Value = "application/x-ndjson"))),
    (status = 400, description = "The query or the format is not right", body = ProblemBody, content_type = "application/problem+json"),
    (status = 401, description = "No operator", body = ProblemBody, content_type = "application/problem+json"),
    (status = 404, description = "There is no such table or index", body = ProblemBody, content_type = "application/problem+json"),
    (status = 503, description = "The store cannot answer, or others export now", body = ProblemBody, content_type = "application/problem+json")
))]
pub(super) async fn export_table(
    _: Admin,
    State(state): State<AppState>,
    PathPart(table): PathPart<String>,
    UrlQuery(query): UrlQuery<ExportTableQuery>,
) -> Result<Response, Problem> {
    let schema = tables::schema(&state, &table).await?;
    let selection = match query.q.as_deref().map(str::trim) {
        None | Some("") => TableSelection::default(),
        Some(text) if text.chars().count() > SELECTION_LEN_MAX => {
            return Err(Problem::invalid("q has at most 4096 characters"));
        }
        Some(text) => serde_json::from_str(text)
            .map_err(|error| Problem::invalid(format!("q is not as expected: {error}")))?,
    };
    let format = format(query.format.unwrap_or_default(), query.raw);
    let permit = permit(&state)?;
    let browser = &state.console.tables;
    let mut export = Export::of_table(browser, schema, selection.asked(), format)?;
    // What is wrong with the query shows now, and not in the middle of a file.
    let first = export.next_bytes().await?.unwrap_or_default();
    Ok(body(export, Some(first), permit, &table, format))
}

fn format(word: impl Into<Format>, raw: Option<bool>) -> Format {
    match raw {
        Some(true) => word.into().raw(),
        _ => word.into(),
    }
}

fn permit(state: &AppState) -> Result<OwnedSemaphorePermit, Problem> {
    let permit = Arc::clone(&state.console.exports).try_acquire_owned();
    permit.map_err(|_| {
        Problem::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "TOO_MANY_EXPORTS",
            "others export now; try again later",
        )
        .retry_after(RETRY_AFTER_SECS)
    })
}

/// The file as it is made: the next part is read when the client has taken the one before.
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
                tracing::warn!(%error, "an export was broken off");
                // The client sees that the file is not whole.
                Some((Err(error), None))
            }
        }
    });
    // Names of devices have characters that names of files do not.
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    let name: String = name
        .chars()
        .map(|letter| if is_plain(letter) { letter } else { '-' })
        .collect();
    let disposition = format!("attachment; filename=\"{name}.{}\"", format.as_str());
    // IMPORTANT: fused, since compression asks once more after the end.
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
