//! Values as a greenhouse has them: days, weather, sensors that drift and flicker.
//!
//! Every value is a function of the device, the number of the window and its time, in hundredths of
//! its unit, so that it can be made again.

use std::f64::consts::TAU;

use crate::simulate::dice::Dice;

const DAY_MS: f64 = 86_400_000.0;
/// A day is wettest when the beds are watered, and dries from then on.
const WATERED_AT: f64 = 7.0 / 24.0;

/// What makes one device different from the next.
#[derive(Debug, Clone)]
pub(super) struct Place {
    seed: u64,
    device: u64,
    mean_temp_c: f64,
    swing_temp_c: f64,
    /// Of a day, by which this device's noon is later.
    shift: f64,
    drift_per_day: f64,
    soil: f64,
}

/// The name of a value, as it is sent, with the sensor that it comes from.
pub(super) const VALUES: [(&str, &str); 6] = [
    ("bme280_temp_c", "bme280"),
    ("ds18b20_temp_c", "ds18b20"),
    ("humidity_pct", "bme280"),
    ("pressure_hpa", "bme280"),
    ("soil_moisture_pct", "soil_moisture"),
    ("light_lux", "light"),
];

impl Place {
    pub(super) fn new(seed: u64, device: u64) -> Self {
        let mut dice = Dice::new([seed, device, 3]);
        Self {
            seed,
            device,
            mean_temp_c: 17.0 + 6.0 * dice.unit(),
            swing_temp_c: 4.0 + 5.0 * dice.unit(),
            shift: 0.04 * dice.noise(),
            drift_per_day: 0.02 * dice.noise(),
            soil: 55.0 + 15.0 * dice.unit(),
        }
    }

    /// The values of a window that ends at `end_ms`, in the order of `VALUES`.
    pub(super) fn hundredths(&self, window: u32, end_ms: i64) -> [i64; 6] {
        let mut dice = Dice::new([self.seed, self.device, u64::from(window), 4]);
        let days = end_ms as f64 / DAY_MS - self.shift;
        let of_day = days.rem_euclid(1.0);
        // Highest at noon, below zero at night.
        let sun = -(TAU * of_day).cos();
        // Weather comes and goes over some days, for all devices alike.
        let weather = (TAU * days / 6.3).sin() + 0.5 * (TAU * days / 2.7).sin();
        let since_start = days.rem_euclid(30.0);
        let drift = self.drift_per_day * since_start;
        // The air lags behind the sun by about two hours.
        let warmth = -(TAU * (of_day - 0.08)).cos();
        let temp = self.mean_temp_c + self.swing_temp_c * warmth + 1.5 * weather + drift;
        let dry_for = (of_day - WATERED_AT).rem_euclid(1.0);
        let values = [
            temp + 0.2 * dice.noise(),
            temp - 0.4 + 0.1 * dice.noise(),
            (62.0 - 1.8 * (temp - 20.0) + 1.5 * dice.noise()).clamp(5.0, 100.0),
            1013.25 + 9.0 * weather + 0.3 * dice.noise(),
            (self.soil - 14.0 * dry_for + 0.5 * dice.noise()).clamp(0.0, 100.0),
            (sun.max(0.0) * (32_000.0 - 9_000.0 * weather) * (1.0 + 0.08 * dice.noise())).max(0.0),
        ];
        values.map(|value| (value * 100.0).round() as i64)
    }
}

/// A value in hundredths as JSON writes it.
pub(super) fn decimal(hundredths: i64) -> String {
    let sign = if hundredths < 0 { "-" } else { "" };
    let size = hundredths.unsigned_abs();
    format!("{sign}{}.{:02}", size / 100, size % 100)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIDNIGHT_MS: i64 = 1_800_057_600_000;
    const HOUR_MS: i64 = 3_600_000;

    #[test]
    fn a_day_looks_like_a_day() {
        for device in 0..50 {
            let place = Place::new(1, device);
            let at = |hour: i64| {
                place.hundredths(u32::try_from(hour).unwrap(), MIDNIGHT_MS + hour * HOUR_MS)
            };
            let (night, morning, noon, evening) = (at(1), at(8), at(13), at(23));
            assert!(noon[0] > night[0] && noon[1] > night[1], "{noon:?}");
            assert!(noon[2] < night[2], "{noon:?}");
            assert!(night[5] == 0 && noon[5] > 100_000, "{noon:?}");
            assert!(evening[4] < morning[4], "{evening:?}");
        }
    }

    #[test]
    fn devices_and_windows_differ_and_can_be_made_again() {
        let place = Place::new(1, 1);
        let first = place.hundredths(5, MIDNIGHT_MS);
        assert_eq!(Place::new(1, 1).hundredths(5, MIDNIGHT_MS), first);
        assert_ne!(place.hundredths(6, MIDNIGHT_MS), first);
        assert_ne!(Place::new(1, 2).hundredths(5, MIDNIGHT_MS), first);
        assert_ne!(Place::new(2, 1).hundredths(5, MIDNIGHT_MS), first);
    }

    #[test]
    fn decimals_keep_their_sign() {
        for (hundredths, text) in [
            (2251, "22.51"),
            (-5, "-0.05"),
            (0, "0.00"),
            (-1230, "-12.30"),
        ] {
            assert_eq!(decimal(hundredths), text);
        }
    }
}
