//! The position of a reader of the live feed: one position in the changes of each followed table.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use homeport_store::Position;

use super::{LiveError, TABLES_MAX};
use crate::cursor::{decode_position, encode_position};

/// Longest encoded position.
const LEN_MAX: usize = 64 * 1024;

/// A position in the live feed, as a text that clients send back.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LivePosition(BTreeMap<String, Position>);

impl LivePosition {
    pub(super) fn of(&self, table: &str) -> Option<&Position> {
        self.0.get(table)
    }

    pub(super) fn set(&mut self, table: &str, position: Position) {
        match self.0.get_mut(table) {
            Some(known) => *known = position,
            None => {
                self.0.insert(table.to_owned(), position);
            }
        }
    }
}

impl fmt::Display for LivePosition {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tables = self.0.iter();
        let tables: BTreeMap<&str, &str> = tables
            .map(|(table, position)| (table.as_str(), position.as_str()))
            .collect();
        formatter.write_str(&encode_position(&tables))
    }
}

impl FromStr for LivePosition {
    type Err = LiveError;

    fn from_str(text: &str) -> Result<Self, LiveError> {
        let tables: BTreeMap<String, String> =
            decode_position(text, LEN_MAX).ok_or(LiveError::Position)?;
        if tables.len() > TABLES_MAX {
            return Err(LiveError::Position);
        }
        let tables = tables.into_iter();
        Ok(Self(
            tables
                .map(|(table, position)| (table, Position::new(position)))
                .collect(),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn position_round_trips_and_other_text_is_rejected() {
        let mut position = LivePosition::default();
        position.set("devices", Position::new("17"));
        position.set("evse-events", Position::new("4"));
        assert_eq!(position.to_string().parse(), Ok(position));
        for text in ["", "17", "e30", "not base64!"] {
            assert_eq!(
                text.parse::<LivePosition>(),
                Err(LiveError::Position),
                "{text}"
            );
        }
        assert!("A".repeat(100_000).parse::<LivePosition>().is_err());
    }
}
