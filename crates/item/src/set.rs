//! A DynamoDB set: never empty, without duplicates, sorted.

/// Members in ascending order, at least one, without duplicates.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Set<T>(Vec<T>);

/// Why a list of members is not a valid set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SetError {
    #[error("An set may not be empty")]
    Empty,
    #[error("Input collection contains duplicates.")]
    Duplicate,
}

impl<T: Ord> Set<T> {
    /// Creates a set from `members`.
    ///
    /// # Errors
    /// When `members` is empty or contains duplicates.
    pub fn new(mut members: Vec<T>) -> Result<Self, SetError> {
        if members.is_empty() {
            return Err(SetError::Empty);
        }
        members.sort_unstable();
        if members.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(SetError::Duplicate);
        }
        Ok(Self(members))
    }

    #[must_use]
    pub fn contains(&self, member: &T) -> bool {
        self.0.binary_search(member).is_ok()
    }

    /// The union of the two sets.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self
    where
        T: Clone,
    {
        let mut members = [self.0.as_slice(), other.0.as_slice()].concat();
        members.sort_unstable();
        members.dedup();
        Self(members)
    }

    /// The members that are not in `other`; `None` if no member remains.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Option<Self>
    where
        T: Clone,
    {
        let members: Vec<T> = self
            .0
            .iter()
            .filter(|member| !other.contains(member))
            .cloned()
            .collect();
        (!members.is_empty()).then_some(Self(members))
    }
}

impl<T> Set<T> {
    #[must_use]
    pub fn as_slice(&self) -> &[T] {
        &self.0
    }

    pub fn iter(&self) -> std::slice::Iter<'_, T> {
        self.0.iter()
    }

    /// The number of members, at least one.
    #[must_use]
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.0.len()
    }
}

impl<'a, T> IntoIterator for &'a Set<T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_and_duplicate_members_are_rejected() {
        assert_eq!(Set::<u8>::new(vec![]), Err(SetError::Empty));
        assert_eq!(Set::new(vec![2, 1, 2]), Err(SetError::Duplicate));
    }

    #[test]
    fn order_of_members_does_not_matter() {
        assert_eq!(Set::new(vec![3, 1]), Set::new(vec![1, 3]));
    }

    #[test]
    fn empty_difference_is_none() {
        let all = Set::new(vec![1, 2]).expect("a set");
        assert_eq!(all.difference(&all), None);
        let one = Set::new(vec![1]).expect("a set");
        assert_eq!(all.difference(&one).expect("a rest").as_slice(), [2]);
        assert_eq!(one.union(&all), all);
    }
}
