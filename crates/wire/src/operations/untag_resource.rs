//! UntagResource: removes tags of a table.

use std::collections::BTreeSet;

use serde::Deserialize;

use crate::access::{Permission, Request, Resources};
use crate::constraints::Constraints;
use crate::failure::Failure;
use crate::input::{List, Text};
use crate::service::Service;
use crate::tables::settings::TableSettings;
use crate::tables::tags;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Input<'a> {
    #[serde(borrow)]
    resource_arn: Option<Text<'a>>,
    #[serde(borrow)]
    tag_keys: Option<List<Text<'a>>>,
}

impl<'a> Request<'a> for Input<'a> {
    fn permissions(&self, resources: &Resources<'_>) -> Vec<Permission> {
        vec![resources.table(self.resource_arn.as_ref())]
    }
}

pub(super) async fn run(service: &Service, input: Input<'_>) -> Result<Vec<u8>, Failure> {
    let mut constraints = Constraints::new();
    if input.resource_arn.is_some() {
        constraints.not_null("tagKeys", input.tag_keys.as_ref());
    }
    constraints.finish()?;
    let table = tags::table(input.resource_arn.as_ref())?;
    let keys: BTreeSet<String> = input
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
    let _change = service.begin_table_change().await;
    tags::settings(service, table, resource)?;
    service
        .engine()
        .change_settings(table, move |kept| {
            let mut settings = TableSettings::read(kept);
            settings.tags.retain(|key, _| !keys.contains(key));
            Ok::<_, Failure>(settings.write())
        })
        .await?;
    // There is nothing to say, not even an empty object.
    Ok(Vec::new())
}
