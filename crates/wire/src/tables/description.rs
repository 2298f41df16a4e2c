//! Descriptions of tables.

use homeport_engine::{DataSize, IndexState, TableDescription, TableSize};
use homeport_item::KeyKind;
use homeport_item::schema::{IndexProjection, IndexSchema, KeySchema, StreamView};
use jiff::Timestamp;
use serde::Serialize;

use super::arn::{self, TablePart};
use super::settings::{Billing, Encryption, TableSettings, Throughput};
use super::warm_throughput::WarmThroughput;

/// The table description in responses.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Described {
    attribute_definitions: Vec<DescribedAttribute>,
    table_name: String,
    key_schema: Vec<DescribedKey>,
    table_status: &'static str,
    creation_date_time: Seconds,
    provisioned_throughput: DescribedThroughput,
    table_size_bytes: u64,
    item_count: u64,
    table_arn: String,
    table_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    billing_mode_summary: Option<DescribedBilling>,
    #[serde(skip_serializing_if = "Option::is_none")]
    on_demand_throughput: Option<DescribedOnDemand>,
    warm_throughput: DescribedWarm,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    local_secondary_indexes: Vec<DescribedIndex>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    global_secondary_indexes: Vec<DescribedIndex>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_specification: Option<DescribedStream>,
    #[serde(skip_serializing_if = "Option::is_none")]
    latest_stream_label: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    latest_stream_arn: Option<String>,
    #[serde(rename = "SSEDescription", skip_serializing_if = "Option::is_none")]
    encryption: Option<DescribedEncryption>,
    #[serde(skip_serializing_if = "Option::is_none")]
    table_class_summary: Option<DescribedClass>,
    #[serde(skip_serializing_if = "Option::is_none")]
    restore_summary: Option<DescribedRestore>,
    deletion_protection_enabled: bool,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct DescribedRestore {
    #[serde(skip_serializing_if = "Option::is_none")]
    source_backup_arn: Option<String>,
    source_table_arn: String,
    restore_date_time: Seconds,
    restore_in_progress: bool,
}

/// Seconds since the epoch, with a fraction.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Seconds(f64);

impl Seconds {
    pub(crate) fn from_ms(at_ms: i64) -> Self {
        Self(at_ms as f64 / 1000.0)
    }
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct DescribedAttribute {
    attribute_name: String,
    attribute_type: &'static str,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct DescribedKey {
    attribute_name: String,
    key_type: &'static str,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct DescribedThroughput {
    #[serde(skip_serializing_if = "Option::is_none")]
    last_increase_date_time: Option<Seconds>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_decrease_date_time: Option<Seconds>,
    number_of_decreases_today: u32,
    read_capacity_units: i64,
    write_capacity_units: i64,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct DescribedBilling {
    billing_mode: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_update_to_pay_per_request_date_time: Option<Seconds>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct DescribedOnDemand {
    max_read_request_units: i64,
    max_write_request_units: i64,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct DescribedWarm {
    read_units_per_second: i64,
    write_units_per_second: i64,
    status: &'static str,
}

impl DescribedWarm {
    fn of(warm: WarmThroughput) -> Self {
        Self {
            read_units_per_second: warm.read,
            write_units_per_second: warm.write,
            status: "ACTIVE",
        }
    }
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct DescribedIndex {
    index_name: String,
    key_schema: Vec<DescribedKey>,
    projection: DescribedProjection,
    #[serde(skip_serializing_if = "Option::is_none")]
    index_status: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    backfilling: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    provisioned_throughput: Option<DescribedThroughput>,
    #[serde(skip_serializing_if = "Option::is_none")]
    warm_throughput: Option<DescribedWarm>,
    index_size_bytes: u64,
    item_count: u64,
    index_arn: String,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct DescribedProjection {
    projection_type: &'static str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    non_key_attributes: Vec<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct DescribedStream {
    stream_enabled: bool,
    stream_view_type: &'static str,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct DescribedEncryption {
    status: &'static str,
    #[serde(rename = "SSEType")]
    kind: &'static str,
    #[serde(rename = "KMSMasterKeyArn")]
    key: String,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct DescribedClass {
    table_class: String,
}

impl DescribedProjection {
    pub(crate) fn of(projection: &IndexProjection) -> Self {
        let (projection_type, non_key_attributes) = match projection {
            IndexProjection::All => ("ALL", Vec::new()),
            IndexProjection::KeysOnly => ("KEYS_ONLY", Vec::new()),
            IndexProjection::Include(names) => ("INCLUDE", names.clone()),
        };
        Self {
            projection_type,
            non_key_attributes,
        }
    }
}

impl DescribedStream {
    pub(crate) fn of(view: StreamView) -> Self {
        Self {
            stream_enabled: true,
            stream_view_type: view_name(view),
        }
    }
}

impl DescribedEncryption {
    pub(crate) fn of(region: &str, encryption: Encryption) -> Self {
        Self {
            status: "ENABLED",
            kind: "KMS",
            key: arn::of_encryption_key(region, &encryption.key),
        }
    }
}

/// The description of a table.
pub(crate) fn describe(
    region: &str,
    table: &TableDescription,
    extent: &TableSize,
    status: &'static str,
) -> Described {
    let settings = TableSettings::read(&table.settings);
    let schema = &table.schema;
    let index = |local: bool| -> Vec<DescribedIndex> {
        schema
            .indexes
            .iter()
            .enumerate()
            .filter(|(_, index)| index.local == local)
            .map(|(at, index)| {
                let state = table.index_states.get(at).copied();
                let extent = extent.indexes.get(at).copied().unwrap_or_default();
                describe_index(region, &schema.name, index, state, extent, &settings)
            })
            .collect()
    };
    let label = table.stream_at_ms.map(stream_label);
    Described {
        attribute_definitions: attributes(schema),
        table_name: schema.name.clone(),
        key_schema: key(&schema.key),
        table_status: status,
        creation_date_time: Seconds::from_ms(table.created_at_ms),
        provisioned_throughput: describe_throughput(settings.throughput),
        table_size_bytes: extent.table.bytes,
        item_count: extent.table.items,
        table_arn: arn::of_table(region, &schema.name),
        table_id: table_id(table.id, table.created_at_ms),
        billing_mode_summary: billing(&settings),
        on_demand_throughput: settings.on_demand.map(|on_demand| DescribedOnDemand {
            max_read_request_units: on_demand.read_max.unwrap_or(-1),
            max_write_request_units: on_demand.write_max.unwrap_or(-1),
        }),
        warm_throughput: DescribedWarm::of(settings.warm_throughput()),
        local_secondary_indexes: index(true),
        global_secondary_indexes: index(false),
        stream_specification: schema.stream.map(DescribedStream::of),
        latest_stream_arn: label
            .as_ref()
            .map(|label| arn::of_part(region, &schema.name, TablePart::Stream, label)),
        latest_stream_label: label,
        encryption: settings
            .encryption
            .map(|encryption| DescribedEncryption::of(region, encryption)),
        table_class_summary: settings
            .table_class
            .map(|table_class| DescribedClass { table_class }),
        restore_summary: settings.restored.map(|restored| DescribedRestore {
            source_backup_arn: restored.backup_arn,
            source_table_arn: restored.table_arn,
            restore_date_time: Seconds::from_ms(restored.at_ms),
            restore_in_progress: table.is_restoring,
        }),
        deletion_protection_enabled: settings.deletion_protection,
    }
}

fn billing(settings: &TableSettings) -> Option<DescribedBilling> {
    // A table that has always been provisioned has no summary.
    if settings.billing == Billing::Provisioned && settings.pay_per_request_at_ms.is_none() {
        return None;
    }
    Some(DescribedBilling {
        billing_mode: settings.billing.name(),
        last_update_to_pay_per_request_date_time: settings
            .pay_per_request_at_ms
            .map(Seconds::from_ms),
    })
}

fn describe_index(
    region: &str,
    table: &str,
    index: &IndexSchema,
    state: Option<IndexState>,
    extent: DataSize,
    settings: &TableSettings,
) -> DescribedIndex {
    let building = state == Some(IndexState::Building);
    let throughput = settings
        .index_throughput
        .get(&index.name)
        .copied()
        .unwrap_or_default();
    DescribedIndex {
        index_name: index.name.clone(),
        key_schema: key(&index.key),
        projection: DescribedProjection::of(&index.projection),
        index_status: (!index.local).then_some(if building { "CREATING" } else { "ACTIVE" }),
        backfilling: (!index.local && building).then_some(true),
        provisioned_throughput: (!index.local).then(|| describe_throughput(throughput)),
        warm_throughput: (!index.local)
            .then(|| DescribedWarm::of(settings.index_warm_throughput(&index.name))),
        index_size_bytes: extent.bytes,
        item_count: extent.items,
        index_arn: arn::of_index(region, table, &index.name),
    }
}

fn describe_throughput(throughput: Throughput) -> DescribedThroughput {
    DescribedThroughput {
        last_increase_date_time: throughput.increased_at_ms.map(Seconds::from_ms),
        last_decrease_date_time: throughput.decreased_at_ms.map(Seconds::from_ms),
        number_of_decreases_today: 0,
        read_capacity_units: throughput.read,
        write_capacity_units: throughput.write,
    }
}

fn attributes(schema: &homeport_item::schema::TableSchema) -> Vec<DescribedAttribute> {
    let mut seen = std::collections::BTreeMap::new();
    let keys = std::iter::once(&schema.key).chain(schema.indexes.iter().map(|index| &index.key));
    for attribute in keys.flat_map(KeySchema::attributes) {
        seen.insert(attribute.name.clone(), attribute.kind);
    }
    seen.into_iter()
        .map(|(attribute_name, kind)| DescribedAttribute {
            attribute_name,
            attribute_type: match kind {
                KeyKind::S => "S",
                KeyKind::N => "N",
                KeyKind::B => "B",
            },
        })
        .collect()
}

pub(crate) fn key(key: &KeySchema) -> Vec<DescribedKey> {
    let partition = key.partition_attributes().zip(std::iter::repeat("HASH"));
    let sort = key.sort_attributes().zip(std::iter::repeat("RANGE"));
    partition
        .chain(sort)
        .map(|(attribute, key_type)| DescribedKey {
            attribute_name: attribute.name.clone(),
            key_type,
        })
        .collect()
}

pub(crate) fn view_name(view: StreamView) -> &'static str {
    match view {
        StreamView::KeysOnly => "KEYS_ONLY",
        StreamView::NewImage => "NEW_IMAGE",
        StreamView::OldImage => "OLD_IMAGE",
        StreamView::NewAndOldImages => "NEW_AND_OLD_IMAGES",
    }
}

/// The label of a stream: the time at which it was enabled, in ISO 8601 with milliseconds.
pub(crate) fn stream_label(at_ms: i64) -> String {
    let time = Timestamp::from_millisecond(at_ms).unwrap_or(Timestamp::MAX);
    time.strftime("%Y-%m-%dT%H:%M:%S.%3f").to_string()
}

/// A table id in the form of a UUID, unique in this store.
pub(crate) fn table_id(id: u32, created_at_ms: i64) -> String {
    let made = created_at_ms.unsigned_abs();
    format!(
        "{id:08x}-{:04x}-4{:03x}-8{:03x}-{:012x}",
        (made >> 48) & 0xFFFF,
        (made >> 36) & 0xFFF,
        (made >> 24) & 0xFFF,
        made & 0xFFFF_FFFF_FFFF
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stream_label_is_its_time() {
        assert_eq!(stream_label(1_700_000_000_123), "2023-11-14T22:13:20.123");
    }

    #[test]
    fn table_ids_are_unique_uuids() {
        let id = table_id(7, 1_700_000_000_123);
        assert_eq!(id.len(), 36);
        assert_ne!(id, table_id(8, 1_700_000_000_123));
    }
}
