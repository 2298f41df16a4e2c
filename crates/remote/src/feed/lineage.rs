//! Decides which shards of a stream can be read now. Shards are closed and replaced by children
//! every few hours. Changes of one item continue in a child, so a parent must be finished first.

use std::collections::{HashMap, HashSet};

use super::position::{ShardPosition, StreamPosition};

/// A shard in the stream's list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Shard {
    pub(super) id: String,
    /// The parent shard, which may no longer be listed.
    pub(super) parent: Option<String>,
}

/// Changes that the reader has not seen are lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Gap;

impl StreamPosition {
    /// Adds the shards that can be read now.
    pub(super) fn add_readable_shards(&mut self, listed: &[Shard]) -> Result<(), Gap> {
        let ids: HashSet<&str> = listed.iter().map(|shard| shard.id.as_str()).collect();
        if self.shards.keys().any(|id| !ids.contains(id.as_str())) {
            // All of its records are older than the retention.
            return Err(Gap);
        }
        let done = self.done(listed);
        let mut new = Vec::new();
        for shard in listed {
            if self.shards.contains_key(&shard.id) || done.contains(&shard.id) {
                continue;
            }
            match &shard.parent {
                None => new.push(shard),
                Some(parent) if done.contains(parent) => new.push(shard),
                // It is added when the parent is finished.
                Some(parent) if ids.contains(parent.as_str()) => {}
                // The parent appeared and expired without being read.
                Some(_) => return Err(Gap),
            }
        }
        for shard in new {
            self.shards.insert(shard.id.clone(), ShardPosition::Start);
        }
        self.forget_finished(listed);
        Ok(())
    }

    /// Marks a shard that was read to its final end as finished.
    pub(super) fn finish(&mut self, shard: &str) {
        self.shards.remove(shard);
        self.finished.insert(shard.to_owned());
    }

    /// All shards that need no more reads: finished ones, and the ancestors of finished and current
    /// ones.
    fn done(&self, listed: &[Shard]) -> HashSet<String> {
        let parents: HashMap<&str, &str> = listed
            .iter()
            .filter_map(|shard| Some((shard.id.as_str(), shard.parent.as_deref()?)))
            .collect();
        let mut above = HashSet::new();
        for known in self.shards.keys().chain(&self.finished) {
            let mut next = parents.get(known.as_str());
            while let Some(parent) = next
                && above.insert(*parent)
            {
                next = parents.get(parent);
            }
        }
        let above = above.into_iter().map(str::to_owned);
        above.chain(self.finished.iter().cloned()).collect()
    }

    /// Forgets finished shards whose children are known, which keeps the text short.
    fn forget_finished(&mut self, listed: &[Shard]) {
        let known: HashSet<&str> = listed
            .iter()
            .filter(|shard| {
                self.shards.contains_key(&shard.id) || self.finished.contains(&shard.id)
            })
            .filter_map(|shard| shard.parent.as_deref())
            .collect();
        self.finished.retain(|id| !known.contains(id.as_str()));
    }
}

/// The shards without children, which receive new changes.
pub(super) fn youngest(listed: &[Shard]) -> impl Iterator<Item = &Shard> {
    let parents: HashSet<&str> = listed
        .iter()
        .filter_map(|shard| shard.parent.as_deref())
        .collect();
    listed
        .iter()
        .filter(move |shard| !parents.contains(shard.id.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parses shard names; a parent's name follows after a colon.
    fn shards(text: &str) -> Vec<Shard> {
        let shard = |word: &str| match word.split_once(':') {
            Some((id, parent)) => Shard {
                id: id.to_owned(),
                parent: Some(parent.to_owned()),
            },
            None => Shard {
                id: word.to_owned(),
                parent: None,
            },
        };
        text.split_whitespace().map(shard).collect()
    }

    fn position(reading: &str, finished: &str) -> StreamPosition {
        let mut position = StreamPosition::new("arn");
        for id in reading.split_whitespace() {
            position
                .shards
                .insert(id.to_owned(), ShardPosition::After("1".into()));
        }
        position.finished = finished.split_whitespace().map(str::to_owned).collect();
        position
    }

    /// Checks the current and the finished shards after adding the listed ones.
    #[track_caller]
    fn check(
        mut position: StreamPosition,
        listed: &str,
        expected: Result<(&str, &str), Gap>,
    ) -> StreamPosition {
        let names = |ids: Vec<&String>| ids.into_iter().cloned().collect::<Vec<_>>().join(" ");
        let taken = position.add_readable_shards(&shards(listed)).map(|()| {
            let reading = names(position.shards.keys().collect());
            (reading, names(position.finished.iter().collect()))
        });
        let expected = expected.map(|(a, b)| (a.to_owned(), b.to_owned()));
        assert_eq!(taken, expected, "{listed}");
        position
    }

    #[test]
    fn children_wait_for_their_parents() {
        let listed = "a b:a c:b d:a";
        let mut position = check(position("a", ""), listed, Ok(("a", "")));
        position.finish("a");
        let mut position = check(position, listed, Ok(("b d", "")));
        assert_eq!(position.shards["b"], ShardPosition::Start);
        position.finish("b");
        check(position, listed, Ok(("c d", "")));
    }

    #[test]
    fn finished_shard_is_kept_until_its_children_appear() {
        let mut reading = position("a", "");
        reading.finish("a");
        let position = check(reading, "a", Ok(("", "a")));
        let position = check(position, "a b:a", Ok(("b", "")));
        // Listed after its sibling.
        check(position, "a b:a c:a", Ok(("b c", "")));
    }

    #[test]
    fn ancestors_are_never_read_again() {
        check(position("d", ""), "a b:a c:b d:c", Ok(("d", "")));
        check(position("", "d"), "a b:a c:b d:c", Ok(("", "d")));
        check(position("d", ""), "c:b d:c", Ok(("d", "")));
    }

    #[test]
    fn unfinished_expired_shard_is_a_gap() {
        check(position("a", ""), "b:a", Err(Gap));
        check(position("a", ""), "", Err(Gap));
        // `b` appeared and expired in between.
        check(position("", "a"), "c:b", Err(Gap));
        check(position("x", "a"), "x c:b", Err(Gap));
    }

    #[test]
    fn finished_parent_may_be_missing() {
        check(position("", "a"), "b:a", Ok(("b", "")));
        check(position("", "a"), "", Ok(("", "a")));
    }

    #[test]
    fn first_shards_are_read_from_their_start() {
        check(position("", ""), "a b", Ok(("a b", "")));
    }

    #[test]
    fn youngest_shards_have_no_children() {
        let listed = shards("a b:a c:a d:c e");
        let ids: Vec<_> = youngest(&listed).map(|shard| shard.id.as_str()).collect();
        assert_eq!(ids, ["b", "d", "e"]);
    }

    #[test]
    fn every_shard_is_read_once_after_its_parent() {
        // Each shard splits in two, and a reader finishes one shard after the other.
        let mut listed = shards("s1");
        for child in 2..200 {
            listed.push(Shard {
                id: format!("s{child}"),
                parent: Some(format!("s{}", child / 2)),
            });
        }
        let mut reader = position("", "");
        let mut read: Vec<String> = Vec::new();
        for step in 0_usize.. {
            reader.add_readable_shards(&listed).unwrap();
            let open: Vec<String> = reader.shards.keys().cloned().collect();
            if open.is_empty() {
                break;
            }
            let next = &open[step * 7 % open.len()];
            assert!(!read.contains(next), "{next} twice");
            let parent = listed.iter().find(|shard| shard.id == *next).unwrap();
            assert!(parent.parent.as_ref().is_none_or(|id| read.contains(id)));
            read.push(next.clone());
            reader.finish(next);
        }
        assert_eq!(read.len(), listed.len());
    }
}
