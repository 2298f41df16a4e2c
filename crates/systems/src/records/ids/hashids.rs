//! Hashids: the public form of sequential ids, so that an id does not reveal its neighbours.

use harsh::Harsh;

use super::dispenser;
use super::dispenser::ID_MAX;
use crate::records::RecordsError;
use crate::records::types::{DeviceId, GroupId, JournalId};
use crate::sensors::InvalidField;

/// Longest encoded id. The largest id has eleven characters, and no text of this length decodes to a number
/// that overflows.
const ENCODED_LEN_MAX: usize = 12;
/// Longest salt, in characters.
const SALT_CHARS_MAX: usize = 128;

/// The encoding of one tag.
#[derive(Debug, Clone)]
pub struct Hashids(Harsh);

/// The encodings of the record store's own ids.
#[derive(Debug, Clone)]
pub struct RecordIds {
    pub(super) groups: Hashids,
    pub(super) devices: Hashids,
    pub(super) journals: Hashids,
}

impl Hashids {
    /// # Errors
    /// When the salt or the length is out of bounds.
    pub fn new(salt: &str, min_length: usize) -> Result<Self, InvalidField> {
        if !(1..=SALT_CHARS_MAX).contains(&salt.chars().count()) {
            return Err(InvalidField {
                field: crate::records::schema::SALT,
                expected: "a text of 1 to 128 characters",
            });
        }
        let wrong_length = InvalidField {
            field: crate::records::schema::MIN_LENGTH,
            expected: "a number from 1 to 12",
        };
        if !(1..=ENCODED_LEN_MAX).contains(&min_length) {
            return Err(wrong_length);
        }
        let harsh = Harsh::builder().salt(salt).length(min_length).build();
        harsh.map(Self).map_err(|_| wrong_length)
    }

    #[must_use]
    pub fn encode(&self, id: u64) -> String {
        self.0.encode(&[id])
    }

    /// # Errors
    /// When the text is not a result of [`Self::encode`].
    pub fn decode(&self, text: &str) -> Result<u64, RecordsError> {
        if text.len() > ENCODED_LEN_MAX {
            return Err(RecordsError::EncodedId);
        }
        match self.0.decode(text).as_deref() {
            Ok([id]) if (1..=ID_MAX).contains(id) => Ok(*id),
            _ => Err(RecordsError::EncodedId),
        }
    }
}

impl RecordIds {
    #[must_use]
    pub fn group(&self, id: GroupId) -> String {
        self.groups.encode(id.0)
    }

    #[must_use]
    pub fn device(&self, id: DeviceId) -> String {
        self.devices.encode(id.0)
    }

    #[must_use]
    pub fn journal(&self, id: JournalId) -> String {
        self.journals.encode(id.0)
    }

    /// # Errors
    /// When the text is not the id of a group.
    pub fn parse_group(&self, text: &str) -> Result<GroupId, RecordsError> {
        self.groups.decode(text).map(GroupId)
    }

    /// # Errors
    /// When the text is not the id of a device.
    pub fn parse_device(&self, text: &str) -> Result<DeviceId, RecordsError> {
        self.devices.decode(text).map(DeviceId)
    }

    /// # Errors
    /// When the text is not the id of a journal.
    pub fn parse_journal(&self, text: &str) -> Result<JournalId, RecordsError> {
        self.journals.decode(text).map(JournalId)
    }
}

/// A random salt, the default of tags.
pub(super) fn random_salt() -> String {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).expect("the operating system provides random bytes");
    hex::encode(bytes)
}

const _: () = assert!(dispenser::MIN_LENGTH_DEFAULT <= ENCODED_LEN_MAX);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_has_the_documented_encoding() {
        let hashids = Hashids::new("sdfjkl34j234j", 8).unwrap();
        assert_eq!(hashids.encode(10), "5YXd4XZ0");
        assert_eq!(hashids.decode("5YXd4XZ0"), Ok(10));
    }

    #[test]
    fn largest_id_round_trips() {
        let hashids = Hashids::new("sdfjkl34j234j", 1).unwrap();
        let text = hashids.encode(ID_MAX);
        assert!(text.len() <= ENCODED_LEN_MAX, "{text}");
        assert_eq!(hashids.decode(&text), Ok(ID_MAX));
    }

    #[test]
    fn invalid_id_is_rejected_without_panic() {
        let hashids = Hashids::new("sdfjkl34j234j", 8).unwrap();
        let two = hashids.0.encode(&[1, 2]);
        let none = hashids.encode(0);
        for text in [
            "",
            "5YXd4XZ1",
            "5yxd4xz0",
            "é",
            "5YXd4XZ0 ",
            &two,
            &none,
            &"x".repeat(99),
        ] {
            assert_eq!(hashids.decode(text), Err(RecordsError::EncodedId), "{text}");
        }
        for byte in 33..127_u8 {
            let same = String::from_utf8(vec![byte; ENCODED_LEN_MAX]).unwrap();
            assert_eq!(
                hashids.decode(&same),
                Err(RecordsError::EncodedId),
                "{same}"
            );
        }
    }

    #[test]
    fn salt_and_length_are_bounded() {
        assert!(Hashids::new("", 8).is_err());
        assert!(Hashids::new(&"s".repeat(129), 8).is_err());
        let long = Hashids::new(&"é".repeat(128), 8).unwrap();
        assert_eq!(long.decode(&long.encode(7)), Ok(7));
        assert!(Hashids::new(&"é".repeat(129), 8).is_err());
        assert!(Hashids::new("s", 0).is_err());
        assert!(Hashids::new("s", 13).is_err());
    }
}
