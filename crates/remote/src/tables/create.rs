//! Creates tables, and converts schemas to the SDK's types.

use std::collections::BTreeMap;

use aws_sdk_dynamodb::operation::create_table::builders::CreateTableFluentBuilder;
use aws_sdk_dynamodb::types::{
    AttributeDefinition, BillingMode, GlobalSecondaryIndex, KeySchemaElement, KeyType,
    LocalSecondaryIndex, Projection, ProjectionType, ScalarAttributeType, SseSpecification,
    SseType, StreamSpecification, StreamViewType, Tag,
};
use homeport_item::KeyKind;
use homeport_item::schema::{
    IndexProjection, IndexSchema, KeyAttribute, KeySchema, StreamView, TableSchema,
};
use homeport_store::StoreError;

use crate::connect::Remote;
use crate::convert::failure::Failure;
use crate::read::items::incomplete;

impl Remote {
    /// Creates a table with all settings that the request supports. Succeeds if another process has
    /// just created it.
    pub(crate) async fn create(&self, schema: &TableSchema) -> Result<(), StoreError> {
        let stream = schema.stream.or(self.options.stream);
        let mut request = self
            .create_request(schema)?
            .billing_mode(BillingMode::PayPerRequest)
            .set_stream_specification(stream.map(stream_specification).transpose()?)
            .set_sse_specification(self.encryption())
            .set_tags(tags(&self.options.tags)?);
        if self.options.deletion_protection {
            request = request.deletion_protection_enabled(true);
        }
        for index in &schema.indexes {
            request = if index.local {
                request.local_secondary_indexes(local_index(index)?)
            } else {
                request.global_secondary_indexes(global_index(index)?)
            };
        }
        match request.send().await.map_err(Failure::from) {
            Ok(_) | Err(Failure::InUse) => Ok(()),
            Err(failure) => Err(failure.of_table(&schema.name)),
        }
    }

    /// A request that creates a table, with its keys.
    pub(crate) fn create_request(
        &self,
        schema: &TableSchema,
    ) -> Result<CreateTableFluentBuilder, StoreError> {
        let request = self.client.create_table().table_name(&schema.name);
        Ok(request
            .set_key_schema(Some(key_schema(&schema.key)?))
            .set_attribute_definitions(Some(attribute_definitions(schema)?)))
    }

    /// The encryption of new tables, if it is not DynamoDB's default.
    pub(crate) fn encryption(&self) -> Option<SseSpecification> {
        self.options.kms_key_id.as_ref().map(|key| {
            SseSpecification::builder()
                .enabled(true)
                .sse_type(SseType::Kms)
                .kms_master_key_id(key)
                .build()
        })
    }
}

pub(crate) fn key_schema(key: &KeySchema) -> Result<Vec<KeySchemaElement>, StoreError> {
    let partition = key
        .partition_attributes()
        .zip(std::iter::repeat(KeyType::Hash));
    let sort = key.sort_attributes().zip(std::iter::repeat(KeyType::Range));
    partition
        .chain(sort)
        .map(|(attribute, key_type)| {
            KeySchemaElement::builder()
                .attribute_name(&attribute.name)
                .key_type(key_type)
                .build()
                .map_err(incomplete)
        })
        .collect()
}

/// All key attributes, without duplicates.
pub(crate) fn attribute_definitions(
    schema: &TableSchema,
) -> Result<Vec<AttributeDefinition>, StoreError> {
    let keys = std::iter::once(&schema.key).chain(schema.indexes.iter().map(|index| &index.key));
    let attributes: BTreeMap<_, _> = keys
        .flat_map(KeySchema::attributes)
        .map(|attribute| (&attribute.name, attribute))
        .collect();
    attributes.into_values().map(attribute_definition).collect()
}

fn attribute_definition(attribute: &KeyAttribute) -> Result<AttributeDefinition, StoreError> {
    let kind = match attribute.kind {
        KeyKind::S => ScalarAttributeType::S,
        KeyKind::N => ScalarAttributeType::N,
        KeyKind::B => ScalarAttributeType::B,
    };
    AttributeDefinition::builder()
        .attribute_name(&attribute.name)
        .attribute_type(kind)
        .build()
        .map_err(incomplete)
}

/// The attribute definitions for a new index: its own and the table's.
pub(crate) fn definitions_with(
    schema: &TableSchema,
    index: &IndexSchema,
) -> Result<Vec<AttributeDefinition>, StoreError> {
    let mut with_index = TableSchema::new(&schema.name, "", KeyKind::S);
    with_index.key = schema.key.clone();
    with_index.indexes = vec![index.clone()];
    attribute_definitions(&with_index)
}

fn projection(index: &IndexSchema) -> Projection {
    let projection = Projection::builder();
    match &index.projection {
        IndexProjection::KeysOnly => projection.projection_type(ProjectionType::KeysOnly),
        IndexProjection::All => projection.projection_type(ProjectionType::All),
        IndexProjection::Include(names) => projection
            .projection_type(ProjectionType::Include)
            .set_non_key_attributes(Some(names.clone())),
    }
    .build()
}

pub(crate) fn global_index(index: &IndexSchema) -> Result<GlobalSecondaryIndex, StoreError> {
    GlobalSecondaryIndex::builder()
        .index_name(&index.name)
        .set_key_schema(Some(key_schema(&index.key)?))
        .projection(projection(index))
        .build()
        .map_err(incomplete)
}

pub(crate) fn local_index(index: &IndexSchema) -> Result<LocalSecondaryIndex, StoreError> {
    LocalSecondaryIndex::builder()
        .index_name(&index.name)
        .set_key_schema(Some(key_schema(&index.key)?))
        .projection(projection(index))
        .build()
        .map_err(incomplete)
}

pub(crate) fn stream_specification(view: StreamView) -> Result<StreamSpecification, StoreError> {
    let view = match view {
        StreamView::KeysOnly => StreamViewType::KeysOnly,
        StreamView::NewImage => StreamViewType::NewImage,
        StreamView::OldImage => StreamViewType::OldImage,
        StreamView::NewAndOldImages => StreamViewType::NewAndOldImages,
    };
    StreamSpecification::builder()
        .stream_enabled(true)
        .stream_view_type(view)
        .build()
        .map_err(incomplete)
}

/// `None` if there are no tags, because DynamoDB rejects an empty list.
pub(crate) fn tags(tags: &BTreeMap<String, String>) -> Result<Option<Vec<Tag>>, StoreError> {
    let tag = |(key, value): (&String, &String)| Tag::builder().key(key).value(value).build();
    let tags: Vec<_> = tags
        .iter()
        .map(tag)
        .collect::<Result<_, _>>()
        .map_err(incomplete)?;
    Ok((!tags.is_empty()).then_some(tags))
}
