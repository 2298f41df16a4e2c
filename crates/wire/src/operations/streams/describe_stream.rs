//! DescribeStream: a stream and its shards.

use homeport_engine::{Shard, Stream};
use serde::Deserialize;

use crate::access::one_resource;
use crate::constraints::Constraints;
use crate::failure::Failure;
use crate::input::{Field, Integer, Named, Text};
use crate::operations::page::{self, Page};
use crate::output::{self, Object};
use crate::service::Service;
use crate::streams;
use crate::streams::names::{self, SHARD_ID_LEN, STREAM_ARN_LEN};
use crate::tables::description::{self, Seconds, stream_label};

const PAGE_MAX: i64 = 100;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Input<'a> {
    #[serde(borrow)]
    stream_arn: Option<Text<'a>>,
    limit: Option<Integer>,
    #[serde(borrow)]
    exclusive_start_shard_id: Option<Text<'a>>,
    #[serde(borrow)]
    shard_filter: Option<Field<ShardFilter<'a>>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ShardFilter<'a> {
    #[serde(rename = "Type", borrow)]
    kind: Option<Text<'a>>,
    #[serde(borrow)]
    shard_id: Option<Text<'a>>,
}

impl Named for ShardFilter<'_> {
    const NAME: &'static str = "ShardFilter";
}

one_resource!(Input, stream, stream_arn);

pub(crate) async fn run(service: &Service, input: Input<'_>) -> Result<Vec<u8>, Failure> {
    let limit = check(&input)?;
    let stream = streams::find(service.engine(), input.stream_arn.as_ref())?;
    let mut shards = stream.shards.clone();
    if let Some(Field(filter)) = &input.shard_filter {
        let parent = filter.shard_id.as_ref().map_or("", Text::as_str);
        shards.retain(|shard| shard.parent.is_some_and(|id| names::shard_id(id) == parent));
    }
    if let Some(start) = &input.exclusive_start_shard_id {
        // Ids sort like their shards, so the id of a trimmed shard still works as a start.
        shards.retain(|shard| names::shard_id(shard.id).as_str() > start.as_str());
    }
    let page = Page::of(shards, limit);
    let mut out = Vec::with_capacity(512 + page.entries().len() * 256);
    let mut object = Object::new(&mut out);
    let region = &service.config().region;
    describe(
        Object::new(object.member("StreamDescription")),
        region,
        &stream,
        &page,
    )?;
    object.end();
    Ok(out)
}

fn describe(
    mut object: Object<'_>,
    region: &str,
    stream: &Stream,
    page: &Page<Shard>,
) -> Result<(), Failure> {
    object.text("StreamArn", &streams::arn_of(region, stream));
    object.text("StreamLabel", &stream_label(stream.id.enabled_at_ms));
    let status = if stream.is_enabled {
        "ENABLED"
    } else {
        "DISABLED"
    };
    object.text("StreamStatus", status);
    object.text("StreamViewType", description::view_name(stream.view));
    let created = Seconds::from_ms(stream.id.enabled_at_ms);
    output::serialized(object.member("CreationRequestDateTime"), &created)?;
    object.text("TableName", &stream.table);
    let key = description::key(&stream.key);
    output::serialized(object.member("KeySchema"), &key)?;
    output::list(object.member("Shards"), page.entries(), write_shard);
    if let Some(last) = page.last_before_more() {
        object.text("LastEvaluatedShardId", &names::shard_id(last.id));
    }
    object.end();
    Ok(())
}

fn write_shard(shard: &Shard, out: &mut Vec<u8>) {
    let mut object = Object::new(out);
    object.text("ShardId", &names::shard_id(shard.id));
    object.object("SequenceNumberRange", |object| {
        let first = shard.id.first;
        object.text("StartingSequenceNumber", &names::sequence_number(first));
        if let Some(end) = shard.end {
            // The last number of an empty shard is its first.
            let last = end.saturating_sub(1).max(first);
            object.text("EndingSequenceNumber", &names::sequence_number(last));
        }
    });
    if let Some(parent) = shard.parent {
        object.text("ParentShardId", &names::shard_id(parent));
    }
    object.end();
}

fn check(input: &Input<'_>) -> Result<usize, Failure> {
    let mut constraints = Constraints::new();
    let (least, most) = STREAM_ARN_LEN;
    constraints.not_null("streamArn", input.stream_arn.as_ref());
    constraints.text_length("streamArn", input.stream_arn.as_ref(), least, most);
    let (least, most) = SHARD_ID_LEN;
    let start = input.exclusive_start_shard_id.as_ref();
    constraints.text_length("exclusiveStartShardId", start, least, most);
    constraints.page_limit("limit", input.limit, PAGE_MAX);
    if let Some(Field(filter)) = &input.shard_filter {
        constraints.one_of("shardFilter.type", filter.kind.as_ref(), &["CHILD_SHARDS"]);
        let shard = filter.shard_id.as_ref();
        constraints.text_length("shardFilter.shardId", shard, least, most);
    }
    constraints.finish()?;
    if let Some(Field(filter)) = &input.shard_filter
        && (filter.kind.is_none() || filter.shard_id.is_none())
    {
        return Err(Failure::invalid_values(
            "ShardFilter must have both Type and ShardId",
        ));
    }
    Ok(page::limit(input.limit, PAGE_MAX))
}
