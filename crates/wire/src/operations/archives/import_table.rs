//! ImportTable: starts to import files in a bucket into a new table.

use homeport_engine::{Compression, ImportSource, NewTable, RestoreError, TransferKind};
use serde::Deserialize;

use crate::access::{Permission, Request, Resources};
use crate::constraints::Constraints;
use crate::failure::Failure;
use crate::input::{Field, Named, Text};
use crate::operations::tables::create_table;
use crate::output;
use crate::service::Service;
use crate::tables::bucket::{self, Bucket};
use crate::tables::transfer::{self, Notes};

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Input<'a> {
    #[serde(borrow)]
    client_token: Option<Text<'a>>,
    #[serde(borrow)]
    s3_bucket_source: Option<Field<Source<'a>>>,
    #[serde(borrow)]
    input_format: Option<Text<'a>>,
    #[serde(borrow)]
    input_compression_type: Option<Text<'a>>,
    #[serde(borrow)]
    table_creation_parameters: Option<Field<create_table::Input<'a>>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Source<'a> {
    #[serde(borrow)]
    s3_bucket: Option<Text<'a>>,
    #[serde(borrow)]
    s3_key_prefix: Option<Text<'a>>,
}

impl Named for Source<'_> {
    const NAME: &'static str = "S3BucketSource";
}

impl Named for create_table::Input<'_> {
    const NAME: &'static str = "TableCreationParameters";
}

impl<'a> Request<'a> for Input<'a> {
    fn permissions(&self, resources: &Resources<'_>) -> Vec<Permission> {
        let table = self.table_creation_parameters.as_ref();
        let table = table.map(|Field(table)| table);
        let tagging = table.and_then(|table| table.tagging(resources));
        let table = table.and_then(|table| table.table_name.as_ref());
        let source = self.s3_bucket_source.as_ref().map(|Field(source)| source);
        let bucket = source.and_then(|source| source.s3_bucket.as_ref());
        let prefix = source.and_then(|source| source.s3_key_prefix.as_ref());
        let needed = [
            resources.table(table),
            resources.bucket("s3:ListBucket", bucket),
            resources.objects("s3:GetObject", bucket, prefix.map_or("", Text::as_str)),
        ];
        needed.into_iter().chain(tagging).collect()
    }
}

pub(crate) async fn run(service: &Service, input: Input<'_>) -> Result<Vec<u8>, Failure> {
    let (notes, compression) = check(&input)?;
    let Some(Field(table)) = &input.table_creation_parameters else {
        return Err(Failure::validation("TableCreationParameters is required"));
    };
    let (schema, settings) = create_table::check(table, service.config().clock.now_ms())?;
    let engine = service.engine();
    let region = &service.config().region;
    let known = engine.transfers(TransferKind::Import);
    let known = known.iter().find(|import| {
        notes.client_token.is_some()
            && Notes::read(&import.notes).client_token == notes.client_token
    });
    if let Some(known) = known {
        if Notes::read(&known.notes) != notes || known.table != schema.name {
            return Err(Failure::import_conflict());
        }
        let described = transfer::describe_import(region, known);
        return output::single_member("ImportTableDescription", &described);
    }
    let bucket = Bucket::find(service, &notes.bucket)?;
    let prefix = notes.prefix.clone().unwrap_or_default();
    let folder = bucket.folder.clone();
    let files = service.run_blocking(move |_| bucket.files(&prefix)).await?;
    if files.is_empty() {
        return Err(Failure::validation(
            "No files in the S3 bucket begin with the given prefix",
        ));
    }
    let source = ImportSource {
        bucket: folder,
        files,
        compression,
        notes: notes.write(),
    };
    let target = NewTable {
        schema,
        settings: settings.write(),
    };
    let import = match engine.import_table(source, target).await {
        Err(RestoreError::TargetExists(name)) => {
            return Err(Failure::in_use(format!("Table already exists: {name}")));
        }
        begun => begun?.1,
    };
    let described = transfer::describe_import(region, &import);
    output::single_member("ImportTableDescription", &described)
}

fn check(input: &Input<'_>) -> Result<(Notes, Compression), Failure> {
    let mut constraints = Constraints::new();
    let source = input.s3_bucket_source.as_ref().map(|Field(source)| source);
    constraints.not_null("s3BucketSource", source);
    let name = source.and_then(|source| source.s3_bucket.as_ref());
    let prefix = source.and_then(|source| source.s3_key_prefix.as_ref());
    if source.is_some() {
        bucket::constrain(
            &mut constraints,
            "s3BucketSource.s3Bucket",
            name,
            "s3BucketSource.s3KeyPrefix",
            prefix,
        );
    }
    let format = input.input_format.as_ref();
    constraints.not_null("inputFormat", format);
    constraints.one_of("inputFormat", format, &["DYNAMODB_JSON", "ION", "CSV"]);
    let compression = input.input_compression_type.as_ref();
    constraints.one_of(
        "inputCompressionType",
        compression,
        &["GZIP", "ZSTD", "NONE"],
    );
    constraints.not_null(
        "tableCreationParameters",
        input.table_creation_parameters.as_ref(),
    );
    constraints.finish()?;
    // DIFFERENCE: only DynamoDB JSON is supported, plain or compressed with gzip.
    if let Some(format) = format.filter(|format| format.as_str() != "DYNAMODB_JSON") {
        return Err(Failure::validation(format!(
            "InputFormat {} is not supported",
            format.as_str()
        )));
    }
    let owned = |text: Option<&Text<'_>>| text.map(|text| text.as_str().to_owned());
    let notes = Notes {
        bucket: owned(name).unwrap_or_default(),
        prefix: owned(prefix),
        client_token: owned(input.client_token.as_ref()),
        compression: owned(compression),
    };
    match compression.map(Text::as_str) {
        None | Some("NONE") => Ok((notes, Compression::None)),
        Some("GZIP") => Ok((notes, Compression::Gzip)),
        Some(other) => Err(Failure::validation(format!(
            "InputCompressionType {other} is not supported"
        ))),
    }
}
