//! ListStreams: the streams that can be read, of one table or of all.

use homeport_engine::Stream;
use serde::Deserialize;

use crate::access::{Permission, Request, Resources};
use crate::constraints::Constraints;
use crate::failure::Failure;
use crate::input::{Integer, Text};
use crate::output::{self, Object};
use crate::service::Service;
use crate::streams::names::STREAM_ARN_LEN;
use crate::streams::{self};
use crate::tables::description::stream_label;

const PAGE_MAX: i64 = 100;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Input<'a> {
    #[serde(borrow)]
    table_name: Option<Text<'a>>,
    limit: Option<Integer>,
    #[serde(borrow)]
    exclusive_start_stream_arn: Option<Text<'a>>,
}

impl<'a> Request<'a> for Input<'a> {
    fn permissions(&self, resources: &Resources<'_>) -> Vec<Permission> {
        // A start that is the stream of another table would tell whether that stream exists.
        let start = self.exclusive_start_stream_arn.as_ref();
        let start = start.map(|start| resources.stream(Some(start)));
        let mut permissions = vec![resources.table(self.table_name.as_ref())];
        permissions.extend(start);
        permissions
    }
}

pub(super) async fn run(service: &Service, input: Input<'_>) -> Result<Vec<u8>, Failure> {
    let limit = check(&input)?;
    let mut listed = service.engine().streams();
    if let Some(name) = &input.table_name {
        listed.retain(|stream| stream.table == name.as_str());
        if listed.is_empty() && service.engine().table(name.as_str()).is_err() {
            return Err(Failure::table_not_found(name.as_str()));
        }
    }
    if let Some(start) = &input.exclusive_start_stream_arn {
        // A stream that is forgotten meanwhile would leave a reader of pages without a place.
        let start = streams::find(service.engine(), Some(start))?;
        listed.retain(|stream| stream.id > start.id);
    }
    let has_more = listed.len() > limit;
    listed.truncate(limit);
    let region = &service.config().region;
    let mut out = Vec::with_capacity(64 + listed.len() * 256);
    let mut object = Object::new(&mut out);
    output::list(object.member("Streams"), &listed, |stream: &Stream, out| {
        let mut object = Object::new(out);
        object.text("StreamArn", &streams::arn_of(region, stream));
        object.text("TableName", &stream.table);
        object.text("StreamLabel", &stream_label(stream.id.enabled_at_ms));
        object.end();
        Ok::<_, Failure>(())
    })?;
    if let Some(last) = listed.last().filter(|_| has_more) {
        object.text("LastEvaluatedStreamArn", &streams::arn_of(region, last));
    }
    object.end();
    Ok(out)
}

fn check(input: &Input<'_>) -> Result<usize, Failure> {
    let mut constraints = Constraints::new();
    let name = input.table_name.as_ref();
    constraints.name_pattern("tableName", name);
    constraints.text_length("tableName", name, 3, 255);
    let (least, most) = STREAM_ARN_LEN;
    constraints.text_length(
        "exclusiveStartStreamArn",
        input.exclusive_start_stream_arn.as_ref(),
        least,
        most,
    );
    constraints.at_least("limit", input.limit, 1);
    constraints.at_most("limit", input.limit, PAGE_MAX);
    constraints.finish()?;
    let limit = input.limit.map_or(PAGE_MAX, |limit| limit.0);
    Ok(usize::try_from(limit).unwrap_or(1))
}
