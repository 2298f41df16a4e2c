//! Reads shards: a round reads every shard once.

use futures_util::future::try_join_all;
use homeport_store::Change;

use super::iterators::Key;
use super::position::{ShardPosition, StreamPosition};
use super::streams::{self, StreamFailure};
use super::{Feed, record};

/// Number of shards that are read concurrently.
const READERS: usize = 16;
/// Maximum number of new iterators for one read.
const ITERATOR_TRIES_MAX: usize = 3;

/// The result of a round over all shards.
#[derive(Debug, Default)]
pub(super) struct Round {
    /// The changes before the new position.
    pub(super) changes: Vec<Change>,
    /// Whether shards were finished.
    pub(super) has_finished: bool,
}

/// The result of reading one shard.
struct ShardRead {
    shard: String,
    changes: Vec<Change>,
    /// The position for the next read; `None` at the end of the shard.
    at: Option<ShardPosition>,
}

impl Feed {
    /// Reads every shard of a position once, or until there are `limit` changes, and advances the
    /// position. After a failure the position must be discarded.
    pub(super) async fn read_round(
        &self,
        position: &mut StreamPosition,
        limit: usize,
        turn: usize,
    ) -> Result<Round, StreamFailure> {
        let mut shards: Vec<(String, ShardPosition)> =
            position.shards.clone().into_iter().collect();
        let first = turn % shards.len().max(1);
        shards.rotate_left(first);
        let mut round = Round::default();
        let mut rest = shards.as_slice();
        while !rest.is_empty() && round.changes.len() < limit {
            let left = limit - round.changes.len();
            let (now, later) = rest.split_at(rest.len().min(READERS).min(left));
            rest = later;
            let share = left / now.len();
            let arn = position.arn.as_str();
            let reads = now
                .iter()
                .map(|(shard, at)| self.read(arn, shard, at, share));
            for read in try_join_all(reads).await? {
                round.changes.extend(read.changes);
                match read.at {
                    Some(at) => {
                        position.shards.insert(read.shard, at);
                    }
                    None => {
                        round.has_finished = true;
                        position.finish(&read.shard);
                    }
                }
            }
        }
        Ok(round)
    }

    /// Reads up to `limit` changes of one shard, within DynamoDB's rate limit.
    async fn read(
        &self,
        arn: &str,
        shard: &str,
        at: &ShardPosition,
        limit: usize,
    ) -> Result<ShardRead, StreamFailure> {
        let mut key = Key {
            arn: arn.to_owned(),
            shard: shard.to_owned(),
            at: at.clone(),
        };
        let mut tries = 0;
        let read = loop {
            tokio::time::sleep_until(self.iterators.reserve_read(arn, shard)).await;
            let iterator = match self.iterators.get(&key) {
                Some(iterator) => iterator,
                None => {
                    let iterator = streams::iterator(&self.client, arn, shard, at).await?;
                    self.iterators.keep(key.clone(), iterator.clone());
                    iterator
                }
            };
            tries += 1;
            match streams::records(&self.client, &iterator, limit).await {
                Err(StreamFailure::IteratorExpired) if tries < ITERATOR_TRIES_MAX => {
                    self.iterators.drop_expired(&key);
                }
                outcome => break outcome?,
            }
        };
        let mut changes = Vec::with_capacity(read.records.len());
        for record in read.records {
            let (number, change) = record::change(record).map_err(StreamFailure::Store)?;
            changes.push(change);
            key.at = ShardPosition::After(number);
        }
        let at = read.next.map(|next| {
            let at = key.at.clone();
            self.iterators.keep(key, next);
            at
        });
        Ok(ShardRead {
            shard: shard.to_owned(),
            changes,
            at,
        })
    }
}
