//! ExportTableToPointInTime: begins to write a table, as it is or was, to a bucket.

use bytes::Bytes;
use homeport_engine::{ExportTarget, RestoreError, RestorePoint, TransferKind};
use serde::Deserialize;

use crate::constraints::Constraints;
use crate::failure::Failure;
use crate::input::{self, Text, Timestamp};
use crate::service::Service;
use crate::table_name;
use crate::tables::bucket::{self, Bucket};
use crate::tables::transfer::{self, Notes};

#[derive(Debug, Deserialize)]
struct Input<'a> {
    #[serde(rename = "TableArn", borrow)]
    table: Option<Text<'a>>,
    #[serde(rename = "ExportTime")]
    at: Option<Timestamp>,
    #[serde(rename = "ClientToken", borrow)]
    client_token: Option<Text<'a>>,
    #[serde(rename = "S3Bucket", borrow)]
    bucket: Option<Text<'a>>,
    #[serde(rename = "S3Prefix", borrow)]
    prefix: Option<Text<'a>>,
    #[serde(rename = "ExportFormat", borrow)]
    format: Option<Text<'a>>,
    #[serde(rename = "ExportType", borrow)]
    kind: Option<Text<'a>>,
}

pub(super) async fn run(service: &Service, body: &Bytes) -> Result<Vec<u8>, Failure> {
    let input: Input<'_> = input::read(body)?;
    check(&input)?;
    let table = table_name::of_tables(input.table.as_ref())?;
    let notes = Notes {
        bucket: input.bucket.as_ref().map_or("", Text::as_str).to_owned(),
        prefix: input.prefix.as_ref().map(|text| text.as_str().to_owned()),
        client_token: input
            .client_token
            .as_ref()
            .map(|text| text.as_str().to_owned()),
        compression: None,
    };
    let engine = service.engine();
    let region = service.config().region.clone();
    // A request that is sent again is answered with what it began.
    let known = engine.transfers(TransferKind::Export);
    let known = known.iter().find(|export| {
        export.table == table
            && notes.client_token.is_some()
            && Notes::read(&export.notes).client_token == notes.client_token
    });
    if let Some(known) = known {
        if Notes::read(&known.notes) != notes {
            return Err(Failure::export_conflict());
        }
        let described = transfer::describe_export(&region, known);
        return super::describe_table::wrapped("ExportDescription", &described);
    }
    let bucket = Bucket::find(service, &notes.bucket)?;
    let key_prefix = transfer::key_prefix(&notes);
    let target = ExportTarget {
        folder: bucket.folder(&key_prefix)?,
        key_prefix,
        notes: notes.write(),
        summary: {
            let region = region.clone();
            Box::new(move |export| transfer::summary(&region, export))
        },
    };
    let point = match input.at {
        Some(Timestamp(at_ms)) => RestorePoint::At(at_ms),
        None => RestorePoint::Latest,
    };
    let export = match engine.export_table(table, point, target).await {
        Err(RestoreError::OutOfReach { .. }) => return Err(Failure::invalid_export_time()),
        begun => begun?,
    };
    let described = transfer::describe_export(&region, &export);
    super::describe_table::wrapped("ExportDescription", &described)
}

fn check(input: &Input<'_>) -> Result<(), Failure> {
    let mut constraints = Constraints::new();
    constraints.not_null("tableArn", input.table.as_ref());
    bucket::constrain(
        &mut constraints,
        "s3Bucket",
        input.bucket.as_ref(),
        "s3Prefix",
        input.prefix.as_ref(),
    );
    constraints.one_of(
        "exportFormat",
        input.format.as_ref(),
        &["DYNAMODB_JSON", "ION"],
    );
    constraints.one_of(
        "exportType",
        input.kind.as_ref(),
        &["FULL_EXPORT", "INCREMENTAL_EXPORT"],
    );
    constraints.finish()?;
    // DIFFERENCE: only whole tables in DynamoDB's JSON are written.
    for (name, given) in [("ExportFormat", &input.format), ("ExportType", &input.kind)] {
        if let Some(given) = given
            && !matches!(given.as_str(), "DYNAMODB_JSON" | "FULL_EXPORT")
        {
            return Err(Failure::validation(format!(
                "{name} {} is not supported",
                given.as_str()
            )));
        }
    }
    Ok(())
}
