//! Opaque cursors: the position at which the next page of a list starts. A cursor belongs to one list; another
//! list rejects it.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use homeport_item::Item;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::time::EpochMillis;

/// Version of the encoding of all positions that clients send back.
const VERSION: u8 = 2;
/// Longest encoded cursor. Keys have at most a few kilobytes.
const LEN_MAX: usize = 16 * 1024;
/// Bytes of the digest of a list's name.
const DIGEST_BYTES: usize = 8;

/// The position at which a list continues.
#[derive(Debug, Clone, PartialEq)]
pub struct Cursor {
    /// A digest, so that the cursor does not show how the list is named.
    list: String,
    start: Item,
    now: Option<EpochMillis>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the cursor does not belong to this list")]
pub struct CursorError;

#[derive(Serialize, Deserialize)]
struct EncodedCursor {
    l: String,
    s: Item,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    n: Option<i64>,
}

impl Cursor {
    /// A cursor after the item with the key `start`. `list` must differ for every list, filter and order.
    pub fn new(list: impl AsRef<str>, start: Item) -> Self {
        Self {
            list: digest(list.as_ref()),
            start,
            now: None,
        }
    }

    /// Sets the moment to which relative times of the first page refer, so that all pages have the same range.
    #[must_use]
    pub fn relative_to(mut self, now: EpochMillis) -> Self {
        self.now = Some(now);
        self
    }

    /// The moment to which relative times refer.
    #[must_use]
    pub fn now(&self) -> Option<EpochMillis> {
        self.now
    }

    /// The key after which `list` continues.
    ///
    /// # Errors
    /// When the cursor belongs to another list.
    pub fn start_of(self, list: &str) -> Result<Item, CursorError> {
        if self.list == digest(list) {
            Ok(self.start)
        } else {
            Err(CursorError)
        }
    }

    /// The text that clients send back.
    #[must_use]
    pub fn encode(&self) -> String {
        encode_position(&EncodedCursor {
            l: self.list.clone(),
            s: self.start.clone(),
            n: self.now.map(|now| now.0),
        })
    }

    /// # Errors
    /// When the text is not a cursor.
    pub fn decode(text: &str) -> Result<Self, CursorError> {
        let encoded: EncodedCursor = decode_position(text, LEN_MAX).ok_or(CursorError)?;
        Ok(Self {
            list: encoded.l,
            start: encoded.s,
            now: encoded.n.map(EpochMillis),
        })
    }
}

fn digest(list: &str) -> String {
    hex::encode(&Sha256::digest(list)[..DIGEST_BYTES])
}

/// Encodes a position that clients send back.
pub(crate) fn encode_position(position: &impl Serialize) -> String {
    let bytes = serde_json::to_vec(&(VERSION, position)).expect("a position has string keys only");
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Decodes a position; `None` if the text is not a position of this version.
pub(crate) fn decode_position<T: DeserializeOwned>(text: &str, len_max: usize) -> Option<T> {
    if text.len() > len_max {
        return None;
    }
    let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
    let (version, position): (u8, T) = serde_json::from_slice(&bytes).ok()?;
    (version == VERSION).then_some(position)
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
    fn cursors_do_not_show_the_name_of_their_list() {
        let cursor = Cursor::new("alerts Filter { state: Open }", Item::new()).encode();
        let shown = URL_SAFE_NO_PAD.decode(cursor).unwrap();
        assert!(!String::from_utf8(shown).unwrap().contains("Filter"));
    }

    #[test]
    fn cursors_keep_the_moment_of_relative_times() {
        let cursor = Cursor::new("readings", Item::new()).relative_to(EpochMillis(7));
        let decoded = Cursor::decode(&cursor.encode()).unwrap();
        assert_eq!(decoded.now(), Some(EpochMillis(7)));
        assert_eq!(decoded, cursor);
    }

    #[test]
    fn other_texts_are_rejected() {
        let other_version = URL_SAFE_NO_PAD.encode(r#"[1,{"l":"","s":{}}]"#);
        for text in ["", "e30", "not base64!", &other_version] {
            assert_eq!(Cursor::decode(text), Err(CursorError), "{text}");
        }
        assert_eq!(Cursor::decode(&"A".repeat(100_000)), Err(CursorError));
    }
}
