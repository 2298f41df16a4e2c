//! UntagResource: removes tags from a table.

use std::collections::BTreeSet;

use serde::Deserialize;

use crate::access::{Permission, Request, Resources};
use crate::failure::Failure;
use crate::input::{List, Text};
use crate::service::Service;
use crate::tables::tags;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Input<'a> {
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

pub(crate) async fn run(service: &Service, input: Input<'_>) -> Result<Vec<u8>, Failure> {
    let resource = input.resource_arn.as_ref();
    let table = tags::check_request(resource, "tagKeys", input.tag_keys.as_ref())?;
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
    tags::change(service, resource, table, move |tags| {
        tags.retain(|key, _| !keys.contains(key));
        Ok(())
    })
    .await
}
