//! The position of a reader of the live feed: one position in the changes of each followed table.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use homeport_store::Position;
use serde::{Deserialize, Serialize};

use super::{LiveError, TABLES_MAX};

const VERSION: u8 = 1;
/// Longest encoded position.
const LEN_MAX: usize = 64 * 1024;

/// A position in the live feed, as a text that clients send back.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LivePosition(BTreeMap<String, Position>);

#[derive(Serialize, Deserialize)]
struct Wire {
    v: u8,
    t: BTreeMap<String, String>,
}

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
        let wire = Wire {
            v: VERSION,
            t: tables
                .map(|(table, position)| (table.clone(), position.as_str().to_owned()))
                .collect(),
        };
        let json = serde_json::to_vec(&wire).map_err(|_| fmt::Error)?;
        formatter.write_str(&URL_SAFE_NO_PAD.encode(json))
    }
}

impl FromStr for LivePosition {
    type Err = LiveError;

    fn from_str(text: &str) -> Result<Self, LiveError> {
        let wrong = || LiveError::Position;
        if text.len() > LEN_MAX {
            return Err(wrong());
        }
        let json = URL_SAFE_NO_PAD.decode(text).map_err(|_| wrong())?;
        let wire: Wire = serde_json::from_slice(&json).map_err(|_| wrong())?;
        if wire.v != VERSION || wire.t.len() > TABLES_MAX {
            return Err(wrong());
        }
        let tables = wire.t.into_iter();
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
