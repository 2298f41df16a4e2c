//! Opaque cursors: the position at which the next page of a list starts. A cursor belongs to one list; another
//! list rejects it.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use homeport_item::Item;
use serde::{Deserialize, Serialize};

const VERSION: u8 = 1;
/// Longest encoded cursor. Keys have at most a few kilobytes.
const LEN_MAX: usize = 16 * 1024;

/// The position at which a list continues.
#[derive(Debug, Clone, PartialEq)]
pub struct Cursor {
    list: String,
    start: Item,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the cursor does not belong to this list")]
pub struct CursorError;

#[derive(Serialize, Deserialize)]
struct Wire {
    v: u8,
    l: String,
    s: Item,
}

impl Cursor {
    /// A cursor after the item with the key `start`. `list` must differ for every list, filter and order.
    pub(crate) fn new(list: impl Into<String>, start: Item) -> Self {
        Self {
            list: list.into(),
            start,
        }
    }

    /// The key after which `list` continues.
    pub(crate) fn start_of(self, list: &str) -> Result<Item, CursorError> {
        if self.list == list {
            Ok(self.start)
        } else {
            Err(CursorError)
        }
    }

    /// The text that clients send back.
    #[must_use]
    pub fn encode(&self) -> String {
        let wire = Wire {
            v: VERSION,
            l: self.list.clone(),
            s: self.start.clone(),
        };
        let bytes = serde_json::to_vec(&wire).expect("a cursor has string keys only");
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// # Errors
    /// When the text is not a cursor.
    pub fn decode(text: &str) -> Result<Self, CursorError> {
        if text.len() > LEN_MAX {
            return Err(CursorError);
        }
        let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| CursorError)?;
        let wire: Wire = serde_json::from_slice(&bytes).map_err(|_| CursorError)?;
        if wire.v != VERSION {
            return Err(CursorError);
        }
        Ok(Self {
            list: wire.l,
            start: wire.s,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursor_works_for_its_own_list_only() {
        let start = Item::new().with("pk", "a").with("sk", 7);
        let cursor = Cursor::decode(&Cursor::new("devices", start.clone()).encode()).unwrap();
        assert_eq!(cursor.clone().start_of("devices"), Ok(start));
        assert_eq!(cursor.start_of("keys"), Err(CursorError));
    }

    #[test]
    fn other_texts_are_rejected() {
        for text in ["", "e30", "not base64!", "eyJ2Ijo5LCJsIjoiIiwicyI6e319"] {
            assert_eq!(Cursor::decode(text), Err(CursorError), "{text}");
        }
        assert_eq!(Cursor::decode(&"A".repeat(100_000)), Err(CursorError));
    }
}
