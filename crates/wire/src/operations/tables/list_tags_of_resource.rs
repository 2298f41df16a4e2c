//! ListTagsOfResource: the tags of a table.

use serde::Deserialize;

use crate::access::{Permission, Request, Resources};
use crate::failure::Failure;
use crate::input::Text;
use crate::operations::page::{Page, PageMembers};
use crate::output::Object;
use crate::service::Service;
use crate::tables::tags;

/// Tags on a page.
const PAGE_LEN: usize = 10;
const MEMBERS: PageMembers = PageMembers {
    entries: "Tags",
    next: "NextToken",
};

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Input<'a> {
    #[serde(borrow)]
    resource_arn: Option<Text<'a>>,
    /// The last key of the page before.
    #[serde(borrow)]
    next_token: Option<Text<'a>>,
}

impl<'a> Request<'a> for Input<'a> {
    fn permissions(&self, resources: &Resources<'_>) -> Vec<Permission> {
        vec![resources.table(self.resource_arn.as_ref())]
    }
}

pub(crate) async fn run(service: &Service, input: Input<'_>) -> Result<Vec<u8>, Failure> {
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
