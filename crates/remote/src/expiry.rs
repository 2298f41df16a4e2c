//! Time to live. DynamoDB removes an item days after its time has passed; until then it shows it to
//! reads and to conditions. Here such an item is hidden, by the clock that was handed in: reads drop
//! it, and conditions are rewritten so that it counts as absent.

use homeport_item::expression::{Condition, Operand, Path, Update};
use homeport_item::schema::TableSchema;
use homeport_item::{Item, Value};
use homeport_store::TTL_AGE_MAX_SECS;

/// What has expired in a table at one moment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Expiry<'a> {
    pub(crate) attribute: &'a str,
    now_secs: i64,
}

/// An update's condition, rewritten.
pub(crate) struct GuardedUpdate {
    pub(crate) condition: Condition,
    /// Where the item has expired, the update must make a new one. DynamoDB cannot do this in one
    /// step: the condition fails, and the update is done here instead.
    pub(crate) starts_anew: bool,
}

impl<'a> Expiry<'a> {
    /// Nothing, where the table has no time to live.
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

    /// [`Expiry::has_expired`] as a condition. False of an absent item, and of one whose attribute
    /// is no number. A fraction of a second does not count, hence the second that is added.
    pub(crate) fn expired(&self) -> Condition {
        let attribute = || Operand::Path(Path::new(self.attribute));
        let oldest = attribute().at_least(self.now_secs - TTL_AGE_MAX_SECS);
        oldest.and(attribute().less_than(self.now_secs + 1))
    }

    /// The condition of a put, delete or check, to whom an expired item must be absent.
    pub(crate) fn guard(&self, condition: &Condition) -> Condition {
        if holds_when_absent(condition) {
            self.expired().or(condition.clone())
        } else {
            (!self.expired()).and(condition.clone())
        }
    }

    pub(crate) fn guard_update(&self, condition: Option<&Condition>) -> GuardedUpdate {
        let alive = !self.expired();
        GuardedUpdate {
            starts_anew: condition.is_none_or(holds_when_absent),
            condition: match condition {
                Some(condition) => alive.and(condition.clone()),
                None => alive,
            },
        }
    }
}

/// The item that an update makes where there was none.
///
/// # Errors
/// When the update needs attributes that a new item does not have.
pub(crate) fn made_anew(key: &Item, update: &Update) -> Result<Item, String> {
    update.check().map_err(|error| error.to_string())?;
    let mut item = key.clone();
    update.apply(&mut item).map_err(|error| error.to_string())?;
    Ok(item)
}

/// An item in memory is never damaged, so there is an answer; without one, DynamoDB would judge the
/// condition as it stands.
fn holds_when_absent(condition: &Condition) -> bool {
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
    fn the_condition_says_what_the_clock_says() {
        let schema = schema();
        let expiry = Expiry::of(&schema, NOW).expect("it has one");
        for (item, expired) in items() {
            assert_eq!(expiry.has_expired(&item), expired, "{item:?}");
            assert_eq!(expiry.expired().matches(&item), Ok(expired), "{item:?}");
        }
        assert_eq!(expiry.expired().matches(&Item::new()), Ok(false));
    }

    #[test]
    fn a_guarded_condition_takes_an_expired_item_for_none() {
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
