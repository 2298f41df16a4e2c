//! ListStreams: the readable streams of one table or of all tables.

use homeport_engine::Stream;
use serde::Deserialize;

use crate::access::{Permission, Request, Resources};
use crate::constraints::Constraints;
use crate::failure::Failure;
use crate::input::{Integer, Text};
use crate::operations::page::{self, Page, PageMembers};
use crate::output::Object;
use crate::service::Service;
use crate::streams;
use crate::streams::names::STREAM_ARN_LEN;
use crate::tables::description::stream_label;

const PAGE_MAX: i64 = 100;
const MEMBERS: PageMembers = PageMembers {
    entries: "Streams",
    next: "LastEvaluatedStreamArn",
};

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Input<'a> {
    #[serde(borrow)]
    table_name: Option<Text<'a>>,
    limit: Option<Integer>,
    #[serde(borrow)]
    exclusive_start_stream_arn: Option<Text<'a>>,
}

impl<'a> Request<'a> for Input<'a> {
    fn permissions(&self, resources: &Resources<'_>) -> Vec<Permission> {
        // The start may be another table's stream, and the response reveals whether that stream exists.
        let start = self.exclusive_start_stream_arn.as_ref();
        let start = start.map(|start| resources.stream(Some(start)));
        let mut permissions = vec![resources.table(self.table_name.as_ref())];
        permissions.extend(start);
        permissions
    }
}

pub(crate) async fn run(service: &Service, input: Input<'_>) -> Result<Vec<u8>, Failure> {
    let limit = check(&input)?;
    let mut listed = service.engine().streams();
    if let Some(name) = &input.table_name {
        listed.retain(|stream| stream.table == name.as_str());
        if listed.is_empty() && service.engine().table(name.as_str()).is_err() {
            return Err(Failure::table_not_found(name.as_str()));
        }
    }
    if let Some(start) = &input.exclusive_start_stream_arn {
        // An unknown start is an error: skipping it silently could lose streams between two pages.
        let start = streams::find(service.engine(), Some(start))?;
        listed.retain(|stream| stream.id > start.id);
    }
    let region = &service.config().region;
    Page::of(listed, limit).respond(
        MEMBERS,
        |stream: &Stream, out| {
            let mut object = Object::new(out);
            object.text("StreamArn", &streams::arn_of(region, stream));
            object.text("TableName", &stream.table);
            object.text("StreamLabel", &stream_label(stream.id.enabled_at_ms));
            object.end();
            Ok(())
        },
        |last| streams::arn_of(region, last),
    )
}

fn check(input: &Input<'_>) -> Result<usize, Failure> {
    let mut constraints = Constraints::new();
    let name = input.table_name.as_ref();
    constraints.resource_name("tableName", name);
    let (least, most) = STREAM_ARN_LEN;
    constraints.text_length(
        "exclusiveStartStreamArn",
        input.exclusive_start_stream_arn.as_ref(),
        least,
        most,
    );
    constraints.page_limit("limit", input.limit, PAGE_MAX);
    constraints.finish()?;
    Ok(page::limit(input.limit, PAGE_MAX))
}
