//! Which shards of a stream can be read now. Shards are closed and replaced by children every few
//! hours; the changes of one item go on in a child, so that a parent has to be finished first.

use std::collections::{HashMap, HashSet};

use super::position::{At, Place};

/// A shard as the stream lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Shard {
    pub(super) id: String,
    /// The one that it goes on from, which may no longer be listed.
    pub(super) parent: Option<String>,
}

/// Changes that the reader has not seen are gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Gap;

impl Place {
    /// Takes up the shards that can be read by now.
    pub(super) fn take_up(&mut self, listed: &[Shard]) -> Result<(), Gap> {
        let ids: HashSet<&str> = listed.iter().map(|shard| shard.id.as_str()).collect();
        if self.shards.keys().any(|id| !ids.contains(id.as_str())) {
            // Everything in it is older than what is kept.
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
                // Its turn comes when the parent is finished.
                Some(parent) if ids.contains(parent.as_str()) => {}
                // The parent came and went without having been read.
                Some(_) => return Err(Gap),
            }
        }
        for shard in new {
            self.shards.insert(shard.id.clone(), At::Start);
        }
        self.forget_finished(listed);
        Ok(())
    }

    /// Ends the reading of a shard that has nothing more and never will.
    pub(super) fn finish(&mut self, shard: &str) {
        self.shards.remove(shard);
        self.finished.insert(shard.to_owned());
    }

    /// All shards that need no reading any more: those that are finished, and what is above them
    /// and above those that are being read.
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

    /// Finished shards whose children are known follow from those: the text stays short.
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

/// The shards without children: where new changes go.
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

    /// Shards by name, each with its parent's name behind a colon where it has one.
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

    fn place(reading: &str, finished: &str) -> Place {
        let mut place = Place::new("arn");
        for id in reading.split_whitespace() {
            place.shards.insert(id.to_owned(), At::After("1".into()));
        }
        place.finished = finished.split_whitespace().map(str::to_owned).collect();
        place
    }

    /// What is read and what is kept as finished after the shards have been looked at.
    #[track_caller]
    fn check(mut place: Place, listed: &str, expected: Result<(&str, &str), Gap>) -> Place {
        let names = |ids: Vec<&String>| ids.into_iter().cloned().collect::<Vec<_>>().join(" ");
        let taken = place.take_up(&shards(listed)).map(|()| {
            let reading = names(place.shards.keys().collect());
            (reading, names(place.finished.iter().collect()))
        });
        let expected = expected.map(|(a, b)| (a.to_owned(), b.to_owned()));
        assert_eq!(taken, expected, "{listed}");
        place
    }

    #[test]
    fn children_wait_for_their_parents() {
        let listed = "a b:a c:b d:a";
        let mut place = check(place("a", ""), listed, Ok(("a", "")));
        place.finish("a");
        let mut place = check(place, listed, Ok(("b d", "")));
        assert_eq!(place.shards["b"], At::Start);
        place.finish("b");
        check(place, listed, Ok(("c d", "")));
    }

    #[test]
    fn a_finished_shard_is_remembered_until_its_children_show() {
        let mut reading = place("a", "");
        reading.finish("a");
        let place = check(reading, "a", Ok(("", "a")));
        let place = check(place, "a b:a", Ok(("b", "")));
        // Listed later than its sibling.
        check(place, "a b:a c:a", Ok(("b c", "")));
    }

    #[test]
    fn what_is_above_is_never_read_again() {
        check(place("d", ""), "a b:a c:b d:c", Ok(("d", "")));
        check(place("", "d"), "a b:a c:b d:c", Ok(("", "d")));
        check(place("d", ""), "c:b d:c", Ok(("d", "")));
    }

    #[test]
    fn a_shard_that_is_gone_before_it_was_finished_is_a_gap() {
        check(place("a", ""), "b:a", Err(Gap));
        check(place("a", ""), "", Err(Gap));
        // b came and went in between.
        check(place("", "a"), "c:b", Err(Gap));
        check(place("x", "a"), "x c:b", Err(Gap));
    }

    #[test]
    fn a_finished_parent_may_be_gone() {
        check(place("", "a"), "b:a", Ok(("b", "")));
        check(place("", "a"), "", Ok(("", "a")));
    }

    #[test]
    fn the_first_shards_of_a_stream_are_read_from_their_start() {
        check(place("", ""), "a b", Ok(("a b", "")));
    }

    #[test]
    fn the_youngest_have_no_children() {
        let listed = shards("a b:a c:a d:c e");
        let ids: Vec<_> = youngest(&listed).map(|shard| shard.id.as_str()).collect();
        assert_eq!(ids, ["b", "d", "e"]);
    }

    #[test]
    fn every_shard_of_a_long_history_is_read_once_and_after_its_parent() {
        // Each shard splits in two; a reader finishes one shard after the other.
        let mut listed = shards("s1");
        for child in 2..200 {
            listed.push(Shard {
                id: format!("s{child}"),
                parent: Some(format!("s{}", child / 2)),
            });
        }
        let mut reader = place("", "");
        let mut read: Vec<String> = Vec::new();
        for step in 0_usize.. {
            reader.take_up(&listed).unwrap();
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
