//! The tables as a listing for people.

use std::fmt::Write as _;

use homeport_item::schema::{KeySchema, TableSchema};
use homeport_systems::schema::System;

use super::shape;

pub(super) fn render(systems: &[System]) -> String {
    let mut text = String::new();
    for system in systems {
        if !text.is_empty() {
            text.push('\n');
        }
        let _ = writeln!(text, "{}", system.name);
        for table in &system.tables {
            describe(&mut text, &table.schema);
        }
    }
    text
}

fn describe(text: &mut String, table: &TableSchema) {
    let _ = writeln!(text, "  {}", table.name);
    let _ = writeln!(text, "    key      {}", key(&table.key));
    for index in &table.indexes {
        let (projection, names) = shape::projection(index);
        let kind = if index.local { "local" } else { "global" };
        let _ = write!(
            text,
            "    index    {}: {} ({kind}, carries {projection}",
            index.name,
            key(&index.key)
        );
        for name in names {
            let _ = write!(text, " {name}");
        }
        text.push_str(")\n");
    }
    if let Some(attribute) = &table.ttl_attribute {
        let _ = writeln!(text, "    expires  at {attribute}");
    }
    if let Some(view) = table.stream {
        let _ = writeln!(text, "    stream   {}", shape::stream_view(view));
    }
}

fn key(key: &KeySchema) -> String {
    let attributes: Vec<_> = key
        .attributes()
        .map(|attribute| format!("{} {}", attribute.name, shape::kind(attribute.kind)))
        .collect();
    attributes.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_schema_feature_is_listed() {
        let expected = "\
things
  all-things
    key      id S, at N
    index    by-state: state S (global, carries INCLUDE note size)
    index    by-size: id S, size N (local, carries KEYS_ONLY)
    expires  at expires_at
    stream   NEW_AND_OLD_IMAGES
  blobs
    key      hash B
";
        assert_eq!(render(&shape::sample::systems()), expected);
    }
}
