//! Entry points for the fuzz targets in `fuzz/`, behind a feature that nothing else enables.

use std::io::Read as _;
use std::path::Path;

use crate::expiry::pages;
use crate::storage::journal;
use crate::storage::seal::file::{self, FileKeys};
use crate::storage::seal::keyring::Keyring;
use crate::storage::seal::master::MasterKey;

/// Checks a folder of journals and cuts off an unfinished write, like opening a store does. Returns whether
/// the result is accepted with the same last batch.
pub fn journal(store: &Path) -> Option<bool> {
    let journals = journal::survey(store).ok()?;
    journals.cut_unfinished().ok()?;
    let again = journal::survey(store);
    Some(again.is_ok_and(|again| again.last_sequence == journals.last_sequence))
}

/// Opens the keyring in a directory and returns the number of keys that can be unwrapped.
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

/// Decodes and re-encodes a page of expiring items, and returns whether both list the same items.
pub fn expiry_page(bytes: &[u8]) -> Option<bool> {
    let (table, names) = pages::read_page(bytes)?;
    let mut page = pages::Page::new(table);
    for name in &names {
        // `push` relies on keys being shorter.
        if name.len() > usize::from(u16::MAX) {
            return None;
        }
        page.push(name);
    }
    Some(pages::read_page(&page.into_value()) == Some((table, names)))
}
