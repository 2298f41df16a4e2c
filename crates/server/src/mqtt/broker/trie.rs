//! The subscriptions of all sessions, by topic filter.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use homeport_systems::messages::{Subscription, TopicFilter, TopicTree};

use super::session::Session;

/// The subscribers of all filters.
#[derive(Default)]
pub(super) struct Trie(TopicTree<Subscribers>);

/// The subscribers of a filter.
#[derive(Default)]
pub(super) struct Subscribers {
    pub(super) each: Vec<Subscriber>,
    pub(super) groups: Vec<Group>,
}

pub(super) struct Subscriber {
    pub(super) session: Arc<Session>,
    pub(super) how: Subscription,
}

/// The members of a shared subscription.
pub(super) struct Group {
    name: Box<str>,
    members: Vec<Subscriber>,
    /// The number of the next turn.
    next: AtomicUsize,
}

impl Group {
    /// The members, beginning with the one whose turn it is.
    pub(super) fn in_turn(&self) -> impl Iterator<Item = &Subscriber> {
        let first = self.next.fetch_add(1, Ordering::Relaxed) % self.members.len().max(1);
        let (before, from) = self.members.split_at(first);
        from.iter().chain(before)
    }
}

impl Trie {
    /// Adds a subscription, or replaces the session's subscription to the same filter.
    pub(super) fn insert(
        &mut self,
        filter: &TopicFilter,
        session: &Arc<Session>,
        how: Subscription,
    ) {
        let subscribers = self.0.value_mut(filter.filter());
        subscribers.insert(filter.group(), session, how);
    }

    pub(super) fn remove(&mut self, filter: &TopicFilter, session: &Arc<Session>) {
        self.0.remove_if(filter.filter(), |subscribers| {
            subscribers.remove(filter.group(), session);
            subscribers.is_empty()
        });
    }

    /// Visits the subscribers of all matching filters.
    pub(super) fn matching(&self, topic: &str, visit: &mut impl FnMut(&Subscribers)) {
        self.0.matching(topic, visit);
    }
}

impl Subscribers {
    fn insert(&mut self, group: Option<&str>, session: &Arc<Session>, how: Subscription) {
        let list = match group {
            None => &mut self.each,
            Some(name) => {
                let found = self.groups.iter().position(|group| *group.name == *name);
                let index = found.unwrap_or_else(|| {
                    self.groups.push(Group {
                        name: name.into(),
                        members: Vec::new(),
                        next: AtomicUsize::new(0),
                    });
                    self.groups.len() - 1
                });
                &mut self.groups[index].members
            }
        };
        match list
            .iter_mut()
            .find(|one| Arc::ptr_eq(&one.session, session))
        {
            Some(one) => one.how = how,
            None => list.push(Subscriber {
                session: Arc::clone(session),
                how,
            }),
        }
    }

    fn remove(&mut self, group: Option<&str>, session: &Arc<Session>) {
        let leave = |list: &mut Vec<Subscriber>| {
            list.retain(|one| !Arc::ptr_eq(&one.session, session));
        };
        match group {
            None => leave(&mut self.each),
            Some(name) => {
                for group in self.groups.iter_mut().filter(|group| *group.name == *name) {
                    leave(&mut group.members);
                }
                self.groups.retain(|group| !group.members.is_empty());
            }
        }
    }

    fn is_empty(&self) -> bool {
        self.each.is_empty() && self.groups.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use homeport_systems::messages::Delivery;

    use super::super::session::SessionName;
    use super::*;

    const HOW: Subscription = Subscription {
        delivery: Delivery::AtLeastOnce,
        no_local: false,
        retain_as_published: false,
        identifier: None,
    };

    fn session(name: &str) -> Arc<Session> {
        Arc::new(Session::new(SessionName::new("any", name)))
    }

    fn found(trie: &Trie, topic: &str) -> Vec<String> {
        let mut found = Vec::new();
        trie.matching(topic, &mut |subscribers| {
            found.extend(
                subscribers
                    .each
                    .iter()
                    .map(|one| one.session.name.client_id.to_string()),
            );
        });
        found.sort();
        found
    }

    /// The trie finds the same filters as a comparison with each of them.
    #[test]
    fn trie_agrees_with_filters() {
        let filters = [
            "#",
            "+",
            "+/+",
            "van/#",
            "van/+",
            "van/v1",
            "van/v1/#",
            "van/+/x",
            "+/v1/x",
            "/",
            "/+",
            "van//x",
            "$internal/#",
            "$internal/+/x",
            "van/v1/x/#",
            "+/+/+",
            "van/+/#",
        ];
        let topics = [
            "van",
            "van/v1",
            "van/v1/x",
            "van/v2/x",
            "van//x",
            "/",
            "/v1",
            "$internal",
            "$internal/v1/x",
            "van/v1/x/y",
            "bus/v1/x",
            "x/y/z/w",
        ];
        let mut trie = Trie::default();
        let sessions: Vec<_> = filters.iter().map(|filter| session(filter)).collect();
        let parsed: Vec<TopicFilter> = filters
            .iter()
            .map(|filter| filter.parse().expect("a filter"))
            .collect();
        for (filter, session) in parsed.iter().zip(&sessions) {
            trie.insert(filter, session, HOW);
            trie.insert(filter, session, HOW);
        }
        for topic in topics {
            let mut expected: Vec<_> = parsed
                .iter()
                .filter(|filter| filter.matches(topic))
                .map(ToString::to_string)
                .collect();
            expected.sort();
            assert_eq!(found(&trie, topic), expected, "{topic}");
        }
        for (filter, session) in parsed.iter().zip(&sessions) {
            trie.remove(filter, session);
        }
        assert!(trie.0.is_empty(), "nothing is left behind");
    }

    #[test]
    fn members_of_a_group_take_turns() {
        let mut trie = Trie::default();
        let filter: TopicFilter = "$share/workers/van/+/x".parse().expect("a filter");
        let sessions = ["a", "b", "c"].map(session);
        for session in &sessions {
            trie.insert(&filter, session, HOW);
        }
        let mut turns = String::new();
        for _ in 0..6 {
            trie.matching("van/v1/x", &mut |subscribers| {
                assert!(subscribers.each.is_empty());
                let first = subscribers.groups[0].in_turn().next().expect("a member");
                turns.push_str(&first.session.name.client_id);
            });
        }
        assert_eq!(turns, "abcabc");
        sessions
            .iter()
            .for_each(|session| trie.remove(&filter, session));
        assert!(trie.0.is_empty());
    }
}
