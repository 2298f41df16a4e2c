//! The four requests of the Streams API, and their failures.

use std::error::Error as StdError;

use aws_sdk_dynamodbstreams::config::http::HttpResponse;
use aws_sdk_dynamodbstreams::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_dynamodbstreams::types::{Record, ShardIteratorType, StreamStatus};
use aws_sdk_dynamodbstreams::{Client, Error};
use homeport_store::StoreError;

use super::lineage::Shard;
use super::position::ShardPosition;
use crate::convert::failure::{Failure, chain};
use crate::convert::value::unreadable;

/// Maximum number of shards of a stream. A table with as many takes over a million writes per
/// second.
const SHARDS_MAX: usize = 10_000;
/// Maximum number of records per response.
pub(super) const RECORDS_MAX: usize = 1000;

/// Why reading a stream failed.
#[derive(Debug)]
pub(super) enum StreamFailure {
    /// The requested records are older than the retention.
    Trimmed,
    /// The iterator has expired; request a new one.
    IteratorExpired,
    /// The stream or shard no longer exists.
    Gone,
    Store(StoreError),
}

/// Records of a shard and the next iterator, which is `None` after the last record of a closed
/// shard.
#[derive(Debug)]
pub(super) struct Records {
    pub(super) records: Vec<Record>,
    pub(super) next: Option<String>,
}

impl<E> From<SdkError<E, HttpResponse>> for StreamFailure
where
    E: StdError + Send + Sync + 'static,
    Error: From<E>,
{
    fn from(error: SdkError<E, HttpResponse>) -> Self {
        match error {
            SdkError::ServiceError(context) => {
                let error: Error = context.into_err().into();
                let code = error.code().unwrap_or("an error without a name");
                Self::from_code(code, error.message().unwrap_or_default())
            }
            other => Self::Store(StoreError::Unavailable(chain(&other))),
        }
    }
}

impl StreamFailure {
    fn from_code(code: &str, message: &str) -> Self {
        match code {
            "TrimmedDataAccessException" => Self::Trimmed,
            "ExpiredIteratorException" => Self::IteratorExpired,
            "ResourceNotFoundException" => Self::Gone,
            _ => Self::Store(Failure::from_code(code, message.to_owned()).of_table("")),
        }
    }
}

/// All shards of a stream.
pub(super) async fn shards(client: &Client, arn: &str) -> Result<Vec<Shard>, StreamFailure> {
    let mut shards = Vec::new();
    let mut start = None;
    loop {
        let answer = client
            .describe_stream()
            .stream_arn(arn)
            .set_exclusive_start_shard_id(start)
            .send()
            .await?;
        let described = answer.stream_description;
        let described = described.ok_or_else(|| missing("a description without a stream"))?;
        for shard in described.shards.unwrap_or_default() {
            shards.push(Shard {
                id: shard
                    .shard_id
                    .ok_or_else(|| missing("a shard without an id"))?,
                parent: shard.parent_shard_id,
            });
        }
        if shards.len() > SHARDS_MAX {
            return Err(missing("a stream with too many shards"));
        }
        start = described.last_evaluated_shard_id;
        if start.is_none() {
            return Ok(shards);
        }
    }
}

/// Whether a stream exists and is enabled.
pub(super) async fn is_on(client: &Client, arn: &str) -> Result<bool, StreamFailure> {
    let answer = client.describe_stream().stream_arn(arn).send().await?;
    let status = answer
        .stream_description
        .and_then(|described| described.stream_status);
    Ok(status == Some(StreamStatus::Enabled))
}

/// An iterator at a position of a shard.
pub(super) async fn iterator(
    client: &Client,
    arn: &str,
    shard: &str,
    at: &ShardPosition,
) -> Result<String, StreamFailure> {
    let request = client.get_shard_iterator().stream_arn(arn).shard_id(shard);
    let request = match at {
        ShardPosition::Start | ShardPosition::End(_) => {
            request.shard_iterator_type(ShardIteratorType::TrimHorizon)
        }
        ShardPosition::After(number) => request
            .shard_iterator_type(ShardIteratorType::AfterSequenceNumber)
            .sequence_number(number),
    };
    let iterator = request.send().await?.shard_iterator;
    iterator.ok_or_else(|| missing("no iterator"))
}

/// An iterator after the newest record of a shard.
pub(super) async fn iterator_at_end(
    client: &Client,
    arn: &str,
    shard: &str,
) -> Result<String, StreamFailure> {
    let request = client
        .get_shard_iterator()
        .stream_arn(arn)
        .shard_id(shard)
        .shard_iterator_type(ShardIteratorType::Latest);
    let iterator = request.send().await?.shard_iterator;
    iterator.ok_or_else(|| missing("no iterator"))
}

pub(super) async fn records(
    client: &Client,
    iterator: &str,
    limit: usize,
) -> Result<Records, StreamFailure> {
    let limit = i32::try_from(limit.clamp(1, RECORDS_MAX)).expect("a thousand at most");
    let answer = client
        .get_records()
        .shard_iterator(iterator)
        .limit(limit)
        .send()
        .await?;
    Ok(Records {
        records: answer.records.unwrap_or_default(),
        next: answer.next_shard_iterator,
    })
}

fn missing(what: &str) -> StreamFailure {
    StreamFailure::Store(unreadable(what))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failure_codes_are_distinguished() {
        let failure = |code| StreamFailure::from_code(code, "why");
        assert!(matches!(
            failure("TrimmedDataAccessException"),
            StreamFailure::Trimmed
        ));
        assert!(matches!(
            failure("ExpiredIteratorException"),
            StreamFailure::IteratorExpired
        ));
        assert!(matches!(
            failure("ResourceNotFoundException"),
            StreamFailure::Gone
        ));
        for throttling in ["LimitExceededException", "ThrottlingException"] {
            assert!(matches!(
                failure(throttling),
                StreamFailure::Store(StoreError::Throttled)
            ));
        }
        assert!(matches!(
            failure("AccessDeniedException"),
            StreamFailure::Store(StoreError::Unavailable(_))
        ));
    }
}
