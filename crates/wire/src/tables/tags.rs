//! Tags of tables.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::arn;
use super::settings::TableSettings;
use crate::failure::Failure;
use crate::input::{Element, List, Named, Text};
use crate::service::Service;

const TAGS_MAX: usize = 50;
const KEY_MAX: usize = 128;
const VALUE_MAX: usize = 256;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Tag<'a> {
    #[serde(borrow)]
    pub(crate) key: Option<Text<'a>>,
    #[serde(borrow)]
    pub(crate) value: Option<Text<'a>>,
}

impl Named for Tag<'_> {
    const NAME: &'static str = "Tag";
}

/// The tags of a request, checked.
pub(crate) fn read(given: &List<Element<Tag<'_>>>) -> Result<BTreeMap<String, String>, Failure> {
    let mut tags = BTreeMap::new();
    for Element(tag) in &given.0 {
        let Some(key) = tag.key.as_ref().map(Text::as_str) else {
            return Err(Failure::validation(
                "The Tag Key provided is invalid, Key: null",
            ));
        };
        check_key(key)?;
        let Some(value) = &tag.value else {
            return Err(Failure::validation(
                "The Tag Value provided is invalid, Value: null",
            ));
        };
        if value.as_str().chars().count() > VALUE_MAX || !value.as_str().chars().all(is_allowed) {
            return Err(Failure::validation(format!(
                "The Tag Value provided is invalid, Value: {}",
                value.as_str()
            )));
        }
        if tags
            .insert(key.to_owned(), value.as_str().to_owned())
            .is_some()
        {
            return Err(Failure::validation(format!(
                "Duplicate Tag Keys provided as input: Duplicate Tag Key found {key}"
            )));
        }
    }
    Ok(tags)
}

/// Whether a tag may contain the character: letters, digits and spaces of any script, and a few signs.
fn is_allowed(character: char) -> bool {
    let is_space = character.is_whitespace() && !character.is_control();
    character.is_alphanumeric() || is_space || "_.:/=+-@".contains(character)
}

fn check_key(key: &str) -> Result<(), Failure> {
    if key.is_empty() || key.chars().count() > KEY_MAX || !key.chars().all(is_allowed) {
        return Err(Failure::validation(format!(
            "The Tag Key provided is invalid, Key: {key}"
        )));
    }
    if key.starts_with("aws:") {
        return Err(Failure::validation(format!(
            "Tag Key cannot be prefixed with aws:, Key: {key}"
        )));
    }
    Ok(())
}

pub(crate) fn check_count(tags: &BTreeMap<String, String>) -> Result<(), Failure> {
    if tags.len() > TAGS_MAX {
        return Err(Failure::validation(
            "Number of Tags exceed the current limit for the provided ResourceArn",
        ));
    }
    Ok(())
}

/// The table that a resource's ARN names.
pub(crate) fn table<'a>(resource: Option<&'a Text<'_>>) -> Result<&'a str, Failure> {
    let Some(resource) = resource.map(Text::as_str) else {
        return Err(Failure::validation("Invalid TableArn"));
    };
    if !resource.starts_with("arn:") {
        return Err(Failure::invalid_values(format_args!(
            "ARNs must start with 'arn:': {resource}"
        )));
    }
    arn::table_of(resource).ok_or_else(|| {
        Failure::validation(format!(
            "Invalid TableArn: Invalid ResourceArn provided as input {resource}"
        ))
    })
}

pub(crate) fn not_found(resource: &str) -> Failure {
    Failure::not_found(format!(
        "Requested resource not found: ResourcArn: {resource} not found"
    ))
}

/// The settings of a table whose tags are to be listed. DynamoDB does not tell whether a table is there that nobody may see.
pub(crate) fn shown(
    service: &Service,
    table: &str,
    resource: &str,
) -> Result<TableSettings, Failure> {
    match settings(service, table, resource) {
        Err(failure) if failure == not_found(resource) => Err(Failure::access_denied(format!(
            "User: arn:aws:iam::000000000000:root is not authorized to perform: dynamodb:ListTagsOfResource on resource: {resource}"
        ))),
        answer => answer,
    }
}

/// The settings of the table with that name.
pub(crate) fn settings(
    service: &Service,
    table: &str,
    resource: &str,
) -> Result<TableSettings, Failure> {
    match service.engine().describe_table(table) {
        Ok(description) => Ok(TableSettings::read(&description.settings)),
        Err(homeport_engine::TableError::Missing(_)) => Err(not_found(resource)),
        Err(error) => Err(error.into()),
    }
}
