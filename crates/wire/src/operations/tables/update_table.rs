//! UpdateTable: changes throughput, billing, global indexes, stream, encryption, deletion protection or class.

use std::collections::BTreeSet;

use homeport_engine::{Engine, TableDescription};
use homeport_item::KeyKind;
use homeport_item::schema::{IndexSchema, StreamView, TableSchema};
use serde::Deserialize;

use super::create_table::index_warm_throughput;
use crate::access::one_resource;
use crate::constraints::Constraints;
use crate::failure::Failure;
use crate::input::{Element, Field, Flag, List, Named, Text};
use crate::output;
use crate::service::Service;
use crate::table_name;
use crate::tables::definition::{
    self, AttributeDefinition, Definitions, EncryptionInput, GLOBAL_INDEXES_MAX, IndexInput,
    OnDemandInput, StreamInput, ThroughputInput,
};
use crate::tables::settings::{Billing, Encryption, OnDemand, TableSettings, Throughput};
use crate::tables::warm_throughput::{Subject, WarmInput};

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Input<'a> {
    #[serde(borrow)]
    table_name: Option<Text<'a>>,
    #[serde(borrow)]
    attribute_definitions: Option<List<Element<AttributeDefinition<'a>>>>,
    #[serde(borrow)]
    billing_mode: Option<Text<'a>>,
    provisioned_throughput: Option<Field<ThroughputInput>>,
    on_demand_throughput: Option<Field<OnDemandInput>>,
    warm_throughput: Option<Field<WarmInput>>,
    #[serde(borrow)]
    global_secondary_index_updates: Option<List<Element<IndexUpdate<'a>>>>,
    #[serde(borrow)]
    stream_specification: Option<Field<StreamInput<'a>>>,
    #[serde(rename = "SSESpecification", borrow)]
    encryption: Option<Field<EncryptionInput<'a>>>,
    #[serde(borrow)]
    table_class: Option<Text<'a>>,
    deletion_protection_enabled: Option<Flag>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct IndexUpdate<'a> {
    #[serde(borrow)]
    create: Option<Field<IndexInput<'a>>>,
    #[serde(borrow)]
    update: Option<Field<IndexThroughput<'a>>>,
    #[serde(borrow)]
    delete: Option<Field<IndexName<'a>>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct IndexThroughput<'a> {
    #[serde(borrow)]
    index_name: Option<Text<'a>>,
    provisioned_throughput: Option<Field<ThroughputInput>>,
    on_demand_throughput: Option<Field<OnDemandInput>>,
    warm_throughput: Option<Field<WarmInput>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct IndexName<'a> {
    #[serde(borrow)]
    index_name: Option<Text<'a>>,
}

impl Named for IndexUpdate<'_> {
    const NAME: &'static str = "GlobalSecondaryIndexUpdate";
}

impl Named for IndexThroughput<'_> {
    const NAME: &'static str = "UpdateGlobalSecondaryIndexAction";
}

impl Named for IndexName<'_> {
    const NAME: &'static str = "DeleteGlobalSecondaryIndexAction";
}

/// The changes to a table.
#[derive(Debug)]
struct Changes {
    create: Option<IndexSchema>,
    delete: Option<String>,
    stream: Option<Option<StreamView>>,
    /// The new settings; `None` if they do not change.
    settings: Option<TableSettings>,
}

one_resource!(Input, table, table_name);

pub(crate) async fn run(service: &Service, input: Input<'_>) -> Result<Vec<u8>, Failure> {
    let name = table_name::of_tables(input.table_name.as_ref())?;
    check(&input)?;
    let _change = service.begin_table_change().await;
    let engine = service.engine();
    let table = engine.describe_table(name)?;
    if table.is_restoring {
        return Err(Failure::being_created(name));
    }
    let changes = changes(&input, &table, service.config().clock.now_ms())?;
    if let Some(stream) = changes.stream {
        engine.set_stream(name, stream).await?;
    }
    if let Some(index) = changes.create {
        engine.add_index(name, index).await?;
    }
    if let Some(index) = changes.delete {
        engine.delete_index(name, &index).await?;
    }
    // IMPORTANT: last, so that a request that fails at an index has changed no settings.
    if let Some(settings) = changes.settings {
        change_settings(engine, table, settings.write()).await?;
    }
    let described = super::describe_table::describe(service, name).await?;
    output::single_member("TableDescription", &described)
}

/// Stores the settings, unless the table was changed or replaced meanwhile.
async fn change_settings(
    engine: &Engine,
    table: TableDescription,
    settings: String,
) -> Result<(), Failure> {
    let name = table.schema.name.clone();
    let written = engine.change_settings(&name, move |current| match current == table.settings {
        true => Ok(settings),
        false => Err(Failure::in_use(format!(
            "Attempt to change a resource which is still in use: Table is being updated: {}",
            table.schema.name
        ))),
    });
    written.await
}

fn check(input: &Input<'_>) -> Result<(), Failure> {
    let mut constraints = Constraints::new();
    definition::constrain_definitions(&mut constraints, input.attribute_definitions.as_ref());
    let throughput = input.provisioned_throughput.as_ref();
    definition::constrain_billing(&mut constraints, input.billing_mode.as_ref(), throughput);
    definition::constrain_stream(&mut constraints, input.stream_specification.as_ref());
    for (at, Element(update)) in updates(input).enumerate() {
        let path = format!("globalSecondaryIndexUpdates.{}.member", at + 1);
        constrain_update(&mut constraints, &path, update);
    }
    constraints.finish()?;
    check_index_warm_throughput(input)?;
    if is_empty(input) {
        return Err(Failure::validation(
            "At least one of ProvisionedThroughput, BillingMode, UpdateStreamEnabled, GlobalSecondaryIndexUpdates, SSESpecification, ReplicaUpdates, MultiAccountReplicaReady, ReplicaTransitRoleArn, MultiRegionConsistency, DeletionProtectionEnabled, OnDemandThroughput, WarmThroughput or TableClass is required",
        ));
    }
    check_alone(input)
}

/// Rejects an index with an empty warm throughput, which DynamoDB checks before it looks up the table.
fn check_index_warm_throughput(input: &Input<'_>) -> Result<(), Failure> {
    for Element(update) in updates(input) {
        if let Some(Field(update)) = &update.update
            && let Some(Field(warm)) = &update.warm_throughput
            && warm.is_empty()
        {
            return Err(Failure::invalid_values(format_args!(
                "WarmThroughput must have at least one of ReadUnitsPerSecond or WriteUnitsPerSecond specified for index: {}",
                update.index_name.as_ref().map_or("", Text::as_str)
            )));
        }
    }
    Ok(())
}

/// The warm throughput of the table. An empty one counts as missing.
fn warm_throughput<'i>(input: &'i Input<'_>) -> Option<&'i WarmInput> {
    let Field(given) = input.warm_throughput.as_ref()?;
    (!given.is_empty()).then_some(given)
}

fn updates<'i, 'a>(input: &'i Input<'a>) -> impl Iterator<Item = &'i Element<IndexUpdate<'a>>> {
    input
        .global_secondary_index_updates
        .iter()
        .flat_map(|updates| &updates.0)
}

fn constrain_update(constraints: &mut Constraints, path: &str, update: &IndexUpdate<'_>) {
    if let Some(Field(create)) = &update.create {
        definition::constrain_index(constraints, &format!("{path}.create"), create);
    }
    if let Some(Field(update)) = &update.update {
        let name = update.index_name.as_ref();
        constraints.not_null(&format!("{path}.update.indexName"), name);
        constraints.resource_name(&format!("{path}.update.indexName"), name);
        definition::constrain_throughput(
            constraints,
            &format!("{path}.update.provisionedThroughput"),
            update.provisioned_throughput.as_ref(),
        );
    }
    if let Some(Field(delete)) = &update.delete {
        let name = delete.index_name.as_ref();
        constraints.not_null(&format!("{path}.delete.indexName"), name);
        constraints.resource_name(&format!("{path}.delete.indexName"), name);
    }
}

fn is_empty(input: &Input<'_>) -> bool {
    input.provisioned_throughput.is_none()
        && input.billing_mode.is_none()
        && input.stream_specification.is_none()
        && updates(input).next().is_none()
        && input.encryption.is_none()
        && input.deletion_protection_enabled.is_none()
        && input.on_demand_throughput.is_none()
        && warm_throughput(input).is_none()
        && input.table_class.is_none()
}

/// Checks that changes which cannot be combined are alone in the request.
fn check_alone(input: &Input<'_>) -> Result<(), Failure> {
    let others = [
        input.encryption.is_some(),
        input.table_class.is_some(),
        input.deletion_protection_enabled.is_some(),
        input.provisioned_throughput.is_some() || input.billing_mode.is_some(),
        input.stream_specification.is_some(),
        updates(input).next().is_some(),
        input.on_demand_throughput.is_some(),
        warm_throughput(input).is_some(),
    ];
    if others.iter().filter(|given| **given).count() < 2 {
        return Ok(());
    }
    for (name, given) in [
        ("Server-Side Encryption", input.encryption.is_some()),
        ("TableClass", input.table_class.is_some()),
        (
            "DeletionProtection",
            input.deletion_protection_enabled.is_some(),
        ),
    ] {
        if given {
            return Err(Failure::invalid_values(format_args!(
                "{name} modification must be the only operation in the request"
            )));
        }
    }
    let changes_index = updates(input).any(|Element(update)| update.update.is_none());
    if warm_throughput(input).is_some() {
        let creates_index = updates(input).any(|Element(update)| update.create.is_some());
        let only_indexes_change = others.iter().filter(|given| **given).count() == 2
            && updates(input).next().is_some()
            && !changes_index;
        if creates_index {
            return Err(Failure::invalid_values(
                "Create global secondary index cannot be specified when updating WarmThroughput",
            ));
        }
        if !only_indexes_change {
            return Err(Failure::invalid_values(
                "WarmThroughput must be the only operation in the request",
            ));
        }
    }
    let text = match (
        input.provisioned_throughput.is_some(),
        input.stream_specification.is_some(),
        changes_index,
    ) {
        (true, true, _) => "You cannot modify stream status while updating table IOPS",
        (true, _, true) => "You cannot create or delete index while updating table IOPS",
        (_, true, true) => "You cannot create or delete index while changing stream status",
        _ => return Ok(()),
    };
    Err(Failure::invalid_values(text))
}

fn changes(input: &Input<'_>, table: &TableDescription, now_ms: i64) -> Result<Changes, Failure> {
    let schema = &table.schema;
    let before = TableSettings::read(&table.settings);
    let mut settings = before.clone();
    let mut changes = Changes {
        create: None,
        delete: None,
        stream: None,
        settings: None,
    };
    if input.billing_mode.is_some() || input.provisioned_throughput.is_some() {
        let global = schema.indexes.iter().filter(|index| !index.local);
        settings.keep_warm_throughput(global.map(|index| index.name.as_str()));
    }
    change_billing(input, &mut settings, now_ms)?;
    if let Some(given) = warm_throughput(input) {
        settings.warm = settings.warm_throughput().changed(given, Subject::Table)?;
    }
    index_changes(input, schema, &mut settings, &mut changes, now_ms)?;
    if let Some(Field(given)) = &input.stream_specification {
        changes.stream = Some(change_stream(given, schema)?);
    }
    if let Some(Field(given)) = &input.encryption {
        let encryption = definition::encryption(given)?.map(|key| Encryption { key });
        if encryption.is_none() && settings.encryption.is_none() {
            return Err(Failure::invalid_values(
                "Table is already encrypted by default",
            ));
        }
        settings.encryption = encryption;
    }
    if let Some(flag) = input.deletion_protection_enabled {
        settings.deletion_protection = flag.0;
    }
    definition::check_table_class(input.table_class.as_ref())?;
    if let Some(class) = &input.table_class {
        settings.table_class = Some(class.as_str().to_owned());
    }
    if settings != before {
        changes.settings = Some(settings);
    }
    Ok(changes)
}

fn change_billing(
    input: &Input<'_>,
    settings: &mut TableSettings,
    now_ms: i64,
) -> Result<(), Failure> {
    let was = settings.billing;
    match input.billing_mode.as_ref().map(Text::as_str) {
        Some("PAY_PER_REQUEST") => {
            if was == Billing::Provisioned {
                settings.pay_per_request_at_ms = Some(now_ms);
                settings.throughput = Throughput::default();
                settings.index_throughput.clear();
            }
            settings.billing = Billing::PayPerRequest;
        }
        Some(_) => {
            if was == Billing::PayPerRequest && input.provisioned_throughput.is_none() {
                return Err(Failure::invalid_values(
                    "ProvisionedThroughput must be specified when BillingMode is PROVISIONED",
                ));
            }
            settings.billing = Billing::Provisioned;
            settings.on_demand = None;
        }
        None => {}
    }
    if let Some(Field(given)) = &input.provisioned_throughput {
        if settings.billing == Billing::PayPerRequest {
            return Err(Failure::invalid_values(
                "Neither ReadCapacityUnits nor WriteCapacityUnits can be specified when BillingMode is PAY_PER_REQUEST",
            ));
        }
        let wanted = definition::throughput(given);
        definition::check_units(wanted, None)?;
        let subject = "table";
        settings.throughput = change_throughput(settings.throughput, wanted, subject, now_ms, was)?;
    }
    if let Some(Field(given)) = &input.on_demand_throughput {
        settings.on_demand = Some(OnDemand {
            read_max: given.max_read_request_units.map(|units| units.0),
            write_max: given.max_write_request_units.map(|units| units.0),
        });
    }
    Ok(())
}

/// The new throughput with the times of its changes. An unchanged throughput is an error.
fn change_throughput(
    current: Throughput,
    wanted: Throughput,
    subject: &str,
    now_ms: i64,
    billing: Billing,
) -> Result<Throughput, Failure> {
    if billing == Billing::Provisioned
        && (current.read, current.write) == (wanted.read, wanted.write)
    {
        return Err(Failure::validation(format!(
            "The provisioned throughput for the {subject} will not change. The requested value equals the current value. Current ReadCapacityUnits provisioned for the {subject}: {}. Requested ReadCapacityUnits: {}. Current WriteCapacityUnits provisioned for the {subject}: {}. Requested WriteCapacityUnits: {}. Refer to the Amazon DynamoDB Developer Guide for current limits and how to request higher limits.",
            current.read, wanted.read, current.write, wanted.write
        )));
    }
    let grew = wanted.read > current.read || wanted.write > current.write;
    let shrank = wanted.read < current.read || wanted.write < current.write;
    Ok(Throughput {
        increased_at_ms: grew.then_some(now_ms).or(current.increased_at_ms),
        decreased_at_ms: shrank.then_some(now_ms).or(current.decreased_at_ms),
        ..wanted
    })
}

fn index_changes(
    input: &Input<'_>,
    schema: &TableSchema,
    settings: &mut TableSettings,
    changes: &mut Changes,
    now_ms: i64,
) -> Result<(), Failure> {
    for (name, update) in named_updates(input)? {
        if let Some(Field(given)) = &update.create {
            create_index(input, given, schema, settings, changes)?;
        }
        if let Some(Field(given)) = &update.update {
            global_index(schema, name, "update")?;
            update_index(given, name, settings, now_ms)?;
        }
        if update.delete.is_some() {
            global_index(schema, name, "delete")?;
            settings.index_throughput.remove(name);
            settings.index_warm.remove(name);
            settings.insights.remove(name);
            changes.delete = Some(name.to_owned());
        }
    }
    Ok(())
}

/// The index updates with the names of their indexes. Their number is checked before the indexes are looked up.
fn named_updates<'i, 'a>(
    input: &'i Input<'a>,
) -> Result<Vec<(&'i str, &'i IndexUpdate<'a>)>, Failure> {
    let mut named: Vec<(&str, &IndexUpdate<'_>)> = Vec::new();
    let mut names = BTreeSet::new();
    for Element(update) in updates(input) {
        let (create, change, delete) = (&update.create, &update.update, &update.delete);
        let given = [create.is_some(), change.is_some(), delete.is_some()];
        match given.into_iter().filter(|given| *given).count() {
            0 => {
                return Err(Failure::invalid_values(
                    "One of GlobalSecondaryIndexUpdate.Update, GlobalSecondaryIndexUpdate.Create, GlobalSecondaryIndexUpdate.Delete must not be null",
                ));
            }
            1 => {}
            _ => {
                return Err(Failure::invalid_values(
                    "Only one global secondary index action is allowed per GlobalSecondaryIndexUpdate object",
                ));
            }
        }
        let name = create
            .as_ref()
            .and_then(|Field(given)| given.index_name.as_ref());
        let name = name.or_else(|| change.as_ref()?.0.index_name.as_ref());
        let name = name.or_else(|| delete.as_ref()?.0.index_name.as_ref());
        let name = name.map_or("", Text::as_str);
        if !names.insert(name) {
            return Err(Failure::invalid_values(format_args!(
                "Only one global secondary index update per index is allowed simultaneously. Index: {name}"
            )));
        }
        named.push((name, update));
    }
    let count = |is_counted: fn(&IndexUpdate<'_>) -> bool| {
        let counted = named.iter().filter(|(_, update)| is_counted(update));
        counted.count()
    };
    let deleted = count(|update| update.delete.is_some());
    let created = count(|update| update.create.is_some());
    if deleted > 0 && deleted + created > 1 {
        return Err(one_at_a_time());
    }
    Ok(named)
}

fn one_at_a_time() -> Failure {
    Failure::limit_exceeded(
        "Subscriber limit exceeded: Only 1 online index can be created or deleted simultaneously per table",
    )
}

fn global_index(schema: &TableSchema, name: &str, action: &str) -> Result<(), Failure> {
    match schema.index(name) {
        Some(index) if !index.local => Ok(()),
        Some(_) => Err(Failure::validation(format!(
            "Cannot {action} an index that is not a GlobalSecondaryIndex: {name}"
        ))),
        None => Err(Failure::not_found("Requested resource not found")),
    }
}

fn create_index(
    input: &Input<'_>,
    given: &IndexInput<'_>,
    schema: &TableSchema,
    settings: &mut TableSettings,
    changes: &mut Changes,
) -> Result<(), Failure> {
    let definitions = Definitions::of(input.attribute_definitions.as_ref());
    let index = definition::index(given, &definitions, &schema.key, false)?;
    if schema.index(&index.name).is_some() {
        return Err(Failure::validation(
            "Attempting to create an index which already exists",
        ));
    }
    check_kinds(schema, &index)?;
    let global = schema.indexes.iter().filter(|index| !index.local).count();
    if global >= GLOBAL_INDEXES_MAX {
        return Err(Failure::limit_exceeded(format!(
            "Subscriber limit exceeded: Number of GlobalSecondaryIndexes exceeds per-table limit of {GLOBAL_INDEXES_MAX}"
        )));
    }
    if changes.create.is_some() {
        return Err(one_at_a_time());
    }
    match (&given.provisioned_throughput, settings.billing) {
        (None, Billing::Provisioned) => {
            return Err(Failure::invalid_values(format_args!(
                "ProvisionedThroughput must be specified for index: {}",
                index.name
            )));
        }
        (Some(_), Billing::PayPerRequest) => {
            return Err(Failure::invalid_values(format_args!(
                "Neither ReadCapacityUnits nor WriteCapacityUnits can be specified for index: {} when BillingMode is PAY_PER_REQUEST",
                index.name
            )));
        }
        (Some(Field(given)), Billing::Provisioned) => {
            let throughput = definition::throughput(given);
            definition::check_units(throughput, Some(&index.name))?;
            settings
                .index_throughput
                .insert(index.name.clone(), throughput);
        }
        (None, Billing::PayPerRequest) => {}
    }
    index_warm_throughput(given, &index.name, settings)?;
    changes.create = Some(index);
    Ok(())
}

/// Checks that attributes that are keys already keep their type.
fn check_kinds(schema: &TableSchema, index: &IndexSchema) -> Result<(), Failure> {
    let keys = std::iter::once(&schema.key).chain(schema.indexes.iter().map(|index| &index.key));
    let known: Vec<_> = keys.flat_map(|key| key.attributes()).collect();
    for attribute in index.key.attributes() {
        let other = known
            .iter()
            .find(|known| known.name == attribute.name && known.kind != attribute.kind);
        if let Some(other) = other {
            let name = |kind: KeyKind| kind.value_kind().name();
            return Err(Failure::invalid_values(format_args!(
                "Attributes cannot be redefined. Please check that your attribute has the same type as previously defined. Existing schema: Schema:[SchemaElement: key{{{}:{}}}] New schema: Schema:[SchemaElement: key{{{}:{}}}]",
                other.name,
                name(other.kind),
                attribute.name,
                name(attribute.kind)
            )));
        }
    }
    Ok(())
}

fn update_index(
    given: &IndexThroughput<'_>,
    name: &str,
    settings: &mut TableSettings,
    now_ms: i64,
) -> Result<(), Failure> {
    if let Some(Field(warm)) = &given.warm_throughput {
        let current = settings.index_warm_throughput(name);
        let changed = current.changed(warm, Subject::Index(name))?;
        settings.index_warm.insert(name.to_owned(), changed);
        if given.provisioned_throughput.is_none() {
            return Ok(());
        }
    }
    if settings.billing == Billing::PayPerRequest {
        if given.on_demand_throughput.is_some() && given.provisioned_throughput.is_none() {
            return Ok(());
        }
        return Err(Failure::invalid_values(format_args!(
            "The only Updates for index: {name} when TableThroughputMode is PAY_PER_REQUEST can be to OnDemandThroughput, WarmThroughput"
        )));
    }
    let Some(Field(wanted)) = &given.provisioned_throughput else {
        return Err(Failure::invalid_values(format_args!(
            "Both ReadCapacityUnits and WriteCapacityUnits must be specified for index: {name}"
        )));
    };
    let wanted = definition::throughput(wanted);
    definition::check_units(wanted, Some(name))?;
    settings.keep_warm_throughput(std::iter::once(name));
    let current = settings
        .index_throughput
        .get(name)
        .copied()
        .unwrap_or_default();
    let subject = format!("index {name}");
    let changed = change_throughput(current, wanted, &subject, now_ms, Billing::Provisioned)?;
    settings.index_throughput.insert(name.to_owned(), changed);
    Ok(())
}

fn change_stream(
    given: &StreamInput<'_>,
    schema: &TableSchema,
) -> Result<Option<StreamView>, Failure> {
    let enabled = given.stream_enabled.is_some_and(|flag| flag.0);
    match (&given.stream_view_type, enabled) {
        (None, true) => Err(Failure::invalid_values(
            "If stream is being enabled then UpdateViewType is required",
        )),
        (Some(_), false) => Err(Failure::invalid_values(
            "If stream is being disabled, then UpdateViewType must not be specified",
        )),
        (Some(_), true) if schema.stream.is_some() => Err(Failure::validation(format!(
            "Table already has an enabled stream: TableName: {}",
            schema.name
        ))),
        (Some(view), true) => Ok(Some(definition::stream_view(view.as_str()))),
        (None, false) if schema.stream.is_none() => Err(Failure::validation(format!(
            "Table has no stream to disable: TableName: {}",
            schema.name
        ))),
        (None, false) => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input;

    fn table() -> TableDescription {
        TableDescription {
            expiry_is_changing: false,
            schema: TableSchema::new("abc", "a", KeyKind::S),
            created_at_ms: 0,
            index_states: Vec::new(),
            id: 1,
            settings: String::new(),
            stream_at_ms: None,
            history: None,
            is_restoring: false,
        }
    }

    #[track_caller]
    fn outcome(body: &str) -> Result<Changes, String> {
        let input: Input<'_> = input::read(body.as_bytes()).expect("well-formed");
        check(&input)
            .and_then(|()| changes(&input, &table(), 5))
            .map_err(|failure| failure.text().unwrap_or_default().to_owned())
    }

    #[test]
    fn invalid_requests_get_dynamodb_errors() {
        for (body, text) in [
            (
                r#"{"TableName":"abc"}"#,
                "At least one of ProvisionedThroughput, BillingMode, UpdateStreamEnabled, GlobalSecondaryIndexUpdates, SSESpecification, ReplicaUpdates, MultiAccountReplicaReady, ReplicaTransitRoleArn, MultiRegionConsistency, DeletionProtectionEnabled, OnDemandThroughput, WarmThroughput or TableClass is required",
            ),
            (
                r#"{"SSESpecification":{"Enabled":true},"DeletionProtectionEnabled":true}"#,
                "One or more parameter values were invalid: Server-Side Encryption modification must be the only operation in the request",
            ),
            (
                r#"{"ProvisionedThroughput":{"ReadCapacityUnits":1,"WriteCapacityUnits":1}}"#,
                "One or more parameter values were invalid: Neither ReadCapacityUnits nor WriteCapacityUnits can be specified when BillingMode is PAY_PER_REQUEST",
            ),
            (
                r#"{"BillingMode":"PROVISIONED"}"#,
                "One or more parameter values were invalid: ProvisionedThroughput must be specified when BillingMode is PROVISIONED",
            ),
            (
                r#"{"StreamSpecification":{"StreamEnabled":false}}"#,
                "Table has no stream to disable: TableName: abc",
            ),
            (
                r#"{"StreamSpecification":{"StreamEnabled":true}}"#,
                "One or more parameter values were invalid: If stream is being enabled then UpdateViewType is required",
            ),
            (
                r#"{"GlobalSecondaryIndexUpdates":[{}]}"#,
                "One or more parameter values were invalid: One of GlobalSecondaryIndexUpdate.Update, GlobalSecondaryIndexUpdate.Create, GlobalSecondaryIndexUpdate.Delete must not be null",
            ),
            (
                r#"{"GlobalSecondaryIndexUpdates":[{"Delete":{"IndexName":"iii"}}]}"#,
                "Requested resource not found",
            ),
            (
                r#"{"SSESpecification":{"Enabled":false}}"#,
                "One or more parameter values were invalid: Table is already encrypted by default",
            ),
        ] {
            assert_eq!(outcome(body).expect_err(body), text, "{body}");
        }
    }

    #[test]
    fn many_index_updates_are_rejected_quickly() {
        let deletes: Vec<String> = (0..100_000)
            .map(|at| format!(r#"{{"Delete":{{"IndexName":"index{at}"}}}}"#))
            .collect();
        let body = format!(
            r#"{{"GlobalSecondaryIndexUpdates":[{}]}}"#,
            deletes.join(",")
        );
        let started = std::time::Instant::now();
        let refused = outcome(&body).expect_err("too many");
        assert!(refused.contains("Only 1 online index"), "{refused}");
        assert!(started.elapsed().as_secs() < 10);
    }

    #[test]
    fn index_and_billing_changes_are_read() {
        let body = r#"{"AttributeDefinitions":[{"AttributeName":"b","AttributeType":"N"}],"GlobalSecondaryIndexUpdates":[{"Create":{"IndexName":"by-b","KeySchema":[{"AttributeName":"b","KeyType":"HASH"}],"Projection":{"ProjectionType":"ALL"}}}]}"#;
        let changes = outcome(body).expect("valid");
        assert_eq!(
            changes.create.map(|index| index.name),
            Some("by-b".to_owned())
        );
        let body = r#"{"BillingMode":"PROVISIONED","ProvisionedThroughput":{"ReadCapacityUnits":3,"WriteCapacityUnits":4}}"#;
        let settings = outcome(body).expect("valid").settings.expect("changed");
        assert_eq!(settings.throughput.write, 4);
        assert_eq!(settings.throughput.increased_at_ms, Some(5));
    }
}
