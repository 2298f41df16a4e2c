//! Descriptions of exports and imports.

use std::sync::Arc;

use homeport_engine::{Engine, Transfer, TransferKind};
use serde::{Deserialize, Serialize};

use super::arn::{self, TablePart};
use super::description::{self, Seconds};
use crate::constraints::Constraints;
use crate::failure::Failure;
use crate::input::Text;

/// Parameters of the request that are stored with an export or import.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(default)]
pub(crate) struct Notes {
    pub(crate) bucket: String,
    pub(crate) prefix: Option<String>,
    pub(crate) client_token: Option<String>,
    pub(crate) compression: Option<String>,
}

impl Notes {
    pub(crate) fn read(kept: &str) -> Self {
        serde_json::from_str(kept).unwrap_or_default()
    }

    pub(crate) fn write(&self) -> String {
        serde_json::to_string(self).expect("notes have string keys only")
    }
}

/// The response of ExportTableToPointInTime and DescribeExport.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct DescribedExport {
    export_arn: String,
    export_status: &'static str,
    start_time: Seconds,
    #[serde(skip_serializing_if = "Option::is_none")]
    end_time: Option<Seconds>,
    #[serde(skip_serializing_if = "Option::is_none")]
    export_manifest: Option<String>,
    table_arn: String,
    table_id: String,
    export_time: Seconds,
    #[serde(skip_serializing_if = "Option::is_none")]
    client_token: Option<String>,
    s3_bucket: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    s3_prefix: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure_code: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure_message: Option<&'static str>,
    export_format: &'static str,
    export_type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    billed_size_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    item_count: Option<u64>,
}

/// The response of ImportTable and DescribeImport.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct DescribedImport {
    import_arn: String,
    import_status: &'static str,
    table_arn: String,
    table_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    client_token: Option<String>,
    s3_bucket_source: DescribedSource,
    error_count: u64,
    input_format: &'static str,
    input_compression_type: String,
    start_time: Seconds,
    #[serde(skip_serializing_if = "Option::is_none")]
    end_time: Option<Seconds>,
    processed_size_bytes: u64,
    processed_item_count: u64,
    imported_item_count: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure_code: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure_message: Option<&'static str>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct DescribedSource {
    s3_bucket: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    s3_key_prefix: Option<String>,
}

/// `manifest-summary.json` of an export.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ManifestSummary {
    version: &'static str,
    export_arn: String,
    start_time: String,
    end_time: String,
    table_arn: String,
    table_id: String,
    export_time: String,
    s3_bucket: String,
    s3_prefix: Option<String>,
    s3_sse_algorithm: Option<String>,
    s3_sse_kms_key_id: Option<String>,
    manifest_files_s3_key: String,
    billed_size_bytes: u64,
    item_count: u64,
    output_format: &'static str,
    export_type: &'static str,
}

/// Clients get no details of a failure; the server's log has them.
const FAILURE_CODE: &str = "UNKNOWN";
const FAILURE_MESSAGE: &str = "The operation failed on the server";

/// The beginning of the keys of an export, up to its id.
pub(crate) fn key_prefix(notes: &Notes) -> String {
    let prefix = notes.prefix.as_deref().unwrap_or_default();
    let parts: Vec<&str> = prefix.split('/').filter(|part| !part.is_empty()).collect();
    match parts.is_empty() {
        true => "AWSDynamoDB/".to_owned(),
        false => format!("{}/AWSDynamoDB/", parts.join("/")),
    }
}

/// The export or import that a request's ARN names.
pub(crate) fn find(
    engine: &Engine,
    kind: TransferKind,
    given: Option<&Text<'_>>,
) -> Result<Arc<Transfer>, Failure> {
    let (path, member, part, missing): (_, _, _, fn(&str) -> Failure) = match kind {
        TransferKind::Export => (
            "exportArn",
            "ExportArn",
            TablePart::Export,
            Failure::export_not_found,
        ),
        TransferKind::Import => (
            "importArn",
            "ImportArn",
            TablePart::Import,
            Failure::import_not_found,
        ),
    };
    let mut constraints = Constraints::new();
    constraints.not_null(path, given);
    constraints.text_length(path, given, arn::LEN.0, arn::LEN.1);
    constraints.finish()?;
    let given = given.map_or("", Text::as_str);
    let (table, id) = arn::part_of(given, part)
        .ok_or_else(|| Failure::validation(format!("Invalid {member}: {given}")))?;
    engine
        .transfer(kind, id)
        .filter(|found| found.table == table)
        .ok_or_else(|| missing(given))
}

fn status(transfer: &Transfer) -> &'static str {
    match (transfer.ended_at_ms, &transfer.failure) {
        (None, _) => "IN_PROGRESS",
        (Some(_), None) => "COMPLETED",
        (Some(_), Some(_)) => "FAILED",
    }
}

pub(crate) fn describe_export(region: &str, export: &Transfer) -> DescribedExport {
    let notes = Notes::read(&export.notes);
    let completed = export.ended_at_ms.is_some() && export.failure.is_none();
    DescribedExport {
        export_arn: arn::of_part(region, &export.table, TablePart::Export, &export.id),
        export_status: status(export),
        start_time: Seconds::from_ms(export.started_at_ms),
        end_time: export.ended_at_ms.map(Seconds::from_ms),
        export_manifest: completed
            .then(|| format!("{}{}/manifest-summary.json", key_prefix(&notes), export.id)),
        table_arn: arn::of_table(region, &export.table),
        table_id: description::table_id(export.table_id, export.table_created_at_ms),
        export_time: Seconds::from_ms(export.at_ms),
        client_token: notes.client_token,
        s3_bucket: notes.bucket,
        s3_prefix: notes.prefix,
        failure_code: export.failure.as_ref().map(|_| FAILURE_CODE),
        failure_message: export.failure.as_ref().map(|_| FAILURE_MESSAGE),
        export_format: "DYNAMODB_JSON",
        export_type: "FULL_EXPORT",
        billed_size_bytes: completed.then_some(export.item_bytes),
        item_count: completed.then_some(export.items),
    }
}

pub(crate) fn describe_import(region: &str, import: &Transfer) -> DescribedImport {
    let notes = Notes::read(&import.notes);
    DescribedImport {
        import_arn: arn::of_part(region, &import.table, TablePart::Import, &import.id),
        import_status: status(import),
        table_arn: arn::of_table(region, &import.table),
        table_id: description::table_id(import.table_id, import.table_created_at_ms),
        client_token: notes.client_token,
        s3_bucket_source: DescribedSource {
            s3_bucket: notes.bucket,
            s3_key_prefix: notes.prefix,
        },
        error_count: import.refused,
        input_format: "DYNAMODB_JSON",
        input_compression_type: notes.compression.unwrap_or_else(|| "NONE".to_owned()),
        start_time: Seconds::from_ms(import.started_at_ms),
        end_time: import.ended_at_ms.map(Seconds::from_ms),
        processed_size_bytes: import.item_bytes,
        processed_item_count: import.items + import.refused,
        imported_item_count: import.items,
        failure_code: import.failure.as_ref().map(|_| FAILURE_CODE),
        failure_message: import.failure.as_ref().map(|_| FAILURE_MESSAGE),
    }
}

/// An export in a list.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct ExportSummary {
    export_arn: String,
    export_status: &'static str,
    export_type: &'static str,
}

/// An import in a list.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct ImportSummary {
    import_arn: String,
    import_status: &'static str,
    table_arn: String,
    s3_bucket_source: DescribedSource,
    input_format: &'static str,
    start_time: Seconds,
    #[serde(skip_serializing_if = "Option::is_none")]
    end_time: Option<Seconds>,
}

pub(crate) fn summarise_export(region: &str, export: &Transfer) -> ExportSummary {
    ExportSummary {
        export_arn: arn::of_part(region, &export.table, TablePart::Export, &export.id),
        export_status: status(export),
        export_type: "FULL_EXPORT",
    }
}

pub(crate) fn summarise_import(region: &str, import: &Transfer) -> ImportSummary {
    let described = describe_import(region, import);
    ImportSummary {
        import_arn: described.import_arn,
        import_status: described.import_status,
        table_arn: described.table_arn,
        s3_bucket_source: described.s3_bucket_source,
        input_format: described.input_format,
        start_time: described.start_time,
        end_time: described.end_time,
    }
}

/// The text of `manifest-summary.json`.
pub(crate) fn manifest_summary(region: &str, export: &Transfer) -> Vec<u8> {
    let notes = Notes::read(&export.notes);
    let time = |at_ms: i64| format!("{}Z", description::stream_label(at_ms));
    let summary = ManifestSummary {
        version: "2020-06-30",
        export_arn: arn::of_part(region, &export.table, TablePart::Export, &export.id),
        start_time: time(export.started_at_ms),
        end_time: time(export.ended_at_ms.unwrap_or(export.started_at_ms)),
        table_arn: arn::of_table(region, &export.table),
        table_id: description::table_id(export.table_id, export.table_created_at_ms),
        export_time: time(export.at_ms),
        manifest_files_s3_key: format!("{}{}/manifest-files.json", key_prefix(&notes), export.id),
        s3_bucket: notes.bucket,
        s3_prefix: notes.prefix,
        s3_sse_algorithm: None,
        s3_sse_kms_key_id: None,
        billed_size_bytes: export.item_bytes,
        item_count: export.items,
        output_format: "DYNAMODB_JSON",
        export_type: "FULL_EXPORT",
    };
    serde_json::to_vec(&summary).expect("a summary has string keys only")
}
