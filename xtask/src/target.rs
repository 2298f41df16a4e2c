//! The directory that cargo builds to.

use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::process;

/// The build directory according to cargo, because the user may have moved it.
pub(crate) fn directory(root: &Path) -> anyhow::Result<PathBuf> {
    let metadata = process::capture(process::cargo(root).args([
        "metadata",
        "--locked",
        "--no-deps",
        "--format-version=1",
    ]))?;
    directory_in(&metadata).context("cargo metadata names no target directory")
}

/// The value of `target_directory`, a string that contains escapes only on Windows.
fn directory_in(metadata: &str) -> Option<PathBuf> {
    let (_, rest) = metadata.split_once("\"target_directory\":\"")?;
    let (directory, _) = rest.split_once('"')?;
    Some(PathBuf::from(directory.replace(r"\\", r"\")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn target_directory_is_found_in_cargo_metadata() {
        let metadata = r#"{"packages":[],"target_directory":"/some/place","version":1}"#;
        assert_eq!(directory_in(metadata), Some(PathBuf::from("/some/place")));
        assert_eq!(directory_in("{}"), None);
    }
}
