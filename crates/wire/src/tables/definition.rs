//! Definitions of keys, indexes and throughput in requests, with the checks that CreateTable and UpdateTable share.

use std::collections::BTreeMap;

use homeport_item::KeyKind;
use homeport_item::schema::{
    IndexProjection, IndexSchema, KEY_PART_ATTRIBUTES_MAX, KeyAttribute, KeySchema, StreamView,
};
use serde::Deserialize;

use super::settings::Throughput;
use super::warm_throughput::WarmInput;
use crate::constraints::Constraints;
use crate::failure::Failure;
use crate::input::{Element, Field, Flag, List, Long, Named, Text};

const UNITS_MAX: i64 = 1_000_000_000_000;
pub(crate) const GLOBAL_INDEXES_MAX: usize = 20;
/// The largest total number of attributes in the projections of all indexes.
const INCLUDED_MAX: usize = 100;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct AttributeDefinition<'a> {
    #[serde(borrow)]
    pub(crate) attribute_name: Option<Text<'a>>,
    #[serde(borrow)]
    pub(crate) attribute_type: Option<Text<'a>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct KeySchemaElement<'a> {
    #[serde(borrow)]
    pub(crate) attribute_name: Option<Text<'a>>,
    #[serde(borrow)]
    pub(crate) key_type: Option<Text<'a>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct ProjectionInput<'a> {
    #[serde(borrow)]
    pub(crate) projection_type: Option<Text<'a>>,
    #[serde(borrow)]
    pub(crate) non_key_attributes: Option<List<Text<'a>>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct ThroughputInput {
    pub(crate) read_capacity_units: Option<Long>,
    pub(crate) write_capacity_units: Option<Long>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct IndexInput<'a> {
    #[serde(borrow)]
    pub(crate) index_name: Option<Text<'a>>,
    #[serde(borrow)]
    pub(crate) key_schema: Option<List<Element<KeySchemaElement<'a>>>>,
    #[serde(borrow)]
    pub(crate) projection: Option<Field<ProjectionInput<'a>>>,
    pub(crate) provisioned_throughput: Option<Field<ThroughputInput>>,
    pub(crate) warm_throughput: Option<Field<WarmInput>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct StreamInput<'a> {
    pub(crate) stream_enabled: Option<Flag>,
    #[serde(borrow)]
    pub(crate) stream_view_type: Option<Text<'a>>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct EncryptionInput<'a> {
    #[serde(rename = "Enabled")]
    pub(crate) enabled: Option<Flag>,
    #[serde(rename = "SSEType", borrow)]
    pub(crate) kind: Option<Text<'a>>,
    #[serde(rename = "KMSMasterKeyId", borrow)]
    pub(crate) key: Option<Text<'a>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct OnDemandInput {
    pub(crate) max_read_request_units: Option<Long>,
    pub(crate) max_write_request_units: Option<Long>,
}

/// The form in messages of DynamoDB.
impl std::fmt::Display for Element<KeySchemaElement<'_>> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let shown =
            |text: Option<&Text<'_>>| text.map_or("null".to_owned(), |text| text.0.to_string());
        write!(
            formatter,
            "KeySchemaElement(attributeName={}, keyType={})",
            shown(self.0.attribute_name.as_ref()),
            shown(self.0.key_type.as_ref())
        )
    }
}

macro_rules! named {
    ($($type:ty => $name:literal),* $(,)?) => {$(
        impl Named for $type {
            const NAME: &'static str = $name;
        }
    )*};
}
named! {
    AttributeDefinition<'_> => "AttributeDefinition",
    KeySchemaElement<'_> => "KeySchemaElement",
    ProjectionInput<'_> => "Projection",
    ThroughputInput => "ProvisionedThroughput",
    IndexInput<'_> => "GlobalSecondaryIndex",
    StreamInput<'_> => "StreamSpecification",
    EncryptionInput<'_> => "SSESpecification",
    OnDemandInput => "OnDemandThroughput",
}

/// The owner of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyOf {
    Table,
    LocalIndex,
    /// Its partition key and sort key may have several attributes each.
    GlobalIndex,
}

/// Attributes of the key of a table or a local index.
pub(crate) const KEY_ATTRIBUTES_MAX: usize = 2;

/// Attribute definitions that passed the constraints.
#[derive(Debug)]
pub(crate) struct Definitions<'a> {
    /// In the order of the request.
    names: Vec<&'a str>,
    /// A map, because a request may have very many definitions and look up each.
    kinds: BTreeMap<&'a str, KeyKind>,
}

impl<'a> Definitions<'a> {
    pub(crate) fn of(given: Option<&'a List<Element<AttributeDefinition<'a>>>>) -> Self {
        let given = given.map_or(&[][..], |given| &given.0);
        let definitions = given.iter().filter_map(|Element(definition)| {
            let name = definition.attribute_name.as_ref()?.as_str();
            let kind = match definition.attribute_type.as_ref()?.as_str() {
                "S" => KeyKind::S,
                "N" => KeyKind::N,
                _ => KeyKind::B,
            };
            Some((name, kind))
        });
        let mut found = Self {
            names: Vec::with_capacity(given.len()),
            kinds: BTreeMap::new(),
        };
        for (name, kind) in definitions {
            found.names.push(name);
            // Of two definitions of a name, the first one counts.
            found.kinds.entry(name).or_insert(kind);
        }
        found
    }

    pub(crate) fn len(&self) -> usize {
        self.names.len()
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &'a str> {
        self.names.iter().copied()
    }

    pub(crate) fn duplicate(&self) -> Option<&'a str> {
        let mut seen = std::collections::BTreeSet::new();
        self.names().find(|name| !seen.insert(*name))
    }

    fn kind(&self, name: &str) -> Option<KeyKind> {
        self.kinds.get(name).copied()
    }

    fn listed(&self) -> String {
        self.names().collect::<Vec<_>>().join(", ")
    }

    /// The key with this key schema.
    pub(crate) fn key(
        &self,
        elements: &List<Element<KeySchemaElement<'_>>>,
        of: KeyOf,
    ) -> Result<KeySchema, Failure> {
        let of_table = of == KeyOf::Table;
        let names = names_of(elements);
        if names.iter().any(|name| self.kind(name).is_none()) {
            if of_table && (names.len() == 2 || self.names.is_empty()) {
                return Err(Failure::validation(
                    "Invalid KeySchema: Some index key attribute have no definition",
                ));
            }
            return Err(Failure::invalid_values(format_args!(
                "Some index key attributes are not defined in AttributeDefinitions. Keys: [{}], AttributeDefinitions: [{}]",
                names.join(", "),
                self.listed()
            )));
        }
        if of == KeyOf::GlobalIndex && is_multi_attribute(elements) {
            return self.multi_attribute_key(elements);
        }
        if names.len() == 2 && names[0] == names[1] {
            if of_table && self.len() == 1 {
                return Err(Failure::validation(
                    "Invalid KeySchema: Some index key attribute have no definition",
                ));
            }
            return Err(Failure::validation(
                "Both the Hash Key and the Range Key element in the KeySchema have the same name",
            ));
        }
        for (at, (expected, place)) in [("HASH", "first"), ("RANGE", "second")]
            .into_iter()
            .enumerate()
        {
            let given = elements
                .0
                .get(at)
                .and_then(|element| element.0.key_type.as_ref());
            if given.is_some_and(|given| given.as_str() != expected) {
                return Err(Failure::validation(format!(
                    "Invalid KeySchema: The {place} KeySchemaElement is not a {expected} key type"
                )));
            }
        }
        let attribute = |name: &&str| self.kind(name).map(|kind| KeyAttribute::new(*name, kind));
        let partition = names
            .first()
            .and_then(attribute)
            .ok_or_else(|| Failure::validation("Invalid KeySchema"))?;
        Ok(KeySchema::new(partition, names.get(1).and_then(attribute)))
    }

    /// The key of a global index with several attributes in a part.
    fn multi_attribute_key(
        &self,
        elements: &List<Element<KeySchemaElement<'_>>>,
    ) -> Result<KeySchema, Failure> {
        if elements
            .0
            .first()
            .is_some_and(|Element(first)| !is_hash(first))
        {
            return Err(Failure::validation(
                "Invalid KeySchema: The first KeySchemaElement is not a HASH key type",
            ));
        }
        let mut seen = std::collections::BTreeSet::new();
        if names_of(elements).iter().any(|name| !seen.insert(*name)) {
            return Err(Failure::validation(
                "The KeySchema contains multiple key attributes with the same name",
            ));
        }
        let hashes = elements.0.iter().take_while(|Element(each)| is_hash(each));
        let hashes = hashes.count();
        if elements.0[hashes..]
            .iter()
            .any(|Element(each)| is_hash(each))
        {
            return Err(Failure::invalid_values(
                "All HASH key attributes must precede RANGE key attributes in the KeySchema",
            ));
        }
        for (kind, count) in [("HASH", hashes), ("RANGE", elements.0.len() - hashes)] {
            if count > KEY_PART_ATTRIBUTES_MAX {
                return Err(Failure::invalid_values(format_args!(
                    "The KeySchema exceeds the maximum allowed number of {kind} key attributes"
                )));
            }
        }
        let names = names_of(elements);
        let mut attributes = names
            .iter()
            .filter_map(|name| Some(KeyAttribute::new(*name, self.kind(name)?)));
        let partition: Vec<_> = attributes.by_ref().take(hashes).collect();
        KeySchema::from_attributes(partition, attributes)
            .ok_or_else(|| Failure::validation("Invalid KeySchema"))
    }
}

/// Whether the partition key or the sort key has several attributes.
fn is_multi_attribute(elements: &List<Element<KeySchemaElement<'_>>>) -> bool {
    elements.0.len() > 2
        || elements
            .0
            .get(1)
            .is_some_and(|Element(second)| is_hash(second))
}

fn is_hash(element: &KeySchemaElement<'_>) -> bool {
    element
        .key_type
        .as_ref()
        .is_some_and(|kind| kind.as_str() == "HASH")
}

fn names_of<'a>(elements: &'a List<Element<KeySchemaElement<'_>>>) -> Vec<&'a str> {
    let names = elements.0.iter();
    names
        .filter_map(|Element(element)| element.attribute_name.as_ref().map(Text::as_str))
        .collect()
}

/// The constraints on attribute definitions.
pub(crate) fn constrain_definitions(
    constraints: &mut Constraints,
    given: Option<&List<Element<AttributeDefinition<'_>>>>,
) {
    for (at, Element(definition)) in given.iter().flat_map(|given| given.0.iter().enumerate()) {
        let path = format!("attributeDefinitions.{}.member", at + 1);
        let name = definition.attribute_name.as_ref();
        constraints.not_null(&format!("{path}.attributeName"), name);
        constraints.text_length(&format!("{path}.attributeName"), name, 1, 255);
        let kind = definition.attribute_type.as_ref();
        constraints.not_null(&format!("{path}.attributeType"), kind);
        constraints.one_of(&format!("{path}.attributeType"), kind, &["B", "N", "S"]);
    }
}

/// The constraints on a key schema.
pub(crate) fn constrain_key(
    constraints: &mut Constraints,
    path: &str,
    given: Option<&List<Element<KeySchemaElement<'_>>>>,
    most: usize,
) {
    constraints.not_null(path, given);
    constraints.shown_list_length(path, given, 1, most);
    for (at, Element(element)) in given.iter().flat_map(|given| given.0.iter().enumerate()) {
        let path = format!("{path}.{}.member", at + 1);
        let name = element.attribute_name.as_ref();
        constraints.not_null(&format!("{path}.attributeName"), name);
        constraints.text_length(&format!("{path}.attributeName"), name, 1, 255);
        let kind = element.key_type.as_ref();
        constraints.not_null(&format!("{path}.keyType"), kind);
        constraints.one_of(&format!("{path}.keyType"), kind, &["HASH", "RANGE"]);
    }
}

/// The constraints on the billing mode and the throughput of a table.
pub(crate) fn constrain_billing(
    constraints: &mut Constraints,
    mode: Option<&Text<'_>>,
    throughput: Option<&Field<ThroughputInput>>,
) {
    constraints.one_of("billingMode", mode, &["PROVISIONED", "PAY_PER_REQUEST"]);
    constrain_throughput(constraints, "provisionedThroughput", throughput);
}

/// The constraints on the stream of a table.
pub(crate) fn constrain_stream(
    constraints: &mut Constraints,
    given: Option<&Field<StreamInput<'_>>>,
) {
    let Some(Field(stream)) = given else {
        return;
    };
    let enabled = stream.stream_enabled.as_ref();
    constraints.not_null("streamSpecification.streamEnabled", enabled);
    let view = stream.stream_view_type.as_ref();
    constraints.one_of("streamSpecification.streamViewType", view, STREAM_VIEWS);
}

/// The constraints on throughput.
pub(crate) fn constrain_throughput(
    constraints: &mut Constraints,
    path: &str,
    given: Option<&Field<ThroughputInput>>,
) {
    let Some(Field(given)) = given else {
        return;
    };
    for (name, units) in [
        ("writeCapacityUnits", given.write_capacity_units),
        ("readCapacityUnits", given.read_capacity_units),
    ] {
        let path = format!("{path}.{name}");
        constraints.not_null(&path, units.as_ref());
        let units = units.map(|Long(units)| crate::input::Integer(units));
        constraints.at_least(&path, units, 1);
    }
}

/// The constraints on an index.
pub(crate) fn constrain_index(constraints: &mut Constraints, path: &str, given: &IndexInput<'_>) {
    constraints.not_null(&format!("{path}.indexName"), given.index_name.as_ref());
    constraints.resource_name(&format!("{path}.indexName"), given.index_name.as_ref());
    constrain_key(
        constraints,
        &format!("{path}.keySchema"),
        given.key_schema.as_ref(),
        if path.starts_with("local") {
            KEY_ATTRIBUTES_MAX
        } else {
            2 * KEY_PART_ATTRIBUTES_MAX
        },
    );
    constraints.not_null(&format!("{path}.projection"), given.projection.as_ref());
    if let Some(Field(projection)) = &given.projection {
        constraints.one_of(
            &format!("{path}.projection.projectionType"),
            projection.projection_type.as_ref(),
            &["ALL", "INCLUDE", "KEYS_ONLY"],
        );
        constraints.list_length(
            &format!("{path}.projection.nonKeyAttributes"),
            projection.non_key_attributes.as_ref(),
            1,
            usize::MAX,
        );
    }
    constrain_throughput(
        constraints,
        &format!("{path}.provisionedThroughput"),
        given.provisioned_throughput.as_ref(),
    );
}

pub(crate) fn throughput(given: &ThroughputInput) -> Throughput {
    let units = |units: Option<Long>| units.map_or(0, |units| units.0);
    Throughput {
        read: units(given.read_capacity_units),
        write: units(given.write_capacity_units),
        ..Throughput::default()
    }
}

pub(crate) fn check_units(throughput: Throughput, index: Option<&str>) -> Result<(), Failure> {
    for (name, units) in [
        ("ReadCapacityUnits", throughput.read),
        ("WriteCapacityUnits", throughput.write),
    ] {
        if units > UNITS_MAX {
            let of = index.map_or(String::new(), |index| format!(" for index {index}"));
            return Err(Failure::validation(format!(
                "Given value {units} for {name} is out of bounds{of}"
            )));
        }
    }
    Ok(())
}

/// An index that passed the constraints.
pub(crate) fn index(
    given: &IndexInput<'_>,
    definitions: &Definitions<'_>,
    table_key: &KeySchema,
    local: bool,
) -> Result<IndexSchema, Failure> {
    let name = given.index_name.as_ref().map_or("", Text::as_str);
    let elements = given
        .key_schema
        .as_ref()
        .ok_or_else(|| Failure::validation("Invalid KeySchema"))?;
    let of = if local {
        KeyOf::LocalIndex
    } else {
        KeyOf::GlobalIndex
    };
    let key = definitions.key(elements, of)?;
    if local {
        if key.sort.is_none() {
            return Err(Failure::invalid_values(format_args!(
                "Index KeySchema does not have a range key for index: {name}"
            )));
        }
        if key.partition.name != table_key.partition.name {
            return Err(Failure::invalid_values(format_args!(
                "Index KeySchema does not have the same leading hash key as table KeySchema for index: {name}. index hash key: {}, table hash key: {}",
                key.partition.name, table_key.partition.name
            )));
        }
    }
    Ok(IndexSchema {
        name: name.to_owned(),
        key,
        projection: projection(given.projection.as_ref())?,
        local,
    })
}

pub(crate) fn projection(
    given: Option<&Field<ProjectionInput<'_>>>,
) -> Result<IndexProjection, Failure> {
    let kind = given.and_then(|Field(given)| given.projection_type.as_ref());
    let names = given.and_then(|Field(given)| given.non_key_attributes.as_ref());
    let kind = kind.map(Text::as_str);
    let Some(kind) = kind else {
        return Err(Failure::invalid_values("Unknown ProjectionType: null"));
    };
    match (kind, names) {
        ("INCLUDE", None) => Err(Failure::invalid_values(
            "ProjectionType is INCLUDE, but NonKeyAttributes is not specified",
        )),
        ("INCLUDE", Some(names)) => {
            let names: Vec<String> = names.0.iter().map(|name| name.0.to_string()).collect();
            let mut seen = std::collections::BTreeSet::new();
            if let Some(twice) = names.iter().find(|name| !seen.insert(name.as_str())) {
                return Err(Failure::invalid_values(format_args!(
                    "Duplicate element in NonKeyAttributes: {twice}"
                )));
            }
            Ok(IndexProjection::Include(names))
        }
        (_, Some(_)) => Err(Failure::invalid_values(format_args!(
            "ProjectionType is {kind}, but NonKeyAttributes is specified"
        ))),
        ("ALL", None) => Ok(IndexProjection::All),
        (_, None) => Ok(IndexProjection::KeysOnly),
    }
}

/// Checks the total number of attributes in the projections.
pub(crate) fn check_included(indexes: &[IndexSchema]) -> Result<(), Failure> {
    let included: usize = indexes
        .iter()
        .map(|index| match &index.projection {
            IndexProjection::Include(names) => names.len(),
            _ => 0,
        })
        .sum();
    if included > INCLUDED_MAX {
        return Err(Failure::invalid_values(format_args!(
            "The number of attributes projected into all of the indexes exceeds the limit of {INCLUDED_MAX}"
        )));
    }
    Ok(())
}

const STREAM_VIEWS: &[&str] = &["NEW_AND_OLD_IMAGES", "OLD_IMAGE", "NEW_IMAGE", "KEYS_ONLY"];

pub(crate) fn stream_view(name: &str) -> StreamView {
    match name {
        "NEW_IMAGE" => StreamView::NewImage,
        "OLD_IMAGE" => StreamView::OldImage,
        "NEW_AND_OLD_IMAGES" => StreamView::NewAndOldImages,
        _ => StreamView::KeysOnly,
    }
}

/// The encryption key of a table; `None` for the default encryption.
pub(crate) fn encryption(given: &EncryptionInput<'_>) -> Result<Option<String>, Failure> {
    let enabled = given.enabled.is_some_and(|flag| flag.0);
    if !enabled {
        if given.kind.is_some() {
            return Err(Failure::invalid_values(
                "SSEType can not be specified if Enabled is false",
            ));
        }
        if given.key.is_some() {
            return Err(Failure::invalid_values(
                "KMSMasterKeyId can not be specified if Enabled is false",
            ));
        }
        return Ok(None);
    }
    if given
        .kind
        .as_ref()
        .is_some_and(|kind| kind.as_str() == "AES256")
    {
        return Err(Failure::invalid_values("SSEType AES256 is not supported"));
    }
    let key = given
        .key
        .as_ref()
        .map_or("alias/aws/dynamodb", Text::as_str);
    Ok(Some(key.to_owned()))
}

pub(crate) const TABLE_CLASSES: [&str; 2] = ["STANDARD", "STANDARD_INFREQUENT_ACCESS"];

pub(crate) fn check_table_class(given: Option<&Text<'_>>) -> Result<(), Failure> {
    match given {
        Some(given) if !TABLE_CLASSES.contains(&given.as_str()) => {
            Err(Failure::validation(format!(
                "Invalid table-class parameter provided. Please try again with a valid table-class value: [{}].",
                TABLE_CLASSES.join(", ")
            )))
        }
        _ => Ok(()),
    }
}
