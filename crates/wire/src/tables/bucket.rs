//! Buckets: folders in a configured directory, in place of S3 buckets.
//!
//! IMPORTANT: a request never reaches files outside the directory. Names and prefixes are checked, and symbolic links are not
//! followed.

use std::io::ErrorKind;

use homeport_engine::{EntryKind, Folder};

use crate::constraints::Constraints;
use crate::failure::Failure;
use crate::input::Text;
use crate::service::Service;

const NAME_LEN_MAX: usize = 255;
const PREFIX_LEN_MAX: usize = 1024;
/// The largest number of files of an import.
const FILES_MAX: usize = 100_000;
/// The largest depth of folders of an import.
const DEPTH_MAX: usize = 32;

/// An open bucket.
#[derive(Debug, Clone)]
pub(crate) struct Bucket {
    pub(crate) folder: Folder,
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
        Folder::open(directory)
            .and_then(|buckets| buckets.folder(name))
            .map(|folder| Self { folder })
            .map_err(|_| {
                Failure::validation(format!("The specified S3 bucket does not exist: {name}"))
            })
    }

    /// Checks that objects can be written under a prefix: its existing parts must be folders, and not symbolic links.
    pub(crate) fn check_prefix(&self, prefix: &str) -> Result<(), Failure> {
        let mut folder = Some(self.folder.clone());
        for part in prefix.split('/').filter(|part| !part.is_empty()) {
            check_part(part)?;
            folder = match folder.map(|folder| folder.folder(part)) {
                Some(Ok(next)) => Some(next),
                Some(Err(error)) if error.kind() != ErrorKind::NotFound => {
                    return Err(Failure::validation(format!(
                        "Invalid S3 prefix: {part} is not a folder; symbolic links are not followed"
                    )));
                }
                _ => None,
            };
        }
        Ok(())
    }

    /// The sorted keys of the files whose keys begin with a prefix, without the manifests of exports.
    pub(crate) fn files(&self, prefix: &str) -> Result<Vec<String>, Failure> {
        let mut files = Vec::new();
        collect(&self.folder, "", prefix, DEPTH_MAX, &mut files)?;
        files.sort();
        Ok(files)
    }
}

/// Collects the files of a folder, whose keys begin with `path`.
fn collect(
    folder: &Folder,
    path: &str,
    prefix: &str,
    depth_left: usize,
    files: &mut Vec<String>,
) -> Result<(), Failure> {
    let entries = folder.entries();
    for (name, kind) in entries.map_err(|error| Failure::internal(&error))? {
        let key = format!("{path}{name}");
        match kind {
            EntryKind::Folder => {
                let path = format!("{key}/");
                if !path.starts_with(prefix) && !prefix.starts_with(&path) {
                    continue;
                }
                if depth_left == 0 {
                    return Err(Failure::limit_exceeded(format!(
                        "An import may have {DEPTH_MAX} levels of folders at most"
                    )));
                }
                let inner = folder.folder(&name);
                let inner = inner.map_err(|error| Failure::internal(&error))?;
                collect(&inner, &path, prefix, depth_left - 1, files)?;
            }
            EntryKind::File
                if key.starts_with(prefix)
                    && !name.starts_with('_')
                    && !name.starts_with("manifest-") =>
            {
                if files.len() >= FILES_MAX {
                    return Err(Failure::limit_exceeded(format!(
                        "An import may have {FILES_MAX} files at most"
                    )));
                }
                files.push(key);
            }
            EntryKind::File | EntryKind::Other => {}
        }
    }
    Ok(())
}

fn check_part(part: &str) -> Result<(), Failure> {
    if part == "." || part == ".." || part.contains(['\\', '\0', ':']) {
        return Err(Failure::validation(format!("Invalid S3 prefix: {part}")));
    }
    Ok(())
}

/// Whether a name has only letters, digits, dots, hyphens and underscores, and begins and ends with a letter or digit.
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
    fn names_and_prefixes_stay_in_directory() {
        for name in ["exports", "my-bucket.1", "a_b"] {
            assert!(is_name(name), "{name}");
        }
        for name in ["", "a", "..", "../x", "a/b", ".x", "x-", "a b"] {
            assert!(!is_name(name), "{name}");
        }
        let directory = tempfile::tempdir().expect("a directory");
        std::fs::write(directory.path().join("file"), b"").expect("a file");
        let bucket = Bucket {
            folder: Folder::open(directory.path()).expect("a folder"),
        };
        for prefix in ["", "a//b/", "a/b/c"] {
            assert!(bucket.check_prefix(prefix).is_ok(), "{prefix}");
        }
        for prefix in ["..", "a/../../b", "./x", "a\\b", "c:", "file", "file/x"] {
            assert!(bucket.check_prefix(prefix).is_err(), "{prefix}");
        }
        assert!(!directory.path().join("a").exists());
    }

    #[test]
    fn too_deep_folders_are_errors() {
        let directory = tempfile::tempdir().expect("a directory");
        let bucket = Bucket {
            folder: Folder::open(directory.path()).expect("a folder"),
        };
        let path = vec!["a"; DEPTH_MAX].join("/");
        std::fs::create_dir_all(directory.path().join(&path)).expect("folders");
        assert_eq!(bucket.files(""), Ok(Vec::new()));
        std::fs::create_dir(directory.path().join(&path).join("b")).expect("a folder");
        assert!(bucket.files("").is_err());
    }
}
