//! Tags of tables.

use std::collections::BTreeMap;

use homeport_engine::TableError;
use serde::Deserialize;

use super::arn;
use super::settings::TableSettings;
use crate::constraints::Constraints;
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

/// The valid tags of a request.
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

/// Whether a tag may contain the character: letters, digits and spaces of any script, and some punctuation.
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

/// The table with the ARN of a resource.
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

/// Checks the members of a request that changes tags, and returns the table.
pub(crate) fn check_request<'a, T>(
    resource: Option<&'a Text<'_>>,
    member: &str,
    given: Option<&T>,
) -> Result<&'a str, Failure> {
    if resource.is_some() {
        let mut constraints = Constraints::new();
        constraints.not_null(member, given);
        constraints.finish()?;
    }
    table(resource)
}

/// Changes the tags of a table.
pub(crate) async fn change(
    service: &Service,
    resource: Option<&Text<'_>>,
    table: &str,
    change: impl FnOnce(&mut BTreeMap<String, String>) -> Result<(), Failure> + Send + 'static,
) -> Result<Vec<u8>, Failure> {
    let _change = service.begin_table_change().await;
    if settings(service, table)?.is_none() {
        let resource = resource.map_or("", Text::as_str);
        return Err(Failure::not_found(format!(
            "Requested resource not found: ResourcArn: {resource} not found"
        )));
    }
    service
        .engine()
        .change_settings(table, move |kept| {
            let mut settings = TableSettings::read(kept);
            change(&mut settings.tags)?;
            Ok::<_, Failure>(settings.write())
        })
        .await?;
    // The response is empty, without even an empty object.
    Ok(Vec::new())
}

/// The tags of a table. DynamoDB does not reveal whether a table exists that the caller may not see.
pub(crate) fn list(
    service: &Service,
    table: &str,
    resource: &str,
) -> Result<BTreeMap<String, String>, Failure> {
    match settings(service, table)? {
        Some(settings) => Ok(settings.tags),
        None => Err(Failure::access_denied(format!(
            "User: arn:aws:iam::000000000000:root is not authorized to perform: dynamodb:ListTagsOfResource on resource: {resource}"
        ))),
    }
}

/// The settings of a table, if it exists.
fn settings(service: &Service, table: &str) -> Result<Option<TableSettings>, Failure> {
    match service.engine().describe_table(table) {
        Ok(description) => Ok(Some(TableSettings::read(&description.settings))),
        Err(TableError::Missing(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
