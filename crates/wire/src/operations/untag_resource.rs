//! UntagResource: removes tags of a table.

use bytes::Bytes;
use serde::Deserialize;

use crate::constraints::Constraints;
use crate::failure::Failure;
use crate::input::{self, List, Text};
use crate::service::Service;
use crate::tables::settings::TableSettings;
use crate::tables::tags;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Input<'a> {
    #[serde(borrow)]
    resource_arn: Option<Text<'a>>,
    #[serde(borrow)]
    tag_keys: Option<List<Text<'a>>>,
}

pub(super) async fn run(service: &Service, body: &Bytes) -> Result<Vec<u8>, Failure> {
    let input: Input<'_> = input::read(body)?;
    let mut constraints = Constraints::new();
    if input.resource_arn.is_some() {
        constraints.not_null("tagKeys", input.tag_keys.as_ref());
    }
    constraints.finish()?;
    let table = tags::table(input.resource_arn.as_ref())?;
    let keys: Vec<String> = input
        .tag_keys
        .iter()
        .flat_map(|keys| &keys.0)
        .map(|key| key.as_str().to_owned())
        .collect();
    if keys.is_empty() {
        return Err(Failure::validation(
            "Atleast one Tag Key needs to be provided as Input.",
        ));
    }
    let resource = input.resource_arn.as_ref().map_or("", Text::as_str);
    tags::settings(service, table, resource)?;
    service
        .engine()
        .change_settings(table, move |kept| {
            let mut settings = TableSettings::read(kept);
            settings.tags.retain(|key, _| !keys.contains(key));
            settings.write()
        })
        .await?;
    // There is nothing to say, not even an empty object.
    Ok(Vec::new())
}
