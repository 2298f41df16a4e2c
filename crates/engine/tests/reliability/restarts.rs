//! What survives an orderly restart.

use std::path::Path;

use homeport_engine::Engine;
use homeport_item::schema::{IndexSchema, KeyAttribute, TableSchema};
use homeport_item::{Item, KeyKind};
use homeport_store::{Get, Put, Store};

use crate::verify;

fn open(path: &Path) -> Engine {
    Engine::open(path, verify::options()).unwrap()
}

fn table(name: &str, indexes: usize) -> TableSchema {
    (0..indexes).fold(TableSchema::new(name, "id", KeyKind::S), |table, index| {
        let attribute = KeyAttribute::new(format!("attribute-{index}"), KeyKind::S);
        table.with_index(IndexSchema::global(
            &format!("index-{index}"),
            attribute,
            None,
        ))
    })
}

/// The key-value store has a list of keyspaces, whose maintenance depends on how many were created and
/// deleted; hence several tables.
#[test]
fn tables_created_after_deletions_survive_restarts() {
    let item = Item::new().with("id", "kept");
    for indexes in 0..4 {
        let room = tempfile::tempdir().unwrap();
        verify::runtime().block_on(async {
            let engine = open(room.path());
            engine.create_table(table("first", indexes)).await.unwrap();
            engine.create_table(table("other", 1)).await.unwrap();
            engine.delete_table("other").await.unwrap();
            engine.delete_table("first").await.unwrap();
            drop(engine);

            let engine = open(room.path());
            engine.create_table(table("second", 2)).await.unwrap();
            engine.put(Put::new("second", item.clone())).await.unwrap();
            drop(engine);

            let engine = open(room.path());
            let found = engine.get(Get::new("second", item.clone())).await;
            assert_eq!(found, Ok(Some(item.clone())), "{indexes} indexes");
        });
    }
}
