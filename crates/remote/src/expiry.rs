//! Hides expired items. DynamoDB deletes an expired item up to days later and until then shows it
//! to reads and conditions. Here, reads drop such items by the injected clock, and conditions are
//! rewritten so that the items count as missing.

use homeport_item::expression::{Condition, Operand, Path, Update};
use homeport_item::schema::TableSchema;
use homeport_item::{Item, Value};
use homeport_store::{InvalidRequest, TTL_AGE_MAX_SECS};

/// Decides which items of a table have expired at one moment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Expiry<'a> {
    pub(crate) attribute: &'a str,
    now_secs: i64,
}

/// The rewritten condition of an update.
pub(crate) struct GuardedUpdate {
    pub(crate) condition: Condition,
    /// If the item has expired, the update must create a new one. DynamoDB cannot do this in one
    /// step: the condition fails and this crate applies the update.
    pub(crate) needs_replacement: bool,
}

impl<'a> Expiry<'a> {
    /// `None` if the table has no time to live.
    pub(crate) fn of(schema: &'a TableSchema, now_secs: i64) -> Option<Self> {
        let attribute = schema.ttl_attribute.as_deref()?;
        Some(Self {
            attribute,
            now_secs,
        })
    }

    pub(crate) fn has_expired(&self, item: &Item) -> bool {
        let Some(Value::N(expires)) = item.get(self.attribute) else {
            return false;
        };
        (self.now_secs - TTL_AGE_MAX_SECS..=self.now_secs).contains(&expires.floor_i64())
    }

    /// The item, unless it has expired.
    pub(crate) fn visible(&self, item: Item) -> Option<Item> {
        (!self.has_expired(&item)).then_some(item)
    }

    /// [`Expiry::has_expired`] as a condition. It is false for a missing item and for one whose
    /// attribute is not a number. Fractions of a second do not count, hence the added second.
    pub(crate) fn expired(&self) -> Condition {
        let attribute = || Operand::Path(Path::new(self.attribute));
        let oldest = attribute().at_least(self.now_secs - TTL_AGE_MAX_SECS);
        oldest.and(attribute().less_than(self.now_secs + 1))
    }

    /// The condition of a put, delete or check, for which an expired item must be missing.
    pub(crate) fn guard(&self, condition: &Condition) -> Condition {
        if matches_missing_item(condition) {
            self.expired().or(condition.clone())
        } else {
            (!self.expired()).and(condition.clone())
        }
    }

    pub(crate) fn guard_update(&self, condition: Option<&Condition>) -> GuardedUpdate {
        let alive = !self.expired();
        GuardedUpdate {
            needs_replacement: condition.is_none_or(matches_missing_item),
            condition: match condition {
                Some(condition) => alive.and(condition.clone()),
                None => alive,
            },
        }
    }
}

/// The item that an update creates if none exists.
///
/// # Errors
/// When the update needs attributes that a new item lacks.
pub(crate) fn new_item(key: &Item, update: &Update) -> Result<Item, InvalidRequest> {
    update.check()?;
    let mut item = key.clone();
    update.apply(&mut item)?;
    Ok(item)
}

/// Evaluates the condition on a missing item. This cannot fail for an item in memory; if it did,
/// DynamoDB would evaluate the unchanged condition.
fn matches_missing_item(condition: &Condition) -> bool {
    condition.matches(&Item::new()).unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use homeport_item::KeyKind;

    use super::*;

    const NOW: i64 = 1_800_000_000;

    fn schema() -> TableSchema {
        TableSchema::new("events", "pk", KeyKind::S).with_ttl("expires")
    }

    fn items() -> Vec<(Item, bool)> {
        let number = |text: &str| Value::N(text.parse().expect("a number"));
        [
            (Some(Value::from(NOW)), true),
            (Some(Value::from(NOW + 1)), false),
            (Some(number("1800000000.9")), true),
            (Some(Value::from(NOW - TTL_AGE_MAX_SECS)), true),
            (Some(Value::from(NOW - TTL_AGE_MAX_SECS - 1)), false),
            (Some(Value::from("1700000000")), false),
            (Some(Value::Null), false),
            (None, false),
        ]
        .into_iter()
        .map(|(expires, expired)| {
            let mut item = Item::new().with("pk", "a").with("n", 1);
            if let Some(expires) = expires {
                item.insert("expires", expires);
            }
            (item, expired)
        })
        .collect()
    }

    #[test]
    fn expiry_condition_matches_has_expired() {
        let schema = schema();
        let expiry = Expiry::of(&schema, NOW).expect("it has one");
        for (item, expired) in items() {
            assert_eq!(expiry.has_expired(&item), expired, "{item:?}");
            assert_eq!(expiry.expired().matches(&item), Ok(expired), "{item:?}");
        }
        assert_eq!(expiry.expired().matches(&Item::new()), Ok(false));
    }

    #[test]
    fn guarded_condition_treats_expired_item_as_missing() {
        let schema = schema();
        let expiry = Expiry::of(&schema, NOW).expect("it has one");
        let path = |name: &str| Operand::Path(Path::new(name));
        for condition in [
            Condition::not_exists("pk"),
            Condition::exists("pk"),
            path("n").equals(1),
            path("n").equals(2),
            path("n").not_equals(1),
            path("n").equals(2).or(Condition::not_exists("pk")),
            Condition::exists("pk").and(!path("n").equals(1)),
        ] {
            let absent = condition.matches(&Item::new());
            for (item, expired) in items() {
                let expected = if expired {
                    absent
                } else {
                    condition.matches(&item)
                };
                let guarded = expiry.guard(&condition).matches(&item);
                assert_eq!(guarded, expected, "{condition:?} of {item:?}");
            }
            assert_eq!(expiry.guard(&condition).matches(&Item::new()), absent);
        }
    }
}
