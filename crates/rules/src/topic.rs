//! Topic names and topic filters by MQTT's rules, for statements and for the broker.

/// Maximum length of a topic name or filter, the limit of MQTT's length field.
///
/// DIFFERENCE: AWS IoT allows 256 bytes and seven slashes; here only MQTT's own limit applies.
pub const TOPIC_LEN_MAX_BYTES: usize = 65_535;

/// Why a topic name is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TopicNameError {
    #[error("a topic name cannot be empty")]
    Empty,
    #[error("a topic name can have at most {TOPIC_LEN_MAX_BYTES} bytes")]
    TooLong,
    #[error("a topic name cannot contain the null character")]
    Null,
    #[error("a topic name cannot contain the wildcards + and #")]
    Wildcard,
}

/// Why a topic filter is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TopicFilterError {
    #[error("a topic filter cannot be empty")]
    Empty,
    #[error("a topic filter can have at most {TOPIC_LEN_MAX_BYTES} bytes")]
    TooLong,
    #[error("a topic filter cannot contain the null character")]
    Null,
    #[error("+ must occupy a whole level of the topic filter")]
    SingleLevel,
    #[error("# must be the last level of the topic filter")]
    MultiLevel,
}

/// Checks that `name` is a valid topic for publishing.
///
/// # Errors
/// When it is empty, too long, or contains a wildcard or the null character.
pub fn check_name(name: &str) -> Result<(), TopicNameError> {
    if name.is_empty() {
        return Err(TopicNameError::Empty);
    }
    if name.len() > TOPIC_LEN_MAX_BYTES {
        return Err(TopicNameError::TooLong);
    }
    for byte in name.bytes() {
        match byte {
            0 => return Err(TopicNameError::Null),
            b'+' | b'#' => return Err(TopicNameError::Wildcard),
            _ => {}
        }
    }
    Ok(())
}

/// A topic filter: a topic name in which `+` matches one level and a final `#` matches all
/// remaining levels, including none.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TopicFilter(String);

impl TopicFilter {
    /// # Errors
    /// When the text is empty, too long, or contains a misplaced wildcard.
    pub fn parse(text: &str) -> Result<Self, TopicFilterError> {
        if text.is_empty() {
            return Err(TopicFilterError::Empty);
        }
        if text.len() > TOPIC_LEN_MAX_BYTES {
            return Err(TopicFilterError::TooLong);
        }
        if text.contains('\0') {
            return Err(TopicFilterError::Null);
        }
        let mut levels = text.split('/').peekable();
        while let Some(level) = levels.next() {
            if level.contains('#') && (level.len() > 1 || levels.peek().is_some()) {
                return Err(TopicFilterError::MultiLevel);
            }
            if level.contains('+') && level.len() > 1 {
                return Err(TopicFilterError::SingleLevel);
            }
        }
        Ok(Self(text.to_owned()))
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    #[must_use]
    pub fn has_wildcards(&self) -> bool {
        self.0.split('/').any(|level| matches!(level, "+" | "#"))
    }

    /// Whether the filter matches `topic`. Topics that start with `$` are reserved for the server:
    /// a filter that starts with a wildcard does not match them.
    #[must_use]
    pub fn matches(&self, topic: &str) -> bool {
        if topic.starts_with('$') && self.0.starts_with(['+', '#']) {
            return false;
        }
        let mut levels = topic.split('/');
        for wanted in self.0.split('/') {
            if wanted == "#" {
                return true;
            }
            match levels.next() {
                Some(level) if wanted == "+" || wanted == level => {}
                _ => return false,
            }
        }
        levels.next().is_none()
    }
}

impl std::fmt::Display for TopicFilter {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use proptest::prelude::*;

    fn matches(filter: &str, topic: &str) -> bool {
        TopicFilter::parse(filter)
            .expect("a valid filter")
            .matches(topic)
    }

    #[test]
    fn multi_level_wildcard_includes_its_parent() {
        assert!(matches("sport/tennis/#", "sport/tennis"));
        assert!(matches("sport/tennis/#", "sport/tennis/player1/ranking"));
        assert!(matches("#", "a/b"));
        assert!(!matches("sport/tennis/#", "sport"));
    }

    #[test]
    fn single_level_wildcard_matches_one_level_even_empty() {
        assert!(matches("van/+/telemetry", "van/a/telemetry"));
        assert!(matches("van/+/telemetry", "van//telemetry"));
        assert!(!matches("van/+/telemetry", "van/a/b/telemetry"));
        assert!(matches("+/+", "/finance"));
        assert!(matches("/+", "/finance"));
        assert!(!matches("+", "/finance"));
    }

    #[test]
    fn leading_wildcards_do_not_match_server_topics() {
        assert!(!matches("#", "$SYS/load"));
        assert!(!matches("+/load", "$SYS/load"));
        assert!(matches("$SYS/#", "$SYS/load"));
        assert!(matches("$SYS/+", "$SYS/load"));
    }

    #[test]
    fn misplaced_wildcards_are_rejected() {
        assert_eq!(TopicFilter::parse(""), Err(TopicFilterError::Empty));
        assert_eq!(TopicFilter::parse("a\0"), Err(TopicFilterError::Null));
        assert_eq!(
            TopicFilter::parse("a/b#"),
            Err(TopicFilterError::MultiLevel)
        );
        assert_eq!(
            TopicFilter::parse("a/#/b"),
            Err(TopicFilterError::MultiLevel)
        );
        assert_eq!(
            TopicFilter::parse("a+/b"),
            Err(TopicFilterError::SingleLevel)
        );
        let long = "a".repeat(TOPIC_LEN_MAX_BYTES + 1);
        assert_eq!(TopicFilter::parse(&long), Err(TopicFilterError::TooLong));
        assert_eq!(check_name(&long), Err(TopicNameError::TooLong));
        assert_eq!(check_name(""), Err(TopicNameError::Empty));
        assert_eq!(check_name("a/+"), Err(TopicNameError::Wildcard));
        assert_eq!(check_name("a/b#"), Err(TopicNameError::Wildcard));
        assert_eq!(check_name("a\0"), Err(TopicNameError::Null));
        assert_eq!(check_name("/"), Ok(()));
    }

    /// The matching rules of the specification, level by level.
    fn model(filter: &[&str], topic: &[&str]) -> bool {
        match (filter, topic) {
            (["#"], _) => true,
            ([], []) => true,
            (["+", filter @ ..], [_, topic @ ..]) => model(filter, topic),
            ([wanted, filter @ ..], [level, topic @ ..]) => wanted == level && model(filter, topic),
            _ => false,
        }
    }

    proptest! {
        #[test]
        fn matching_agrees_with_the_specification(
            filter in prop::collection::vec(prop::sample::select(vec!["a", "b", "", "+", "$c"]), 1..5),
            rest in any::<bool>(),
            topic in prop::collection::vec(prop::sample::select(vec!["a", "b", "", "$c"]), 1..6),
        ) {
            let mut filter = filter;
            if rest {
                filter.push("#");
            }
            let text = filter.join("/");
            let name = topic.join("/");
            prop_assume!(!text.is_empty());
            let reserved = name.starts_with('$') && matches!(filter[0], "+" | "#");
            prop_assert_eq!(matches(&text, &name), !reserved && model(&filter, &topic));
        }

        #[test]
        fn topic_matches_itself(name in "[a-z/$ ]{1,12}") {
            prop_assert_eq!(check_name(&name), Ok(()));
            prop_assert!(matches(&name, &name));
        }
    }
}
