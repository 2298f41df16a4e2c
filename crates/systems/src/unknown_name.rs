//! Names that a client sent and that nothing has. The error suggests the name that was probably meant.

use std::fmt;

/// Longest part of an unknown name that is compared and shown.
const CHARS_MAX: usize = 64;

/// An unknown name, with the nearest known one, or all known ones if none is near.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct UnknownName {
    /// What the name is a name of, such as a member.
    kind: &'static str,
    name: String,
    suggestion: Suggestion,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Suggestion {
    Nearest(String),
    AllKnown(Vec<String>),
}

impl UnknownName {
    #[must_use]
    pub fn new<'a>(
        kind: &'static str,
        name: &str,
        known: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        let name: String = name.chars().take(CHARS_MAX).collect();
        let known: Vec<&str> = known.into_iter().collect();
        let distances = known.iter().map(|known| (distance(&name, known), *known));
        let distance_max = (name.chars().count() / 3).max(2);
        let suggestion = match distances.min_by_key(|(distance, _)| *distance) {
            Some((distance, nearest)) if distance <= distance_max => {
                Suggestion::Nearest(nearest.to_owned())
            }
            _ => Suggestion::AllKnown(known.into_iter().map(str::to_owned).collect()),
        };
        Self {
            kind,
            name,
            suggestion,
        }
    }
}

impl fmt::Display for UnknownName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "unknown {} `{}` ", self.kind, self.name)?;
        match &self.suggestion {
            Suggestion::Nearest(name) => write!(formatter, "(did you mean `{name}`?)"),
            Suggestion::AllKnown(names) if names.is_empty() => write!(formatter, "(none is known)"),
            Suggestion::AllKnown(names) => write!(formatter, "(known: `{}`)", names.join("`, `")),
        }
    }
}

/// The Levenshtein distance of two names, ignoring case.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.to_lowercase().chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (line, from) in one.to_lowercase().chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = line + 1;
        for (column, to) in other.iter().enumerate() {
            let replaced = diagonal + usize::from(from != *to);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_count_single_edits() {
        for (one, other, expected) in [
            ("", "", 0),
            ("", "abc", 3),
            ("limit", "limit", 0),
            ("limit", "LIMIT", 0),
            ("form", "from", 2),
            ("sensor_satus", "sensor_status", 1),
            ("kitten", "sitting", 3),
        ] {
            assert_eq!(distance(one, other), expected, "{one} {other}");
            assert_eq!(distance(other, one), expected, "{other} {one}");
        }
    }

    #[test]
    fn nearest_known_name_is_suggested() {
        let known = ["sensors", "sensor_status", "batch_id"];
        let message = |name| UnknownName::new("member", name, known).to_string();
        assert_eq!(
            message("sensor_satus"),
            "unknown member `sensor_satus` (did you mean `sensor_status`?)"
        );
        assert_eq!(
            message("sensorStatus"),
            "unknown member `sensorStatus` (did you mean `sensor_status`?)"
        );
        assert_eq!(
            message("altitude"),
            "unknown member `altitude` (known: `sensors`, `sensor_status`, `batch_id`)"
        );
        assert_eq!(
            UnknownName::new("query parameter", "a", []).to_string(),
            "unknown query parameter `a` (none is known)"
        );
    }

    #[test]
    fn long_names_are_cut() {
        let message = UnknownName::new("member", &"é".repeat(100_000), ["a"]).to_string();
        assert!(message.chars().count() < 120, "{message}");
    }
}
