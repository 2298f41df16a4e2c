//! Reads more attributes than requested and returns only the requested ones.

use homeport_item::Item;
use homeport_item::expression::{Path, Projection};

/// A projection with additional attributes that this crate needs itself.
#[derive(Debug)]
pub(crate) struct ReadProjection {
    /// The projection to request from DynamoDB; `None` for all attributes.
    pub(crate) projection: Option<Projection>,
    /// Attributes that the caller did not request.
    extra: Vec<String>,
    /// Attributes that are read as a whole although only parts were requested.
    parts: Vec<(String, Projection)>,
}

impl ReadProjection {
    /// The projection `asked` extended by the top-level attributes `needs`.
    pub(crate) fn new(asked: Option<&Projection>, needs: &[&str]) -> Self {
        let mut shape = Self {
            projection: asked.cloned(),
            extra: Vec::new(),
            parts: Vec::new(),
        };
        let Some(projection) = &mut shape.projection else {
            return shape;
        };
        for need in needs {
            let of_need = |path: &Path| path.name() == *need;
            let whole = |path: &Path| of_need(path) && path.nested().is_empty();
            if projection.paths.iter().any(whole) {
                continue;
            }
            // Paths must not overlap, so a whole attribute replaces its parts.
            let (parts, mut others): (Vec<_>, Vec<_>) =
                projection.paths.drain(..).partition(of_need);
            if parts.is_empty() {
                shape.extra.push((*need).to_owned());
            } else {
                let parts = Projection { paths: parts };
                shape.parts.push(((*need).to_owned(), parts));
            }
            others.push(Path::new(*need));
            projection.paths = others;
        }
        shape
    }

    /// Reduces an item to the requested attributes.
    pub(crate) fn restore(&self, mut item: Item) -> Item {
        for name in &self.extra {
            item.remove(name);
        }
        for (name, parts) in &self.parts {
            let mut picked = parts.apply(&item);
            item.remove(name);
            if let Some(value) = picked.remove(name) {
                item.insert(name.clone(), value);
            }
        }
        item
    }
}

#[cfg(test)]
mod tests {
    use homeport_item::{Map, Value};

    use super::*;

    fn stored() -> Item {
        let map = Map::from([
            ("x".to_owned(), Value::from(1)),
            ("y".to_owned(), Value::from(2)),
        ]);
        Item::new()
            .with("pk", "a")
            .with("list", Value::L(vec![Value::from(1), Value::from(2)]))
            .with("map", Value::M(map))
            .with("expires", 5)
    }

    /// The item that is read, and the item that is returned.
    fn read(asked: &Projection, needs: &[&str]) -> (Item, Item) {
        let shape = ReadProjection::new(Some(asked), needs);
        let sent = shape.projection.as_ref().expect("there is one");
        sent.check().expect("DynamoDB would take it");
        let found = sent.apply(&stored());
        (found.clone(), shape.restore(found))
    }

    #[test]
    fn needed_attributes_are_read_but_not_returned() {
        for asked in [
            Projection::new(["pk"]),
            Projection::new(["expires"]),
            Projection::new(["pk", "expires"]),
            Projection::new([Path::new("list").element(1)]),
            Projection::new([
                Path::new("map").member("x"),
                Path::new("map").member("none"),
            ]),
            Projection::new([Path::new("expires").member("x"), Path::new("pk")]),
        ] {
            let (found, returned) = read(&asked, &["expires", "map"]);
            assert!(found.get("expires").is_some() && found.get("map").is_some());
            assert_eq!(returned, asked.apply(&stored()), "{asked:?}");
        }
    }

    #[test]
    fn missing_projection_reads_everything() {
        let shape = ReadProjection::new(None, &["expires"]);
        assert_eq!(shape.projection, None);
        assert_eq!(shape.restore(stored()), stored());
    }
}
