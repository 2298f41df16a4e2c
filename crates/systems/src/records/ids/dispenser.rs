//! The id dispenser: each tag has a counter that never returns a number twice.

use std::sync::Arc;

use homeport_item::expression::{Condition, Path, Update};
use homeport_item::{Item, Value};
use homeport_store::{Get, Put, ReturnValues, Update as UpdateRequest, WriteError};

use super::hashids::{self, Hashids, RecordIds};
use crate::records::{Records, RecordsError, schema};
use crate::text::{Form, InvalidField, text_type};

/// The largest id. Up to here, JSON numbers are exact everywhere.
pub(super) const ID_MAX: u64 = (1 << 53) - 1;
/// The default minimum length of an encoded id.
pub(super) const MIN_LENGTH_DEFAULT: usize = 8;

/// The tags of the record store's own ids.
pub(in crate::records) const GROUPS_TAG: &str = "gid";
pub(in crate::records) const DEVICES_TAG: &str = "did";
pub(in crate::records) const JOURNALS_TAG: &str = "jid";

const TAG: Form = Form {
    pattern: "^[a-zA-Z0-9_-]+$",
    accepts: |text| {
        text.bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
    },
};

text_type! {
    /// The name of a counter.
    IdTag(String) {
        field: schema::IDTAG,
        chars: 1..=64,
        form: TAG,
        expected: "1 to 64 characters of a-z, A-Z, 0-9, - and _",
        example: "gid",
    }
}

/// A tag to create.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewIdTag {
    pub tag: IdTag,
    /// Random unless given.
    pub salt: Option<String>,
    /// 8 unless given.
    pub min_length: Option<usize>,
    /// The first id; 1 unless given.
    pub next_id: Option<u64>,
}

/// An id in its stored and in its encoded form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DispensedId {
    pub id: u64,
    pub tag: IdTag,
    pub encoded: String,
}

impl IdTag {
    fn known(tag: &'static str) -> Self {
        Self(tag.to_owned())
    }

    fn key(&self) -> Item {
        let key = format!("{}{self}#", schema::ID_TAG);
        schema::key(key.clone(), key)
    }
}

impl Records {
    /// Creates a tag.
    ///
    /// # Errors
    /// When the tag exists, its salt, length or first id is out of bounds, or the store fails.
    pub async fn init_tag(&self, new: NewIdTag) -> Result<(), RecordsError> {
        let salt = new.salt.unwrap_or_else(hashids::random_salt);
        let min_length = new.min_length.unwrap_or(MIN_LENGTH_DEFAULT);
        Hashids::new(&salt, min_length)?;
        let min_length = i64::try_from(min_length).expect("checked to be small");
        let next_id = new.next_id.unwrap_or(1);
        let last_id = (1..=ID_MAX).contains(&next_id).then(|| next_id - 1);
        let last_id = last_id.and_then(|id| i64::try_from(id).ok());
        let last_id = last_id.ok_or(InvalidField {
            field: "next_id",
            expected: "1 to 9007199254740991",
        })?;
        let mut item = new.tag.key();
        item.insert(schema::IDTAG, new.tag.as_str());
        item.insert(schema::SALT, salt);
        item.insert(schema::MIN_LENGTH, min_length);
        item.insert(schema::LAST_ID, last_id);
        let put = Put::new(self.table(), item).when(Condition::not_exists(schema::PK));
        match self.store.put(put).await {
            Ok(_) => Ok(()),
            Err(WriteError::ConditionFailed { .. }) => Err(RecordsError::TagExists(new.tag)),
            Err(WriteError::Store(error)) => Err(error.into()),
        }
    }

    /// The next id of a tag. Concurrent callers get different ids.
    ///
    /// # Errors
    /// When there is no such tag or the store fails; an id may be skipped then.
    pub async fn dispense(&self, tag: &IdTag) -> Result<DispensedId, RecordsError> {
        let last = i64::try_from(ID_MAX).expect("53 bits");
        let has_more =
            Condition::exists(schema::PK).and(Path::new(schema::LAST_ID).less_than(last));
        let request = UpdateRequest {
            old_on_failure: true,
            ..UpdateRequest::new(
                self.table(),
                tag.key(),
                Update::new().add(schema::LAST_ID, 1),
            )
            .when(has_more)
            .returning(ReturnValues::AllNew)
        };
        let item = match self.store.update(request).await {
            Ok(Some(item)) => item,
            Ok(None) | Err(WriteError::ConditionFailed { old: None }) => {
                return Err(RecordsError::TagMissing(tag.clone()));
            }
            Err(WriteError::ConditionFailed { old: Some(_) }) => {
                return Err(RecordsError::TagExhausted(tag.clone()));
            }
            Err(WriteError::Store(error)) => return Err(error.into()),
        };
        let id = item
            .get(schema::LAST_ID)
            .and_then(Value::as_number)
            .and_then(|number| u64::try_from(number.to_i64()?).ok())
            .ok_or_else(|| malformed(tag))?;
        Ok(DispensedId {
            id,
            encoded: hashids_of(tag, &item)?.encode(id),
            tag: tag.clone(),
        })
    }

    /// Decodes an id.
    ///
    /// # Errors
    /// When there is no such tag, the text is not an id of it, or the store fails.
    pub async fn decode(&self, tag: &IdTag, encoded: &str) -> Result<DispensedId, RecordsError> {
        let hashids = self
            .hashids(tag)
            .await?
            .ok_or_else(|| RecordsError::TagMissing(tag.clone()))?;
        Ok(DispensedId {
            id: hashids.decode(encoded)?,
            tag: tag.clone(),
            encoded: encoded.to_owned(),
        })
    }

    /// The encodings of the ids of groups, devices and journals.
    ///
    /// # Errors
    /// When they do not exist yet or the store fails.
    pub async fn ids(&self) -> Result<Arc<RecordIds>, RecordsError> {
        let load = || async {
            let of = async |tag| {
                let tag = IdTag::known(tag);
                let found = self.hashids(&tag).await?;
                found.ok_or(RecordsError::TagMissing(tag))
            };
            Ok(Arc::new(RecordIds {
                groups: of(GROUPS_TAG).await?,
                devices: of(DEVICES_TAG).await?,
                journals: of(JOURNALS_TAG).await?,
            }))
        };
        self.ids.get_or_try_init(load).await.cloned()
    }

    /// Creates the tags of groups, devices and journals unless they exist, perhaps with salts that an operator
    /// chose.
    pub(in crate::records) async fn ensure_ids(&self) -> Result<(), RecordsError> {
        if self.ids.initialized() {
            return Ok(());
        }
        for tag in [GROUPS_TAG, DEVICES_TAG, JOURNALS_TAG] {
            let new = NewIdTag {
                tag: IdTag::known(tag),
                salt: None,
                min_length: None,
                next_id: None,
            };
            match self.init_tag(new).await {
                Ok(()) | Err(RecordsError::TagExists(_)) => {}
                Err(error) => return Err(error),
            }
        }
        self.ids().await.map(drop)
    }

    /// The next number of one of the record store's own tags.
    pub(in crate::records) async fn next_id(&self, tag: &'static str) -> Result<u64, RecordsError> {
        Ok(self.dispense(&IdTag::known(tag)).await?.id)
    }

    async fn hashids(&self, tag: &IdTag) -> Result<Option<Hashids>, RecordsError> {
        let item = self.store.get(Get::new(self.table(), tag.key())).await?;
        item.map(|item| hashids_of(tag, &item)).transpose()
    }
}

fn hashids_of(tag: &IdTag, item: &Item) -> Result<Hashids, RecordsError> {
    let salt = item.get(schema::SALT).and_then(Value::as_str);
    let min_length = item
        .get(schema::MIN_LENGTH)
        .and_then(Value::as_number)
        .and_then(|number| usize::try_from(number.to_i64()?).ok());
    match salt.zip(min_length) {
        Some((salt, min_length)) => Hashids::new(salt, min_length).map_err(|_| malformed(tag)),
        None => Err(malformed(tag)),
    }
}

fn malformed(tag: &IdTag) -> RecordsError {
    RecordsError::Malformed(format!("id tag {tag}"))
}
