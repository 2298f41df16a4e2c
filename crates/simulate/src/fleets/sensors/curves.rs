//! Plausible greenhouse values: days, weather, drift and noise.
//!
//! Every value is a function of the device, the window's number and its time. Values are in hundredths of their unit.

use std::f64::consts::TAU;

use crate::random::SeededRandom;

const DAY_MS: f64 = 86_400_000.0;
/// Soil is wettest when it is watered, and dries from then on.
const WATERED_AT: f64 = 7.0 / 24.0;

/// The climate around one device.
#[derive(Debug, Clone)]
pub(super) struct Climate {
    seed: u64,
    device: u64,
    mean_temp_c: f64,
    swing_temp_c: f64,
    /// Offset of this device's noon, in days.
    shift: f64,
    drift_per_day: f64,
    soil: f64,
}

/// The name of each value, with the sensor that measures it.
pub(super) const VALUES: [(&str, &str); 6] = [
    ("bme280_temp_c", "bme280"),
    ("ds18b20_temp_c", "ds18b20"),
    ("humidity_pct", "bme280"),
    ("pressure_hpa", "bme280"),
    ("soil_moisture_pct", "soil_moisture"),
    ("light_lux", "light"),
];

impl Climate {
    pub(super) fn new(seed: u64, device: u64) -> Self {
        let mut random = SeededRandom::new([seed, device, 3]);
        Self {
            seed,
            device,
            mean_temp_c: 17.0 + 6.0 * random.unit(),
            swing_temp_c: 4.0 + 5.0 * random.unit(),
            shift: 0.04 * random.noise(),
            drift_per_day: 0.02 * random.noise(),
            soil: 55.0 + 15.0 * random.unit(),
        }
    }

    /// The values of a window that ends at `end_ms`, in the order of `VALUES`.
    pub(super) fn hundredths(&self, window: u32, end_ms: i64) -> [i64; 6] {
        let mut random = SeededRandom::new([self.seed, self.device, u64::from(window), 4]);
        let days = end_ms as f64 / DAY_MS - self.shift;
        let of_day = days.rem_euclid(1.0);
        // Highest at noon, negative at night.
        let sun = -(TAU * of_day).cos();
        // Changes over days, equally for all devices.
        let weather = (TAU * days / 6.3).sin() + 0.5 * (TAU * days / 2.7).sin();
        let since_start = days.rem_euclid(30.0);
        let drift = self.drift_per_day * since_start;
        // Air temperature follows the sun with a lag of about two hours.
        let warmth = -(TAU * (of_day - 0.08)).cos();
        let temp = self.mean_temp_c + self.swing_temp_c * warmth + 1.5 * weather + drift;
        let dry_for = (of_day - WATERED_AT).rem_euclid(1.0);
        let values = [
            temp + 0.2 * random.noise(),
            temp - 0.4 + 0.1 * random.noise(),
            (62.0 - 1.8 * (temp - 20.0) + 1.5 * random.noise()).clamp(5.0, 100.0),
            1013.25 + 9.0 * weather + 0.3 * random.noise(),
            (self.soil - 14.0 * dry_for + 0.5 * random.noise()).clamp(0.0, 100.0),
            (sun.max(0.0) * (32_000.0 - 9_000.0 * weather) * (1.0 + 0.08 * random.noise()))
                .max(0.0),
        ];
        values.map(|value| (value * 100.0).round() as i64)
    }
}

/// A value in hundredths as a JSON number.
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
    fn values_follow_the_time_of_day() {
        for device in 0..50 {
            let place = Climate::new(1, device);
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
    fn values_are_reproducible_and_differ_by_device() {
        let place = Climate::new(1, 1);
        let first = place.hundredths(5, MIDNIGHT_MS);
        assert_eq!(Climate::new(1, 1).hundredths(5, MIDNIGHT_MS), first);
        assert_ne!(place.hundredths(6, MIDNIGHT_MS), first);
        assert_ne!(Climate::new(1, 2).hundredths(5, MIDNIGHT_MS), first);
        assert_ne!(Climate::new(2, 1).hundredths(5, MIDNIGHT_MS), first);
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
