//! Judging numbers: thresholds and rates of change.

use homeport_item::Number;

use super::{Finding, Verdict, hold_words, is_held};
use crate::alerts::definitions::condition::{Direction, Rate, Threshold};
use crate::alerts::judging::watch::{Sample, Watch};
use crate::time::EpochMillis;

/// Roughly how many samples of a window are kept; of faster values, some are skipped.
const SAMPLES_PER_WINDOW: i64 = 60;
/// A rate is judged over at least half of its window: two values a moment apart mean nothing.
const WINDOW_PARTS: i64 = 2;

pub(super) fn judge_threshold(
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
    if !is_held(watch, at, threshold.min_secs, threshold.min_count) {
        return Verdict::Noted;
    }
    let reason = format!(
        "{path} is {value}, {} {}{}",
        threshold.side.as_str(),
        threshold.raise,
        hold_words(threshold.min_secs, threshold.min_count)
    );
    Verdict::Raise(Finding {
        reason,
        value: Some(value),
        observed_at: at,
    })
}

pub(super) fn judge_rate(
    rate: &Rate,
    watch: &mut Watch,
    at: EpochMillis,
    value: Number,
) -> Verdict {
    let window_ms = i64::from(rate.window_secs) * 1000;
    watch
        .samples
        .retain(|sample| sample.at.0 >= at.0.saturating_sub(window_ms));
    let first = watch.samples.first().copied();
    let last = watch.samples.last();
    if last.is_none_or(|last| at.0.saturating_sub(last.at.0) >= window_ms / SAMPLES_PER_WINDOW) {
        watch.samples.push(Sample { at, value });
    }
    let Some(first) = first else {
        return Verdict::Noted;
    };
    let span_ms = at.0.saturating_sub(first.at.0);
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
