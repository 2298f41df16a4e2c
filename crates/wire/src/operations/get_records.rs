//! GetRecords: changes from a place in a shard on.

use homeport_engine::{Change, ShardPage, ShardPosition, Stream, StreamError};
use homeport_item::json;
use serde::Deserialize;
use sha2::{Digest as _, Sha256};

use crate::access::{Permission, Request, Resources};
use crate::constraints::Constraints;
use crate::failure::Failure;
use crate::input::{Integer, Text};
use crate::output::{self, Object};
use crate::service::Service;
use crate::streams::iterator::ShardIterator;
use crate::streams::names;
use crate::tables::description::view_name;

const RECORDS_MAX: i64 = 1000;
const ITERATOR_LEN_MAX: usize = 2048;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Input<'a> {
    #[serde(borrow)]
    shard_iterator: Option<Text<'a>>,
    limit: Option<Integer>,
}

impl<'a> Request<'a> for Input<'a> {
    fn permissions(&self, resources: &Resources<'_>) -> Vec<Permission> {
        vec![resources.iterated_stream(self.shard_iterator.as_ref())]
    }
}

pub(super) async fn run(service: &Service, input: Input<'_>) -> Result<Vec<u8>, Failure> {
    let limit = check(&input)?;
    let text = input.shard_iterator.as_ref().map_or("", Text::as_str);
    let now_ms = service.config().clock.now_ms();
    let (iterator, arn) = ShardIterator::read(text, now_ms)?;
    let engine = service.engine().clone();
    let stream = engine
        .stream(iterator.stream)
        .ok_or(StreamError::StreamMissing)?;
    let read = tokio::task::spawn_blocking(move || {
        engine.read_shard(iterator.stream, iterator.shard, iterator.position, limit)
    });
    let page = read.await.map_err(|error| Failure::internal(&error))??;
    let next = page.next.map(|next| {
        let next = ShardIterator {
            position: ShardPosition::At(next),
            issued_at_ms: now_ms,
            ..iterator
        };
        next.write(arn)
    });
    answer(&service.config().region, &stream, &page, next)
}

fn answer(
    region: &str,
    stream: &Stream,
    page: &ShardPage,
    next: Option<String>,
) -> Result<Vec<u8>, Failure> {
    let mut out = Vec::with_capacity(1024 + page.changes.len() * 512);
    let mut object = Object::new(&mut out);
    output::list(object.member("Records"), &page.changes, |change, out| {
        write_record(region, stream, change, out);
        Ok::<_, Failure>(())
    })?;
    if let Some(next) = next {
        object.text("NextShardIterator", &next);
    }
    object.end();
    Ok(out)
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

/// The same for a change whenever it is read, and of no other change.
fn event_id(stream: &Stream, sequence: u64) -> String {
    let mut hash = Sha256::new();
    hash.update(stream.id.table_id.to_be_bytes());
    hash.update(stream.id.enabled_at_ms.to_be_bytes());
    hash.update(sequence.to_be_bytes());
    let digest = hash.finalize();
    digest[..16]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

fn check(input: &Input<'_>) -> Result<usize, Failure> {
    let mut constraints = Constraints::new();
    let iterator = input.shard_iterator.as_ref();
    constraints.not_null("shardIterator", iterator);
    constraints.text_length("shardIterator", iterator, 1, ITERATOR_LEN_MAX);
    constraints.at_least("limit", input.limit, 1);
    constraints.at_most("limit", input.limit, RECORDS_MAX);
    constraints.finish()?;
    let limit = input.limit.map_or(RECORDS_MAX, |limit| limit.0);
    Ok(usize::try_from(limit).unwrap_or(1))
}
