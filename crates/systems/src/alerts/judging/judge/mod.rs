//! Judging a value: a pure function of a condition, a watch and an observation.
//!
//! Values of one device are judged in the order of their own times, each once. A value that is not
//! newer than the last judged one changes nothing, so repeated and late changes are harmless.

mod numbers;
mod states;
#[cfg(test)]
mod tests;

use homeport_item::{Item, Number};

use super::watch::{Mark, Streak, Watch};
use crate::alerts::definitions::condition::{Absence, Condition};
use crate::time::{EpochMillis, UtcMillis};

/// An item of a source with its times.
#[derive(Debug, Clone, Copy)]
pub(in crate::alerts) struct Observation<'a> {
    pub(in crate::alerts) mark: &'a Mark,
    /// When the item was stored.
    pub(in crate::alerts) stored_at: EpochMillis,
    pub(in crate::alerts) item: &'a Item,
    /// Whether it was stored so late that it raises no alert, like imported history.
    pub(in crate::alerts) is_old: bool,
}

/// The result of judging an observation.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::alerts) enum Verdict {
    /// The watch is unchanged.
    Nothing,
    /// The watch has changed and must be stored.
    Noted,
    /// The watch has changed. A newer observation would have raised an alert.
    TooOld,
    Raise(Finding),
    Clear(Finding),
}

/// The reason for raising or clearing an alert.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::alerts) struct Finding {
    pub(in crate::alerts) reason: String,
    pub(in crate::alerts) value: Option<Number>,
    pub(in crate::alerts) observed_at: EpochMillis,
}

/// Judges one observation and updates the watch.
pub(in crate::alerts) fn judge(
    condition: &Condition,
    watch: &mut Watch,
    observation: Observation<'_>,
) -> Verdict {
    let verdict = match condition {
        Condition::Absence(absence) => judge_absence(absence, watch, observation),
        condition => judge_value(condition, watch, observation),
    };
    match verdict {
        Verdict::Raise(_) if observation.is_old => Verdict::TooOld,
        verdict => verdict,
    }
}

/// Values are judged in the order of their own times, each once.
fn judge_value(condition: &Condition, watch: &mut Watch, observation: Observation<'_>) -> Verdict {
    let Observation { mark, item, .. } = observation;
    let judged = watch.judged.as_ref();
    if judged.is_some_and(|judged| judged >= mark) {
        return Verdict::Nothing;
    }
    let at = mark.at;
    let verdict = match condition {
        Condition::Threshold(threshold) => threshold
            .attribute
            .number(item)
            .map(|value| numbers::judge_threshold(threshold, watch, at, value)),
        Condition::Rate(rate) => rate
            .attribute
            .number(item)
            .map(|value| numbers::judge_rate(rate, watch, at, value)),
        Condition::Equality(equality) => states::judge_equality(equality, watch, at, item),
        Condition::Change(change) => states::judge_change(change, watch, at, item),
        Condition::Fault(fault) => states::judge_fault(fault, watch, at, item),
        Condition::Absence(_) => None,
    };
    // An item without the attribute is not judged.
    let Some(verdict) = verdict else {
        return Verdict::Nothing;
    };
    watch.judged = Some(mark.clone());
    verdict
}

fn judge_absence(absence: &Absence, watch: &mut Watch, observation: Observation<'_>) -> Verdict {
    // Imported history is no sign of life.
    if observation.is_old {
        return Verdict::Nothing;
    }
    let seen_at = observation.stored_at;
    // A sign of life that was not stored must not clear an alert when it is seen again.
    let step_ms = absence.step_ms().max(1);
    let is_newer = |last: EpochMillis| seen_at.0 >= last.0.saturating_add(step_ms);
    if watch.seen_at.is_some_and(|last| !is_newer(last)) {
        return Verdict::Nothing;
    }
    watch.seen_at = Some(seen_at);
    if watch.open.is_none() {
        return Verdict::Noted;
    }
    Verdict::Clear(Finding {
        reason: "the device sent data again".to_owned(),
        value: None,
        observed_at: seen_at,
    })
}

/// The reason for raising an alert of a device that was last seen at `last`.
pub(in crate::alerts) fn silence(absence: &Absence, last: EpochMillis) -> Finding {
    Finding {
        reason: format!(
            "no data for {} seconds, since {}",
            absence.after_secs,
            UtcMillis::new(last)
        ),
        value: None,
        observed_at: last,
    }
}

/// Counts one more value for which a condition holds; returns whether it has held for long enough.
fn is_held(watch: &mut Watch, at: EpochMillis, min_secs: u32, min_count: u32) -> bool {
    let streak = watch.streak.get_or_insert(Streak {
        since: at,
        count: 0,
    });
    streak.count = streak.count.saturating_add(1);
    let is_long = at.0.saturating_sub(streak.since.0) >= i64::from(min_secs) * 1000;
    is_long && streak.count >= min_count
}

/// For how long a condition held, as the end of a reason.
fn hold_words(min_secs: u32, min_count: u32) -> String {
    let mut words = String::new();
    if min_secs > 0 {
        words.push_str(&format!(", for {min_secs} seconds"));
    }
    if min_count > 1 {
        words.push_str(&format!(", {min_count} values in a row"));
    }
    words
}
