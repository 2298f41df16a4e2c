//! TagResource, UntagResource and ListTagsOfResource: the tags of a table.

use std::collections::BTreeSet;

use serde::Deserialize;

use crate::access::one_resource;
use crate::failure::Failure;
use crate::input::{Element, List, Text};
use crate::operations::page::{Page, PageMembers};
use crate::output::Object;
use crate::service::Service;
use crate::tables::tags::{self, Tag};

/// Tags on a page.
const PAGE_LEN: usize = 10;
const MEMBERS: PageMembers = PageMembers {
    entries: "Tags",
    next: "NextToken",
};

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct TagInput<'a> {
    #[serde(borrow)]
    resource_arn: Option<Text<'a>>,
    #[serde(borrow)]
    tags: Option<List<Element<Tag<'a>>>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct UntagInput<'a> {
    #[serde(borrow)]
    resource_arn: Option<Text<'a>>,
    #[serde(borrow)]
    tag_keys: Option<List<Text<'a>>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct ListInput<'a> {
    #[serde(borrow)]
    resource_arn: Option<Text<'a>>,
    /// The last key of the page before.
    #[serde(borrow)]
    next_token: Option<Text<'a>>,
}

one_resource!(TagInput, table, resource_arn);
one_resource!(UntagInput, table, resource_arn);
one_resource!(ListInput, table, resource_arn);

pub(crate) async fn tag_resource(
    service: &Service,
    input: TagInput<'_>,
) -> Result<Vec<u8>, Failure> {
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

pub(crate) async fn untag_resource(
    service: &Service,
    input: UntagInput<'_>,
) -> Result<Vec<u8>, Failure> {
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

pub(crate) async fn list_tags_of_resource(
    service: &Service,
    input: ListInput<'_>,
) -> Result<Vec<u8>, Failure> {
    let table = tags::table(input.resource_arn.as_ref())?;
    let resource = input.resource_arn.as_ref().map_or("", Text::as_str);
    let tags = tags::list(service, table, resource)?;
    let start = input.next_token.as_ref().map(Text::as_str);
    let rest = tags.iter();
    let rest = rest.filter(|(key, _)| start.is_none_or(|start| key.as_str() > start));
    Page::of(rest, PAGE_LEN).respond(
        MEMBERS,
        |(key, value), out| {
            let mut tag = Object::new(out);
            tag.text("Key", key);
            tag.text("Value", value);
            tag.end();
            Ok(())
        },
        |(last, _)| (*last).clone(),
    )
}
