//! The condition of a definition. Thresholds, silences and rates of change are here, conditions on states in
//! `state_condition`.

use homeport_item::Number;
use serde::{Deserialize, Serialize};

use super::state_condition::{Equality, Fault, ValueChange};
use crate::alerts::types::AttributePath;
use crate::sensors::InvalidField;

/// The longest time span of a condition: 31 days.
pub const SECS_MAX: u32 = 31 * 24 * 60 * 60;
/// Consecutive values that a threshold may require.
pub const COUNT_MAX: u32 = 10_000;
/// The shortest silence, and the shortest window of a rate.
pub const SILENCE_SECS_MIN: u32 = 5;
pub const WINDOW_SECS_MIN: u32 = 2;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Condition {
    Threshold(Threshold),
    Absence(Absence),
    Rate(Rate),
    Equality(Equality),
    Change(ValueChange),
    Fault(Fault),
}

/// The side of a threshold on which values are wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    Below,
    Above,
}

/// A value beyond a limit. The alert is cleared at another limit, so that it does not flap.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Threshold {
    pub attribute: AttributePath,
    pub side: Side,
    /// A value beyond this limit, not at it, is wrong.
    pub raise: Number,
    /// The alert is cleared at this value or a better one; never beyond `raise`.
    pub clear: Number,
    /// How long values must be wrong, by their own times.
    pub min_secs: u32,
    /// How many consecutive values must be wrong.
    pub min_count: u32,
}

/// No data from a device for some time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Absence {
    pub after_secs: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    Rise,
    Fall,
    Either,
}

/// A value that changes too fast.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rate {
    pub attribute: AttributePath,
    pub direction: Direction,
    /// A faster change per minute is wrong.
    pub per_minute: Number,
    /// The alert is cleared at this speed or a slower one.
    pub clear_per_minute: Number,
    /// How far back values are compared.
    pub window_secs: u32,
}

impl Condition {
    /// Checks the limits of all fields, and fields against each other.
    ///
    /// # Errors
    /// When a field is invalid.
    pub fn check(self) -> Result<Self, InvalidField> {
        let invalid = |field, expected| Err(InvalidField { field, expected });
        match &self {
            Self::Threshold(threshold) => {
                let is_reachable = match threshold.side {
                    Side::Below => threshold.clear >= threshold.raise,
                    Side::Above => threshold.clear <= threshold.raise,
                };
                if !is_reachable {
                    return invalid("clear", "at the raise value or on its good side");
                }
                check_hold(threshold.min_secs, threshold.min_count)?;
            }
            Self::Absence(absence) => {
                if !(SILENCE_SECS_MIN..=SECS_MAX).contains(&absence.after_secs) {
                    return invalid("after_secs", "5 to 2678400");
                }
            }
            Self::Rate(rate) => {
                let zero = Number::from(0);
                if rate.per_minute <= zero {
                    return invalid("per_minute", "more than 0");
                }
                if rate.clear_per_minute < zero || rate.clear_per_minute > rate.per_minute {
                    return invalid("clear_per_minute", "from 0 to per_minute");
                }
                if !(WINDOW_SECS_MIN..=SECS_MAX).contains(&rate.window_secs) {
                    return invalid("window_secs", "2 to 2678400");
                }
            }
            Self::Equality(equality) => equality.check()?,
            Self::Change(change) => change.check()?,
            Self::Fault(fault) => fault.check()?,
        }
        Ok(self)
    }
}

/// Checks for how long, and for how many values, a condition must hold.
pub(super) fn check_hold(min_secs: u32, min_count: u32) -> Result<(), InvalidField> {
    if min_secs > SECS_MAX {
        return Err(InvalidField {
            field: "for_secs",
            expected: "at most 2678400",
        });
    }
    if !(1..=COUNT_MAX).contains(&min_count) {
        return Err(InvalidField {
            field: "count",
            expected: "1 to 10000",
        });
    }
    Ok(())
}

impl Threshold {
    pub(in crate::alerts) fn is_wrong(&self, value: &Number) -> bool {
        match self.side {
            Side::Below => *value < self.raise,
            Side::Above => *value > self.raise,
        }
    }

    pub(in crate::alerts) fn is_back(&self, value: &Number) -> bool {
        match self.side {
            Side::Below => *value >= self.clear,
            Side::Above => *value <= self.clear,
        }
    }
}

impl Side {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Below => "below",
            Self::Above => "above",
        }
    }
}

impl Absence {
    fn after_ms(&self) -> i64 {
        i64::from(self.after_secs) * 1000
    }

    /// A sign of life is stored only if it is this much newer than the last one. An alert is late by
    /// that much at most, and never early.
    pub(in crate::alerts) fn step_ms(&self) -> i64 {
        (self.after_ms() / 20).min(10_000)
    }

    /// How long after a stored sign of life a silence is raised.
    pub(in crate::alerts) fn deadline_ms(&self) -> i64 {
        self.after_ms() + self.step_ms()
    }
}
