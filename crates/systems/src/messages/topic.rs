//! Topics and topic filters: validation and matching.

use std::fmt;
use std::str::FromStr;

use crate::telemetry::ThingName;
use crate::telemetry::schema::TOPIC_ROOT;

/// Longest topic or filter, in bytes: it must fit into a key of a table.
pub const TOPIC_LEN_MAX: usize = 1024;
/// Levels of a topic or filter.
pub const TOPIC_LEVELS_MAX: usize = 32;
/// The prefix of a shared subscription.
const SHARE: &str = "$share/";

/// Why a text is not a valid topic or filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TopicError {
    #[error("a topic has at least one character")]
    Empty,
    #[error("a topic has at most {TOPIC_LEN_MAX} bytes")]
    TooLong,
    #[error("a topic has at most {TOPIC_LEVELS_MAX} levels")]
    TooDeep,
    #[error("a topic has no control characters")]
    Control,
    #[error("messages are published on topics without + and #")]
    Wildcard,
    #[error("the thing in van/{{thing}}/… must be 1 to 128 graphic ASCII characters")]
    Thing,
    #[error("+ and # stand alone in a level of a filter, and # in its last")]
    MisplacedWildcard,
    #[error("a shared subscription is $share/group/filter, with no + or # in the group")]
    Share,
}

/// The filter of a subscription, which a group may share.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TopicFilter {
    group: Option<String>,
    filter: homeport_rules::TopicFilter,
}

impl TopicFilter {
    /// The group that shares the subscription.
    #[must_use]
    pub fn group(&self) -> Option<&str> {
        self.group.as_deref()
    }

    /// The filter, without the group.
    #[must_use]
    pub fn filter(&self) -> &str {
        self.filter.as_str()
    }

    #[must_use]
    pub fn levels(&self) -> std::str::Split<'_, char> {
        self.filter().split('/')
    }

    /// Whether the filter matches a topic.
    #[must_use]
    pub fn matches(&self, topic: &str) -> bool {
        self.filter.matches(topic)
    }
}

impl FromStr for TopicFilter {
    type Err = TopicError;

    fn from_str(text: &str) -> Result<Self, TopicError> {
        check(text)?;
        let (group, filter) = match text.strip_prefix(SHARE) {
            Some(rest) => {
                let (group, filter) = rest.split_once('/').ok_or(TopicError::Share)?;
                if group.is_empty() || group.contains(['+', '#']) || filter.is_empty() {
                    return Err(TopicError::Share);
                }
                (Some(group.to_owned()), filter)
            }
            None => (None, text),
        };
        let filter = homeport_rules::TopicFilter::parse(filter);
        Ok(Self {
            group,
            // The rest has been checked.
            filter: filter.map_err(|_| TopicError::MisplacedWildcard)?,
        })
    }
}

impl fmt::Display for TopicFilter {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(group) = &self.group {
            write!(formatter, "{SHARE}{group}/")?;
        }
        formatter.write_str(self.filter())
    }
}

/// Checks that messages can be published on `topic`.
///
/// # Errors
/// When the topic is invalid.
pub fn check_topic(topic: &str) -> Result<(), TopicError> {
    check(topic)?;
    if topic.contains(['+', '#']) {
        return Err(TopicError::Wildcard);
    }
    let mut levels = topic.split('/');
    if levels.next() == Some(TOPIC_ROOT)
        && let Some(thing) = levels.next()
        && thing.parse::<ThingName>().is_err()
    {
        return Err(TopicError::Thing);
    }
    Ok(())
}

fn check(text: &str) -> Result<(), TopicError> {
    if text.is_empty() {
        return Err(TopicError::Empty);
    }
    if text.len() > TOPIC_LEN_MAX {
        return Err(TopicError::TooLong);
    }
    if text.split('/').count() > TOPIC_LEVELS_MAX {
        return Err(TopicError::TooDeep);
    }
    if text.chars().any(char::is_control) {
        return Err(TopicError::Control);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(text: &str) -> TopicFilter {
        text.parse().expect("a filter")
    }

    #[test]
    fn wildcards_match_as_in_mqtt() {
        for (wanted, topic, is_match) in [
            ("van/+/telemetry", "van/v1/telemetry", true),
            ("van/+/telemetry", "van/v1/status", false),
            ("van/+/telemetry", "van/v1/x/telemetry", false),
            ("van/v1/#", "van/v1/a/b", true),
            ("van/v1/#", "van/v1", true),
            ("van/v1/#", "van/v10/a", false),
            ("#", "van", true),
            ("#", "$internal/x", false),
            ("+/x", "$internal/x", false),
            ("$internal/#", "$internal/x", true),
            ("+", "/", false),
            ("+/+", "/", true),
            ("/+", "/finance", true),
            ("+", "/finance", false),
            ("van//x", "van//x", true),
            ("van/+/x", "van//x", true),
            ("Van", "van", false),
        ] {
            assert_eq!(filter(wanted).matches(topic), is_match, "{wanted} {topic}");
        }
    }

    #[test]
    fn misplaced_wildcards_are_rejected() {
        for wrong in ["van+", "+van/x", "#/x", "van/#x", "van/x#", "van/#/x"] {
            let parsed = wrong.parse::<TopicFilter>();
            assert_eq!(parsed, Err(TopicError::MisplacedWildcard), "{wrong}");
        }
        for right in ["#", "+", "van/+/+", "/", "van/+/#", "//"] {
            assert_eq!(filter(right).to_string(), right);
        }
    }

    #[test]
    fn shared_filter_has_a_group() {
        let shared = filter("$share/workers/van/+/telemetry");
        assert_eq!(shared.group(), Some("workers"));
        assert_eq!(shared.filter(), "van/+/telemetry");
        assert_eq!(shared.to_string(), "$share/workers/van/+/telemetry");
        for wrong in [
            "$share/x",
            "$share//x",
            "$share/a+/x",
            "$share/a/",
            "$share/",
        ] {
            assert_eq!(
                wrong.parse::<TopicFilter>(),
                Err(TopicError::Share),
                "{wrong}"
            );
        }
    }

    #[test]
    fn long_topics_and_wildcards_are_rejected() {
        assert_eq!(check_topic("van/v1/telemetry"), Ok(()));
        assert_eq!(check_topic(""), Err(TopicError::Empty));
        assert_eq!(check_topic("van/+/x"), Err(TopicError::Wildcard));
        assert_eq!(check_topic("van/ü b/telemetry"), Err(TopicError::Thing));
        assert_eq!(check_topic("van//telemetry"), Err(TopicError::Thing));
        assert_eq!(check_topic("bus/ü b/telemetry"), Ok(()));
        assert_eq!(check_topic("van/\0"), Err(TopicError::Control));
        let long = "x".repeat(TOPIC_LEN_MAX + 1);
        assert_eq!(check_topic(&long), Err(TopicError::TooLong));
        let deep = "/".repeat(TOPIC_LEVELS_MAX);
        assert_eq!(check_topic(&deep), Err(TopicError::TooDeep));
        assert_eq!(check_topic(&deep[1..]), Ok(()));
    }
}
