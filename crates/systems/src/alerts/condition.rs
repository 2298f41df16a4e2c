//! What a definition watches for: a threshold, a silence, or how fast a value changes.

use homeport_item::Number;
use serde::{Deserialize, Serialize};

use super::types::AttributePath;
use crate::sensors::InvalidField;

/// The longest time that a condition may look at: 31 days.
pub const SECS_MAX: u32 = 31 * 24 * 60 * 60;
/// Values in a row that a threshold may ask for.
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
}

/// Which side of a threshold is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    Below,
    Above,
}

/// A value beyond a limit, which is over only when it has come back to another one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Threshold {
    pub attribute: AttributePath,
    pub side: Side,
    /// Beyond this, not at it, a value is wrong.
    pub raise: Number,
    /// At this or better the alert is over; never beyond `raise`.
    pub clear: Number,
    /// How long values must have been wrong, by their own times.
    pub min_secs: u32,
    /// How many values in a row must be wrong.
    pub min_count: u32,
}

/// Nothing of a device for some time.
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
    /// Faster than this a minute is wrong.
    pub per_minute: Number,
    /// At this or slower the alert is over.
    pub clear_per_minute: Number,
    /// How far back a value is compared with.
    pub window_secs: u32,
}

impl Condition {
    /// Checks what no single field can tell.
    ///
    /// # Errors
    /// What is not as it should be.
    pub fn check(self) -> Result<Self, InvalidField> {
        let wrong = |field, expected| Err(InvalidField { field, expected });
        match &self {
            Self::Threshold(threshold) => {
                let is_reachable = match threshold.side {
                    Side::Below => threshold.clear >= threshold.raise,
                    Side::Above => threshold.clear <= threshold.raise,
                };
                if !is_reachable {
                    return wrong("clear", "on the good side of the value that raises");
                }
                if threshold.min_secs > SECS_MAX {
                    return wrong("for_secs", "at most 2678400");
                }
                if !(1..=COUNT_MAX).contains(&threshold.min_count) {
                    return wrong("count", "1 to 10000");
                }
            }
            Self::Absence(absence) => {
                if !(SILENCE_SECS_MIN..=SECS_MAX).contains(&absence.after_secs) {
                    return wrong("after_secs", "5 to 2678400");
                }
            }
            Self::Rate(rate) => {
                let zero = Number::from(0);
                if rate.per_minute <= zero {
                    return wrong("per_minute", "more than 0");
                }
                if rate.clear_per_minute < zero || rate.clear_per_minute > rate.per_minute {
                    return wrong("clear_per_minute", "from 0 to per_minute");
                }
                if !(WINDOW_SECS_MIN..=SECS_MAX).contains(&rate.window_secs) {
                    return wrong("window_secs", "2 to 2678400");
                }
            }
        }
        Ok(self)
    }
}

impl Threshold {
    pub(super) fn is_wrong(&self, value: &Number) -> bool {
        match self.side {
            Side::Below => *value < self.raise,
            Side::Above => *value > self.raise,
        }
    }

    pub(super) fn is_over(&self, value: &Number) -> bool {
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

    /// A sign of life that is not this much newer than the last one is not written down. It makes
    /// an alert late by as much, and never early.
    pub(super) fn step_ms(&self) -> i64 {
        (self.after_ms() / 20).min(10_000)
    }

    /// How long after a stored sign of life a silence is one.
    pub(super) fn deadline_ms(&self) -> i64 {
        self.after_ms() + self.step_ms()
    }
}
