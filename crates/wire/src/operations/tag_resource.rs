//! TagResource: sets tags of a table.

use serde::Deserialize;

use crate::access::{Permission, Request, Resources};
use crate::constraints::Constraints;
use crate::failure::Failure;
use crate::input::{Element, List, Text};
use crate::service::Service;
use crate::tables::settings::TableSettings;
use crate::tables::tags::{self, Tag};

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Input<'a> {
    #[serde(borrow)]
    resource_arn: Option<Text<'a>>,
    #[serde(borrow)]
    tags: Option<List<Element<Tag<'a>>>>,
}

impl<'a> Request<'a> for Input<'a> {
    fn permissions(&self, resources: &Resources<'_>) -> Vec<Permission> {
        vec![resources.table(self.resource_arn.as_ref())]
    }
}

pub(super) async fn run(service: &Service, input: Input<'_>) -> Result<Vec<u8>, Failure> {
    let mut constraints = Constraints::new();
    if input.resource_arn.is_some() {
        constraints.not_null("tags", input.tags.as_ref());
    }
    constraints.finish()?;
    let table = tags::table(input.resource_arn.as_ref())?;
    let given = input.tags.as_ref().filter(|given| !given.0.is_empty());
    let Some(given) = given else {
        return Err(Failure::validation(
            "Atleast one Tag needs to be provided as Input.",
        ));
    };
    let new = tags::read(given)?;
    let resource = input.resource_arn.as_ref().map_or("", Text::as_str);
    let _change = service.begin_table_change().await;
    tags::settings(service, table, resource)?;
    service
        .engine()
        .change_settings(table, move |kept| {
            let mut settings = TableSettings::read(kept);
            settings.tags.extend(new);
            tags::check_count(&settings.tags)?;
            Ok::<_, Failure>(settings.write())
        })
        .await?;
    // There is nothing to say, not even an empty object.
    Ok(Vec::new())
}
