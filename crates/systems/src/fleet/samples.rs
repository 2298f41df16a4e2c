//! The values within a stored item. Each sample has a name that stays the same over time.

use std::borrow::Cow;

use homeport_item::{Map, Value};

/// Members of a message below this depth are not samples.
const DEPTH_MAX: usize = 4;
/// Samples of one row; the rest of a message is left out.
const SAMPLES_PER_ROW_MAX: usize = 256;

/// One value at one time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample<'a> {
    pub name: &'a str,
    pub value: &'a Value,
    /// The stored unit.
    pub stored_unit: Option<&'a str>,
}

impl<'a> Sample<'a> {
    pub(crate) fn new(name: &'a str, value: &'a Value) -> Self {
        Self {
            name,
            value,
            stored_unit: None,
        }
    }

    /// The stored unit, or the unit that follows from the name. It is looked up on demand because all values of
    /// a series share one unit.
    #[must_use]
    pub fn unit(&self) -> Option<&'a str> {
        self.stored_unit.or_else(|| unit_of(self.name))
    }
}

/// The units of name suffixes; the longest matching suffix wins.
const UNITS: [(&str, &str); 24] = [
    ("_temp_c", "°C"),
    ("_celsius", "°C"),
    ("_c", "°C"),
    ("_pct", "%"),
    ("_percent", "%"),
    ("_hpa", "hPa"),
    ("_ppm", "ppm"),
    ("_ppb", "ppb"),
    ("_lux", "lx"),
    ("_dbm", "dBm"),
    ("_rssi", "dBm"),
    ("_kwh", "kWh"),
    ("_wh", "Wh"),
    ("_kw", "kW"),
    ("_w", "W"),
    ("_mv", "mV"),
    ("_v", "V"),
    ("_ma", "mA"),
    ("_a", "A"),
    ("_ms", "ms"),
    ("_secs", "s"),
    ("_min", "min"),
    ("_kmh", "km/h"),
    ("_mm", "mm"),
];

/// The unit that follows from the suffix of a name.
#[must_use]
pub fn unit_of(name: &str) -> Option<&'static str> {
    let name = name.to_ascii_lowercase();
    let units = UNITS.iter().filter(|(ending, _)| name.ends_with(ending));
    units
        .max_by_key(|(ending, _)| ending.len())
        .map(|(_, unit)| *unit)
}

/// Visits every value of a map. Members of inner maps get names with dots.
pub fn visit_members(members: &Map, skip: &[&str], visit: &mut dyn FnMut(Sample<'_>)) {
    let mut left = SAMPLES_PER_ROW_MAX;
    for (name, value) in members {
        if !skip.contains(&name.as_str()) {
            each(name.as_str(), value, 0, &mut left, visit);
        }
    }
}

/// Visits a value under its name. Members of a map get names with a dot.
fn each(
    name: &str,
    value: &Value,
    depth: usize,
    left: &mut usize,
    visit: &mut dyn FnMut(Sample<'_>),
) {
    match value {
        Value::M(members) if depth < DEPTH_MAX => {
            for (member, value) in members {
                let name: Cow<'_, str> = format!("{name}.{member}").into();
                each(&name, value, depth + 1, left, visit);
            }
        }
        Value::N(_) | Value::S(_) | Value::Bool(_) if *left > 0 => {
            *left -= 1;
            visit(Sample::new(name, value));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use homeport_item::Item;

    fn of(item: &Item, skip: &[&str]) -> Vec<(String, Option<String>)> {
        let mut found = Vec::new();
        visit_members(item.attributes(), skip, &mut |sample| {
            found.push((sample.name.to_owned(), sample.unit().map(str::to_owned)));
        });
        found
    }

    #[test]
    fn nested_members_have_dotted_names() {
        let battery: Map = [
            ("voltage_v".to_owned(), Value::from(12)),
            ("ok".to_owned(), true.into()),
        ]
        .into_iter()
        .collect();
        let item = Item::new()
            .with("thing_name", "van")
            .with("timestamp", 1)
            .with("speed_kmh", 80)
            .with("battery", Value::M(battery));
        assert_eq!(
            of(&item, &["thing_name", "timestamp"]),
            [
                ("battery.ok".to_owned(), None),
                ("battery.voltage_v".to_owned(), Some("V".to_owned())),
                ("speed_kmh".to_owned(), Some("km/h".to_owned())),
            ]
        );
    }

    #[test]
    fn deep_members_and_surplus_values_are_left_out() {
        let mut deep = Value::from(1);
        for _ in 0..10 {
            deep = Value::M([("m".to_owned(), deep)].into_iter().collect());
        }
        assert_eq!(of(&Item::new().with("a", deep), &[]), []);
        let many: Item = (0..1000)
            .map(|n| (format!("a{n}"), Value::from(n)))
            .collect();
        assert_eq!(of(&many, &[]).len(), SAMPLES_PER_ROW_MAX);
    }

    #[test]
    fn unit_follows_from_name_suffix() {
        for (name, unit) in [
            ("bme280_temp_c", Some("°C")),
            ("humidity_pct", Some("%")),
            ("current_ma", Some("mA")),
            ("energy_kwh", Some("kWh")),
            ("j1772_state", None),
        ] {
            assert_eq!(unit_of(name), unit, "{name}");
        }
    }
}
