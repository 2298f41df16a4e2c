//! GetRecords: the changes in a shard from a position on.

use homeport_engine::{Change, ShardPage, ShardPosition, Stream, StreamError};
use homeport_item::json;
use serde::Deserialize;
use sha2::{Digest as _, Sha256};

use crate::access::one_resource;
use crate::constraints::Constraints;
use crate::failure::Failure;
use crate::input::{Integer, Text};
use crate::operations::page;
use crate::output::{self, Object};
use crate::service::Service;
use crate::streams::iterator::ShardIterator;
use crate::streams::names;
use crate::tables::description::view_name;

const RECORDS_MAX: i64 = 1000;
/// Bytes of the digest that identifies a change.
const EVENT_ID_BYTES: usize = 16;
const ITERATOR_LEN_MAX: usize = 2048;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Input<'a> {
    #[serde(borrow)]
    shard_iterator: Option<Text<'a>>,
    limit: Option<Integer>,
}

one_resource!(Input, iterated_stream, shard_iterator);

pub(crate) async fn run(service: &Service, input: Input<'_>) -> Result<Vec<u8>, Failure> {
    let limit = check(&input)?;
    let text = input.shard_iterator.as_ref().map_or("", Text::as_str);
    let now_ms = service.config().clock.now_ms();
    let (iterator, arn) = ShardIterator::read(text, now_ms)?;
    let stream = service
        .engine()
        .stream(iterator.stream)
        .ok_or(StreamError::StreamMissing)?;
    let read = service.run_blocking(move |service| {
        let ShardIterator {
            stream,
            shard,
            position,
            ..
        } = iterator;
        Ok(service
            .engine()
            .read_shard(stream, shard, position, limit)?)
    });
    let page = read.await?;
    let next = page.next.map(|next| {
        let next = ShardIterator {
            position: ShardPosition::At(next),
            issued_at_ms: now_ms,
            ..iterator
        };
        next.write(arn)
    });
    Ok(respond(&service.config().region, &stream, &page, next))
}

fn respond(region: &str, stream: &Stream, page: &ShardPage, next: Option<String>) -> Vec<u8> {
    let mut out = Vec::with_capacity(1024 + page.changes.len() * 512);
    let mut object = Object::new(&mut out);
    output::list(object.member("Records"), &page.changes, |change, out| {
        write_record(region, stream, change, out);
    });
    if let Some(next) = next {
        object.text("NextShardIterator", &next);
    }
    object.end();
    out
}

fn write_record(region: &str, stream: &Stream, change: &Change, out: &mut Vec<u8>) {
    let mut object = Object::new(out);
    object.text("eventID", &event_id(stream, change.sequence));
    object.text(
        "eventName",
        match change.kind {
            homeport_engine::ChangeKind::Insert => "INSERT",
            homeport_engine::ChangeKind::Modify => "MODIFY",
            homeport_engine::ChangeKind::Remove => "REMOVE",
        },
    );
    object.text("eventVersion", "1.1");
    object.text("eventSource", "aws:dynamodb");
    object.text("awsRegion", region);
    object.object("dynamodb", |object| {
        let seconds = change.at_ms.div_euclid(1000).to_string();
        let out = object.member("ApproximateCreationDateTime");
        out.extend_from_slice(seconds.as_bytes());
        json::write_item(&change.key, object.member("Keys"));
        if let Some(new) = &change.new {
            json::write_item(new, object.member("NewImage"));
        }
        if let Some(old) = &change.old {
            json::write_item(old, object.member("OldImage"));
        }
        let sequence = names::sequence_number(change.sequence);
        object.text("SequenceNumber", &sequence);
        object.count("SizeBytes", change.size());
        object.text("StreamViewType", view_name(stream.view));
    });
    if change.by_expiry {
        object.object("userIdentity", |object| {
            object.text("PrincipalId", "dynamodb.amazonaws.com");
            object.text("Type", "Service");
        });
    }
    object.end();
}

/// The id of a change: the same at every read, and different from that of any other change.
fn event_id(stream: &Stream, sequence: u64) -> String {
    let mut hash = Sha256::new();
    hash.update(stream.id.table_id.to_be_bytes());
    hash.update(stream.id.enabled_at_ms.to_be_bytes());
    hash.update(sequence.to_be_bytes());
    hex::encode(&hash.finalize()[..EVENT_ID_BYTES])
}

fn check(input: &Input<'_>) -> Result<usize, Failure> {
    let mut constraints = Constraints::new();
    let iterator = input.shard_iterator.as_ref();
    constraints.not_null("shardIterator", iterator);
    constraints.text_length("shardIterator", iterator, 1, ITERATOR_LEN_MAX);
    constraints.page_limit("limit", input.limit, RECORDS_MAX);
    constraints.finish()?;
    Ok(page::limit(input.limit, RECORDS_MAX))
}
