//! Reading shards: a round looks at every shard once.

use futures_util::future::try_join_all;
use homeport_store::Change;

use super::iterators::Key;
use super::position::{At, Place};
use super::streams::{self, StreamFailure};
use super::{Feed, record};

/// Shards that are read side by side.
const READERS: usize = 16;
/// How often an iterator is had anew for one read.
const ITERATOR_TRIES_MAX: usize = 3;

/// What a look at all shards brought.
#[derive(Debug, Default)]
pub(super) struct Round {
    /// The place is behind them.
    pub(super) changes: Vec<Change>,
    /// Shards came to their end.
    pub(super) has_finished: bool,
}

/// What a read of one shard brought.
struct Read {
    shard: String,
    changes: Vec<Change>,
    /// Where the shard is to be read on; none when it has come to its end.
    at: Option<At>,
}

impl Feed {
    /// Reads every shard of a place once, or until there are `limit` changes, and moves the place
    /// on. After a failure the place is of no use any more.
    pub(super) async fn read_round(
        &self,
        place: &mut Place,
        limit: usize,
        turn: usize,
    ) -> Result<Round, StreamFailure> {
        let mut shards: Vec<(String, At)> = place.shards.clone().into_iter().collect();
        let first = turn % shards.len().max(1);
        shards.rotate_left(first);
        let mut round = Round::default();
        let mut rest = shards.as_slice();
        while !rest.is_empty() && round.changes.len() < limit {
            let left = limit - round.changes.len();
            let (now, later) = rest.split_at(rest.len().min(READERS).min(left));
            rest = later;
            let share = left / now.len();
            let arn = place.arn.as_str();
            let reads = now
                .iter()
                .map(|(shard, at)| self.read(arn, shard, at, share));
            for read in try_join_all(reads).await? {
                round.changes.extend(read.changes);
                match read.at {
                    Some(at) => {
                        place.shards.insert(read.shard, at);
                    }
                    None => {
                        round.has_finished = true;
                        place.finish(&read.shard);
                    }
                }
            }
        }
        Ok(round)
    }

    /// Reads up to `limit` changes of one shard, not more often than DynamoDB allows.
    async fn read(
        &self,
        arn: &str,
        shard: &str,
        at: &At,
        limit: usize,
    ) -> Result<Read, StreamFailure> {
        let mut key = Key {
            arn: arn.to_owned(),
            shard: shard.to_owned(),
            at: at.clone(),
        };
        let mut tries = 0;
        let read = loop {
            tokio::time::sleep_until(self.iterators.turn(arn, shard)).await;
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
            key.at = At::After(number);
        }
        let at = read.next.map(|next| {
            let at = key.at.clone();
            self.iterators.keep(key, next);
            at
        });
        Ok(Read {
            shard: shard.to_owned(),
            changes,
            at,
        })
    }
}
