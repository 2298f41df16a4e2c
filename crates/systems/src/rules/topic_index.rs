//! Finds the filters that match a topic, level by level instead of filter by filter.

use std::collections::HashMap;

use homeport_rules::TopicFilter;

/// Levels of a rule's topic filter.
pub const FILTER_LEVELS_MAX: usize = 64;

/// Topic filters with their values.
#[derive(Debug, Default)]
pub(super) struct TopicIndex {
    root: Node,
}

#[derive(Debug, Default)]
struct Node {
    levels: HashMap<Box<str>, Node>,
    any_level: Option<Box<Node>>,
    /// Values of filters that end here.
    here: Vec<usize>,
    /// Values of filters that end here with `#`.
    below: Vec<usize>,
}

impl TopicIndex {
    pub(super) fn insert(&mut self, filter: &TopicFilter, what: usize) {
        let mut node = &mut self.root;
        for level in filter.as_str().split('/') {
            match level {
                "#" => {
                    node.below.push(what);
                    return;
                }
                "+" => node = node.any_level.get_or_insert_default(),
                _ => node = node.levels.entry(level.into()).or_default(),
            }
        }
        node.here.push(what);
    }

    /// The values of the filters that match `topic`, in ascending order.
    pub(super) fn matching(&self, topic: &str) -> Vec<usize> {
        let mut found = Vec::new();
        if topic.starts_with('$') {
            // Topics of the server: filters that begin with a wildcard do not match them.
            let (first, rest) = split(topic);
            if let Some(node) = self.root.levels.get(first) {
                node.collect(rest, &mut found);
            }
        } else {
            self.root.collect(Some(topic), &mut found);
        }
        found.sort_unstable();
        found
    }
}

impl Node {
    /// `rest` is the remaining topic; `None` at its end.
    fn collect(&self, rest: Option<&str>, found: &mut Vec<usize>) {
        found.extend_from_slice(&self.below);
        let Some(rest) = rest else {
            found.extend_from_slice(&self.here);
            return;
        };
        let (level, rest) = split(rest);
        if let Some(node) = self.levels.get(level) {
            node.collect(rest, found);
        }
        if let Some(node) = &self.any_level {
            node.collect(rest, found);
        }
    }
}

fn split(topic: &str) -> (&str, Option<&str>) {
    match topic.split_once('/') {
        Some((level, rest)) => (level, Some(rest)),
        None => (topic, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn filter(text: &str) -> TopicFilter {
        TopicFilter::parse(text).expect("a filter")
    }

    #[test]
    fn topic_finds_matching_filters() {
        let filters = [
            "van/+/telemetry",
            "van/1/telemetry",
            "van/#",
            "#",
            "+/+/status",
            "$sys/#",
        ];
        let mut index = TopicIndex::default();
        for (at, text) in filters.iter().enumerate() {
            index.insert(&filter(text), at);
        }
        for (topic, expected) in [
            ("van/1/telemetry", vec![0, 1, 2, 3]),
            ("van/2/status", vec![2, 3, 4]),
            ("van", vec![2, 3]),
            ("van/1/telemetry/x", vec![2, 3]),
            ("$sys/a", vec![5]),
            ("$other", vec![]),
        ] {
            assert_eq!(index.matching(topic), expected, "{topic}");
        }
    }

    proptest! {
        #[test]
        fn the_index_agrees_with_each_filter_alone(
            filters in proptest::collection::vec("(\\$?[ab]?|\\+)(/([ab]?|\\+)){0,3}(/#)?", 1..8),
            topic in "\\$?[ab]?(/[ab]?){0,4}",
        ) {
            let filters: Vec<_> =
                filters.iter().filter_map(|text| TopicFilter::parse(text).ok()).collect();
            let mut index = TopicIndex::default();
            for (at, filter) in filters.iter().enumerate() {
                index.insert(filter, at);
            }
            let alone: Vec<_> =
                (0..filters.len()).filter(|at| filters[*at].matches(&topic)).collect();
            prop_assert_eq!(index.matching(&topic), alone);
        }
    }
}
