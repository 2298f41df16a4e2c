//! The digest of a transaction, which identifies a repeat of it.
//!
//! The digest is stored with the client token, so its input must not change between versions. The input is
//! DynamoDB's expression text and JSON, which are fixed, each with its length. Any change of this file needs
//! another [`VERSION`].

use homeport_item::expression::{Condition, Printer};
use homeport_item::{Item, json};
use homeport_store::{Action, ReturnValues};
use xxhash_rust::xxh3::xxh3_128;

/// Stored before a digest; digests of different versions cannot be compared.
pub(crate) const VERSION: u8 = 1;

const PUT: u8 = 1;
const UPDATE: u8 = 2;
const DELETE: u8 = 3;
const CHECK: u8 = 4;

pub(crate) fn digest(actions: &[Action]) -> u128 {
    let mut bytes = vec![VERSION];
    for action in actions {
        push_action(action, &mut bytes);
    }
    xxh3_128(&bytes)
}

fn push_action(action: &Action, out: &mut Vec<u8>) {
    let mut printer = Printer::new();
    let (kind, item, update, condition, returning, old_on_failure) = match action {
        Action::Put(put) => (
            PUT,
            &put.item,
            None,
            put.condition.as_ref(),
            put.returning,
            put.old_on_failure,
        ),
        Action::Update(update) => (
            UPDATE,
            &update.key,
            Some(update.update.print(&mut printer)),
            update.condition.as_ref(),
            update.returning,
            update.old_on_failure,
        ),
        Action::Delete(delete) => (
            DELETE,
            &delete.key,
            None,
            delete.condition.as_ref(),
            delete.returning,
            delete.old_on_failure,
        ),
        Action::Check(check) => (
            CHECK,
            &check.key,
            None,
            Some(&check.condition),
            ReturnValues::None,
            check.old_on_failure,
        ),
    };
    out.extend([kind, returning_code(returning), u8::from(old_on_failure)]);
    push(action.table().as_bytes(), out);
    push(&item_json(item), out);
    push(update.unwrap_or_default().as_bytes(), out);
    let condition = condition.map(|condition: &Condition| condition.print(&mut printer));
    push(condition.unwrap_or_default().as_bytes(), out);
    let (names, values) = printer.into_parts();
    for (placeholder, name) in names {
        push(placeholder.as_bytes(), out);
        push(name.as_bytes(), out);
    }
    for (placeholder, value) in values {
        push(placeholder.as_bytes(), out);
        let mut text = Vec::new();
        json::write_value(&value, &mut text);
        push(&text, out);
    }
}

fn item_json(item: &Item) -> Vec<u8> {
    let mut text = Vec::new();
    json::write_item(item, &mut text);
    text
}

fn push(bytes: &[u8], out: &mut Vec<u8>) {
    let len = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
    out.extend_from_slice(&len.to_be_bytes());
    out.extend_from_slice(bytes);
}

fn returning_code(returning: ReturnValues) -> u8 {
    match returning {
        ReturnValues::None => 0,
        ReturnValues::AllOld => 1,
        ReturnValues::AllNew => 2,
        ReturnValues::UpdatedOld => 3,
        ReturnValues::UpdatedNew => 4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use homeport_item::expression::Update;
    use homeport_store::{ConditionCheck, Delete, Put, Update as UpdateRequest};

    fn actions() -> Vec<Action> {
        let key = |id: &str| Item::new().with("id", id);
        let item = key("a").with("n", 15).with("text", "line\nbreak");
        let update = Update::new().set("x", 2).remove("y");
        vec![
            Put::new("things", item)
                .when(Condition::not_exists("id"))
                .into(),
            UpdateRequest::new("things", key("b"), update).into(),
            Delete::new("things", key("c")).into(),
            ConditionCheck {
                table: "things".to_owned(),
                key: key("d"),
                condition: Condition::exists("id"),
                old_on_failure: true,
            }
            .into(),
        ]
    }

    #[test]
    fn digest_is_stable_across_versions() {
        // A stored token must be recognised after an upgrade. A different value needs another VERSION.
        assert_eq!(
            format!("{:032x}", digest(&actions())),
            "80fc54d7abaacb8082a46a5ddb1dc00d"
        );
    }

    #[test]
    fn different_transactions_have_different_digests() {
        let all = actions();
        let mut digests: Vec<u128> = (0..=all.len()).map(|len| digest(&all[..len])).collect();
        digests.extend(
            all.iter()
                .map(|action| digest(std::slice::from_ref(action))),
        );
        let mut changed = all.clone();
        if let Action::Update(update) = &mut changed[1] {
            update.update = Update::new().set("x", 3).remove("y");
        }
        digests.push(digest(&changed));
        digests.sort_unstable();
        digests.dedup();
        // The first action alone occurs twice.
        assert_eq!(digests.len(), all.len() + 1 + all.len() + 1 - 1);
    }
}
