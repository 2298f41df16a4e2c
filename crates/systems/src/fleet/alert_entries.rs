//! Entries of alerts and of their notifications.

use homeport_item::Item;
use homeport_store::Change;

use super::attributes::{integer, moment, text};
use super::entry::{Entry, EntryType, LiveEntry, item_of, shortened};
use super::name::SystemName;
use super::registry::Sources;
use crate::alerts::schema;
use crate::severity::Severity;
use crate::time::EpochMillis;

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

/// The steps of an alert: raised, perhaps acknowledged, perhaps cleared.
pub(super) fn steps(item: &Item) -> Vec<Entry> {
    let Some(id) = text(item, schema::ALERT_ID) else {
        return Vec::new();
    };
    let name = text(item, schema::DEFINITION_NAME).unwrap_or(id);
    let words = |attribute: &str| text(item, attribute).unwrap_or_default();
    let severity = text(item, schema::SEVERITY).unwrap_or(Severity::default().as_str());
    let step = |word: &str, at: &str, what: String| {
        Some(Entry {
            id: format!("{}/{id}/{word}", schema::ALERTS),
            at: EpochMillis(integer(item, at)?),
            kind: EntryType::Alert,
            title: shortened(&format!("Alert {word}: {name}{what}")),
            table: schema::ALERTS.to_owned(),
            item: item.clone(),
        })
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
            "cleared",
            schema::CLEARED_AT,
            format!(", {}", words(schema::CLEAR_REASON)),
        ),
    ]
    .into_iter()
    .flatten()
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
        title: shortened(&format!("Notification {state}: {last}")),
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
}
