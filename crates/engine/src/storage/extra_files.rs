//! Copies files of other components in a data directory, for example the server's secrets.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use crate::storage::permissions;

/// Copies the named files, if present, from `source` to `target`, where only their owner may read them. They
/// are on disk when this returns. An error comes with the path that it concerns.
pub(crate) fn copy_files(
    source: &Path,
    target: &Path,
    names: &[&str],
) -> Result<(), (PathBuf, io::Error)> {
    for name in names {
        let from = source.join(name);
        copy_file(&from, &target.join(name)).map_err(|error| (from, error))?;
    }
    File::open(target)
        .and_then(|folder| folder.sync_all())
        .map_err(|error| (target.to_owned(), error))
}

fn copy_file(from: &Path, to: &Path) -> io::Result<()> {
    let mut source = match File::open(from) {
        Ok(source) => source,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    let mut target = permissions::create_file(to)?;
    io::copy(&mut source, &mut target)?;
    target.sync_all()
}
