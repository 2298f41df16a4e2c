//! ListTagsOfResource: the tags of a table.

use serde::Deserialize;

use crate::access::{Permission, Request, Resources};
use crate::failure::Failure;
use crate::input::Text;
use crate::output::{self, Object};
use crate::service::Service;
use crate::tables::tags;

/// Tags that one answer has.
const PAGE_LEN: usize = 10;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Input<'a> {
    #[serde(borrow)]
    resource_arn: Option<Text<'a>>,
    /// The key that the page before this one ended with.
    #[serde(borrow)]
    next_token: Option<Text<'a>>,
}

impl<'a> Request<'a> for Input<'a> {
    fn permissions(&self, resources: &Resources<'_>) -> Vec<Permission> {
        vec![resources.table(self.resource_arn.as_ref())]
    }
}

pub(super) async fn run(service: &Service, input: Input<'_>) -> Result<Vec<u8>, Failure> {
    let table = tags::table(input.resource_arn.as_ref())?;
    let resource = input.resource_arn.as_ref().map_or("", Text::as_str);
    let settings = tags::shown(service, table, resource)?;
    let start = input.next_token.as_ref().map(Text::as_str);
    let left: Vec<_> = settings
        .tags
        .iter()
        .filter(|(key, _)| start.is_none_or(|start| key.as_str() > start))
        .collect();
    let page = &left[..left.len().min(PAGE_LEN)];
    let mut out = Vec::with_capacity(256);
    let mut object = Object::new(&mut out);
    output::list(object.member("Tags"), page, |(key, value), out| {
        let mut tag = Object::new(out);
        tag.text("Key", key);
        tag.text("Value", value);
        tag.end();
        Ok::<_, Failure>(())
    })?;
    if let Some((key, _)) = page.last().filter(|_| left.len() > page.len()) {
        object.text("NextToken", key);
    }
    object.end();
    Ok(out)
}
