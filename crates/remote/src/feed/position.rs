//! Where a reader stands in a stream, as text that outlives the process.

use std::collections::{BTreeMap, BTreeSet};

use homeport_store::{Position, StoreError};
use serde::{Deserialize, Serialize};

/// The form of the text. A text of another form is refused, never guessed at.
const VERSION: u32 = 1;

/// Where a reader stands in one stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Place {
    v: u32,
    /// The stream: one that was switched off and on again is another one.
    pub(super) arn: String,
    /// The shards that are being read. What is above them in their line is done.
    pub(super) shards: BTreeMap<String, At>,
    /// Shards that are done and whose children have not been seen yet.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(super) finished: BTreeSet<String>,
}

/// Where a reader stands in one shard.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum At {
    /// Before everything that the shard still has.
    Start,
    /// Behind what the shard had when the reader asked for the end. There is no number for that
    /// place: only an iterator knows it, and the mark tells one such place from another. Without
    /// the iterator the shard is read from its start, so that changes come again and none is lost.
    End(String),
    /// Behind the record of this number.
    After(String),
}

impl Place {
    pub(super) fn new(arn: impl Into<String>) -> Self {
        Self {
            v: VERSION,
            arn: arn.into(),
            shards: BTreeMap::new(),
            finished: BTreeSet::new(),
        }
    }

    pub(super) fn parse(position: &Position) -> Result<Self, StoreError> {
        let text = position.as_str();
        let refused = || StoreError::Invalid(format!("{text:?} is no position in a stream"));
        let place: Self = serde_json::from_str(text).map_err(|_| refused())?;
        if place.v != VERSION {
            return Err(refused());
        }
        Ok(place)
    }

    pub(super) fn position(&self) -> Position {
        let text = serde_json::to_string(self).expect("texts in maps with texts for keys are JSON");
        Position::new(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place() -> Place {
        let mut place = Place::new("arn:of-a-stream");
        place.shards = BTreeMap::from([
            ("shard-1".to_owned(), At::Start),
            ("shard-2".to_owned(), At::End("mark".to_owned())),
            ("shard-3".to_owned(), At::After("4711".to_owned())),
        ]);
        place.finished.insert("shard-0".to_owned());
        place
    }

    #[test]
    fn the_text_of_a_place_is_kept_by_stores_and_does_not_change() {
        let text = r#"{"v":1,"arn":"arn:of-a-stream","shards":{"shard-1":"start","shard-2":{"end":"mark"},"shard-3":{"after":"4711"}},"finished":["shard-0"]}"#;
        assert_eq!(place().position().as_str(), text);
        assert_eq!(Place::parse(&Position::new(text)), Ok(place()));
        let quiet = r#"{"v":1,"arn":"a","shards":{}}"#;
        assert_eq!(Place::new("a").position().as_str(), quiet);
        assert_eq!(Place::parse(&Position::new(quiet)), Ok(Place::new("a")));
    }

    #[test]
    fn texts_of_other_forms_are_refused() {
        for text in [
            "",
            "1000000",
            "{}",
            r#"{"v":2,"arn":"a","shards":{}}"#,
            r#"{"v":1,"arn":"a","shards":{},"more":1}"#,
            r#"{"v":1,"arn":"a","shards":{"s":"middle"}}"#,
        ] {
            let parsed = Place::parse(&Position::new(text));
            assert!(matches!(parsed, Err(StoreError::Invalid(_))), "{text}");
        }
    }
}
