//! Judging a value: a pure function of a condition, a watch and an observation.
//!
//! Values of one device are judged in the order of their own times, each once. A value that is not
//! newer than the last judged one changes nothing, so repeated and late changes are harmless.

use homeport_item::{Item, Number};

use super::watch::{Mark, Sample, Streak, Watch};
use crate::alerts::definitions::condition::{Condition, Direction, Rate, Threshold};
use crate::time::EpochMillis;

/// Roughly how many samples of a window are kept; of faster values, some are skipped.
const SAMPLES_PER_WINDOW: i64 = 60;
/// A rate is judged over at least half of its window: two values a moment apart mean nothing.
const WINDOW_PARTS: i64 = 2;

/// An item of a source with its times.
#[derive(Debug, Clone, Copy)]
pub(in crate::alerts) struct Observation<'a> {
    pub(in crate::alerts) mark: &'a Mark,
    /// When the item was stored.
    pub(in crate::alerts) stored_at: EpochMillis,
    pub(in crate::alerts) item: &'a Item,
}

/// The result of judging an observation.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::alerts) enum Verdict {
    /// The watch is unchanged.
    Nothing,
    /// The watch has changed and must be stored.
    Noted,
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
    match condition {
        Condition::Threshold(threshold) => {
            let Some(value) =
                newer_value(watch, observation, |item| threshold.attribute.number(item))
            else {
                return Verdict::Nothing;
            };
            judge_threshold(threshold, watch, observation.mark.at, value)
        }
        Condition::Rate(rate) => {
            let Some(value) = newer_value(watch, observation, |item| rate.attribute.number(item))
            else {
                return Verdict::Nothing;
            };
            judge_rate(rate, watch, observation.mark.at, value)
        }
        Condition::Absence(absence) => {
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
    }
}

/// The value of an observation that is newer than all before.
fn newer_value(
    watch: &mut Watch,
    observation: Observation<'_>,
    number: impl FnOnce(&Item) -> Option<Number>,
) -> Option<Number> {
    if watch
        .judged
        .as_ref()
        .is_some_and(|judged| judged >= observation.mark)
    {
        return None;
    }
    let value = number(observation.item)?;
    watch.judged = Some(observation.mark.clone());
    Some(value)
}

fn judge_threshold(
    threshold: &Threshold,
    watch: &mut Watch,
    at: EpochMillis,
    value: Number,
) -> Verdict {
    let path = &threshold.attribute;
    if watch.open.is_some() {
        if !threshold.is_back(&value) {
            return Verdict::Noted;
        }
        watch.streak = None;
        return Verdict::Clear(Finding {
            reason: format!("{path} is {value}, back at {} or better", threshold.clear),
            value: Some(value),
            observed_at: at,
        });
    }
    if !threshold.is_wrong(&value) {
        watch.streak = None;
        return Verdict::Noted;
    }
    let mut streak = watch.streak.unwrap_or(Streak {
        since: at,
        count: 0,
    });
    streak.count = streak.count.saturating_add(1);
    watch.streak = Some(streak);
    let is_long = at.0 - streak.since.0 >= i64::from(threshold.min_secs) * 1000;
    if !is_long || streak.count < threshold.min_count {
        return Verdict::Noted;
    }
    let mut reason = format!(
        "{path} is {value}, {} {}",
        threshold.side.as_str(),
        threshold.raise
    );
    if threshold.min_secs > 0 {
        reason.push_str(&format!(", for {} seconds", threshold.min_secs));
    }
    if threshold.min_count > 1 {
        reason.push_str(&format!(", {} values in a row", threshold.min_count));
    }
    Verdict::Raise(Finding {
        reason,
        value: Some(value),
        observed_at: at,
    })
}

fn judge_rate(rate: &Rate, watch: &mut Watch, at: EpochMillis, value: Number) -> Verdict {
    let window_ms = i64::from(rate.window_secs) * 1000;
    watch
        .samples
        .retain(|sample| sample.at.0 >= at.0.saturating_sub(window_ms));
    let first = watch.samples.first().copied();
    let last = watch.samples.last();
    if last.is_none_or(|last| at.0 - last.at.0 >= window_ms / SAMPLES_PER_WINDOW) {
        watch.samples.push(Sample { at, value });
    }
    let Some(first) = first else {
        return Verdict::Noted;
    };
    let span_ms = at.0 - first.at.0;
    if span_ms < window_ms / WINDOW_PARTS {
        return Verdict::Noted;
    }
    let minutes = span_ms as f64 / 60_000.0;
    let change = (value.to_f64() - first.value.to_f64()) / minutes;
    let speed = match rate.direction {
        Direction::Rise => change,
        Direction::Fall => -change,
        Direction::Either => change.abs(),
    };
    let finding = |what: String| Finding {
        reason: format!(
            "{} changes by {change:.3} a minute, {what}, over {} seconds",
            rate.attribute,
            span_ms / 1000
        ),
        value: Some(value),
        observed_at: at,
    };
    match &watch.open {
        None if speed > rate.per_minute.to_f64() => {
            Verdict::Raise(finding(format!("more than {}", rate.per_minute)))
        }
        Some(_) if speed <= rate.clear_per_minute.to_f64() => {
            Verdict::Clear(finding(format!("at most {}", rate.clear_per_minute)))
        }
        _ => Verdict::Noted,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alerts::definitions::condition::{Absence, Side};
    use crate::alerts::types::{AlertId, DefinitionId, DeviceName};

    fn watch() -> Watch {
        Watch {
            definition_id: DefinitionId::new(EpochMillis(0)),
            device: DeviceName::stored("van".to_owned()),
            epoch: 1,
            version: 0,
            judged: None,
            seen_at: None,
            streak: None,
            samples: Vec::new(),
            open: None,
            notified_at: None,
        }
    }

    /// Judges values at seconds and returns the verdicts. A raised alert stays open until it is
    /// cleared.
    fn run(condition: &Condition, values: &[(i64, &str)]) -> Vec<&'static str> {
        let mut watch = watch();
        let each = values.iter().map(|(secs, value)| {
            let at = EpochMillis(secs * 1000);
            let value: Number = value.parse().expect("a number");
            let item = Item::new().with("v", value);
            let mark = Mark {
                at,
                tie: String::new(),
            };
            let observation = Observation {
                mark: &mark,
                stored_at: at,
                item: &item,
            };
            match judge(condition, &mut watch, observation) {
                Verdict::Nothing => "nothing",
                Verdict::Noted => "noted",
                Verdict::Raise(_) => {
                    watch.open = Some(AlertId::new(at));
                    "raise"
                }
                Verdict::Clear(_) => {
                    watch.open = None;
                    "clear"
                }
            }
        });
        each.collect()
    }

    fn threshold(side: Side, raise: &str, clear: &str, min_secs: u32, min_count: u32) -> Condition {
        Condition::Threshold(Threshold {
            attribute: "v".parse().expect("a path"),
            side,
            raise: raise.parse().expect("a number"),
            clear: clear.parse().expect("a number"),
            min_secs,
            min_count,
        })
    }

    fn rate(direction: Direction, per_minute: i64, clear: i64, window_secs: u32) -> Condition {
        Condition::Rate(Rate {
            attribute: "v".parse().expect("a path"),
            direction,
            per_minute: per_minute.into(),
            clear_per_minute: clear.into(),
            window_secs,
        })
    }

    #[test]
    fn threshold_raises_once_and_clears_at_its_clear_value() {
        let low = threshold(Side::Below, "12.0", "12.4", 0, 1);
        let values = [
            (1, "12.0"),
            (2, "11.9"),
            (3, "11.8"),
            (4, "12.3"),
            (5, "12.4"),
            (6, "12.1"),
            (7, "11.99"),
        ];
        assert_eq!(
            run(&low, &values),
            [
                "noted", "raise", "noted", "noted", "clear", "noted", "raise"
            ]
        );
        let high = threshold(Side::Above, "80", "70", 0, 1);
        assert_eq!(
            run(&high, &[(1, "80"), (2, "81"), (3, "71"), (4, "70")]),
            ["noted", "raise", "noted", "clear"]
        );
    }

    #[test]
    fn threshold_waits_for_duration_and_count() {
        let lasting = threshold(Side::Above, "10", "10", 60, 1);
        assert_eq!(
            run(&lasting, &[(0, "11"), (59, "11"), (60, "11")]),
            ["noted", "noted", "raise"]
        );
        assert_eq!(
            run(&lasting, &[(0, "11"), (59, "9"), (60, "11"), (119, "11")]),
            ["noted", "noted", "noted", "noted"]
        );
        let counted = threshold(Side::Above, "10", "10", 0, 3);
        assert_eq!(
            run(
                &counted,
                &[
                    (0, "11"),
                    (1, "11"),
                    (2, "9"),
                    (3, "11"),
                    (4, "11"),
                    (5, "11")
                ]
            ),
            ["noted", "noted", "noted", "noted", "noted", "raise"]
        );
    }

    #[test]
    fn values_that_are_not_newer_are_ignored() {
        let low = threshold(Side::Below, "12", "12.4", 0, 1);
        assert_eq!(
            run(
                &low,
                &[
                    (10, "13"),
                    (5, "11"),
                    (10, "11"),
                    (11, "11"),
                    (9, "13"),
                    (11, "13")
                ]
            ),
            ["noted", "nothing", "nothing", "raise", "nothing", "nothing"]
        );
    }

    #[test]
    fn rate_raises_on_fast_change_and_clears_on_slow() {
        let rise = rate(Direction::Rise, 5, 2, 60);
        assert_eq!(
            run(
                &rise,
                &[
                    (0, "20"),
                    (10, "29"),
                    (30, "23"),
                    (60, "26"),
                    (90, "24"),
                    (120, "25")
                ]
            ),
            // Ten seconds are too short; the rates over the window are 6 a minute, 6, 2 and -1.
            ["noted", "noted", "raise", "noted", "clear", "noted"]
        );
        let fall = rate(Direction::Fall, 5, 5, 60);
        assert_eq!(run(&fall, &[(0, "20"), (60, "26")]), ["noted", "noted"]);
        assert_eq!(run(&fall, &[(0, "20"), (60, "14")]), ["noted", "raise"]);
        let either = rate(Direction::Either, 5, 5, 60);
        assert_eq!(run(&either, &[(0, "20"), (60, "14")]), ["noted", "raise"]);
    }

    #[test]
    fn rate_window_keeps_few_samples_of_many_values() {
        let condition = rate(Direction::Rise, 5, 5, 60);
        let mut watch = watch();
        for tenth in 0..5000 {
            let mark = Mark {
                at: EpochMillis(tenth * 100),
                tie: String::new(),
            };
            let item = Item::new().with("v", tenth);
            let observation = Observation {
                mark: &mark,
                stored_at: mark.at,
                item: &item,
            };
            judge(&condition, &mut watch, observation);
            assert!(watch.samples.len() <= 62, "{}", watch.samples.len());
        }
    }

    #[test]
    fn sign_of_life_is_stored_only_after_a_step() {
        let silent = Condition::Absence(Absence { after_secs: 100 });
        // Less than a twentieth of the time is not stored.
        assert_eq!(
            run(&silent, &[(0, "1"), (4, "1"), (5, "1"), (5, "1"), (3, "1")]),
            ["noted", "nothing", "noted", "nothing", "nothing"]
        );
    }
}
