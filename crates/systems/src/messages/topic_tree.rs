//! Values by topic filter, as a tree of topic levels. A lookup visits one node for each level of the topic,
//! and the wildcards beside it.

use std::collections::HashMap;

/// A value for each topic filter.
#[derive(Debug)]
pub struct TopicTree<T> {
    root: Node<T>,
}

#[derive(Debug)]
struct Node<T> {
    children: HashMap<Box<str>, Node<T>>,
    /// Below `+`.
    any: Option<Box<Node<T>>>,
    /// The value of the filter that ends here.
    here: Option<Box<T>>,
    /// The value of the filter that ends in `#` below here.
    below: Option<Box<T>>,
}

impl<T: Default> TopicTree<T> {
    /// The value of a filter, which is created if it is missing.
    pub fn value_mut(&mut self, filter: &str) -> &mut T {
        let mut node = &mut self.root;
        for level in filter.split('/') {
            node = match level {
                "#" => return node.below.get_or_insert_default(),
                "+" => node.any.get_or_insert_default(),
                level => node.children.entry(level.into()).or_default(),
            };
        }
        node.here.get_or_insert_default()
    }
}

impl<T> TopicTree<T> {
    /// Changes the value of a filter, if there is one, and removes it if `change` returns true.
    pub fn remove_if(&mut self, filter: &str, change: impl FnOnce(&mut T) -> bool) {
        self.root.remove_if(Some(filter), change);
    }

    /// Visits the values of all filters that match a topic.
    pub fn matching(&self, topic: &str, visit: &mut impl FnMut(&T)) {
        if topic.starts_with('$') {
            // A wildcard on the first level does not match topics of the server.
            let (first, rest) = split(topic);
            if let Some(node) = self.root.children.get(first) {
                node.matching(rest, visit);
            }
        } else {
            self.root.matching(Some(topic), visit);
        }
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.root.is_empty()
    }
}

impl<T> Node<T> {
    /// `rest` is the remaining topic; `None` at its end.
    fn matching(&self, rest: Option<&str>, visit: &mut impl FnMut(&T)) {
        if let Some(below) = &self.below {
            visit(below);
        }
        let Some(rest) = rest else {
            if let Some(here) = &self.here {
                visit(here);
            }
            return;
        };
        let (level, rest) = split(rest);
        if let Some(child) = self.children.get(level) {
            child.matching(rest, visit);
        }
        if let Some(any) = &self.any {
            any.matching(rest, visit);
        }
    }

    /// Removes the value and the nodes that become empty.
    fn remove_if(&mut self, rest: Option<&str>, change: impl FnOnce(&mut T) -> bool) {
        let Some(rest) = rest else {
            self.here.take_if(|value| change(value));
            return;
        };
        match split(rest) {
            ("#", _) => {
                self.below.take_if(|value| change(value));
            }
            ("+", rest) => {
                if let Some(any) = &mut self.any {
                    any.remove_if(rest, change);
                    if any.is_empty() {
                        self.any = None;
                    }
                }
            }
            (level, rest) => {
                if let Some(child) = self.children.get_mut(level) {
                    child.remove_if(rest, change);
                    if child.is_empty() {
                        self.children.remove(level);
                    }
                }
            }
        }
    }

    fn is_empty(&self) -> bool {
        self.children.is_empty()
            && self.any.is_none()
            && self.here.is_none()
            && self.below.is_none()
    }
}

impl<T> Default for TopicTree<T> {
    fn default() -> Self {
        Self {
            root: Node::default(),
        }
    }
}

impl<T> Default for Node<T> {
    fn default() -> Self {
        Self {
            children: HashMap::new(),
            any: None,
            here: None,
            below: None,
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
    use homeport_rules::TopicFilter;
    use proptest::prelude::*;

    fn tree_of(filters: &[&str]) -> TopicTree<Vec<usize>> {
        let mut tree = TopicTree::<Vec<usize>>::default();
        for (at, filter) in filters.iter().enumerate() {
            tree.value_mut(filter).push(at);
        }
        tree
    }

    fn matching(tree: &TopicTree<Vec<usize>>, topic: &str) -> Vec<usize> {
        let mut found = Vec::new();
        tree.matching(topic, &mut |at| found.extend_from_slice(at));
        found.sort_unstable();
        found
    }

    #[test]
    fn topic_finds_matching_filters() {
        let tree = tree_of(&[
            "van/+/telemetry",
            "van/1/telemetry",
            "van/#",
            "#",
            "+/+/status",
            "$sys/#",
        ]);
        for (topic, expected) in [
            ("van/1/telemetry", vec![0, 1, 2, 3]),
            ("van/2/status", vec![2, 3, 4]),
            ("van", vec![2, 3]),
            ("van/1/telemetry/x", vec![2, 3]),
            ("$sys/a", vec![5]),
            ("$other", vec![]),
        ] {
            assert_eq!(matching(&tree, topic), expected, "{topic}");
        }
    }

    proptest! {
        #[test]
        fn tree_agrees_with_each_filter(
            filters in proptest::collection::vec("(\\$?[ab]?|\\+)(/([ab]?|\\+)){0,3}(/#)?", 1..8),
            topic in "\\$?[ab]?(/[ab]?){0,4}",
        ) {
            let filters: Vec<_> =
                filters.iter().filter_map(|text| TopicFilter::parse(text).ok()).collect();
            let texts: Vec<_> = filters.iter().map(TopicFilter::as_str).collect();
            let mut tree = tree_of(&texts);
            let expected: Vec<_> =
                (0..filters.len()).filter(|at| filters[*at].matches(&topic)).collect();
            prop_assert_eq!(matching(&tree, &topic), expected);
            for text in texts {
                tree.remove_if(text, |_| true);
            }
            prop_assert!(tree.is_empty());
        }
    }
}
