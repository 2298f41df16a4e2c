//! The statistics of a day as a function of its events and of the previous day, which gives the state at
//! midnight. Nothing here reads a store or a clock, so counting again gives the same result.

use std::collections::BTreeMap;

use homeport_item::{Item, Map, Number, Value};

use super::event::Event;
use super::mountain::MountainDay;
use super::schema;
use super::types::ScId;
use crate::time::EpochMillis;

/// The interval at which a charger is expected to report.
pub const UPLINK_EVERY_MS: i64 = 15 * 60 * 1000;
/// How long a report counts when no other follows.
pub const HOLD_MS: i64 = 2 * UPLINK_EVERY_MS;
/// The voltage of a charger that does not report one.
const VOLTAGE_MV_DEFAULT: i64 = 240_000;
/// Largest current that counts. A larger one is a defect and must not overflow a sum.
const MILLI_MAX: i64 = 10_000_000;
const MS_PER_MINUTE: i64 = 60_000;
/// Milliamperes times millivolts times milliseconds in a watt-hour.
const UNITS_PER_WH: i128 = 3_600_000_000_000;

/// The statistics of one device and day.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DailyStats {
    pub event_count: u64,
    /// Hundredths of a percent: quarter hours with a report, of all quarter hours of the day.
    pub availability_bp: u64,
    /// Whole minutes.
    pub longest_gap_minutes: i64,
    pub total_wh: i128,
    pub charge_session_count: u64,
    /// Whole minutes.
    pub charge_duration_min: i64,
    pub peak_current_ma: Option<i64>,
    /// The number of occurrences of each kind of fault.
    pub fault_counts: BTreeMap<String, u64>,
}

/// The last report of a charger.
#[derive(Debug, Clone, Default)]
struct Reported {
    at: Option<EpochMillis>,
    charging: bool,
    current_ma: i64,
    voltage_mv: Option<i64>,
    faults: BTreeMap<String, bool>,
}

impl DailyStats {
    /// Counts a day. Both slices are sorted by time; `before` has the events of the previous day. A charger
    /// that was silent on that whole day starts without a state at midnight.
    #[must_use]
    pub fn count(day: MountainDay, before: &[Event], events: &[Event]) -> Self {
        let mut reported = Reported::default();
        for event in before {
            reported.take(event);
        }
        let (start, end) = (day.start(), day.end());
        let mut stats = Self::default();
        let mut energy: i128 = 0;
        let mut charging_ms: i64 = 0;
        let mut longest_gap_ms: i64 = 0;
        let mut hold = |reported: &Reported, until: EpochMillis| {
            let Some(at) = reported.at else { return };
            let from = at.0.max(start.0);
            let held_ms = until.0.min(at.0 + HOLD_MS).min(end.0) - from;
            if reported.charging && held_ms > 0 {
                charging_ms += held_ms;
                let voltage_mv = reported.voltage_mv.unwrap_or(VOLTAGE_MV_DEFAULT);
                energy +=
                    i128::from(reported.current_ma) * i128::from(voltage_mv) * i128::from(held_ms);
            }
        };
        for event in events {
            let at = event.timestamp_utc;
            hold(&reported, at);
            longest_gap_ms = longest_gap_ms.max(at.0 - reported.at.unwrap_or(start).0);
            let was = (reported.charging, reported.faults.clone());
            reported.take(event);
            stats.charge_session_count += u64::from(reported.charging && !was.0);
            for (kind, _) in reported.faults.iter().filter(|(_, on)| **on) {
                if was.1.get(kind) != Some(&true) {
                    *stats.fault_counts.entry(kind.clone()).or_default() += 1;
                }
            }
            let current = milli(event, schema::CURRENT_MA);
            stats.peak_current_ma = stats.peak_current_ma.max(current);
            stats.event_count += 1;
        }
        hold(&reported, end);
        stats.longest_gap_minutes = longest_gap_ms / MS_PER_MINUTE;
        stats.charge_duration_min = (charging_ms + MS_PER_MINUTE / 2) / MS_PER_MINUTE;
        stats.total_wh = (energy + UNITS_PER_WH / 2) / UNITS_PER_WH;
        stats.availability_bp = availability(start, end, events);
        stats
    }

    pub(super) fn to_item(&self, device_id: &ScId, day: MountainDay) -> Item {
        let faults = self.fault_counts.iter();
        let faults: Map = faults
            .map(|(kind, count)| (kind.clone(), Value::from(*count)))
            .collect();
        let mut item = daily_key(device_id, day)
            .with(schema::EVENT_COUNT, self.event_count)
            .with(
                schema::AVAILABILITY_PCT,
                scaled(self.availability_bp.into(), -2),
            )
            .with(schema::LONGEST_GAP_MINUTES, self.longest_gap_minutes)
            .with(schema::TOTAL_KWH, scaled(self.total_wh, -3))
            .with(schema::CHARGE_SESSION_COUNT, self.charge_session_count)
            .with(schema::CHARGE_DURATION_MIN, self.charge_duration_min)
            .with(schema::FAULT_COUNTS, Value::M(faults));
        if let Some(peak) = self.peak_current_ma {
            item.insert(schema::PEAK_CURRENT_MA, peak);
        }
        item
    }
}

impl Reported {
    fn take(&mut self, event: &Event) {
        self.at = Some(event.timestamp_utc);
        let members = event.data.members();
        if let Some(state) = members.get(schema::J1772_STATE).and_then(Value::as_str) {
            // C means charging, D means charging with ventilation required.
            self.charging = matches!(state.bytes().next(), Some(b'C' | b'c' | b'D' | b'd'));
        }
        if let Some(current) = milli(event, schema::CURRENT_MA) {
            self.current_ma = current;
        }
        if let Some(voltage) = milli(event, schema::VOLTAGE_MV) {
            self.voltage_mv = Some(voltage);
        }
        for (name, value) in members {
            if let (Some(kind), Some(on)) = (name.strip_prefix(schema::FAULT), value.as_bool()) {
                self.faults.insert(kind.to_owned(), on);
            }
        }
    }
}

/// A number of an event in thousandths, if it is valid.
fn milli(event: &Event, name: &str) -> Option<i64> {
    let number = event.data.members().get(name)?.as_number()?;
    let whole = number.floor_i64();
    (0..=MILLI_MAX).contains(&whole).then_some(whole)
}

/// The share of the day's quarter hours that have a report.
fn availability(start: EpochMillis, end: EpochMillis, events: &[Event]) -> u64 {
    let slots = (end.0 - start.0) / UPLINK_EVERY_MS;
    let mut seen: Vec<i64> = events
        .iter()
        .map(|event| (event.timestamp_utc.0 - start.0) / UPLINK_EVERY_MS)
        .collect();
    seen.dedup();
    let seen = u64::try_from(seen.len()).unwrap_or(u64::MAX);
    let slots = u64::try_from(slots).unwrap_or(1).max(1);
    (seen.saturating_mul(10_000) + slots / 2) / slots
}

/// `units` times ten to the power of `exponent`.
fn scaled(units: i128, exponent: i32) -> Number {
    let number = Number::new(units < 0, units.unsigned_abs(), exponent);
    number.expect("a day's sums are far from 38 digits")
}

pub(super) fn daily_key(device_id: &ScId, day: MountainDay) -> Item {
    Item::new()
        .with(schema::DEVICE_ID, device_id)
        .with(schema::DATE, day)
}

#[cfg(test)]
mod tests {
    use super::super::mountain::MountainTime;
    use super::super::types::EventData;
    use super::*;

    const MINUTE: i64 = 60_000;

    fn day(text: &str) -> MountainDay {
        text.parse().unwrap()
    }

    fn event(at: i64, members: &[(&str, Value)]) -> Event {
        let members = members.iter().cloned();
        let members: Map = members
            .map(|(name, value)| (name.to_owned(), value))
            .collect();
        Event {
            device_id: "SC-A1B2C3D4".parse().unwrap(),
            wireless_device_id: None,
            timestamp_mt: MountainTime::of(EpochMillis(at)),
            timestamp_utc: EpochMillis(at),
            event_type: "telemetry".parse().unwrap(),
            data: EventData::new(members).unwrap(),
            uplink: None,
        }
    }

    fn charging(at: i64, current_ma: i64) -> Event {
        event(
            at,
            &[
                ("j1772_state", "C".into()),
                ("current_ma", current_ma.into()),
            ],
        )
    }

    fn idle(at: i64) -> Event {
        event(at, &[("j1772_state", "B".into()), ("current_ma", 0.into())])
    }

    #[test]
    fn report_every_quarter_hour_is_full_availability() {
        for (text, reports) in [("2026-03-08", 92), ("2026-06-01", 96), ("2026-11-01", 100)] {
            let start = day(text).start().0;
            let events: Vec<Event> = (0..reports)
                .map(|n| idle(start + n * UPLINK_EVERY_MS))
                .collect();
            let stats = DailyStats::count(day(text), &[], &events);
            assert_eq!(stats.availability_bp, 10_000, "{text}");
            assert_eq!(stats.event_count, u64::try_from(reports).unwrap());
            assert_eq!(stats.longest_gap_minutes, 15);
            let half: Vec<Event> = events.into_iter().step_by(2).collect();
            assert_eq!(
                DailyStats::count(day(text), &[], &half).availability_bp,
                5_000
            );
        }
    }

    #[test]
    fn energy_is_current_times_voltage_while_charging() {
        let start = day("2026-06-01").start().0;
        let events = [
            charging(start, 16_000),
            charging(start + 15 * MINUTE, 32_000),
            idle(start + 30 * MINUTE),
        ];
        let stats = DailyStats::count(day("2026-06-01"), &[], &events);
        // 16 A and 32 A at 240 V for a quarter hour each.
        assert_eq!(stats.total_wh, 960 + 1920);
        assert_eq!(stats.charge_duration_min, 30);
        assert_eq!(stats.charge_session_count, 1);
        assert_eq!(stats.peak_current_ma, Some(32_000));
        let with_voltage = [
            event(
                start,
                &[
                    ("j1772_state", "C".into()),
                    ("current_ma", 10_000.into()),
                    ("voltage_mv", 120_000.into()),
                ],
            ),
            idle(start + 30 * MINUTE),
        ];
        assert_eq!(
            DailyStats::count(day("2026-06-01"), &[], &with_voltage).total_wh,
            600
        );
    }

    #[test]
    fn silence_is_not_charging() {
        let start = day("2026-06-01").start().0;
        let events = [charging(start, 16_000), idle(start + 10 * 60 * MINUTE)];
        let stats = DailyStats::count(day("2026-06-01"), &[], &events);
        assert_eq!(stats.charge_duration_min, 30);
        assert_eq!(stats.longest_gap_minutes, 600);
    }

    #[test]
    fn session_over_midnight_counts_once() {
        let (first, second) = (day("2026-06-01"), day("2026-06-02"));
        let midnight = second.start().0;
        let before = [
            charging(midnight - 20 * MINUTE, 16_000),
            charging(midnight - 5 * MINUTE, 16_000),
        ];
        let after = [
            charging(midnight + 10 * MINUTE, 16_000),
            idle(midnight + 25 * MINUTE),
        ];
        let one = DailyStats::count(first, &[], &before);
        let two = DailyStats::count(second, &before, &after);
        assert_eq!((one.charge_session_count, two.charge_session_count), (1, 0));
        assert_eq!((one.charge_duration_min, two.charge_duration_min), (20, 25));
        assert_eq!(one.total_wh + two.total_wh, 16 * 240 * 45 / 60);
        assert_eq!(two.longest_gap_minutes, 15);
    }

    #[test]
    fn gap_over_midnight_counts_when_it_ends() {
        let second = day("2026-06-02");
        let midnight = second.start().0;
        let stats = DailyStats::count(
            second,
            &[idle(midnight - 60 * MINUTE)],
            &[idle(midnight + 60 * MINUTE)],
        );
        assert_eq!(stats.longest_gap_minutes, 120);
        let silent = DailyStats::count(second, &[], &[idle(midnight + 60 * MINUTE)]);
        assert_eq!(silent.longest_gap_minutes, 60);
    }

    #[test]
    fn fault_counts_when_it_appears() {
        let start = day("2026-06-01").start().0;
        let fault = |at, on: bool| event(at, &[("fault_interlock", on.into())]);
        let events = [
            fault(start + MINUTE, true),
            fault(start + 2 * MINUTE, true),
            fault(start + 3 * MINUTE, false),
            event(start + 4 * MINUTE, &[("fault_sensor", true.into())]),
            fault(start + 5 * MINUTE, true),
        ];
        let stats = DailyStats::count(day("2026-06-01"), &[], &events);
        let counts = BTreeMap::from([("interlock".to_owned(), 2), ("sensor".to_owned(), 1)]);
        assert_eq!(stats.fault_counts, counts);
        let before = [fault(start - MINUTE, true)];
        let stats = DailyStats::count(day("2026-06-01"), &before, &events[1..2]);
        assert_eq!(stats.fault_counts, BTreeMap::new());
    }

    #[test]
    fn invalid_values_do_not_break_sums() {
        let start = day("2026-06-01").start().0;
        let huge: Number = "1e120".parse().unwrap();
        let events = [
            event(
                start,
                &[("j1772_state", "C".into()), ("current_ma", huge.into())],
            ),
            event(
                start + MINUTE,
                &[("current_ma", (-5).into()), ("voltage_mv", "high".into())],
            ),
            event(
                start + 2 * MINUTE,
                &[
                    ("current_ma", MILLI_MAX.into()),
                    ("voltage_mv", MILLI_MAX.into()),
                ],
            ),
        ];
        let stats = DailyStats::count(day("2026-06-01"), &[], &events);
        assert_eq!(stats.peak_current_ma, Some(MILLI_MAX));
    }

    #[test]
    fn statistics_use_the_stored_attribute_names() {
        let start = day("2026-06-01").start().0;
        let events = [charging(start, 16_000), idle(start + 20 * MINUTE)];
        let device_id = "SC-A1B2C3D4".parse().unwrap();
        let item = DailyStats::count(day("2026-06-01"), &[], &events)
            .to_item(&device_id, day("2026-06-01"));
        assert_eq!(
            serde_json::to_value(&item).unwrap(),
            serde_json::json!({
                "device_id": {"S": "SC-A1B2C3D4"},
                "date": {"S": "2026-06-01"},
                "event_count": {"N": "2"},
                "availability_pct": {"N": "2.08"},
                "longest_gap_minutes": {"N": "20"},
                "total_kwh": {"N": "1.28"},
                "charge_session_count": {"N": "1"},
                "charge_duration_min": {"N": "20"},
                "peak_current_ma": {"N": "16000"},
                "fault_counts": {"M": {}},
            })
        );
    }
}
