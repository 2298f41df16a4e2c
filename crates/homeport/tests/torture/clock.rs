//! The server's wall clock, which libfaketime shifts by the number of days in a file.

use std::path::{Path, PathBuf};

const LIBRARY: &str = "faketime/libfaketimeMT.so.1";

#[derive(Debug)]
pub(crate) struct Clock {
    library: PathBuf,
    file: PathBuf,
}

impl Clock {
    /// A correct clock.
    pub(crate) fn new(directory: &Path) -> Result<Self, String> {
        let library =
            library().ok_or("libfaketime is missing: install Debian's package faketime")?;
        let clock = Self {
            library,
            file: directory.join("clock"),
        };
        clock.set(0)?;
        Ok(clock)
    }

    /// Shifts the clock by some days.
    pub(crate) fn set(&self, days: i64) -> Result<(), String> {
        // By rename: a partially written file would be another time.
        let new = self.file.with_extension("new");
        std::fs::write(&new, format!("{days:+}d\n"))
            .and_then(|()| std::fs::rename(&new, &self.file))
            .map_err(|error| error.to_string())
    }

    pub(crate) fn preload(&self) -> (PathBuf, PathBuf) {
        (self.library.clone(), self.file.clone())
    }
}

/// The path of Debian's library.
pub(crate) fn library() -> Option<PathBuf> {
    let directories = std::fs::read_dir("/usr/lib").ok()?.flatten();
    let mut candidates = directories.map(|directory| directory.path().join(LIBRARY));
    candidates.find(|library| library.is_file())
}
