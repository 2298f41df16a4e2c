//! Health: whether a device reports as often as expected.

use std::collections::BTreeMap;

use super::name::SystemName;
use super::registry::System;
use crate::time::EpochMillis;

/// A device that reported within this many of its intervals is online: one message may be lost.
const ONLINE_INTERVALS: i64 = 2;
/// Within this many intervals it is late, and after that silent.
const LATE_INTERVALS: i64 = 6;

/// The health of a device, by the time of its last report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Health {
    Online,
    Late,
    Silent,
}

/// How often devices are expected to report, in seconds, where it differs from the default of their system.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Expectations(pub BTreeMap<SystemName, i64>);

/// The number of devices in each health.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HealthCounts {
    pub online: usize,
    pub late: usize,
    pub silent: usize,
}

impl Expectations {
    /// The health of a device by its last report.
    #[must_use]
    pub fn health(
        &self,
        system: &System,
        last_seen: Option<EpochMillis>,
        now: EpochMillis,
    ) -> Health {
        let Some(last_seen) = last_seen else {
            return Health::Silent;
        };
        let age_ms = now.0.saturating_sub(last_seen.0);
        let every_secs = self.0.get(&system.name);
        let every_secs = every_secs.unwrap_or(&system.report_every_secs);
        let every_ms = every_secs.saturating_mul(1000);
        match () {
            () if age_ms <= every_ms.saturating_mul(ONLINE_INTERVALS) => Health::Online,
            () if age_ms <= every_ms.saturating_mul(LATE_INTERVALS) => Health::Late,
            () => Health::Silent,
        }
    }
}

impl HealthCounts {
    pub(super) fn add(&mut self, health: Health) {
        match health {
            Health::Online => self.online += 1,
            Health::Late => self.late += 1,
            Health::Silent => self.silent += 1,
        }
    }

    #[must_use]
    pub fn total(self) -> usize {
        self.online + self.late + self.silent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn health_follows_from_missed_intervals() {
        let system = &crate::sensors::SYSTEM;
        let expectations = Expectations(BTreeMap::from([(system.name.clone(), 60)]));
        let now = EpochMillis(1_000_000_000);
        let health = |age_secs: i64| {
            let seen = EpochMillis(now.0 - age_secs * 1000);
            expectations.health(system, Some(seen), now)
        };
        for (age_secs, expected) in [
            (-5, Health::Online),
            (0, Health::Online),
            (120, Health::Online),
            (121, Health::Late),
            (360, Health::Late),
            (361, Health::Silent),
        ] {
            assert_eq!(health(age_secs), expected, "{age_secs}");
        }
        let never = expectations.health(system, None, now);
        assert_eq!(never, Health::Silent);
    }
}
