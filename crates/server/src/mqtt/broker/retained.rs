//! Which topics have a retained message. The messages themselves stay in the store.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Arc, PoisonError, RwLock};

use homeport_systems::messages::{RetainedTopic, TopicFilter};

/// The topics, each with the sequence of the message that decided last.
#[derive(Default)]
pub(super) struct Retained {
    topics: RwLock<BTreeMap<Arc<str>, u64>>,
}

impl Retained {
    pub(super) fn new(stored: Vec<RetainedTopic>) -> Self {
        let topics = stored.into_iter();
        let topics = topics.map(|one| (one.topic.into(), one.sequence)).collect();
        Self {
            topics: RwLock::new(topics),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.topics
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .len()
    }

    pub(super) fn contains(&self, topic: &str) -> bool {
        let topics = self.topics.read().unwrap_or_else(PoisonError::into_inner);
        topics.contains_key(topic)
    }

    /// Notes that the store has a topic's message, or that it was taken away.
    pub(super) fn note(&self, topic: &str, sequence: u64, is_there: bool) {
        let mut topics = self.topics.write().unwrap_or_else(PoisonError::into_inner);
        if topics.get(topic).is_some_and(|known| *known > sequence) {
            return;
        }
        if is_there {
            topics.insert(topic.into(), sequence);
        } else {
            topics.remove(topic);
        }
    }

    /// The topics that a filter matches.
    pub(super) fn matching(&self, filter: &TopicFilter) -> Vec<Arc<str>> {
        let topics = self.topics.read().unwrap_or_else(PoisonError::into_inner);
        let text = filter.filter();
        // What stands before the first wildcard must be there literally. A filter that ends in /#
        // matches the level above too, so that the last slash is no part of it.
        let literal = text.find(['+', '#']).map_or(text, |end| &text[..end]);
        let literal = literal.strip_suffix('/').unwrap_or(literal);
        topics
            .range::<str, _>((Bound::Included(literal), Bound::Unbounded))
            .take_while(|(topic, _)| topic.starts_with(literal))
            .filter(|(topic, _)| filter.matches(topic))
            .map(|(topic, _)| Arc::clone(topic))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topics_are_found_by_filter() {
        let topics = [
            "a",
            "van",
            "van/v1",
            "van/v1/status",
            "van/v2/status",
            "vanity",
            "$x/y",
        ];
        let stored = topics.map(|topic| RetainedTopic {
            topic: topic.to_owned(),
            sequence: 1,
        });
        let retained = Retained::new(stored.to_vec());
        for filter in [
            "#",
            "+",
            "van/#",
            "van/+/status",
            "van/v1",
            "van/v1/#",
            "+/+/+",
            "$x/#",
        ] {
            let filter: TopicFilter = filter.parse().expect("a filter");
            let mut expected: Vec<_> = topics.into_iter().filter(|t| filter.matches(t)).collect();
            expected.sort_unstable();
            let found = retained.matching(&filter);
            let found: Vec<_> = found.iter().map(|topic| &**topic).collect();
            assert_eq!(found, expected, "{filter}");
        }
    }

    #[test]
    fn a_late_note_changes_nothing() {
        let retained = Retained::default();
        retained.note("van/v1/status", 2, true);
        retained.note("van/v1/status", 1, false);
        assert!(retained.contains("van/v1/status"));
        retained.note("van/v1/status", 3, false);
        assert_eq!(retained.len(), 0);
    }
}
