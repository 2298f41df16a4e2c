//! Judging states: values that attributes have, changes of values, and faults.

use homeport_item::{Item, Value};
use sha2::{Digest as _, Sha256};

use super::{Finding, Verdict, hold_words, is_held};
use crate::alerts::definitions::state_condition::{
    Equality, EqualityOperator, Fault, ValueChange, is_fault,
};
use crate::alerts::judging::watch::{LastValue, Watch};
use crate::alerts::types::AttributePath;
use crate::plain_json;
use crate::time::EpochMillis;

/// Of a longer text, changes are found by its hash.
const LAST_TEXT_BYTES_MAX: usize = 256;
/// Attributes with faults that are remembered for a device, and the longest path of one. While so many
/// report faults, further ones are ignored.
const FAULTS_MAX: usize = 64;
const FAULT_BYTES_MAX: usize = 256;
/// Characters of a value in a reason.
const SHOWN_CHARS_MAX: usize = 80;

pub(super) fn judge_equality(
    equality: &Equality,
    watch: &mut Watch,
    at: EpochMillis,
    item: &Item,
) -> Option<Verdict> {
    let value = state(&equality.attribute, item)?;
    let holds = equality.holds(&value);
    let finding = |words: &str| Finding {
        reason: format!("{} is {}{words}", equality.attribute, shown(&value)),
        value: value.as_number().copied(),
        observed_at: at,
    };
    if !holds {
        watch.streak = None;
        return Some(match watch.open {
            Some(_) => Verdict::Clear(finding("")),
            None => Verdict::Noted,
        });
    }
    if watch.open.is_some() || !is_held(watch, at, equality.min_secs, equality.min_count) {
        return Some(Verdict::Noted);
    }
    let mut words = hold_words(equality.min_secs, equality.min_count);
    if equality.operator == EqualityOperator::Differs {
        words.insert_str(0, &format!(", not {}", shown(&equality.value.to_value())));
    }
    Some(Verdict::Raise(finding(&words)))
}

pub(super) fn judge_change(
    change: &ValueChange,
    watch: &mut Watch,
    at: EpochMillis,
    item: &Item,
) -> Option<Verdict> {
    let path = &change.attribute;
    let value = state(path, item)?;
    let finding = |reason| Finding {
        reason,
        value: value.as_number().copied(),
        observed_at: at,
    };
    let new = LastValue {
        value: remembered(&value),
        since: at,
    };
    let Some(last) = &watch.last else {
        watch.last = Some(new);
        return Some(Verdict::Noted);
    };
    if last.value != new.value {
        let (before, now) = (shown(&last.value), shown(&value));
        watch.last = Some(new);
        return Some(match watch.open {
            Some(_) => Verdict::Noted,
            None => Verdict::Raise(finding(format!("{path} changed from {before} to {now}"))),
        });
    }
    let unchanged_ms = at.0.saturating_sub(last.since.0);
    let is_settled = unchanged_ms >= i64::from(change.clear_after_secs) * 1000;
    if watch.open.is_none() || !is_settled {
        return Some(Verdict::Noted);
    }
    let secs = unchanged_ms / 1000;
    let reason = format!("{path} is {}, unchanged for {secs} seconds", shown(&value));
    Some(Verdict::Clear(finding(reason)))
}

/// A device may report each of its faults only when that one changes, so they are remembered one by one.
pub(super) fn judge_fault(
    fault: &Fault,
    watch: &mut Watch,
    at: EpochMillis,
    item: &Item,
) -> Option<Verdict> {
    let reported = fault.attribute.find_all(item);
    if reported.is_empty() {
        return None;
    }
    for (name, value) in &reported {
        if !is_fault(value) {
            watch.faults.remove(name);
        } else if watch.faults.len() < FAULTS_MAX && name.len() <= FAULT_BYTES_MAX {
            watch.faults.insert(name.clone());
        }
    }
    let Some(first) = watch.faults.first() else {
        watch.streak = None;
        return Some(match watch.open {
            Some(_) => Verdict::Clear(Finding {
                reason: format!("{} reports no fault", fault.attribute),
                value: None,
                observed_at: at,
            }),
            None => Verdict::Noted,
        });
    };
    let now = reported.iter().find(|(name, _)| name == first);
    let mut reason = match now {
        Some((name, value)) => format!("{name} is {}", shown(value)),
        None => format!("{first} reported a fault before"),
    };
    let value = now.and_then(|(_, value)| value.as_number().copied());
    match watch.faults.len() - 1 {
        0 => {}
        1 => reason.push_str(", and 1 more fault"),
        more => reason.push_str(&format!(", and {more} more faults")),
    }
    if watch.open.is_some() || !is_held(watch, at, fault.min_secs, fault.min_count) {
        return Some(Verdict::Noted);
    }
    reason.push_str(&hold_words(fault.min_secs, fault.min_count));
    Some(Verdict::Raise(Finding {
        reason,
        value,
        observed_at: at,
    }))
}

/// The text, number or boolean at a path. Other values are not compared.
fn state(path: &AttributePath, item: &Item) -> Option<Value> {
    let found = path.find(item)?;
    matches!(&*found, Value::S(_) | Value::N(_) | Value::Bool(_)).then(|| found.into_owned())
}

/// What is kept of a value to find changes.
fn remembered(value: &Value) -> Value {
    match value {
        Value::S(text) if text.len() > LAST_TEXT_BYTES_MAX => {
            Value::from(format!("sha256:{}", hex::encode(Sha256::digest(text))))
        }
        value => value.clone(),
    }
}

fn shown(value: &Value) -> String {
    let text = plain_json::value(value);
    match text.char_indices().nth(SHOWN_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
