//! Backups, recovery, exports and imports.

use aws_sdk_dynamodb::operation::describe_backup::DescribeBackupError;
use aws_sdk_dynamodb::operation::export_table_to_point_in_time::ExportTableToPointInTimeError;
use aws_sdk_dynamodb::operation::restore_table_from_backup::RestoreTableFromBackupError;
use aws_sdk_dynamodb::primitives::DateTime;
use aws_sdk_dynamodb::types::{
    BackupStatus, BackupType, BillingMode, ContinuousBackupsStatus, ExportFormat, ExportStatus,
    ImportStatus, InputCompressionType, InputFormat, KeyType, PointInTimeRecoverySpecification,
    PointInTimeRecoveryStatus, S3BucketSource, ScalarAttributeType, TableCreationParameters,
};

use crate::sdk::{BUCKET, Sdk, definition, element, within};

pub(crate) async fn check_backups(sdk: &Sdk) {
    sdk.create("backed-up").await;
    sdk.put("backed-up", "a").await;
    let made = sdk.tables.create_backup().table_name("backed-up");
    let made = made.backup_name("one").send().await.expect("a backup");
    let made = made.backup_details.expect("details");
    assert_eq!(made.backup_name, "one");
    assert_eq!(made.backup_type, BackupType::User);
    let arn = made.backup_arn;
    let described = within(async || {
        let described = sdk.tables.describe_backup().backup_arn(&arn).send().await;
        let described = described.expect("an answer").backup_description;
        let described = described.expect("a description");
        let details = described.backup_details.as_ref().expect("details");
        (details.backup_status == BackupStatus::Available).then(|| described.clone())
    })
    .await;
    let source = described.source_table_details.expect("a table");
    assert_eq!(source.table_name, "backed-up");
    sdk.put("backed-up", "b").await;
    let listed = sdk.tables.list_backups().table_name("backed-up");
    let listed = listed.send().await.expect("a list");
    assert_eq!(listed.backup_summaries().len(), 1);
    assert_eq!(
        listed.backup_summaries()[0].backup_arn(),
        Some(arn.as_str())
    );
    let restore = sdk
        .tables
        .restore_table_from_backup()
        .backup_arn(&arn)
        .target_table_name("from-backup");
    let restored = restore.clone().send().await.expect("begun");
    let restored = restored.table_description.expect("a description");
    let summary = restored.restore_summary.expect("a summary");
    assert_eq!(summary.source_backup_arn(), Some(arn.as_str()));
    sdk.is_active("from-backup").await;
    assert_eq!(sdk.count("from-backup").await, 1);
    let again = restore.send().await.expect_err("it is there");
    assert!(matches!(
        again.into_service_error(),
        RestoreTableFromBackupError::TableAlreadyExistsException(_)
    ));
    let deleted = sdk.tables.delete_backup().backup_arn(&arn).send().await;
    let deleted = deleted.expect("gone").backup_description;
    let deleted = deleted.and_then(|deleted| deleted.backup_details);
    assert_eq!(
        deleted.expect("details").backup_status,
        BackupStatus::Deleted
    );
    let gone = sdk.tables.describe_backup().backup_arn(&arn).send().await;
    assert!(matches!(
        gone.expect_err("gone").into_service_error(),
        DescribeBackupError::BackupNotFoundException(_)
    ));
}

async fn switch_recovery_on(sdk: &Sdk, table: &str) {
    let specification = PointInTimeRecoverySpecification::builder()
        .point_in_time_recovery_enabled(true)
        .build()
        .expect("complete");
    let on = sdk
        .tables
        .update_continuous_backups()
        .table_name(table)
        .point_in_time_recovery_specification(specification);
    let on = on.send().await.expect("on").continuous_backups_description;
    let on = on.expect("a description");
    assert_eq!(
        on.continuous_backups_status,
        ContinuousBackupsStatus::Enabled
    );
}

pub(crate) async fn check_recovery(sdk: &Sdk) {
    sdk.create("remembered").await;
    switch_recovery_on(sdk, "remembered").await;
    sdk.put("remembered", "a").await;
    let written = DateTime::from(std::time::SystemTime::now());
    // Restores have a resolution of one second, so the second of the write must pass.
    let described = within(async || {
        let described = sdk.tables.describe_continuous_backups();
        let described = described.table_name("remembered").send().await;
        described
            .expect("an answer")
            .continuous_backups_description
            .and_then(|described| described.point_in_time_recovery_description)
            .filter(|described| described.latest_restorable_date_time > Some(written))
    })
    .await;
    assert_eq!(
        described.point_in_time_recovery_status,
        Some(PointInTimeRecoveryStatus::Enabled)
    );
    assert!(described.earliest_restorable_date_time.is_some());
    let restored = sdk
        .tables
        .restore_table_to_point_in_time()
        .source_table_name("remembered")
        .target_table_name("recovered")
        .use_latest_restorable_time(true)
        .send()
        .await
        .expect("begun");
    let restored = restored.table_description.expect("a description");
    assert_eq!(restored.table_name(), Some("recovered"));
    let summary = restored.restore_summary.expect("a summary");
    assert!(summary.source_table_arn().is_some());
    sdk.is_active("recovered").await;
    assert_eq!(sdk.count("recovered").await, 1);
}

pub(crate) async fn check_transfers(sdk: &Sdk) {
    let arn = sdk.create("leaving").await.table_arn.expect("an ARN");
    let refused = sdk.tables.export_table_to_point_in_time();
    let refused = refused.table_arn(&arn).s3_bucket(BUCKET).send().await;
    assert!(matches!(
        refused.expect_err("no recovery").into_service_error(),
        ExportTableToPointInTimeError::PointInTimeRecoveryUnavailableException(_)
    ));
    switch_recovery_on(sdk, "leaving").await;
    sdk.put("leaving", "a").await;
    let begun = sdk
        .tables
        .export_table_to_point_in_time()
        .table_arn(&arn)
        .s3_bucket(BUCKET)
        .s3_prefix("sdk")
        .export_format(ExportFormat::DynamodbJson)
        .send()
        .await
        .expect("begun");
    let begun = begun.export_description.expect("a description");
    let export = begun.export_arn.expect("an ARN");
    let ended = within(async || {
        let described = sdk
            .tables
            .describe_export()
            .export_arn(&export)
            .send()
            .await;
        let described = described.expect("an answer").export_description;
        let described = described.expect("a description");
        (described.export_status != Some(ExportStatus::InProgress)).then_some(described)
    })
    .await;
    assert_eq!(ended.export_status, Some(ExportStatus::Completed));
    assert_eq!(ended.item_count, Some(1));
    assert!(ended.export_manifest().is_some());
    let listed = sdk.tables.list_exports().table_arn(&arn).send().await;
    let listed = listed.expect("a list");
    assert_eq!(listed.export_summaries().len(), 1);
    assert_eq!(
        listed.export_summaries()[0].export_arn(),
        Some(export.as_str())
    );
    let source = S3BucketSource::builder().s3_bucket(BUCKET);
    let source = source.s3_key_prefix("sdk/").build().expect("complete");
    let table = TableCreationParameters::builder()
        .table_name("arriving")
        .attribute_definitions(definition("id", ScalarAttributeType::S))
        .key_schema(element("id", KeyType::Hash))
        .billing_mode(BillingMode::PayPerRequest)
        .build()
        .expect("complete");
    let begun = sdk
        .tables
        .import_table()
        .s3_bucket_source(source)
        .input_format(InputFormat::DynamodbJson)
        .input_compression_type(InputCompressionType::Gzip)
        .table_creation_parameters(table)
        .send()
        .await
        .expect("begun");
    let begun = begun.import_table_description.expect("a description");
    let import = begun.import_arn.expect("an ARN");
    let ended = within(async || {
        let described = sdk
            .tables
            .describe_import()
            .import_arn(&import)
            .send()
            .await;
        let described = described.expect("an answer").import_table_description;
        let described = described.expect("a description");
        (described.import_status != Some(ImportStatus::InProgress)).then_some(described)
    })
    .await;
    assert_eq!(ended.import_status, Some(ImportStatus::Completed));
    assert_eq!((ended.imported_item_count, ended.error_count), (1, 0));
    let listed = sdk.tables.list_imports().send().await.expect("a list");
    let summaries = listed.import_summary_list();
    assert_eq!(summaries.len(), 1);
    assert_eq!(summaries[0].import_arn(), Some(import.as_str()));
    assert_eq!(sdk.count("arriving").await, 1);
}
