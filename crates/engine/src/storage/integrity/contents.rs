//! The list of contents: the keyspaces and journals that a data directory must have.
//!
//! It is a text file that is replaced as a whole: a line of JSON, and a line with its checksum.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use crate::storage::integrity::mark::StoreId;
use crate::storage::permissions;

pub(crate) const CONTENTS_FILE: &str = "CONTENTS";

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Contents {
    /// The store's id in hexadecimal digits.
    store: String,
    /// Increases with every new version of the list.
    pub(crate) generation: u64,
    /// Names of keyspaces, by their numbers.
    pub(crate) keyspaces: BTreeMap<u64, String>,
    /// Keyspaces that the engine has deleted, whose folders may still exist.
    pub(crate) deleted: BTreeSet<u64>,
    /// Journals that are no longer written. For each keyspace with values of the journal that were only in
    /// memory, the version of its list of table files at that time. The key-value store deletes the journal
    /// only after flushing the keyspace, which creates a newer version.
    pub(crate) sealed_journals: BTreeMap<u64, BTreeMap<u64, u64>>,
    /// The journal that was being written.
    pub(crate) active_journal: u64,
}

impl Contents {
    pub(crate) fn new(store: StoreId) -> Self {
        Self {
            store: hex::encode(store.0),
            ..Self::default()
        }
    }

    /// Whether nothing was ever added to it.
    pub(crate) fn is_new(&self) -> bool {
        self.generation == 0
    }

    pub(crate) fn is_of(&self, store: StoreId) -> bool {
        self.store == hex::encode(store.0)
    }

    /// Reads the list of a data directory, if there is one. [`io::ErrorKind::InvalidData`] means that it is
    /// damaged.
    pub(crate) fn read(directory: &Path) -> io::Result<Option<Self>> {
        let text = match fs::read(directory.join(CONTENTS_FILE)) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let damaged = || io::Error::new(io::ErrorKind::InvalidData, "its checksum is wrong");
        let mut lines = text.split(|byte| *byte == b'\n');
        let (Some(list), Some(checksum)) = (lines.next(), lines.next()) else {
            return Err(damaged());
        };
        if checksum != checksum_of(list).as_bytes() || lines.next() != Some(b"") {
            return Err(damaged());
        }
        serde_json::from_slice(list)
            .map(Some)
            .map_err(|_| damaged())
    }

    /// Replaces the list of a data directory durably.
    pub(crate) fn write(&self, directory: &Path) -> io::Result<()> {
        let mut list = serde_json::to_vec(self).map_err(io::Error::other)?;
        let checksum = checksum_of(&list);
        list.extend_from_slice(format!("\n{checksum}\n").as_bytes());
        let path = directory.join(CONTENTS_FILE);
        permissions::replace_file(&path, "CONTENTS.new", &list).map(|_| ())
    }
}

fn checksum_of(list: &[u8]) -> String {
    format!("{:016x}", xxh3_64(list))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_damaged_byte_is_detected() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(Contents::read(directory.path()).unwrap(), None);
        let mut contents = Contents::new(StoreId([1; 16]));
        contents.keyspaces.insert(3, "t1".to_owned());
        contents
            .sealed_journals
            .insert(4, BTreeMap::from([(3, 99)]));
        contents.write(directory.path()).unwrap();
        assert_eq!(Contents::read(directory.path()).unwrap(), Some(contents));
        let path = directory.path().join(CONTENTS_FILE);
        let whole = fs::read(&path).unwrap();
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 1;
            fs::write(&path, &damaged).unwrap();
            assert!(Contents::read(directory.path()).is_err(), "byte {at}");
            fs::write(&path, &whole[..at]).unwrap();
            assert!(Contents::read(directory.path()).is_err(), "cut at {at}");
        }
    }
}
