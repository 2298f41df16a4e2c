//! Implements the change feed on DynamoDB Streams. A stream consists of many shards, which are
//! closed and continue in child shards; a position contains the position in each current shard.
//!
//! The cached iterators and shard lists only save requests: a position alone is enough to resume.

mod iterators;
mod lineage;
mod position;
mod reader;
mod record;
mod streams;

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use aws_config::SdkConfig;
use homeport_store::{ChangeFeed, ChangePage, Position, StoreError};
use tokio::time::Instant;

use self::iterators::{Iterators, Key};
use self::lineage::{Gap, Shard, youngest};
use self::position::{ShardPosition, StreamPosition};
use self::streams::StreamFailure;
use crate::connect::Remote;

/// How long a shard list is cached. Nothing can be missed meanwhile, because a closed shard reports
/// its end.
const SHARDS_LIFE: Duration = Duration::from_secs(60);
/// Delay before listing shards again if expected children are missing.
const CHILDREN_DELAY: Duration = Duration::from_secs(2);
/// The delays between two reads of a quiet stream.
const DELAY_FIRST: Duration = Duration::from_millis(250);
const DELAY_MAX: Duration = Duration::from_secs(1);

/// The cached state of streams.
#[derive(Debug)]
pub(crate) struct Feed {
    client: aws_sdk_dynamodbstreams::Client,
    iterators: Iterators,
    /// Streams by table.
    streams: Mutex<HashMap<String, Arc<Stream>>>,
    /// Where the next round starts, so that no shard is always last.
    turn: AtomicUsize,
}

/// A stream at a moment in time.
#[derive(Debug)]
struct Stream {
    arn: String,
    shards: Vec<Shard>,
    seen: Instant,
}

impl Feed {
    pub(crate) fn new(config: &SdkConfig) -> Self {
        Self {
            client: aws_sdk_dynamodbstreams::Client::new(config),
            iterators: Iterators::default(),
            streams: Mutex::default(),
            turn: AtomicUsize::new(0),
        }
    }
}

#[async_trait]
impl ChangeFeed for Remote {
    async fn end(&self, table: &str) -> Result<Position, StoreError> {
        let stream = self.stream(table, Duration::ZERO).await?;
        let mut position = StreamPosition::new(&stream.arn);
        for shard in youngest(&stream.shards) {
            let iterator = streams::iterator_at_end(&self.feed.client, &stream.arn, &shard.id);
            let iterator = iterator.await.map_err(|failure| of_table(failure, table))?;
            let at = ShardPosition::End(uuid::Uuid::new_v4().simple().to_string());
            position.shards.insert(shard.id.clone(), at.clone());
            let key = Key {
                arn: stream.arn.clone(),
                shard: shard.id.clone(),
                at,
            };
            self.feed.iterators.keep(key, iterator);
        }
        Ok(position.position())
    }

    async fn changes(
        &self,
        table: &str,
        from: &Position,
        limit: usize,
        wait: Duration,
    ) -> Result<ChangePage, StoreError> {
        let mut position = StreamPosition::parse(from)?;
        let deadline = Instant::now() + wait;
        let mut pause = DELAY_FIRST;
        loop {
            if self.add_readable_shards(table, &mut position).await? == Err(Gap) {
                return self.after_gap(table).await;
            }
            let turn = self.feed.turn.fetch_add(1, Ordering::Relaxed);
            let round = match self
                .feed
                .read_round(&mut position, limit.max(1), turn)
                .await
            {
                Ok(round) => round,
                Err(StreamFailure::Trimmed | StreamFailure::Gone) => {
                    return self.after_gap(table).await;
                }
                Err(failure) => return Err(of_table(failure, table)),
            };
            if round.has_finished {
                // The next changes are in their children, which only a new list contains.
                self.forget_stream(table);
            }
            if !round.changes.is_empty() {
                return Ok(ChangePage {
                    changes: round.changes,
                    next: position.position(),
                    has_gap: false,
                });
            }
            if round.has_finished {
                continue;
            }
            if Instant::now() >= deadline {
                return Ok(ChangePage {
                    changes: Vec::new(),
                    next: position.position(),
                    has_gap: false,
                });
            }
            tokio::time::sleep_until(deadline.min(Instant::now() + pause)).await;
            pause = (pause * 2).min(DELAY_MAX);
        }
    }
}

impl Remote {
    /// Extends a position by children and new shards, listing them again if the cache is too old.
    async fn add_readable_shards(
        &self,
        table: &str,
        position: &mut StreamPosition,
    ) -> Result<Result<(), Gap>, StoreError> {
        let life = if position.finished.is_empty() {
            SHARDS_LIFE
        } else {
            CHILDREN_DELAY
        };
        let stream = self.stream(table, life).await?;
        if stream.arn == position.arn && position.add_readable_shards(&stream.shards).is_ok() {
            return Ok(Ok(()));
        }
        // The cache may be older than the position.
        let stream = self.stream(table, Duration::ZERO).await?;
        if stream.arn != position.arn {
            return Ok(Err(Gap));
        }
        Ok(position.add_readable_shards(&stream.shards))
    }

    async fn after_gap(&self, table: &str) -> Result<ChangePage, StoreError> {
        Ok(ChangePage {
            changes: Vec::new(),
            next: self.end(table).await?,
            has_gap: true,
        })
    }

    /// Whether the stream of a table is enabled by now.
    pub(crate) async fn stream_is_on(&self, table: &str) -> Result<bool, StoreError> {
        let arn = self.stream_arn(table).await?;
        let is_on = streams::is_on(&self.feed.client, &arn).await;
        match is_on {
            // A stream that was just enabled may not be visible at once.
            Err(StreamFailure::Gone) => Ok(false),
            is_on => is_on.map_err(|failure| of_table(failure, table)),
        }
    }

    /// The stream of a table, cached for at most `life`.
    async fn stream(&self, table: &str, life: Duration) -> Result<Arc<Stream>, StoreError> {
        let known = {
            let streams = self.feed.streams.lock();
            let streams = streams.unwrap_or_else(PoisonError::into_inner);
            streams.get(table).map(Arc::clone)
        };
        if let Some(known) = known
            && known.seen.elapsed() < life
        {
            return Ok(known);
        }
        let seen = Instant::now();
        let arn = self.stream_arn(table).await?;
        let shards = streams::shards(&self.feed.client, &arn).await;
        let shards = shards.map_err(|failure| of_table(failure, table))?;
        let stream = Arc::new(Stream { arn, shards, seen });
        let mut streams = self
            .feed
            .streams
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        streams.insert(table.to_owned(), Arc::clone(&stream));
        Ok(stream)
    }

    fn forget_stream(&self, table: &str) {
        let streams = self.feed.streams.lock();
        streams
            .unwrap_or_else(PoisonError::into_inner)
            .remove(table);
    }

    async fn stream_arn(&self, table: &str) -> Result<String, StoreError> {
        let described = self.described(table).await?;
        let described = described.ok_or_else(|| StoreError::TableNotFound(table.to_owned()))?;
        let is_on = described
            .stream_specification
            .is_some_and(|stream| stream.stream_enabled);
        let arn = described.latest_stream_arn.filter(|_| is_on);
        arn.ok_or_else(|| StoreError::invalid(format!("table {table:?} has no stream")))
    }
}

fn of_table(failure: StreamFailure, table: &str) -> StoreError {
    match failure {
        StreamFailure::Store(error) => error,
        // The table existed a moment ago; its stream is being replaced or disabled.
        StreamFailure::Gone | StreamFailure::Trimmed => {
            StoreError::Unavailable(format!("the stream of table {table:?} is gone"))
        }
        StreamFailure::IteratorExpired => {
            StoreError::Unavailable("iterators expire as soon as they are made".to_owned())
        }
    }
}
