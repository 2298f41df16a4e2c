//! A reader's position in a stream, as text that outlives the process.

use std::collections::{BTreeMap, BTreeSet};

use homeport_store::{Position, StoreError};
use serde::{Deserialize, Serialize};

/// The version of the text format. Other versions are rejected.
const VERSION: u32 = 1;

/// A reader's position in one stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StreamPosition {
    v: u32,
    /// The stream. Disabling and enabling it creates a different one.
    pub(super) arn: String,
    /// The shards that are being read. Their ancestors are finished.
    pub(super) shards: BTreeMap<String, ShardPosition>,
    /// Finished shards whose children have not appeared yet.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(super) finished: BTreeSet<String>,
}

/// A reader's position in one shard.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum ShardPosition {
    /// Before the oldest record that the shard still contains.
    Start,
    /// After the records that the shard contained when the reader requested the end. No sequence
    /// number describes this position: only an iterator knows it, and the text identifies the
    /// position. Without the iterator the shard is read from its start, so changes may repeat but
    /// none is lost.
    End(String),
    /// After the record with this sequence number.
    After(String),
}

impl StreamPosition {
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
        let refused = || StoreError::invalid(format!("invalid stream position {text:?}"));
        let position: Self = serde_json::from_str(text).map_err(|_| refused())?;
        if position.v != VERSION {
            return Err(refused());
        }
        Ok(position)
    }

    pub(super) fn position(&self) -> Position {
        let text = serde_json::to_string(self).expect("maps of strings are valid JSON");
        Position::new(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn position() -> StreamPosition {
        let mut position = StreamPosition::new("arn:of-a-stream");
        position.shards = BTreeMap::from([
            ("shard-1".to_owned(), ShardPosition::Start),
            ("shard-2".to_owned(), ShardPosition::End("mark".to_owned())),
            (
                "shard-3".to_owned(),
                ShardPosition::After("4711".to_owned()),
            ),
        ]);
        position.finished.insert("shard-0".to_owned());
        position
    }

    #[test]
    fn position_text_format_is_stable() {
        let text = r#"{"v":1,"arn":"arn:of-a-stream","shards":{"shard-1":"start","shard-2":{"end":"mark"},"shard-3":{"after":"4711"}},"finished":["shard-0"]}"#;
        assert_eq!(position().position().as_str(), text);
        assert_eq!(StreamPosition::parse(&Position::new(text)), Ok(position()));
        let quiet = r#"{"v":1,"arn":"a","shards":{}}"#;
        assert_eq!(StreamPosition::new("a").position().as_str(), quiet);
        assert_eq!(
            StreamPosition::parse(&Position::new(quiet)),
            Ok(StreamPosition::new("a"))
        );
    }

    #[test]
    fn other_text_formats_are_rejected() {
        for text in [
            "",
            "1000000",
            "{}",
            r#"{"v":2,"arn":"a","shards":{}}"#,
            r#"{"v":1,"arn":"a","shards":{},"more":1}"#,
            r#"{"v":1,"arn":"a","shards":{"s":"middle"}}"#,
        ] {
            let parsed = StreamPosition::parse(&Position::new(text));
            assert!(matches!(parsed, Err(StoreError::Invalid(_))), "{text}");
        }
    }
}
