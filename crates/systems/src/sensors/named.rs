//! What a reading says by name: few entries, built once and read once, so they lie in a sorted list
//! with one allocation where a tree would have nodes.

use super::types::SensorName;

/// Values by the name of a sensor, in the order of their names; each name once.
#[derive(Debug, Clone, PartialEq)]
pub struct Named<T>(Vec<(SensorName, T)>);

impl<T> Named<T> {
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&SensorName, &T)> {
        self.0.iter().map(|(name, value)| (name, value))
    }

    pub fn names(&self) -> impl ExactSizeIterator<Item = &SensorName> {
        self.0.iter().map(|(name, _)| name)
    }
}

impl<T> Default for Named<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

/// Of values with one name the last counts, as in a JSON object that has a member twice.
impl<T> FromIterator<(SensorName, T)> for Named<T> {
    fn from_iter<I: IntoIterator<Item = (SensorName, T)>>(entries: I) -> Self {
        let mut entries: Vec<(SensorName, T)> = entries.into_iter().collect();
        if !entries.is_sorted_by(|(a, _), (b, _)| a < b) {
            entries.reverse();
            entries.sort_by(|(a, _), (b, _)| a.cmp(b));
            entries.dedup_by(|(a, _), (b, _)| a == b);
        }
        Self(entries)
    }
}

impl<T, const LEN: usize> From<[(SensorName, T); LEN]> for Named<T> {
    fn from(entries: [(SensorName, T); LEN]) -> Self {
        entries.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_in_order_and_the_last_of_a_name_counts() {
        let name = |text: &str| text.parse::<SensorName>().unwrap();
        let named = Named::from([(name("b"), 1), (name("a"), 2), (name("b"), 3)]);
        let entries: Vec<_> = named
            .iter()
            .map(|(name, at)| (name.as_str(), *at))
            .collect();
        assert_eq!(entries, [("a", 2), ("b", 3)]);
        assert_eq!(named.len(), 2);
    }
}
