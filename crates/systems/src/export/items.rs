//! Items of a table as CSV. The attributes of the first page are the columns. The last column has all other
//! attributes of later items as JSON, so nothing is lost.

use std::collections::BTreeSet;

use homeport_item::schema::KeySchema;
use homeport_item::{Item, Map};

use super::CsvText;
use super::csv::{Cell, line};
use crate::plain_json;

/// Columns of one file. The last column also has attributes beyond this number.
const COLUMNS_MAX: usize = 200;
/// The name of the last column.
const MORE: &str = "more attributes";

#[derive(Debug)]
pub(super) struct CsvItems {
    text: CsvText,
    keys: Vec<String>,
    /// Known after the first page.
    columns: Option<Vec<String>>,
}

impl CsvItems {
    pub(super) fn new(key: &KeySchema, text: CsvText) -> Self {
        let keys = key.attributes();
        Self {
            text,
            keys: keys.map(|attribute| attribute.name.clone()).collect(),
            columns: None,
        }
    }

    pub(super) fn write(&mut self, items: &[Item], out: &mut Vec<u8>) {
        let columns = match &self.columns {
            Some(columns) => columns,
            None => {
                let columns = self.first_columns(items);
                let names = columns.iter().map(String::as_str).chain([MORE]);
                let header: Vec<Cell<'_>> = names.map(Cell::from).collect();
                line(&header, self.text, out);
                self.columns.insert(columns)
            }
        };
        for item in items {
            let mut cells: Vec<Cell<'_>> = columns
                .iter()
                .map(|name| item.get(name).map_or_else(|| "".into(), Cell::of))
                .collect();
            let more: Map = item
                .iter()
                .filter(|(name, _)| !columns.iter().any(|column| column == name))
                .map(|(name, value)| (name.to_owned(), value.clone()))
                .collect();
            let more = match more.is_empty() {
                true => String::new(),
                false => String::from_utf8_lossy(&plain_json::object(&more)).into_owned(),
            };
            cells.push(more.as_str().into());
            line(&cells, self.text, out);
        }
    }

    /// The keys, then all other attributes by name.
    fn first_columns(&self, items: &[Item]) -> Vec<String> {
        let names: BTreeSet<&str> = items
            .iter()
            .flat_map(Item::iter)
            .map(|(name, _)| name)
            .collect();
        let others = names
            .into_iter()
            .filter(|name| !self.keys.iter().any(|key| key == name));
        let columns = self.keys.iter().cloned().chain(others.map(str::to_owned));
        columns.take(COLUMNS_MAX).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use homeport_item::KeyKind;
    use homeport_item::schema::KeyAttribute;

    #[test]
    fn attributes_of_later_items_are_kept() {
        let key = KeySchema::new(KeyAttribute::new("id", KeyKind::S), None);
        let mut csv = CsvItems::new(&key, CsvText::Neutralised);
        let mut out = Vec::new();
        csv.write(&[Item::new().with("id", "a").with("b", 1)], &mut out);
        csv.write(&[Item::new().with("id", "c").with("late", "x")], &mut out);
        assert_eq!(
            String::from_utf8(out).expect("text"),
            "id,b,more attributes\r\na,1,\r\nc,,\"{\"\"late\"\":\"\"x\"\"}\"\r\n"
        );
    }
}
