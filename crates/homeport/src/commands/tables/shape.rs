//! A table's schema in DynamoDB's terms.

use homeport_item::KeyKind;
use homeport_item::schema::{
    IndexProjection, IndexSchema, KeyAttribute, KeySchema, StreamView, TableSchema,
};

/// The attributes of all keys of a table without duplicates, in order of appearance.
pub(super) fn key_attributes(table: &TableSchema) -> Vec<&KeyAttribute> {
    let keys = std::iter::once(&table.key).chain(table.indexes.iter().map(|index| &index.key));
    let mut attributes: Vec<&KeyAttribute> = Vec::new();
    for attribute in keys.flat_map(KeySchema::attributes) {
        if !attributes.contains(&attribute) {
            attributes.push(attribute);
        }
    }
    attributes
}

pub(super) fn kind(kind: KeyKind) -> &'static str {
    match kind {
        KeyKind::S => "S",
        KeyKind::N => "N",
        KeyKind::B => "B",
    }
}

pub(super) fn projection(index: &IndexSchema) -> (&'static str, &[String]) {
    match &index.projection {
        IndexProjection::All => ("ALL", &[]),
        IndexProjection::KeysOnly => ("KEYS_ONLY", &[]),
        IndexProjection::Include(names) => ("INCLUDE", names),
    }
}

pub(super) fn stream_view(view: StreamView) -> &'static str {
    match view {
        StreamView::KeysOnly => "KEYS_ONLY",
        StreamView::NewImage => "NEW_IMAGE",
        StreamView::OldImage => "OLD_IMAGE",
        StreamView::NewAndOldImages => "NEW_AND_OLD_IMAGES",
    }
}

/// Converts `evse-events` to `EvseEvents`, for names with letters and digits only.
pub(super) fn camel(name: &str) -> String {
    name.split(|char: char| !char.is_ascii_alphanumeric())
        .flat_map(|word| {
            let mut chars = word.chars();
            let first = chars.next().map(|first| first.to_ascii_uppercase());
            first.into_iter().chain(chars)
        })
        .collect()
}

/// Converts `evse-events` to `evse_events`, for names with letters, digits and underscores.
pub(super) fn snake(name: &str) -> String {
    name.chars()
        .map(|char| {
            if char.is_ascii_alphanumeric() {
                char
            } else {
                '_'
            }
        })
        .collect()
}

/// Sample tables and systems that use every feature of a schema, for tests of the renderers.
#[cfg(test)]
pub(super) mod sample {
    use homeport_systems::schema::{Operation, System, UsedTable};

    use super::*;
    use crate::config::{Settings, StoreSettings};

    /// Settings that differ from the defaults and contain characters to escape.
    pub(in crate::commands::tables) fn settings() -> StoreSettings {
        let file = "[store]\npoint_in_time_recovery = false\ndeletion_protection = true\n\
            kms_key_id = \"arn:aws:kms:eu-central-1:111122223333:key/7c9e6679\"\n\
            tags = \"team=iot,note=${a} \\\"b\\\"\"\n";
        Settings::from_file_alone(file).store
    }

    pub(in crate::commands::tables) fn systems() -> Vec<System> {
        let text = |name: &str| KeyAttribute::new(name, KeyKind::S);
        let by_state = IndexSchema::global("by-state", text("state"), None)
            .projecting(IndexProjection::Include(vec!["note".into(), "size".into()]));
        let mut by_size = IndexSchema::global(
            "by-size",
            text("id"),
            Some(KeyAttribute::new("size", KeyKind::N)),
        )
        .projecting(IndexProjection::KeysOnly);
        by_size.local = true;
        let things = TableSchema::new("all-things", "id", KeyKind::S)
            .with_sort("at", KeyKind::N)
            .with_index(by_state)
            .with_index(by_size)
            .with_ttl("expires_at")
            .with_stream(StreamView::NewAndOldImages);
        let plain = TableSchema::new("blobs", "hash", KeyKind::B);
        vec![System {
            name: "things",
            tables: vec![
                UsedTable {
                    schema: things,
                    operations: &[Operation::Get, Operation::Check, Operation::BatchWrite],
                    index_operations: &[Operation::Query, Operation::Scan],
                    may_be_watched: false,
                },
                UsedTable {
                    schema: plain,
                    operations: &[Operation::Delete],
                    index_operations: &[],
                    may_be_watched: false,
                },
            ],
        }]
    }

    #[test]
    fn names_contain_only_allowed_characters() {
        assert_eq!(
            camel("photoeditor-dev-device_tokens"),
            "PhotoeditorDevDeviceTokens"
        );
        assert_eq!(snake("van-telemetry.v2"), "van_telemetry_v2");
    }

    #[test]
    fn attribute_of_two_keys_is_listed_once() {
        let systems = systems();
        let names: Vec<_> = key_attributes(&systems[0].tables[0].schema)
            .into_iter()
            .map(|attribute| attribute.name.as_str())
            .collect();
        assert_eq!(names, ["id", "at", "state", "size"]);
    }
}
