//! A reaction that writes down what it sees, and the table that it follows.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use homeport_item::schema::{StreamView, TableSchema};
use homeport_item::{Item, KeyKind};
use homeport_store::Change;
use homeport_systems::reactions::{Reaction, ReactionError};

pub(crate) const THINGS: &str = "things";

pub(crate) fn things() -> TableSchema {
    TableSchema::new(THINGS, "id", KeyKind::S).with_stream(StreamView::NewAndOldImages)
}

pub(crate) fn thing(id: &str, value: &str) -> Item {
    Item::new().with("id", id).with("value", value)
}

/// Writes down what it sees.
#[derive(Default)]
pub(crate) struct Recorder {
    seen: Mutex<Vec<String>>,
    pub(crate) fails: AtomicBool,
}

impl Recorder {
    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.seen.lock().expect("not poisoned"))
    }

    fn add(&self, text: String) {
        self.seen.lock().expect("not poisoned").push(text);
    }
}

#[async_trait]
impl Reaction for Recorder {
    fn name(&self) -> &'static str {
        "recorder"
    }

    fn table(&self) -> &str {
        THINGS
    }

    async fn apply(&self, changes: &[Change]) -> Result<(), ReactionError> {
        for change in changes {
            let text = |item: &Option<Item>, name: &str| {
                let value = item.as_ref().and_then(|item| item.get(name)?.as_str());
                value.unwrap_or("-").to_owned()
            };
            let id = text(&Some(change.key.clone()), "id");
            let (old, new) = (text(&change.old, "value"), text(&change.new, "value"));
            self.add(format!("{id}: {old} to {new}"));
        }
        if self.fails.load(Ordering::Relaxed) {
            return Err(ReactionError::new("told to fail"));
        }
        Ok(())
    }

    async fn start_over(&self) -> Result<(), ReactionError> {
        self.add("start over".to_owned());
        Ok(())
    }
}
