//! TagResource: sets tags of a table.

use serde::Deserialize;

use crate::access::{Permission, Request, Resources};
use crate::failure::Failure;
use crate::input::{Element, List, Text};
use crate::service::Service;
use crate::tables::tags::{self, Tag};

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Input<'a> {
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

pub(crate) async fn run(service: &Service, input: Input<'_>) -> Result<Vec<u8>, Failure> {
    let resource = input.resource_arn.as_ref();
    let table = tags::check_request(resource, "tags", input.tags.as_ref())?;
    let given = input.tags.as_ref().filter(|given| !given.0.is_empty());
    let Some(given) = given else {
        return Err(Failure::validation(
            "Atleast one Tag needs to be provided as Input.",
        ));
    };
    let new = tags::read(given)?;
    tags::change(service, resource, table, |tags| {
        tags.extend(new);
        tags::check_count(tags)
    })
    .await
}
