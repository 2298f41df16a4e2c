//! Lists and describes tables.

use std::collections::BTreeMap;

use aws_sdk_dynamodb::types::{
    self, AttributeDefinition, IndexStatus, KeySchemaElement, KeyType, PointInTimeRecoveryStatus,
    Projection, ProjectionType, ScalarAttributeType, StreamViewType, TimeToLiveStatus,
};
use homeport_item::KeyKind;
use homeport_item::schema::{
    IndexProjection, IndexSchema, KeyAttribute, KeySchema, StreamView, TableSchema,
};
use homeport_store::StoreError;

use crate::connect::Remote;
use crate::convert::failure::Failure;
use crate::convert::value::unreadable;

/// Maximum number of pages of tags per table; DynamoDB allows 50 tags.
const TAG_PAGES_MAX: usize = 10;

/// The description of an existing table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableDescription {
    /// Keys, indexes, time to live and stream.
    pub schema: TableSchema,
    pub status: TableStatus,
    /// The indexes that are still being created.
    pub indexes_filling: Vec<String>,
    /// An estimate that DynamoDB updates every few hours.
    pub item_count: u64,
    /// An estimate that DynamoDB updates every few hours.
    pub size_bytes: u64,
    pub arn: String,
    pub point_in_time_recovery: bool,
    /// The ARN of the KMS key of the table, if it is not DynamoDB's own.
    pub kms_key_arn: Option<String>,
    pub deletion_protection: bool,
    pub tags: BTreeMap<String, String>,
}

/// The status of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableStatus {
    Creating,
    Updating,
    Active,
    Deleting,
    /// Archived, or without access to its encryption key: an operator has to act.
    Unusable,
}

impl Remote {
    /// Describes a table; `None` if it does not exist.
    ///
    /// # Errors
    /// When DynamoDB is unavailable or its response is invalid.
    pub async fn describe(&self, table: &str) -> Result<Option<TableDescription>, StoreError> {
        let Some(described) = self.described(table).await? else {
            return Ok(None);
        };
        let mut schema = schema_of(&described)?;
        schema.ttl_attribute = self.time_to_live(table).await?;
        let arn = described.table_arn.clone().unwrap_or_default();
        let unsigned = |number: Option<i64>| number.and_then(|n| u64::try_from(n).ok());
        let encryption = described.sse_description.as_ref();
        Ok(Some(TableDescription {
            status: status(&described),
            indexes_filling: indexes_filling(&described),
            item_count: unsigned(described.item_count).unwrap_or(0),
            size_bytes: unsigned(described.table_size_bytes).unwrap_or(0),
            point_in_time_recovery: self.point_in_time_recovery(table).await?,
            kms_key_arn: encryption.and_then(|encryption| encryption.kms_master_key_arn.clone()),
            deletion_protection: described.deletion_protection_enabled.unwrap_or(false),
            tags: self.tags(&arn).await?,
            arn,
            schema,
        }))
    }

    /// The schema of a table, including its time to live; `None` if the table does not exist.
    pub(crate) async fn schema(&self, table: &str) -> Result<Option<TableSchema>, StoreError> {
        let Some(described) = self.described(table).await? else {
            return Ok(None);
        };
        let mut schema = schema_of(&described)?;
        schema.ttl_attribute = self.time_to_live(table).await?;
        Ok(Some(schema))
    }

    pub(crate) async fn described(
        &self,
        table: &str,
    ) -> Result<Option<types::TableDescription>, StoreError> {
        let answer = self.client.describe_table().table_name(table).send().await;
        match answer.map_err(Failure::from) {
            Ok(answer) => {
                let described = answer
                    .table
                    .ok_or_else(|| unreadable("the table is missing"))?;
                Ok(Some(described))
            }
            Err(Failure::NotFound) => Ok(None),
            Err(failure) => Err(failure.of_table(table)),
        }
    }

    /// The time-to-live attribute, if time to live is enabled or being enabled.
    pub(crate) async fn time_to_live(&self, table: &str) -> Result<Option<String>, StoreError> {
        let request = self.client.describe_time_to_live().table_name(table);
        let answer = request.send().await.map_err(Failure::from);
        let answer = answer.map_err(|failure| failure.of_table(table))?;
        Ok(answer.time_to_live_description.and_then(|described| {
            match described.time_to_live_status {
                Some(TimeToLiveStatus::Enabled | TimeToLiveStatus::Enabling) => {
                    described.attribute_name
                }
                _ => None,
            }
        }))
    }

    pub(crate) async fn point_in_time_recovery(&self, table: &str) -> Result<bool, StoreError> {
        let request = self.client.describe_continuous_backups().table_name(table);
        let answer = match request.send().await.map_err(Failure::from) {
            Ok(answer) => answer,
            // A compatible service without this operation has no point-in-time recovery.
            Err(failure) if failure.is_unknown_operation() => return Ok(false),
            Err(failure) => return Err(failure.of_table(table)),
        };
        let status = answer
            .continuous_backups_description
            .and_then(|described| described.point_in_time_recovery_description)
            .and_then(|described| described.point_in_time_recovery_status);
        Ok(status == Some(PointInTimeRecoveryStatus::Enabled))
    }

    pub(crate) async fn tags(&self, arn: &str) -> Result<BTreeMap<String, String>, StoreError> {
        let mut tags = BTreeMap::new();
        let mut next = None;
        for _ in 0..TAG_PAGES_MAX {
            let request = self.client.list_tags_of_resource().resource_arn(arn);
            let answer = request.set_next_token(next.take()).send().await;
            let answer = answer.map_err(|error| Failure::from(error).of_table(arn))?;
            let page = answer.tags.unwrap_or_default();
            tags.extend(page.into_iter().map(|tag| (tag.key, tag.value)));
            next = answer.next_token;
            if next.is_none() {
                break;
            }
        }
        Ok(tags)
    }
}

pub(crate) fn status(described: &types::TableDescription) -> TableStatus {
    match described.table_status {
        Some(types::TableStatus::Active) => TableStatus::Active,
        Some(types::TableStatus::Creating) => TableStatus::Creating,
        Some(types::TableStatus::Updating) => TableStatus::Updating,
        Some(types::TableStatus::Deleting) => TableStatus::Deleting,
        _ => TableStatus::Unusable,
    }
}

/// The indexes that are still being created. Local indexes are always usable.
pub(crate) fn indexes_filling(described: &types::TableDescription) -> Vec<String> {
    let usable = [Some(IndexStatus::Active), Some(IndexStatus::Updating)];
    described
        .global_secondary_indexes()
        .iter()
        .filter(|index| !usable.contains(&index.index_status))
        .filter_map(|index| index.index_name.clone())
        .collect()
}

/// Converts a description to a schema without time to live, which needs a separate request.
pub(crate) fn schema_of(described: &types::TableDescription) -> Result<TableSchema, StoreError> {
    let definitions = described.attribute_definitions();
    let key = |elements: &[KeySchemaElement]| key_of(elements, definitions);
    let mut indexes = Vec::new();
    for index in described.global_secondary_indexes() {
        indexes.push(IndexSchema {
            name: index.index_name.clone().unwrap_or_default(),
            key: key(index.key_schema())?,
            projection: projection_of(index.projection.as_ref())?,
            local: false,
        });
    }
    for index in described.local_secondary_indexes() {
        indexes.push(IndexSchema {
            name: index.index_name.clone().unwrap_or_default(),
            key: key(index.key_schema())?,
            projection: projection_of(index.projection.as_ref())?,
            local: true,
        });
    }
    let stream = described.stream_specification.as_ref();
    let stream = stream.filter(|stream| stream.stream_enabled);
    Ok(TableSchema {
        name: described.table_name.clone().unwrap_or_default(),
        key: key(described.key_schema())?,
        indexes,
        ttl_attribute: None,
        stream: stream.and_then(|stream| match stream.stream_view_type {
            Some(StreamViewType::KeysOnly) => Some(StreamView::KeysOnly),
            Some(StreamViewType::NewImage) => Some(StreamView::NewImage),
            Some(StreamViewType::OldImage) => Some(StreamView::OldImage),
            Some(StreamViewType::NewAndOldImages) => Some(StreamView::NewAndOldImages),
            _ => None,
        }),
    })
}

fn key_of(
    elements: &[KeySchemaElement],
    definitions: &[AttributeDefinition],
) -> Result<KeySchema, StoreError> {
    let attributes = |key_type: KeyType| {
        elements
            .iter()
            .filter(move |element| element.key_type == key_type)
            .map(|element| attribute_of(&element.attribute_name, definitions))
            .collect::<Result<Vec<_>, _>>()
    };
    KeySchema::from_attributes(attributes(KeyType::Hash)?, attributes(KeyType::Range)?)
        .ok_or_else(|| unreadable("a key has no partition key"))
}

fn attribute_of(
    name: &str,
    definitions: &[AttributeDefinition],
) -> Result<KeyAttribute, StoreError> {
    let definition = definitions
        .iter()
        .find(|known| known.attribute_name == name);
    let kind = match definition.map(|definition| &definition.attribute_type) {
        Some(ScalarAttributeType::S) => KeyKind::S,
        Some(ScalarAttributeType::N) => KeyKind::N,
        Some(ScalarAttributeType::B) => KeyKind::B,
        _ => return Err(unreadable(format!("key attribute {name:?} has no type"))),
    };
    Ok(KeyAttribute::new(name, kind))
}

fn projection_of(projection: Option<&Projection>) -> Result<IndexProjection, StoreError> {
    let kind = projection.and_then(|projection| projection.projection_type.clone());
    match (kind, projection) {
        (Some(ProjectionType::KeysOnly), _) => Ok(IndexProjection::KeysOnly),
        (Some(ProjectionType::All), _) => Ok(IndexProjection::All),
        (Some(ProjectionType::Include), Some(projection)) => Ok(IndexProjection::Include(
            projection.non_key_attributes().to_vec(),
        )),
        _ => Err(unreadable("an index has no projection")),
    }
}
