//! Entries of alerts and of their notifications.

use homeport_item::{Item, Value};
use homeport_store::Change;

use super::attributes::{integer, moment, text};
use super::entry::{Entry, EntryType, LiveEntry, item_of, shortened};
use super::name::SystemName;
use super::registry::Sources;
use crate::alerts::schema;
use crate::severity::Severity;
use crate::time::{EpochMillis, UtcMillis};

/// The live entry of a changed alert: its newest step.
pub(crate) fn changed(sources: &Sources, change: &Change) -> Option<LiveEntry> {
    let item = item_of(change);
    let system = SystemName::from(text(item, schema::SOURCE)?.to_owned());
    let source = sources.get(&system).ok()?;
    let device = source.device_of_subject(text(item, schema::DEVICE)?);
    let newest = steps(item).into_iter().max_by_key(|entry| entry.at)?;
    Some(LiveEntry::new(
        &system,
        vec![device.to_owned()],
        newest,
        change,
    ))
}

/// The steps of an alert: raised, perhaps handled by people, perhaps cleared.
pub(super) fn steps(item: &Item) -> Vec<Entry> {
    let Some(id) = text(item, schema::ALERT_ID) else {
        return Vec::new();
    };
    let name = text(item, schema::DEFINITION_NAME).unwrap_or(id);
    let words = |attribute: &str| text(item, attribute).unwrap_or_default();
    let severity = text(item, schema::SEVERITY).unwrap_or(Severity::default().as_str());
    // Comments are entries of their own.
    let mut shown = item.clone();
    shown.remove(schema::COMMENTS);
    let entry = |key: String, at: i64, title: String| Entry {
        id: format!("{}/{id}/{key}", schema::ALERTS),
        at: EpochMillis(at),
        kind: EntryType::Alert,
        title: shortened(&title),
        table: schema::ALERTS.to_owned(),
        item: shown.clone(),
    };
    let step = |word: &str, at: &str, what: String| {
        let title = format!("Alert {word}: {name}{what}");
        Some(entry(word.to_owned(), integer(item, at)?, title))
    };
    let comments = item.get(schema::COMMENTS).and_then(Value::as_list);
    let comments = comments.unwrap_or_default().iter().enumerate();
    let comments = comments.filter_map(|(number, comment)| {
        let fields = comment.as_map()?;
        let words = |name| fields.get(name).and_then(Value::as_str);
        let at = fields.get(schema::COMMENT_AT)?.as_number()?.to_i64()?;
        let (by, text) = (words(schema::COMMENT_BY)?, words(schema::COMMENT_TEXT)?);
        let title = format!("Alert commented: {name} by {by}, {text}");
        Some(entry(format!("commented/{number}"), at, title))
    });
    let assigned = match text(item, schema::ASSIGNED_TO) {
        Some(to) => ("assigned", format!(" to {to}")),
        None => ("unassigned", String::new()),
    };
    let until = integer(item, schema::SNOOZED_UNTIL).unwrap_or_default();
    let snoozed = if Some(until) == integer(item, schema::SNOOZED_AT) {
        ("woken", String::new())
    } else {
        let until = UtcMillis::new(EpochMillis(until));
        ("snoozed", format!(" until {until}"))
    };
    [
        step(
            "raised",
            schema::RAISED_AT,
            format!(" ({severity}), {}", words(schema::REASON)),
        ),
        step(
            "acknowledged",
            schema::ACKNOWLEDGED_AT,
            format!(" by {}", words(schema::ACKNOWLEDGED_BY)),
        ),
        step(
            assigned.0,
            schema::ASSIGNED_AT,
            format!("{} by {}", assigned.1, words(schema::ASSIGNED_BY)),
        ),
        step(
            snoozed.0,
            schema::SNOOZED_AT,
            format!("{} by {}", snoozed.1, words(schema::SNOOZED_BY)),
        ),
        step(
            "not delivered",
            schema::DELIVERY_FAILED_AT,
            ", a notification failed".to_owned(),
        ),
        step(
            "cleared",
            schema::CLEARED_AT,
            format!(", {}", words(schema::CLEAR_REASON)),
        ),
    ]
    .into_iter()
    .flatten()
    .chain(comments)
    .collect()
}

/// A notification about an alert.
pub(super) fn notified(item: &Item) -> Option<Entry> {
    let alert_id = text(item, schema::ALERT_ID)?;
    let sort = text(item, schema::NOTIFICATION)?;
    let steps = item.get(schema::STEPS)?.as_list()?;
    let first = steps.first()?.as_map()?;
    let last = steps.last()?.as_map()?.get(schema::STEP)?.as_str()?;
    let state = text(item, schema::STATE).unwrap_or_default();
    Some(Entry {
        id: format!("{}/{alert_id}/{sort}", schema::OUTBOX),
        at: moment(first.get(schema::STEP_AT)?.as_str()?)?,
        kind: EntryType::Notification,
        title: shortened(&format!("Notification {}: {last}", state.replace('_', " "))),
        table: schema::OUTBOX.to_owned(),
        item: item.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_step_of_an_alert_is_an_entry() {
        let raised = Item::new()
            .with("alert_id", "1")
            .with("definition_name", "low battery")
            .with("severity", "critical")
            .with("reason", "11.2 is below 11.5")
            .with("raised_at", 1000);
        let titles = |item: &Item| -> Vec<String> {
            steps(item).into_iter().map(|entry| entry.title).collect()
        };
        assert_eq!(
            titles(&raised),
            ["Alert raised: low battery (critical), 11.2 is below 11.5"]
        );
        let over = raised
            .with("acknowledged_at", 2000)
            .with("acknowledged_by", "Ada")
            .with("cleared_at", 3000)
            .with("clear_reason", "12.0 is above 11.8");
        assert_eq!(
            titles(&over)[1..],
            [
                "Alert acknowledged: low battery by Ada",
                "Alert cleared: low battery, 12.0 is above 11.8"
            ]
        );
    }

    #[test]
    fn what_people_do_is_an_entry() {
        let comment = [
            ("at", 4000.into()),
            ("by", "Ada".into()),
            ("text", "hot".into()),
        ];
        let comment = comment.map(|(name, value): (&str, Value)| (name.to_owned(), value));
        let handled = Item::new()
            .with("alert_id", "1")
            .with("definition_name", "low battery")
            .with("assigned_at", 2000)
            .with("assigned_by", "Ada")
            .with("snoozed_at", 3000)
            .with("snoozed_by", "Bob")
            .with("snoozed_until", 63_000)
            .with("delivery_failed_at", 3500)
            .with("comments", Value::L(vec![Value::M(comment.into())]));
        let titles = |item: &Item| -> Vec<String> {
            steps(item).into_iter().map(|entry| entry.title).collect()
        };
        assert_eq!(
            titles(&handled),
            [
                "Alert unassigned: low battery by Ada",
                "Alert snoozed: low battery until 1970-01-01T00:01:03.000Z by Bob",
                "Alert not delivered: low battery, a notification failed",
                "Alert commented: low battery by Ada, hot",
            ]
        );
        let woken = handled
            .with("assigned_to", "Eve")
            .with("snoozed_until", 3000);
        assert_eq!(
            titles(&woken)[..2],
            [
                "Alert assigned: low battery to Eve by Ada",
                "Alert woken: low battery by Bob",
            ]
        );
        assert!(
            steps(&woken)
                .iter()
                .all(|entry| entry.item.get("comments").is_none())
        );
    }
}
