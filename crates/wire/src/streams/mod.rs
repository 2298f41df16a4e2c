//! Streams as clients see them: ARNs, shard ids, sequence numbers and iterators.

pub(crate) mod iterator;
pub(crate) mod names;

use homeport_engine::{Engine, Stream};

use crate::failure::Failure;
use crate::input::Text;
use crate::tables::arn::{self, TablePart};
use crate::tables::description::stream_label;

/// The ARN of a stream.
pub(crate) fn arn_of(region: &str, stream: &Stream) -> String {
    arn::of_part(
        region,
        &stream.table,
        TablePart::Stream,
        &stream_label(stream.id.enabled_at_ms),
    )
}

/// The stream with this ARN, in any region and account.
pub(crate) fn find(engine: &Engine, given: Option<&Text<'_>>) -> Result<Stream, Failure> {
    let given = given.map_or("", Text::as_str);
    let (table, label) = arn::part_of(given, TablePart::Stream)
        .ok_or_else(|| Failure::validation(format!("Invalid StreamArn: {given}")))?;
    engine
        .streams()
        .into_iter()
        .find(|stream| stream.table == table && stream_label(stream.id.enabled_at_ms) == label)
        .ok_or_else(|| {
            Failure::not_found(format!(
                "Requested resource not found: Stream: {given} not found"
            ))
        })
}
