//! ARNs and descriptions of table backups.

use std::sync::Arc;

use homeport_engine::{Engine, TableBackup};
use homeport_item::schema::IndexSchema;
use serde::Serialize;

use super::arn::{self, TablePart};
use super::description::{
    self, DescribedEncryption, DescribedKey, DescribedProjection, DescribedStream, Seconds,
};
use super::settings::{Billing, TableSettings, Throughput};
use crate::constraints::Constraints;
use crate::failure::Failure;
use crate::input::Text;

/// The response of DescribeBackup and DeleteBackup.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct DescribedBackup {
    backup_details: BackupDetails,
    source_table_details: SourceTable,
    source_table_feature_details: SourceFeatures,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct BackupDetails {
    backup_arn: String,
    backup_name: String,
    backup_size_bytes: u64,
    backup_status: &'static str,
    backup_type: &'static str,
    backup_creation_date_time: Seconds,
}

/// A backup in a list.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct BackupSummary {
    table_name: String,
    table_id: String,
    table_arn: String,
    #[serde(flatten)]
    details: BackupDetails,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct SourceTable {
    table_name: String,
    table_id: String,
    table_arn: String,
    table_size_bytes: u64,
    key_schema: Vec<DescribedKey>,
    table_creation_date_time: Seconds,
    provisioned_throughput: Units,
    item_count: u64,
    billing_mode: &'static str,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Units {
    read_capacity_units: i64,
    write_capacity_units: i64,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct SourceFeatures {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    local_secondary_indexes: Vec<SourceIndex>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    global_secondary_indexes: Vec<SourceIndex>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_description: Option<DescribedStream>,
    time_to_live_description: SourceExpiry,
    #[serde(rename = "SSEDescription", skip_serializing_if = "Option::is_none")]
    encryption: Option<DescribedEncryption>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct SourceIndex {
    index_name: String,
    key_schema: Vec<DescribedKey>,
    projection: DescribedProjection,
    #[serde(skip_serializing_if = "Option::is_none")]
    provisioned_throughput: Option<Units>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct SourceExpiry {
    time_to_live_status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    attribute_name: Option<String>,
}

/// The description of a backup without its source table.
pub(crate) fn details(region: &str, backup: &TableBackup, is_deleted: bool) -> BackupDetails {
    BackupDetails {
        backup_arn: arn_of(region, backup),
        backup_name: backup.name.clone(),
        backup_size_bytes: backup.bytes,
        backup_status: match (is_deleted, backup.is_complete) {
            (true, _) => "DELETED",
            (false, true) => "AVAILABLE",
            (false, false) => "CREATING",
        },
        backup_type: "USER",
        backup_creation_date_time: Seconds::from_ms(backup.taken_at_ms),
    }
}

pub(crate) fn summary(region: &str, backup: &TableBackup) -> BackupSummary {
    BackupSummary {
        table_name: backup.schema.name.clone(),
        table_id: description::table_id(backup.table_id, backup.table_created_at_ms),
        table_arn: arn::of_table(region, &backup.schema.name),
        details: details(region, backup, false),
    }
}

pub(crate) fn describe(region: &str, backup: &TableBackup, is_deleted: bool) -> DescribedBackup {
    let settings = TableSettings::read(&backup.settings);
    let schema = &backup.schema;
    let indexes = |local: bool| {
        let chosen = schema.indexes.iter().filter(|index| index.local == local);
        chosen
            .map(|index| source_index(index, &settings))
            .collect::<Vec<_>>()
    };
    DescribedBackup {
        backup_details: details(region, backup, is_deleted),
        source_table_details: SourceTable {
            table_name: schema.name.clone(),
            table_id: description::table_id(backup.table_id, backup.table_created_at_ms),
            table_arn: arn::of_table(region, &schema.name),
            table_size_bytes: backup.item_bytes,
            key_schema: description::key(&schema.key),
            table_creation_date_time: Seconds::from_ms(backup.table_created_at_ms),
            provisioned_throughput: units(settings.throughput),
            item_count: backup.items,
            billing_mode: settings.billing.name(),
        },
        source_table_feature_details: SourceFeatures {
            local_secondary_indexes: indexes(true),
            global_secondary_indexes: indexes(false),
            stream_description: schema.stream.map(DescribedStream::of),
            time_to_live_description: SourceExpiry {
                time_to_live_status: match schema.ttl_attribute {
                    Some(_) => "ENABLED",
                    None => "DISABLED",
                },
                attribute_name: schema.ttl_attribute.clone(),
            },
            encryption: settings
                .encryption
                .map(|encryption| DescribedEncryption::of(region, encryption)),
        },
    }
}

fn source_index(index: &IndexSchema, settings: &TableSettings) -> SourceIndex {
    let throughput = settings.index_throughput.get(&index.name);
    let is_provisioned = !index.local && settings.billing == Billing::Provisioned;
    SourceIndex {
        index_name: index.name.clone(),
        key_schema: description::key(&index.key),
        projection: DescribedProjection::of(&index.projection),
        provisioned_throughput: is_provisioned
            .then(|| units(throughput.copied().unwrap_or_default())),
    }
}

fn units(throughput: Throughput) -> Units {
    Units {
        read_capacity_units: throughput.read,
        write_capacity_units: throughput.write,
    }
}

pub(crate) fn arn_of(region: &str, backup: &TableBackup) -> String {
    arn::of_part(region, &backup.schema.name, TablePart::Backup, &backup.id)
}

/// The backup with the ARN of a request, in any region and account.
pub(crate) fn find(engine: &Engine, given: Option<&Text<'_>>) -> Result<Arc<TableBackup>, Failure> {
    let mut constraints = Constraints::new();
    constraints.not_null("backupArn", given);
    constraints.text_length("backupArn", given, arn::LEN.0, arn::LEN.1);
    constraints.finish()?;
    let given = given.map_or("", Text::as_str);
    let (table, id) = arn::part_of(given, TablePart::Backup).ok_or_else(|| {
        Failure::validation(format!("The provided backupArn is not valid: {given}"))
    })?;
    engine
        .table_backup(id)
        .filter(|backup| backup.schema.name == table)
        .ok_or_else(|| Failure::backup_not_found(given))
}
