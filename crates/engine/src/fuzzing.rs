//! Entry points for the fuzz targets in `fuzz/`, behind a feature that nothing else enables.

use std::io::Read as _;
use std::path::Path;

use crate::expiry;
use crate::journal;
use crate::seal::file::{self, FileKeys};
use crate::seal::keyring::Keyring;
use crate::seal::master::MasterKey;

/// Checks a folder of journals and cuts off an unfinished write, as opening a store does; whether what is
/// left is accepted, with the same last batch.
pub fn journal(store: &Path) -> Option<bool> {
    let journals = journal::survey(store).ok()?;
    journals.cut_unfinished().ok()?;
    let again = journal::survey(store);
    Some(again.is_ok_and(|again| again.last_sequence == journals.last_sequence))
}

/// Opens the keyring in a directory; the number of keys that can be unwrapped.
pub fn keyring(directory: &Path, master: &MasterKey) -> Option<u32> {
    let keyring = Keyring::open(directory, master).ok()??;
    let ids = (1..).take_while(|id| keyring.unwrap(master, *id).is_some());
    u32::try_from(ids.count()).ok()
}

/// Reads a file that may be sealed.
pub fn sealed_file(path: &Path, master: &MasterKey) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut reader = file::open(path, FileKeys::Master(Some(master))).ok()?;
    reader.read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// Reads a page of expiring items and writes it again; whether both list the same items.
pub fn expiry_page(bytes: &[u8]) -> Option<bool> {
    let (table, names) = expiry::read_page(bytes)?;
    let mut page = expiry::Page::new(table);
    for name in &names {
        // Keys are shorter; `push` relies on it.
        if name.len() > usize::from(u16::MAX) {
            return None;
        }
        page.push(name);
    }
    Some(expiry::read_page(&page.into_value()) == Some((table, names)))
}
