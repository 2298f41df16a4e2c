//! A charger's day: cars arrive in the evening and sometimes at noon, charge until they are full, and stay a while.
//! Every state is a function of the device and the time.

use crate::random::SeededRandom;

const DAY_MS: i64 = 86_400_000;
const MINUTE_MS: i64 = 60_000;
/// Approximate offset of Mountain Time from UTC; daylight saving does not matter here.
const ZONE_MS: i64 = 7 * 60 * MINUTE_MS;
/// Probability that a charger has a second car on a day.
const NOON_SHARE: f64 = 0.3;
/// Share of days without a car.
const AWAY_SHARE: f64 = 0.1;
/// Probability of a fault in a quarter of an hour.
const FAULT_SHARE: f64 = 0.01;
const FAULT_MS: i64 = 15 * MINUTE_MS;

/// Kinds of faults.
pub(super) const FAULTS: [&str; 3] = ["sensor", "clamp_mismatch", "interlock"];

/// The days of one charger.
pub(super) struct Days {
    seed: u64,
    device: u64,
}

/// The state that a charger reports at a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ChargerState {
    pub(super) is_plugged: bool,
    pub(super) is_charging: bool,
    pub(super) current_ma: i64,
    pub(super) voltage_mv: i64,
    pub(super) fault: Option<&'static str>,
}

/// A car's stay, in milliseconds since the start of its day.
struct Stay {
    comes: i64,
    starts: i64,
    is_full: i64,
    leaves: i64,
    current_ma: i64,
}

impl ChargerState {
    /// The J1772 control pilot state: A without a car, B plugged in, C charging, F fault.
    pub(super) fn pilot(&self) -> &'static str {
        match (self.fault, self.is_plugged, self.is_charging) {
            (Some(_), ..) => "F",
            (None, _, true) => "C",
            (None, true, false) => "B",
            (None, false, false) => "A",
        }
    }
}

impl Days {
    pub(super) fn new(seed: u64, device: u64) -> Self {
        Self { seed, device }
    }

    pub(super) fn at(&self, at_ms: i64) -> ChargerState {
        let local_ms = at_ms - ZONE_MS;
        let (day, of_day) = (local_ms.div_euclid(DAY_MS), local_ms.rem_euclid(DAY_MS));
        // A car from the evening before may still be plugged in.
        let stays = self.stays(day).into_iter().map(|stay| (stay, of_day));
        let before = self.stays(day - 1).into_iter();
        let mut stays = stays.chain(before.map(|stay| (stay, of_day + DAY_MS)));
        let stay = stays.find(|(stay, now)| (stay.comes..stay.leaves).contains(now));
        let mut random = self.random(at_ms, 13);
        let fault = self.fault(at_ms);
        let is_charging = fault.is_none()
            && stay
                .as_ref()
                .is_some_and(|(stay, now)| stay.charges_at(*now));
        let current_ma = match &stay {
            Some((stay, _)) if is_charging => stay.current_ma + (300.0 * random.noise()) as i64,
            _ => 0,
        };
        ChargerState {
            is_plugged: stay.is_some(),
            is_charging,
            current_ma,
            voltage_mv: 240_000 - current_ma / 20 + (1500.0 * random.noise()) as i64,
            fault,
        }
    }

    fn random(&self, of: i64, stream: u64) -> SeededRandom {
        SeededRandom::new([self.seed, self.device, of.unsigned_abs(), stream])
    }

    /// The cars of one day in order, without overlap.
    fn stays(&self, day: i64) -> Vec<Stay> {
        let mut random = self.random(day, 12);
        if random.unit() < AWAY_SHARE {
            return Vec::new();
        }
        let minutes = |from: f64, spread: f64, random: &mut SeededRandom| {
            (from + spread * random.unit()) as i64 * MINUTE_MS
        };
        let mut stays = Vec::new();
        if random.unit() < NOON_SHARE {
            let comes = minutes(11.0 * 60.0, 60.0, &mut random);
            let starts = comes + minutes(2.0, 8.0, &mut random);
            let is_full = starts + minutes(30.0, 90.0, &mut random);
            let leaves = is_full + minutes(0.0, 60.0, &mut random);
            stays.push(Stay {
                comes,
                starts,
                is_full,
                leaves,
                current_ma: 16_000,
            });
        }
        let comes = minutes(16.5 * 60.0, 180.0, &mut random);
        // Some cars wait for the cheap hours.
        let starts = if random.unit() < 0.4 {
            minutes(22.0 * 60.0, 10.0, &mut random)
        } else {
            comes + minutes(2.0, 8.0, &mut random)
        };
        let is_full = starts + minutes(60.0, 300.0, &mut random);
        // In the morning, but never before the car is full.
        let leaves = is_full.max(minutes((24.0 + 6.5) * 60.0, 120.0, &mut random));
        stays.push(Stay {
            comes,
            starts,
            is_full,
            leaves,
            current_ma: 32_000,
        });
        stays
    }

    /// The fault during this quarter of an hour.
    fn fault(&self, at_ms: i64) -> Option<&'static str> {
        let mut random = self.random(at_ms.div_euclid(FAULT_MS), 14);
        (random.unit() < FAULT_SHARE).then(|| FAULTS[random.next_u64() as usize % FAULTS.len()])
    }
}

impl Stay {
    fn charges_at(&self, now: i64) -> bool {
        (self.starts..self.is_full).contains(&now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_are_plausible() {
        let (mut plugged, mut charging, mut sessions) = (0, 0, 0);
        for device in 0..20 {
            let days = Days::new(1, device);
            let mut was_charging = false;
            for minute in 0..(10 * 24 * 60) {
                let now = days.at(1_800_000_000_000 + minute * MINUTE_MS);
                assert!(!now.is_charging || now.is_plugged, "{now:?}");
                assert_eq!(now.is_charging, now.current_ma > 0, "{now:?}");
                assert!(now.fault.is_none() || !now.is_charging, "{now:?}");
                plugged += i32::from(now.is_plugged);
                charging += i32::from(now.is_charging);
                sessions += i32::from(now.is_charging && !was_charging);
                was_charging = now.is_charging;
            }
        }
        let minutes = 20 * 10 * 24 * 60;
        assert!((minutes / 4..minutes).contains(&plugged), "{plugged}");
        assert!((minutes / 20..plugged).contains(&charging), "{charging}");
        assert!((150..600).contains(&sessions), "{sessions}");
    }

    #[test]
    fn states_are_reproducible() {
        let at = 1_800_000_000_000;
        assert_eq!(Days::new(1, 2).at(at), Days::new(1, 2).at(at));
        assert_ne!(Days::new(1, 2).at(at), Days::new(2, 2).at(at));
    }
}
