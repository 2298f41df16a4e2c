//! GetShardIterator: a position in a shard to read from.

use homeport_engine::{Shard, ShardPosition, Stream};
use serde::Deserialize;

use crate::access::one_resource;
use crate::constraints::Constraints;
use crate::failure::Failure;
use crate::input::Text;
use crate::output::Object;
use crate::service::Service;
use crate::streams;
use crate::streams::iterator::ShardIterator;
use crate::streams::names::{self, SEQUENCE_NUMBER_LEN, SHARD_ID_LEN, STREAM_ARN_LEN};

const KINDS: &[&str] = &[
    "AFTER_SEQUENCE_NUMBER",
    "LATEST",
    "AT_SEQUENCE_NUMBER",
    "TRIM_HORIZON",
];

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Input<'a> {
    #[serde(borrow)]
    stream_arn: Option<Text<'a>>,
    #[serde(borrow)]
    shard_id: Option<Text<'a>>,
    #[serde(borrow)]
    shard_iterator_type: Option<Text<'a>>,
    #[serde(borrow)]
    sequence_number: Option<Text<'a>>,
}

one_resource!(Input, stream, stream_arn);

pub(crate) async fn run(service: &Service, input: Input<'_>) -> Result<Vec<u8>, Failure> {
    check(&input)?;
    let engine = service.engine();
    let stream = streams::find(engine, input.stream_arn.as_ref())?;
    let shard = input
        .shard_id
        .as_ref()
        .and_then(|id| names::parse_shard_id(id.as_str()))
        .and_then(|id| stream.shard(id))
        .ok_or_else(Failure::shard_not_found)?;
    let position = match input.shard_iterator_type.as_ref().map(Text::as_str) {
        Some("TRIM_HORIZON") => ShardPosition::Oldest,
        Some("LATEST") => ShardPosition::At(shard.end.unwrap_or_else(|| engine.next_change())),
        kind => {
            let sequence = sequence(&input, shard, engine.next_change())?;
            let is_after = kind == Some("AFTER_SEQUENCE_NUMBER");
            let from = sequence + u64::from(is_after);
            engine.check_shard_position(stream.id, shard.id, from)?;
            ShardPosition::At(from)
        }
    };
    Ok(respond(service, &stream, shard, position))
}

fn respond(service: &Service, stream: &Stream, shard: &Shard, position: ShardPosition) -> Vec<u8> {
    let iterator = ShardIterator {
        stream: stream.id,
        shard: shard.id,
        position,
        issued_at_ms: service.config().clock.now_ms(),
    };
    let arn = streams::arn_of(&service.config().region, stream);
    let mut out = Vec::with_capacity(512);
    let mut object = Object::new(&mut out);
    object.text("ShardIterator", &iterator.write(&arn));
    object.end();
    out
}

/// The sequence number of the request, which must be in the shard.
fn sequence(input: &Input<'_>, shard: &Shard, next_change: u64) -> Result<u64, Failure> {
    let kind = input.shard_iterator_type.as_ref().map_or("", Text::as_str);
    let Some(given) = &input.sequence_number else {
        return Err(Failure::validation(format!(
            "SequenceNumber is required for ShardIteratorType {kind}"
        )));
    };
    let last = shard
        .end
        .map_or(next_change, |end| end.saturating_sub(1))
        .max(shard.id.first);
    names::parse_sequence_number(given.as_str())
        .filter(|sequence| (shard.id.first..=last).contains(sequence))
        .ok_or_else(|| {
            Failure::validation(format!(
                "Invalid SequenceNumber: {} is not in the shard {}",
                given.as_str(),
                names::shard_id(shard.id)
            ))
        })
}

fn check(input: &Input<'_>) -> Result<(), Failure> {
    let mut constraints = Constraints::new();
    constraints.not_null("streamArn", input.stream_arn.as_ref());
    constraints.not_null("shardId", input.shard_id.as_ref());
    let kind = input.shard_iterator_type.as_ref();
    constraints.not_null("shardIteratorType", kind);
    constraints.one_of("shardIteratorType", kind, KINDS);
    let (least, most) = STREAM_ARN_LEN;
    constraints.text_length("streamArn", input.stream_arn.as_ref(), least, most);
    let (least, most) = SHARD_ID_LEN;
    constraints.text_length("shardId", input.shard_id.as_ref(), least, most);
    let (least, most) = SEQUENCE_NUMBER_LEN;
    let sequence = input.sequence_number.as_ref();
    constraints.text_length("sequenceNumber", sequence, least, most);
    constraints.finish()?;
    match kind.map(Text::as_str) {
        Some(kind @ ("TRIM_HORIZON" | "LATEST")) if sequence.is_some() => Err(Failure::validation(
            format!("SequenceNumber must not be specified for ShardIteratorType {kind}"),
        )),
        _ => Ok(()),
    }
}
