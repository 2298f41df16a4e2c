//! The named values of a reading. They are few, built once and read once, so a sorted list with one allocation
//! is better than a tree.

use super::types::SensorName;

/// Values by sensor name, sorted; each name occurs once.
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

/// The last of several values with one name wins, as in a JSON object with a duplicate member.
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
    fn entries_are_sorted_and_last_duplicate_wins() {
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
