//! The topics with a retained message. The messages themselves stay in the store.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use homeport_systems::messages::{Message, RetainedTopic, TopicFilter};
use homeport_systems::time::EpochSeconds;

/// The topics, sorted.
#[derive(Default)]
pub(super) struct Retained {
    topics: RwLock<BTreeMap<Arc<str>, Kept>>,
}

/// The retained message of a topic.
struct Kept {
    sequence: u64,
    expires_at: Option<EpochSeconds>,
}

impl Retained {
    pub(super) fn new(stored: Vec<RetainedTopic>) -> Self {
        let topics = stored.into_iter().map(|one| {
            let kept = Kept {
                sequence: one.sequence,
                expires_at: one.expires_at,
            };
            (one.topic.into(), kept)
        });
        Self {
            topics: RwLock::new(topics.collect()),
        }
    }

    fn read(&self) -> RwLockReadGuard<'_, BTreeMap<Arc<str>, Kept>> {
        self.topics.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, BTreeMap<Arc<str>, Kept>> {
        self.topics.write().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn len(&self) -> usize {
        self.read().len()
    }

    pub(super) fn contains(&self, topic: &str) -> bool {
        self.read().contains_key(topic)
    }

    /// Notes that a message was stored or deleted.
    pub(super) fn note(&self, message: &Message, sequence: u64) {
        let topic = message.topic.as_str();
        let mut topics = self.write();
        if (topics.get(topic)).is_some_and(|known| known.sequence > sequence) {
            return;
        }
        if message.payload.is_empty() {
            topics.remove(topic);
            return;
        }
        let lifetime = message.properties.expires_after_secs;
        let received_at = message.received_at.seconds();
        let kept = Kept {
            sequence,
            expires_at: lifetime.map(|secs| received_at.plus_secs(secs.into())),
        };
        topics.insert(topic.into(), kept);
    }

    /// Forgets expired messages, which the store no longer has either.
    pub(super) fn forget_expired(&self, now: EpochSeconds) {
        self.write()
            .retain(|_, kept| kept.expires_at.is_none_or(|at| at > now));
    }

    /// Topics that match a filter, sorted, after `after`.
    pub(super) fn matching(
        &self,
        filter: &TopicFilter,
        after: Option<&str>,
        limit: usize,
    ) -> Vec<Arc<str>> {
        let text = filter.filter();
        // Matching topics begin with the text before the first wildcard. A filter that ends in /# also
        // matches the level above, so the last slash is not part of that text.
        let literal = text.find(['+', '#']).map_or(text, |end| &text[..end]);
        let literal = literal.strip_suffix('/').unwrap_or(literal);
        let from = after.map_or(Bound::Included(literal), Bound::Excluded);
        self.read()
            .range::<str, _>((from, Bound::Unbounded))
            .take_while(|(topic, _)| topic.starts_with(literal))
            .filter(|(topic, _)| filter.matches(topic))
            .map(|(topic, _)| Arc::clone(topic))
            .take(limit)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use homeport_systems::messages::{Delivery, Properties, Publisher};
    use homeport_systems::time::EpochMillis;

    use super::*;

    #[test]
    fn topics_are_found_by_filter_page_by_page() {
        let topics = [
            "$x/y",
            "a",
            "van",
            "van/v1",
            "van/v1/status",
            "van/v2/status",
            "vanity",
        ];
        let stored = topics.map(|topic| RetainedTopic {
            topic: topic.to_owned(),
            sequence: 1,
            expires_at: None,
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
            let expected = topics.into_iter().filter(|topic| filter.matches(topic));
            let mut found: Vec<Arc<str>> = Vec::new();
            loop {
                let page = retained.matching(&filter, found.last().map(|last| &**last), 2);
                if page.is_empty() {
                    break;
                }
                found.extend(page);
            }
            let found: Vec<_> = found.iter().map(|topic| &**topic).collect();
            assert_eq!(found, expected.collect::<Vec<_>>(), "{filter}");
        }
    }

    fn message(payload: &'static str, expires_after_secs: Option<u32>) -> Message {
        Message {
            topic: "van/v1/status".to_owned(),
            payload: Bytes::from_static(payload.as_bytes()),
            delivery: Delivery::AtLeastOnce,
            retain: true,
            publisher: Publisher::default(),
            received_at: EpochMillis(0),
            properties: Properties {
                expires_after_secs,
                ..Properties::default()
            },
            hops: 0,
        }
    }

    #[test]
    fn late_note_is_ignored() {
        let retained = Retained::default();
        retained.note(&message("on", None), 2);
        retained.note(&message("", None), 1);
        assert!(retained.contains("van/v1/status"));
        retained.note(&message("", None), 3);
        assert_eq!(retained.len(), 0);
    }

    #[test]
    fn expired_topics_make_room() {
        let retained = Retained::default();
        retained.note(&message("on", Some(10)), 1);
        retained.forget_expired(EpochSeconds(9));
        assert_eq!(retained.len(), 1);
        retained.forget_expired(EpochSeconds(10));
        assert_eq!(retained.len(), 0);
    }
}
