//! Sets data aside that nothing refers to: it is moved to the folder `set-aside` and never deleted; it takes
//! disk space until an operator deletes it.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use crate::storage::permissions;

/// The folder inside a data directory.
pub(crate) const SET_ASIDE_FOLDER: &str = "set-aside";
/// The maximum number of folders with the same base name.
const COPIES_MAX: u32 = 10_000;

/// The names of the folders that were set aside.
pub(crate) fn list(directory: &Path) -> io::Result<Vec<String>> {
    let entries = match fs::read_dir(directory.join(SET_ASIDE_FOLDER)) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut names = Vec::new();
    for entry in entries {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}

/// Moves a folder and returns its new path.
pub(crate) fn move_folder(directory: &Path, folder: &Path, name: &str) -> io::Result<PathBuf> {
    let target = free_place(directory, name)?;
    fs::rename(folder, &target)?;
    sync_folder(&directory.join(SET_ASIDE_FOLDER))?;
    if let Some(parent) = folder.parent() {
        sync_folder(parent)?;
    }
    Ok(target)
}

/// Hard-links the files of a folder into a new one, so that they survive the deletion of the folder. Returns
/// the new path.
pub(crate) fn link_folder(directory: &Path, folder: &Path, name: &str) -> io::Result<PathBuf> {
    let target = free_place(directory, name)?;
    link_files(folder, &target)?;
    sync_folder(&directory.join(SET_ASIDE_FOLDER))?;
    Ok(target)
}

fn link_files(from: &Path, to: &Path) -> io::Result<()> {
    permissions::create_folder(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            link_files(&entry.path(), &target)?;
        } else {
            fs::hard_link(entry.path(), target)?;
        }
    }
    sync_folder(to)
}

fn free_place(directory: &Path, name: &str) -> io::Result<PathBuf> {
    let folder = directory.join(SET_ASIDE_FOLDER);
    permissions::create_folder(&folder)?;
    (0..COPIES_MAX)
        .map(|copy| match copy {
            0 => folder.join(name),
            copy => folder.join(format!("{name}.{copy}")),
        })
        .find(|place| !place.exists())
        .ok_or_else(|| {
            io::Error::other(
                "the folder set-aside is full; inspect it and delete what you do not need",
            )
        })
}

fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use homeport_item::schema::TableSchema;
    use homeport_item::{Item, KeyKind};
    use homeport_store::{Put, Store as _};

    use super::*;
    use crate::engine::Engine;
    use crate::options::Options;
    use crate::storage::check::check_directory;
    use crate::storage::vault::PersistMode;
    use crate::storage::vault::files;

    #[tokio::test]
    async fn keyspaces_without_a_table_are_set_aside() {
        let directory = tempfile::tempdir().unwrap();
        let engine = Engine::open(directory.path(), Options::for_tests()).unwrap();
        let database = engine.shared().database.clone();
        let (lost, empty) = (database.keyspace("t77"), database.keyspace("t78"));
        let mut batch = database.batch();
        batch.insert(&lost.unwrap(), "key", "value");
        batch.commit(PersistMode::SyncAll).unwrap();
        drop((empty, database, engine));
        drop(Engine::open(directory.path(), Options::for_tests()).unwrap());
        let names = list(directory.path()).unwrap();
        assert_eq!(names.len(), 1, "{names:?}");
        assert!(names[0].starts_with("t77-"), "{names:?}");
        let folder = directory.path().join(SET_ASIDE_FOLDER).join(&names[0]);
        let table = files::table_files(&folder).unwrap().remove(0);
        let entry = table.entries(None).unwrap().next().unwrap().unwrap();
        assert_eq!(entry.value.as_deref(), Some(&b"value"[..]));
        let report = check_directory(directory.path(), &Options::for_tests()).unwrap();
        assert_eq!(report.set_aside, names);
        assert_eq!(report.problems, 0, "{:?}", report.descriptions);
        let engine = Engine::open(directory.path(), Options::for_tests()).unwrap();
        assert!(!engine.shared().database.has_keyspace("t77"));
        assert!(!engine.shared().database.has_keyspace("t78"));
    }

    #[tokio::test]
    async fn keyspaces_of_deleted_tables_are_not_set_aside() {
        let directory = tempfile::tempdir().unwrap();
        let engine = Engine::open(directory.path(), Options::for_tests()).unwrap();
        for name in ["one", "two"] {
            let table = TableSchema::new(name, "id", KeyKind::S);
            engine.create_table(table).await.unwrap();
            let item = Item::new().with("id", "a");
            engine.put(Put::new(name, item)).await.unwrap();
        }
        engine.delete_table("one").await.unwrap();
        drop(engine);
        let engine = Engine::open(directory.path(), Options::for_tests()).unwrap();
        assert_eq!(list(directory.path()).unwrap(), Vec::<String>::new());
        assert_eq!(engine.table_names(), ["two"]);
    }
}
