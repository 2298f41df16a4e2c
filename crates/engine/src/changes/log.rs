//! The change log: the changes of items, in order, for tables with a stream or history.

use homeport_item::Item;
use homeport_item::binary::DecodeError;
use homeport_item::schema::{KeySchema, StreamView};
use homeport_store::StoreError;

use crate::engine::sequence_of;
use crate::error::unavailable;
use crate::storage::record::Record;
use crate::storage::vault::{self, Guard, UserKey, UserValue};

const VERSION: u8 = 1;
const BY_EXPIRY: u8 = 0b0001;
const HAS_OLD: u8 = 0b0010;
const HAS_NEW: u8 = 0b0100;
/// No stream was enabled: the change is kept only for the table's history.
const HISTORY_ONLY: u8 = 0b1000;
/// The stream's view excludes the old record: it is kept only for the table's history.
const OLD_FOR_HISTORY: u8 = 0b1_0000;

pub use homeport_store::ChangeKind;

/// One change of one item.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// Increases with every change of the whole store; never reused.
    pub sequence: u64,
    pub at_ms: i64,
    pub kind: ChangeKind,
    /// Deleted because it expired, not by a request.
    pub by_expiry: bool,
    pub key: Item,
    /// The item before the change, if the table's stream keeps it.
    pub old: Option<Item>,
    /// The item after the change, if the table's stream keeps it.
    pub new: Option<Item>,
}

impl Change {
    /// The size of the change in a stream, as DynamoDB counts it.
    #[must_use]
    pub fn size(&self) -> usize {
        let images = [&self.old, &self.new].into_iter().flatten();
        self.key.size() + images.map(Item::size).sum::<usize>()
    }
}

impl From<Change> for homeport_store::Change {
    fn from(change: Change) -> Self {
        Self {
            at_ms: change.at_ms,
            kind: change.kind,
            by_expiry: change.by_expiry,
            key: change.key,
            old: change.old,
            new: change.new,
        }
    }
}

/// A page of changes.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ChangePage {
    pub changes: Vec<Change>,
    /// The sequence number to continue with: after the last change of this page.
    pub next: u64,
    /// The first kept change of the table, if the page was requested from an earlier one and changes in
    /// between have been trimmed.
    pub trimmed_to: Option<u64>,
    /// A damaged change was skipped.
    pub has_damage: bool,
}

/// The input for one record of the log.
pub(crate) struct NewChange<'a> {
    /// The view of the table's stream, if it has one.
    pub(crate) view: Option<StreamView>,
    /// Whether the change must be undoable; the old record is then kept for any view.
    pub(crate) history: bool,
    pub(crate) at_ms: i64,
    pub(crate) by_expiry: bool,
    pub(crate) item_key: &'a [u8],
    pub(crate) old: Option<&'a UserValue>,
    pub(crate) new: Option<&'a UserValue>,
}

impl NewChange<'_> {
    /// `version · kind · flags · at_ms(8) · len(2) · item key · [len(4) · old] · [len(4) · new]`
    pub(crate) fn encode(&self) -> Vec<u8> {
        let shows_old = matches!(
            self.view,
            Some(StreamView::OldImage | StreamView::NewAndOldImages)
        );
        let shows_new = matches!(
            self.view,
            Some(StreamView::NewImage | StreamView::NewAndOldImages)
        );
        let old = self.old.filter(|_| shows_old || self.history);
        let new = self.new.filter(|_| shows_new);
        let kind = match (self.old, self.new) {
            (None, _) => 1,
            (Some(_), Some(_)) => 2,
            (Some(_), None) => 3,
        };
        let mut flags = 0;
        if self.by_expiry {
            flags |= BY_EXPIRY;
        }
        if self.view.is_none() {
            flags |= HISTORY_ONLY;
        }
        if old.is_some() {
            flags |= HAS_OLD;
            if !shows_old {
                flags |= OLD_FOR_HISTORY;
            }
        }
        if new.is_some() {
            flags |= HAS_NEW;
        }
        let images: usize = [old, new]
            .into_iter()
            .flatten()
            .map(|value| value.len())
            .sum();
        let mut out = Vec::with_capacity(32 + self.item_key.len() + images);
        out.extend_from_slice(&[VERSION, kind, flags]);
        out.extend_from_slice(&self.at_ms.to_be_bytes());
        let key_len = u16::try_from(self.item_key.len()).expect("keys are under 64 KB");
        out.extend_from_slice(&key_len.to_be_bytes());
        out.extend_from_slice(self.item_key);
        for image in [old, new].into_iter().flatten() {
            let len = u32::try_from(image.len()).expect("items are at most 400 KB");
            out.extend_from_slice(&len.to_be_bytes());
            out.extend_from_slice(image);
        }
        out
    }
}

/// The time of the change in `bytes`.
pub(crate) fn changed_at_ms(bytes: &[u8]) -> Option<i64> {
    bytes.get(3..11)?.try_into().ok().map(i64::from_be_bytes)
}

/// A decoded record of the log.
struct StoredChange<'a> {
    kind: ChangeKind,
    flags: u8,
    at_ms: i64,
    item_key: &'a [u8],
    old: Option<&'a [u8]>,
    new: Option<&'a [u8]>,
}

impl<'a> StoredChange<'a> {
    fn new(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let (&[version, kind, flags], rest) =
            bytes.split_first_chunk::<3>().ok_or(DecodeError::Damaged)?;
        if version != VERSION {
            return Err(DecodeError::UnknownVersion(version));
        }
        let kind = match kind {
            1 => ChangeKind::Insert,
            2 => ChangeKind::Modify,
            3 => ChangeKind::Remove,
            _ => return Err(DecodeError::Damaged),
        };
        let (at_ms, rest) = rest.split_first_chunk::<8>().ok_or(DecodeError::Damaged)?;
        let (key_len, rest) = rest.split_first_chunk::<2>().ok_or(DecodeError::Damaged)?;
        let key_len = usize::from(u16::from_be_bytes(*key_len));
        let (item_key, mut rest) = rest.split_at_checked(key_len).ok_or(DecodeError::Damaged)?;
        let mut image = |flag: u8| -> Result<Option<&'a [u8]>, DecodeError> {
            if flags & flag == 0 {
                return Ok(None);
            }
            let (len, after) = rest.split_first_chunk::<4>().ok_or(DecodeError::Damaged)?;
            let len = u32::from_be_bytes(*len) as usize;
            let (value, after) = after.split_at_checked(len).ok_or(DecodeError::Damaged)?;
            rest = after;
            Ok(Some(value))
        };
        Ok(Self {
            kind,
            flags,
            at_ms: i64::from_be_bytes(*at_ms),
            item_key,
            old: image(HAS_OLD)?,
            new: image(HAS_NEW)?,
        })
    }
}

/// The item's key and its record before the change; `None` if the item did not exist.
pub(crate) fn undo(bytes: &[u8]) -> Result<(UserKey, Option<UserValue>), DecodeError> {
    let stored = StoredChange::new(bytes)?;
    if stored.old.is_none() && stored.kind != ChangeKind::Insert {
        return Err(DecodeError::Damaged);
    }
    Ok((stored.item_key.into(), stored.old.map(UserValue::from)))
}

/// An entry of the log.
pub(crate) struct LogEntry {
    pub(crate) sequence: u64,
    /// The change as a stream shows it; `None` if no stream was enabled.
    pub(crate) change: Option<Change>,
    /// The entry cannot be read; it must not prevent reading others.
    pub(crate) is_damaged: bool,
}

pub(crate) fn read(schema: &KeySchema, guard: Guard<'_>) -> Result<LogEntry, StoreError> {
    let (sequence, change) = match guard.into_inner() {
        Err(vault::Error::Unopened { key, .. }) => {
            (sequence_of(&key)?, Err("it cannot be decrypted".to_owned()))
        }
        entry => {
            let (key, value) = entry.map_err(unavailable)?;
            let sequence = sequence_of(&key)?;
            let change = decode(schema, sequence, &value);
            (sequence, change.map_err(|error| error.to_string()))
        }
    };
    if let Err(error) = &change {
        tracing::warn!(sequence, error, "a damaged change was skipped");
    }
    Ok(LogEntry {
        sequence,
        is_damaged: change.is_err(),
        change: change.unwrap_or_default(),
    })
}

/// The change as a stream shows it; `None` if no stream was enabled.
pub(crate) fn decode(
    schema: &KeySchema,
    sequence: u64,
    bytes: &[u8],
) -> Result<Option<Change>, DecodeError> {
    let stored = StoredChange::new(bytes)?;
    if stored.flags & HISTORY_ONLY != 0 {
        return Ok(None);
    }
    let item_key = stored.item_key;
    let image = |value: Option<&[u8]>| {
        value
            .map(|value| Record::new(schema, item_key, value)?.to_item())
            .transpose()
    };
    let old = image(stored.old.filter(|_| stored.flags & OLD_FOR_HISTORY == 0))?;
    let new = image(stored.new)?;
    let mut key_bytes = item_key.get(1..).ok_or(DecodeError::Damaged)?;
    let (partition, sort) = crate::storage::layout::take_key_values(schema, &mut key_bytes)
        .map_err(|_| DecodeError::Damaged)?;
    let mut key = Item::new().with(schema.partition.name.as_str(), partition);
    if let (Some(attribute), Some(sort)) = (&schema.sort, sort) {
        key.insert(attribute.name.as_str(), sort);
    }
    Ok(Some(Change {
        sequence,
        at_ms: stored.at_ms,
        kind: stored.kind,
        by_expiry: stored.flags & BY_EXPIRY != 0,
        key,
        old,
        new,
    }))
}
