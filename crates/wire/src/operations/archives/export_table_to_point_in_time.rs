//! ExportTableToPointInTime: starts to export the current or a past state of a table to a bucket.

use homeport_engine::{ExportTarget, RestoreError, RestorePoint, TransferKind};
use serde::Deserialize;

use crate::access::{Permission, Request, Resources};
use crate::constraints::Constraints;
use crate::failure::Failure;
use crate::input::{Text, Timestamp};
use crate::output;
use crate::service::Service;
use crate::table_name;
use crate::tables::bucket::{self, Bucket};
use crate::tables::restore_window;
use crate::tables::transfer::{self, Notes};

#[derive(Debug, Deserialize)]
pub(crate) struct Input<'a> {
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

impl<'a> Request<'a> for Input<'a> {
    fn permissions(&self, resources: &Resources<'_>) -> Vec<Permission> {
        let notes = notes(self);
        vec![
            resources.table(self.table.as_ref()),
            resources.objects(
                "s3:PutObject",
                self.bucket.as_ref(),
                &transfer::key_prefix(&notes),
            ),
        ]
    }
}

pub(crate) async fn run(service: &Service, input: Input<'_>) -> Result<Vec<u8>, Failure> {
    check(&input)?;
    let table = table_name::of_tables(input.table.as_ref())?;
    let notes = notes(&input);
    let engine = service.engine();
    let region = service.config().region.clone();
    // A repeated request gets the export that the first one started.
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
        return output::single_member("ExportDescription", &described);
    }
    let bucket = Bucket::find(service, &notes.bucket)?;
    let key_prefix = transfer::key_prefix(&notes);
    bucket.check_prefix(&key_prefix)?;
    let target = ExportTarget {
        bucket: bucket.folder,
        key_prefix,
        notes: notes.write(),
        summary: {
            let region = region.clone();
            Box::new(move |export| transfer::manifest_summary(&region, export))
        },
    };
    let point = match input.at {
        Some(Timestamp(at_ms)) => restore_window::point(service, table, at_ms),
        None => RestorePoint::Latest,
    };
    let export = match engine.export_table(table, point, target).await {
        Err(RestoreError::OutOfReach { .. }) => return Err(Failure::invalid_export_time()),
        begun => begun?,
    };
    let described = transfer::describe_export(&region, &export);
    output::single_member("ExportDescription", &described)
}

fn notes(input: &Input<'_>) -> Notes {
    let owned = |text: &Option<Text<'_>>| text.as_ref().map(|text| text.as_str().to_owned());
    Notes {
        bucket: owned(&input.bucket).unwrap_or_default(),
        prefix: owned(&input.prefix),
        client_token: owned(&input.client_token),
        compression: None,
    }
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
    // DIFFERENCE: only full exports in DynamoDB JSON are supported.
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
