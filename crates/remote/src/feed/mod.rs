//! The seam of changes on DynamoDB Streams. A stream is many shards, which close and go on in
//! children; a position names the place in each shard that is being read.
//!
//! What is kept in memory (iterators, the list of shards) only saves questions: a position alone
//! is enough to go on.

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
use self::position::{At, Place};
use self::streams::StreamFailure;
use crate::connect::Remote;

/// How long a list of shards is believed: in that time nothing can be missed, as a shard with
/// children says so itself.
const SHARDS_LIFE: Duration = Duration::from_secs(60);
/// How long to wait before children are looked for again that should be there.
const CHILDREN_PAUSE: Duration = Duration::from_secs(2);
/// The pauses between two looks at a quiet stream.
const PAUSE_FIRST: Duration = Duration::from_millis(250);
const PAUSE_LONGEST: Duration = Duration::from_secs(1);

/// What is known of streams.
#[derive(Debug)]
pub(crate) struct Feed {
    client: aws_sdk_dynamodbstreams::Client,
    iterators: Iterators,
    /// The streams of tables.
    streams: Mutex<HashMap<String, Arc<Stream>>>,
    /// Where the next round begins, so that no shard is always the last.
    turn: AtomicUsize,
}

/// A stream as it was at a time.
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
        let mut place = Place::new(&stream.arn);
        for shard in youngest(&stream.shards) {
            let iterator = streams::iterator_at_end(&self.feed.client, &stream.arn, &shard.id);
            let iterator = iterator.await.map_err(|failure| of_table(failure, table))?;
            let at = At::End(uuid::Uuid::new_v4().simple().to_string());
            place.shards.insert(shard.id.clone(), at.clone());
            let key = Key {
                arn: stream.arn.clone(),
                shard: shard.id.clone(),
                at,
            };
            self.feed.iterators.keep(key, iterator);
        }
        Ok(place.position())
    }

    async fn changes(
        &self,
        table: &str,
        from: &Position,
        limit: usize,
        wait: Duration,
    ) -> Result<ChangePage, StoreError> {
        let mut place = Place::parse(from)?;
        let deadline = Instant::now() + wait;
        let mut pause = PAUSE_FIRST;
        loop {
            if self.take_up(table, &mut place).await? == Err(Gap) {
                return self.behind_a_gap(table).await;
            }
            let turn = self.feed.turn.fetch_add(1, Ordering::Relaxed);
            let round = match self.feed.read_round(&mut place, limit.max(1), turn).await {
                Ok(round) => round,
                Err(StreamFailure::Trimmed | StreamFailure::Gone) => {
                    return self.behind_a_gap(table).await;
                }
                Err(failure) => return Err(of_table(failure, table)),
            };
            if round.has_finished {
                // Their children have what comes next, and only a new list has those.
                self.forget_stream(table);
            }
            if !round.changes.is_empty() {
                return Ok(ChangePage {
                    changes: round.changes,
                    next: place.position(),
                    has_gap: false,
                });
            }
            if round.has_finished {
                continue;
            }
            if Instant::now() >= deadline {
                return Ok(ChangePage {
                    changes: Vec::new(),
                    next: place.position(),
                    has_gap: false,
                });
            }
            tokio::time::sleep_until(deadline.min(Instant::now() + pause)).await;
            pause = (pause * 2).min(PAUSE_LONGEST);
        }
    }
}

impl Remote {
    /// Lets a place go on in children and new shards, asking DynamoDB where memory is too old.
    async fn take_up(&self, table: &str, place: &mut Place) -> Result<Result<(), Gap>, StoreError> {
        let life = if place.finished.is_empty() {
            SHARDS_LIFE
        } else {
            CHILDREN_PAUSE
        };
        let stream = self.stream(table, life).await?;
        if stream.arn == place.arn && place.take_up(&stream.shards).is_ok() {
            return Ok(Ok(()));
        }
        // What memory knows may be older than the place.
        let stream = self.stream(table, Duration::ZERO).await?;
        if stream.arn != place.arn {
            return Ok(Err(Gap));
        }
        Ok(place.take_up(&stream.shards))
    }

    async fn behind_a_gap(&self, table: &str) -> Result<ChangePage, StoreError> {
        Ok(ChangePage {
            changes: Vec::new(),
            next: self.end(table).await?,
            has_gap: true,
        })
    }

    /// Whether the stream of a table takes changes up by now.
    pub(crate) async fn stream_is_on(&self, table: &str) -> Result<bool, StoreError> {
        let arn = self.stream_arn(table).await?;
        let is_on = streams::is_on(&self.feed.client, &arn).await;
        match is_on {
            // One that was just switched on may not be seen at once.
            Err(StreamFailure::Gone) => Ok(false),
            is_on => is_on.map_err(|failure| of_table(failure, table)),
        }
    }

    /// The stream of a table, as it was not longer ago than `life`.
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
        let described = described.ok_or_else(|| StoreError::TableMissing(table.to_owned()))?;
        let is_on = described
            .stream_specification
            .is_some_and(|stream| stream.stream_enabled);
        let arn = described.latest_stream_arn.filter(|_| is_on);
        arn.ok_or_else(|| StoreError::Invalid(format!("table {table:?} has no stream")))
    }
}

fn of_table(failure: StreamFailure, table: &str) -> StoreError {
    match failure {
        StreamFailure::Store(error) => error,
        // The table was there a moment ago; its stream is being switched or taken away.
        StreamFailure::Gone | StreamFailure::Trimmed => {
            StoreError::Unavailable(format!("the stream of table {table:?} is gone"))
        }
        StreamFailure::IteratorExpired => {
            StoreError::Unavailable("iterators expire as soon as they are made".to_owned())
        }
    }
}
