//! Buckets: folders of one directory that the operator has set, where DynamoDB has buckets of S3.
//!
//! What a request names never leads out of the directory: names and prefixes are checked before they
//! become paths.

use std::path::{Path, PathBuf};

use crate::constraints::Constraints;
use crate::failure::Failure;
use crate::input::Text;
use crate::service::Service;

const NAME_LEN_MAX: usize = 255;
const PREFIX_LEN_MAX: usize = 1024;
/// Files that one import may have.
const FILES_MAX: usize = 100_000;
/// Folders within folders that are looked at.
const DEPTH_MAX: usize = 32;

/// A bucket that is there.
#[derive(Debug, Clone)]
pub(crate) struct Bucket {
    root: PathBuf,
}

pub(crate) fn constrain(
    constraints: &mut Constraints,
    path: &str,
    name: Option<&Text<'_>>,
    prefix_path: &str,
    prefix: Option<&Text<'_>>,
) {
    constraints.not_null(path, name);
    constraints.text_length(path, name, 1, NAME_LEN_MAX);
    constraints.text_length(prefix_path, prefix, 0, PREFIX_LEN_MAX);
}

impl Bucket {
    /// The bucket with this name.
    pub(crate) fn find(service: &Service, name: &str) -> Result<Self, Failure> {
        let Some(directory) = &service.config().buckets else {
            return Err(Failure::validation(
                "Exports and imports need a directory for buckets, which this server does not have: set dynamodb.buckets",
            ));
        };
        if !is_name(name) {
            return Err(Failure::validation(format!(
                "Invalid S3 bucket name: {name}"
            )));
        }
        let root = directory.join(name);
        if !root.is_dir() {
            return Err(Failure::validation(format!(
                "The specified S3 bucket does not exist: {name}"
            )));
        }
        Ok(Self { root })
    }

    /// The folder for what is written under a prefix.
    pub(crate) fn folder(&self, prefix: &str) -> Result<PathBuf, Failure> {
        let mut folder = self.root.clone();
        for part in prefix.split('/').filter(|part| !part.is_empty()) {
            check_part(part)?;
            folder.push(part);
        }
        Ok(folder)
    }

    /// The files whose names within the bucket begin with a prefix, in the order of their names. What exports
    /// keep beside their data is left out.
    pub(crate) fn files(&self, prefix: &str) -> Result<Vec<PathBuf>, Failure> {
        let mut files = Vec::new();
        collect(&self.root, &self.root, prefix, DEPTH_MAX, &mut files)?;
        files.sort();
        Ok(files)
    }
}

fn collect(
    root: &Path,
    folder: &Path,
    prefix: &str,
    depth_left: usize,
    files: &mut Vec<PathBuf>,
) -> Result<(), Failure> {
    let entries = std::fs::read_dir(folder).map_err(|error| Failure::internal(&error))?;
    for entry in entries {
        let entry = entry.map_err(|error| Failure::internal(&error))?;
        let path = entry.path();
        let Some(key) = path.strip_prefix(root).ok().and_then(Path::to_str) else {
            continue;
        };
        // A link could lead anywhere.
        let kind = entry
            .file_type()
            .map_err(|error| Failure::internal(&error))?;
        if kind.is_dir() {
            let may_have = key.starts_with(prefix) || prefix.starts_with(&format!("{key}/"));
            if may_have && depth_left > 0 {
                collect(root, &path, prefix, depth_left - 1, files)?;
            }
            continue;
        }
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if !kind.is_file()
            || !key.starts_with(prefix)
            || name.starts_with('_')
            || name.starts_with("manifest-")
        {
            continue;
        }
        if files.len() >= FILES_MAX {
            return Err(Failure::limit_exceeded(format!(
                "An import may have {FILES_MAX} files at most"
            )));
        }
        files.push(path);
    }
    Ok(())
}

fn check_part(part: &str) -> Result<(), Failure> {
    if part == "." || part == ".." || part.contains(['\\', '\0', ':']) {
        return Err(Failure::validation(format!("Invalid S3 prefix: {part}")));
    }
    Ok(())
}

/// Letters, digits, dots, hyphens and underscores between letters or digits.
fn is_name(name: &str) -> bool {
    let ends = |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric());
    name.len() >= 2
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_'))
        && ends(name.bytes().next())
        && ends(name.bytes().next_back())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_prefixes_stay_within_the_directory() {
        for name in ["exports", "my-bucket.1", "a_b"] {
            assert!(is_name(name), "{name}");
        }
        for name in ["", "a", "..", "../x", "a/b", ".x", "x-", "a b"] {
            assert!(!is_name(name), "{name}");
        }
        let bucket = Bucket {
            root: PathBuf::from("/buckets/one"),
        };
        let folder = bucket.folder("a//b/").expect("a folder");
        assert_eq!(folder, Path::new("/buckets/one/a/b"));
        for prefix in ["..", "a/../../b", "./x", "a\\b", "c:"] {
            assert!(bucket.folder(prefix).is_err(), "{prefix}");
        }
    }
}
