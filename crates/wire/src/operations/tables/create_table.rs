//! CreateTable: creates a table, which is usable at once.

use std::collections::BTreeSet;

use homeport_engine::TableSize;
use homeport_item::schema::{IndexSchema, KeySchema, LOCAL_INDEXES_MAX, TableSchema};
use serde::Deserialize;

use crate::access::{Permission, Request, Resources};
use crate::constraints::Constraints;
use crate::failure::Failure;
use crate::input::{Element, Field, Flag, List, Text};
use crate::output;
use crate::service::Service;
use crate::table_name;
use crate::tables::definition::{
    self, AttributeDefinition, Definitions, EncryptionInput, GLOBAL_INDEXES_MAX, IndexInput,
    KeySchemaElement, OnDemandInput, StreamInput, ThroughputInput,
};
use crate::tables::description;
use crate::tables::settings::{Billing, Encryption, OnDemand, TableSettings};
use crate::tables::tags::{self, Tag};
use crate::tables::warm_throughput::{Subject, WarmInput, WarmThroughput};

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Input<'a> {
    #[serde(borrow)]
    pub(crate) table_name: Option<Text<'a>>,
    #[serde(borrow)]
    attribute_definitions: Option<List<Element<AttributeDefinition<'a>>>>,
    #[serde(borrow)]
    key_schema: Option<List<Element<KeySchemaElement<'a>>>>,
    #[serde(borrow)]
    local_secondary_indexes: Option<List<Element<IndexInput<'a>>>>,
    #[serde(borrow)]
    global_secondary_indexes: Option<List<Element<IndexInput<'a>>>>,
    #[serde(borrow)]
    billing_mode: Option<Text<'a>>,
    provisioned_throughput: Option<Field<ThroughputInput>>,
    on_demand_throughput: Option<Field<OnDemandInput>>,
    warm_throughput: Option<Field<WarmInput>>,
    #[serde(borrow)]
    stream_specification: Option<Field<StreamInput<'a>>>,
    #[serde(rename = "SSESpecification", borrow)]
    encryption: Option<Field<EncryptionInput<'a>>>,
    #[serde(borrow)]
    tags: Option<List<Element<Tag<'a>>>>,
    #[serde(borrow)]
    table_class: Option<Text<'a>>,
    deletion_protection_enabled: Option<Flag>,
}

impl<'a> Request<'a> for Input<'a> {
    fn permissions(&self, resources: &Resources<'_>) -> Vec<Permission> {
        let mut permissions = vec![resources.table(self.table_name.as_ref())];
        permissions.extend(self.tagging(resources));
        permissions
    }
}

impl Input<'_> {
    /// The permission to tag the new table, if the request has tags.
    pub(crate) fn tagging(&self, resources: &Resources<'_>) -> Option<Permission> {
        let table = self.table_name.as_ref();
        self.tags
            .as_ref()
            .map(|_| resources.included_action("TagResource", table))
    }
}

pub(crate) async fn run(service: &Service, input: Input<'_>) -> Result<Vec<u8>, Failure> {
    let now_ms = service.config().clock.now_ms();
    let (schema, settings) = check(&input, now_ms)?;
    let created = service
        .engine()
        .create_table_with(schema, settings.write())
        .await?;
    // DIFFERENCE: a table is active at once; in DynamoDB it is CREATING for some seconds.
    let described = description::describe(
        &service.config().region,
        &created,
        &TableSize::default(),
        "ACTIVE",
    );
    output::single_member("TableDescription", &described)
}

pub(crate) fn check(
    input: &Input<'_>,
    now_ms: i64,
) -> Result<(TableSchema, TableSettings), Failure> {
    let name = table_name::of_new_table(input.table_name.as_ref())?;
    constrain(input)?;
    let mut settings = billing(input, now_ms)?;
    let definitions = Definitions::of(input.attribute_definitions.as_ref());
    if let Some(twice) = definitions.duplicate() {
        return Err(Failure::validation(format!(
            "Attribute Name is duplicated: {twice}"
        )));
    }
    let elements = input
        .key_schema
        .as_ref()
        .ok_or_else(|| Failure::validation("Invalid KeySchema"))?;
    let key = definitions.key(elements, definition::KeyOf::Table)?;
    let has_indexes =
        input.local_secondary_indexes.is_some() || input.global_secondary_indexes.is_some();
    if !has_indexes && definitions.len() != key.attributes().count() {
        return Err(Failure::invalid_values(
            "Number of attributes in KeySchema does not exactly match number of attributes defined in AttributeDefinitions",
        ));
    }
    let indexes = indexes(input, &definitions, &key, &mut settings)?;
    check_all_used(&definitions, &key, &indexes)?;
    let stream = match &input.stream_specification {
        Some(Field(stream)) => check_stream(stream)?,
        None => None,
    };
    if let Some(Field(given)) = &input.encryption {
        settings.encryption = definition::encryption(given)?.map(|key| Encryption { key });
    }
    definition::check_table_class(input.table_class.as_ref())?;
    settings.table_class = input
        .table_class
        .as_ref()
        .map(|class| class.as_str().to_owned());
    settings.deletion_protection = input.deletion_protection_enabled.is_some_and(|flag| flag.0);
    if let Some(given) = &input.tags {
        settings.tags = tags::read(given)?;
        tags::check_count(&settings.tags)?;
    }
    let schema = TableSchema {
        name: name.to_owned(),
        key,
        indexes,
        ttl_attribute: None,
        stream,
    };
    Ok((schema, settings))
}

fn constrain(input: &Input<'_>) -> Result<(), Failure> {
    let mut constraints = Constraints::new();
    let definitions = input.attribute_definitions.as_ref();
    constraints.not_null("attributeDefinitions", definitions);
    definition::constrain_definitions(&mut constraints, definitions);
    definition::constrain_key(
        &mut constraints,
        "keySchema",
        input.key_schema.as_ref(),
        definition::KEY_ATTRIBUTES_MAX,
    );
    let throughput = input.provisioned_throughput.as_ref();
    definition::constrain_billing(&mut constraints, input.billing_mode.as_ref(), throughput);
    for (name, indexes) in [
        ("globalSecondaryIndexes", &input.global_secondary_indexes),
        ("localSecondaryIndexes", &input.local_secondary_indexes),
    ] {
        for (at, Element(index)) in indexes.iter().flat_map(|list| list.0.iter().enumerate()) {
            let path = format!("{name}.{}.member", at + 1);
            definition::constrain_index(&mut constraints, &path, index);
        }
    }
    definition::constrain_stream(&mut constraints, input.stream_specification.as_ref());
    constraints.finish()
}

fn billing(input: &Input<'_>, now_ms: i64) -> Result<TableSettings, Failure> {
    let mut settings = TableSettings::default();
    let on_demand = input.billing_mode.as_ref().map(Text::as_str) == Some("PAY_PER_REQUEST");
    if on_demand {
        if input.provisioned_throughput.is_some() {
            return Err(Failure::invalid_values(
                "Neither ReadCapacityUnits nor WriteCapacityUnits can be specified when BillingMode is PAY_PER_REQUEST",
            ));
        }
        settings.pay_per_request_at_ms = Some(now_ms);
    } else {
        let Some(Field(given)) = &input.provisioned_throughput else {
            return Err(Failure::invalid_values(
                "ReadCapacityUnits and WriteCapacityUnits must both be specified when BillingMode is PROVISIONED",
            ));
        };
        settings.billing = Billing::Provisioned;
        settings.throughput = definition::throughput(given);
        definition::check_units(settings.throughput, None)?;
    }
    if let Some(Field(given)) = &input.on_demand_throughput {
        for (name, units) in [
            ("MaxReadRequestUnits", given.max_read_request_units),
            ("MaxWriteRequestUnits", given.max_write_request_units),
        ] {
            let Some(units) = units else { continue };
            if !on_demand {
                return Err(Failure::invalid_values(format_args!(
                    "{name} for OnDemandThroughput cannot be specified when the table BillingMode is PROVISIONED"
                )));
            }
            if units.0 < 1 && units.0 != -1 {
                return Err(Failure::invalid_values(format_args!(
                    "Requested {name} for OnDemandThroughput for table is outside of valid range"
                )));
            }
        }
        settings.on_demand = Some(OnDemand {
            read_max: given.max_read_request_units.map(|units| units.0),
            write_max: given.max_write_request_units.map(|units| units.0),
        });
    }
    let warm = WarmThroughput::of_new(
        input.warm_throughput.as_ref(),
        settings.billing,
        settings.throughput,
        Subject::Table,
    )?;
    settings.warm = warm.unwrap_or_default();
    Ok(settings)
}

fn indexes(
    input: &Input<'_>,
    definitions: &Definitions<'_>,
    key: &KeySchema,
    settings: &mut TableSettings,
) -> Result<Vec<IndexSchema>, Failure> {
    let mut indexes: Vec<IndexSchema> = Vec::new();
    let mut names = BTreeSet::new();
    let mut add = |index: IndexSchema| {
        if !names.insert(index.name.clone()) {
            return Err(Failure::invalid_values(format_args!(
                "Duplicate index name: {}",
                index.name
            )));
        }
        indexes.push(index);
        Ok(())
    };
    if let Some(List(local)) = &input.local_secondary_indexes {
        if local.is_empty() {
            return Err(Failure::invalid_values(
                "List of LocalSecondaryIndexes is empty",
            ));
        }
        if key.sort.is_none() {
            return Err(Failure::invalid_values(
                "Table KeySchema does not have a range key, which is required when specifying a LocalSecondaryIndex",
            ));
        }
        for Element(given) in local {
            add(definition::index(given, definitions, key, true)?)?;
        }
        if local.len() > LOCAL_INDEXES_MAX {
            return Err(Failure::invalid_values(format_args!(
                "Number of LocalSecondaryIndexes exceeds per-table limit of {LOCAL_INDEXES_MAX}"
            )));
        }
    }
    if let Some(List(global)) = &input.global_secondary_indexes {
        if global.is_empty() {
            return Err(Failure::invalid_values(
                "List of GlobalSecondaryIndexes is empty",
            ));
        }
        for Element(given) in global {
            let index = definition::index(given, definitions, key, false)?;
            index_throughput(given, &index.name, settings)?;
            index_warm_throughput(given, &index.name, settings)?;
            add(index)?;
        }
        if global.len() > GLOBAL_INDEXES_MAX {
            return Err(Failure::invalid_values(format_args!(
                "GlobalSecondaryIndex count exceeds the per-table limit of {GLOBAL_INDEXES_MAX}"
            )));
        }
    }
    definition::check_included(&indexes)?;
    Ok(indexes)
}

fn index_throughput(
    given: &IndexInput<'_>,
    name: &str,
    settings: &mut TableSettings,
) -> Result<(), Failure> {
    match (&given.provisioned_throughput, settings.billing) {
        (Some(_), Billing::PayPerRequest) => Err(Failure::invalid_values(format_args!(
            "ProvisionedThroughput should not be specified for index: {name} when BillingMode is PAY_PER_REQUEST"
        ))),
        (None, Billing::Provisioned) => Err(Failure::invalid_values(format_args!(
            "ProvisionedThroughput is not specified for index: {name}"
        ))),
        (Some(Field(given)), Billing::Provisioned) => {
            let throughput = definition::throughput(given);
            definition::check_units(throughput, Some(name))?;
            settings
                .index_throughput
                .insert(name.to_owned(), throughput);
            Ok(())
        }
        (None, Billing::PayPerRequest) => Ok(()),
    }
}

/// Stores the warm throughput of a new index.
pub(crate) fn index_warm_throughput(
    given: &IndexInput<'_>,
    name: &str,
    settings: &mut TableSettings,
) -> Result<(), Failure> {
    let throughput = settings.index_throughput.get(name).copied();
    let warm = WarmThroughput::of_new(
        given.warm_throughput.as_ref(),
        settings.billing,
        throughput.unwrap_or_default(),
        Subject::Index(name),
    )?;
    if let Some(warm) = warm {
        settings.index_warm.insert(name.to_owned(), warm);
    }
    Ok(())
}

/// Checks that every defined attribute is part of a key.
fn check_all_used(
    definitions: &Definitions<'_>,
    key: &KeySchema,
    indexes: &[IndexSchema],
) -> Result<(), Failure> {
    let keys = || std::iter::once(key).chain(indexes.iter().map(|index| &index.key));
    if definitions
        .names()
        .all(|name| keys().any(|key| key.has(name)))
    {
        return Ok(());
    }
    let mut used: Vec<&str> = Vec::new();
    for attribute in keys().flat_map(KeySchema::attributes) {
        if !used.contains(&attribute.name.as_str()) {
            used.push(&attribute.name);
        }
    }
    let defined: Vec<&str> = definitions.names().collect();
    Err(Failure::invalid_values(format_args!(
        "Some AttributeDefinitions are not used. AttributeDefinitions: [{}], keys used: [{}]",
        defined.join(", "),
        used.join(", ")
    )))
}

fn check_stream(
    given: &StreamInput<'_>,
) -> Result<Option<homeport_item::schema::StreamView>, Failure> {
    let enabled = given.stream_enabled.is_some_and(|flag| flag.0);
    match (&given.stream_view_type, enabled) {
        (Some(view), true) => Ok(Some(definition::stream_view(view.as_str()))),
        (None, true) => Err(Failure::invalid_values(
            "Table is being created with a stream enabled, UpdateViewType is required",
        )),
        (Some(_), false) => Err(Failure::invalid_values(
            "Table is being created with a stream disabled, UpdateViewType should not be specified",
        )),
        (None, false) => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input;

    fn with(changes: &str) -> String {
        let base = r#""TableName":"abc","BillingMode":"PAY_PER_REQUEST","AttributeDefinitions":[{"AttributeName":"a","AttributeType":"S"}],"KeySchema":[{"AttributeName":"a","KeyType":"HASH"}]"#;
        format!("{{{base}{changes}}}")
    }

    #[test]
    fn too_many_indexes_are_rejected() {
        let count = 50_000;
        let definitions: Vec<String> = (0..count)
            .map(|at| format!(r#"{{"AttributeName":"a{at}","AttributeType":"S"}}"#))
            .collect();
        let indexes: Vec<String> = (0..count)
            .map(|at| format!(r#"{{"IndexName":"ggg{at}","KeySchema":[{{"AttributeName":"a{at}","KeyType":"HASH"}}],"Projection":{{"ProjectionType":"ALL"}}}}"#))
            .collect();
        let body = format!(
            r#"{{"TableName":"abc","BillingMode":"PAY_PER_REQUEST","AttributeDefinitions":[{}],"KeySchema":[{{"AttributeName":"a0","KeyType":"HASH"}}],"GlobalSecondaryIndexes":[{}]}}"#,
            definitions.join(","),
            indexes.join(",")
        );
        assert_eq!(
            refused(&body),
            "One or more parameter values were invalid: GlobalSecondaryIndex count exceeds the per-table limit of 20"
        );
    }

    #[track_caller]
    fn refused(body: &str) -> String {
        let input: Input<'_> = input::read(body.as_bytes()).expect("well-formed");
        let failure = check(&input, 0).expect_err(body);
        failure.text().unwrap_or_default().to_owned()
    }

    #[test]
    fn invalid_requests_get_dynamodb_errors() {
        for (body, text) in [
            ("{}".to_owned(), "The parameter 'TableName' is required but was not present in the request"),
            (r#"{"TableName":"ab"}"#.to_owned(), "1 validation error detected: Value 'ab' at 'tableName' failed to satisfy constraint: Member must have length greater than or equal to 3"),
            (r#"{"TableName":"abc"}"#.to_owned(), "2 validation errors detected: Value null at 'attributeDefinitions' failed to satisfy constraint: Member must not be null; Value null at 'keySchema' failed to satisfy constraint: Member must not be null"),
            (r#"{"TableName":"abc","AttributeDefinitions":[],"KeySchema":[{"AttributeName":"a","KeyType":"HASH"}]}"#.to_owned(), "One or more parameter values were invalid: ReadCapacityUnits and WriteCapacityUnits must both be specified when BillingMode is PROVISIONED"),
            (r#"{"TableName":"abc","BillingMode":"PAY_PER_REQUEST","AttributeDefinitions":[],"KeySchema":[{"AttributeName":"a","KeyType":"HASH"}]}"#.to_owned(), "Invalid KeySchema: Some index key attribute have no definition"),
            (r#"{"TableName":"abc","BillingMode":"PAY_PER_REQUEST","AttributeDefinitions":[{"AttributeName":"a","AttributeType":"S"}],"KeySchema":[{"AttributeName":"a","KeyType":"RANGE"}]}"#.to_owned(), "Invalid KeySchema: The first KeySchemaElement is not a HASH key type"),
            (with(r#","ProvisionedThroughput":{"ReadCapacityUnits":1,"WriteCapacityUnits":1}"#), "One or more parameter values were invalid: Neither ReadCapacityUnits nor WriteCapacityUnits can be specified when BillingMode is PAY_PER_REQUEST"),
            (with(r#","ProvisionedThroughput":{"ReadCapacityUnits":0}"#), "2 validation errors detected: Value null at 'provisionedThroughput.writeCapacityUnits' failed to satisfy constraint: Member must not be null; Value '0' at 'provisionedThroughput.readCapacityUnits' failed to satisfy constraint: Member must have value greater than or equal to 1"),
            (with(r#","GlobalSecondaryIndexes":[]"#), "One or more parameter values were invalid: List of GlobalSecondaryIndexes is empty"),
            (with(r#","LocalSecondaryIndexes":[{"IndexName":"iii","KeySchema":[{"AttributeName":"a","KeyType":"HASH"}],"Projection":{"ProjectionType":"ALL"}}]"#), "One or more parameter values were invalid: Table KeySchema does not have a range key, which is required when specifying a LocalSecondaryIndex"),
            (with(r#","GlobalSecondaryIndexes":[{"IndexName":"iii","KeySchema":[{"AttributeName":"a","KeyType":"HASH"}],"Projection":{}}]"#), "One or more parameter values were invalid: Unknown ProjectionType: null"),
            (with(r#","GlobalSecondaryIndexes":[{"IndexName":"iii","KeySchema":[{"AttributeName":"a","KeyType":"HASH"}],"Projection":{"ProjectionType":"ALL","NonKeyAttributes":["x"]}}]"#), "One or more parameter values were invalid: ProjectionType is ALL, but NonKeyAttributes is specified"),
            (with(r#","StreamSpecification":{"StreamEnabled":true}"#), "One or more parameter values were invalid: Table is being created with a stream enabled, UpdateViewType is required"),
            (with(r#","TableClass":"CHEAP""#), "Invalid table-class parameter provided. Please try again with a valid table-class value: [STANDARD, STANDARD_INFREQUENT_ACCESS]."),
        ] {
            assert_eq!(refused(&body), text, "{body}");
        }
    }

    #[test]
    fn complete_request_is_read() {
        let body = r#"{"TableName":"abc","AttributeDefinitions":[{"AttributeName":"a","AttributeType":"S"},{"AttributeName":"b","AttributeType":"N"}],
            "KeySchema":[{"AttributeName":"a","KeyType":"HASH"},{"AttributeName":"b","KeyType":"RANGE"}],
            "ProvisionedThroughput":{"ReadCapacityUnits":5,"WriteCapacityUnits":6},
            "GlobalSecondaryIndexes":[{"IndexName":"by-b","KeySchema":[{"AttributeName":"b","KeyType":"HASH"}],"Projection":{"ProjectionType":"KEYS_ONLY"},"ProvisionedThroughput":{"ReadCapacityUnits":1,"WriteCapacityUnits":1}}],
            "StreamSpecification":{"StreamEnabled":true,"StreamViewType":"NEW_IMAGE"},"DeletionProtectionEnabled":true,"Tags":[{"Key":"k","Value":"v"}]}"#;
        let input: Input<'_> = input::read(body.as_bytes()).expect("well-formed");
        let (schema, settings) = check(&input, 7).expect("valid");
        assert!(schema.check().is_ok());
        assert_eq!(schema.indexes.len(), 1);
        assert_eq!(settings.throughput.write, 6);
        assert_eq!(
            schema.stream,
            Some(homeport_item::schema::StreamView::NewImage)
        );
        assert!(settings.deletion_protection);
        assert_eq!(settings.tags["k"], "v");
    }
}
