//! Capacity units as DynamoDB counts them: 4 KB per read and 1 KB per write, rounded up.

use homeport_engine::WriteCost;
use homeport_item::schema::IndexSchema;

use crate::input::Text;
use crate::output::{self, Object};

const READ_UNIT_BYTES: usize = 4 * 1024;
const WRITE_UNIT_BYTES: usize = 1024;
/// A transaction costs this many times the same work without one.
pub(crate) const TRANSACTION_FACTOR: f64 = 2.0;

/// The value of `ReturnConsumedCapacity`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    Nothing,
    Total,
    Indexes,
}

impl Wanted {
    pub(crate) fn of(text: Option<&Text<'_>>) -> Self {
        match text.map(Text::as_str) {
            Some("TOTAL") => Self::Total,
            Some("INDEXES") => Self::Indexes,
            _ => Self::Nothing,
        }
    }

    pub(crate) fn anything(self) -> bool {
        self != Self::Nothing
    }
}

/// Whether units are also written as read units or as write units.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Split {
    None,
    Read,
    Write,
}

/// The capacity that a request used of one table.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Consumed {
    pub(crate) table: f64,
    pub(crate) local: Vec<(String, f64)>,
    pub(crate) global: Vec<(String, f64)>,
}

/// The capacity that a request used of each table.
#[derive(Debug, Default)]
pub(crate) struct ConsumedByTable<'t>(Vec<(&'t str, Consumed)>);

impl<'t> ConsumedByTable<'t> {
    /// The entry of a table, which is created if it is missing.
    pub(crate) fn of(&mut self, table: &'t str) -> &mut Consumed {
        let known = self.0.iter().position(|(known, _)| *known == table);
        let at = known.unwrap_or_else(|| {
            self.0.push((table, Consumed::default()));
            self.0.len() - 1
        });
        &mut self.0[at].1
    }

    /// Adds an entry, even if the table has one already.
    pub(crate) fn push(&mut self, table: &'t str, consumed: Consumed) {
        self.0.push((table, consumed));
    }

    /// Writes the member `ConsumedCapacity` if the client wants it.
    pub(crate) fn write(&self, object: &mut Object<'_>, wanted: Wanted, split: Split) {
        if wanted.anything() {
            let list = object.member("ConsumedCapacity");
            output::list(list, &self.0, |(table, consumed), out| {
                consumed.write(table, wanted, split, out);
            });
        }
    }
}

/// Units of reading `bytes` at once; reading nothing costs as much as the smallest item.
pub(crate) fn read_units(bytes: usize, consistent: bool) -> f64 {
    let units = bytes.div_ceil(READ_UNIT_BYTES).max(1) as f64;
    if consistent { units } else { units / 2.0 }
}

/// Units of reading items one by one.
pub(crate) fn fetch_units(sizes: &[usize], consistent: bool) -> f64 {
    // `sum` of an empty list is -0.0, which would be written with its sign.
    sizes
        .iter()
        .fold(0.0, |sum, size| sum + read_units(*size, consistent))
}

fn write_units(bytes: usize) -> f64 {
    bytes.div_ceil(WRITE_UNIT_BYTES).max(1) as f64
}

impl Consumed {
    pub(crate) fn of_table(units: f64) -> Self {
        Self {
            table: units,
            ..Self::default()
        }
    }

    /// The capacity that one write used.
    pub(crate) fn of_write(cost: &WriteCost) -> Self {
        let mut consumed = Self::default();
        consumed.add_write(cost, 1.0);
        consumed
    }

    /// The capacity that a read of an index used, with the items that were fetched from the table.
    pub(crate) fn of_index(index: &IndexSchema, units: f64, fetched_units: f64) -> Self {
        let mut consumed = Self::of_table(fetched_units);
        let side = match index.local {
            true => &mut consumed.local,
            false => &mut consumed.global,
        };
        side.push((index.name.clone(), units));
        consumed
    }

    /// Adds the capacity that a write used.
    pub(crate) fn add_write(&mut self, cost: &WriteCost, factor: f64) {
        let larger = cost.old_bytes.max(cost.new_bytes).unwrap_or(0);
        self.table += write_units(larger) * factor;
        for index in &cost.indexes {
            let units = match (index.old_bytes, index.new_bytes) {
                (Some(old), Some(new)) if index.in_place => write_units(old.max(new)),
                (old, new) => [old, new].into_iter().flatten().map(write_units).sum(),
            };
            let side = if index.local {
                &mut self.local
            } else {
                &mut self.global
            };
            add(side, &index.name, units * factor);
        }
    }

    /// Adds the capacity that another part of the request used.
    pub(crate) fn add(&mut self, other: &Self) {
        self.table += other.table;
        for (side, others) in [
            (&mut self.local, &other.local),
            (&mut self.global, &other.global),
        ] {
            for (index, units) in others {
                add(side, index, *units);
            }
        }
    }

    pub(crate) fn total(&self) -> f64 {
        let indexes = self.local.iter().chain(&self.global);
        self.table + indexes.map(|(_, units)| units).sum::<f64>()
    }

    /// Writes the member `ConsumedCapacity` of a request to one table, if the client wants it.
    pub(crate) fn write_member(&self, object: &mut Object<'_>, table: &str, wanted: Wanted) {
        if wanted.anything() {
            self.write(
                table,
                wanted,
                Split::None,
                object.member("ConsumedCapacity"),
            );
        }
    }

    /// Writes the structure `ConsumedCapacity`.
    pub(crate) fn write(&self, table: &str, wanted: Wanted, split: Split, out: &mut Vec<u8>) {
        let units = |object: &mut Object<'_>, units: f64| {
            object.units("CapacityUnits", units);
            match split {
                Split::None => {}
                Split::Read => object.units("ReadCapacityUnits", units),
                Split::Write => object.units("WriteCapacityUnits", units),
            }
        };
        let mut object = Object::new(out);
        object.text("TableName", table);
        units(&mut object, self.total());
        if wanted == Wanted::Indexes {
            object.object("Table", |object| units(object, self.table));
            for (name, side) in [
                ("LocalSecondaryIndexes", &self.local),
                ("GlobalSecondaryIndexes", &self.global),
            ] {
                if !side.is_empty() {
                    object.object(name, |object| {
                        for (index, used) in side {
                            object.object(index, |object| units(object, *used));
                        }
                    });
                }
            }
        }
        object.end();
    }
}

fn add(side: &mut Vec<(String, f64)>, name: &str, units: f64) {
    match side.iter_mut().find(|(known, _)| known == name) {
        Some((_, used)) => *used += units,
        None => side.push((name.to_owned(), units)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use homeport_engine::IndexCost;

    #[test]
    fn reads_round_up_and_eventual_ones_cost_half() {
        for (bytes, consistent, units) in [
            (0, true, 1.0),
            (0, false, 0.5),
            (4096, true, 1.0),
            (4097, true, 2.0),
            (4097, false, 1.0),
        ] {
            assert_eq!(read_units(bytes, consistent), units, "{bytes} {consistent}");
        }
    }

    #[test]
    fn writes_cost_larger_size_and_each_index() {
        let index = |old, new, in_place| IndexCost {
            name: "i".to_owned(),
            local: false,
            old_bytes: old,
            new_bytes: new,
            in_place,
        };
        for (costs, table, global) in [
            (vec![index(None, Some(10), false)], 3.0, 1.0),
            (vec![index(Some(2000), Some(10), true)], 3.0, 2.0),
            (vec![index(Some(2000), Some(10), false)], 3.0, 3.0),
        ] {
            let mut consumed = Consumed::default();
            let cost = WriteCost {
                old_bytes: Some(2049),
                new_bytes: Some(5),
                indexes: costs,
            };
            consumed.add_write(&cost, 1.0);
            assert_eq!(consumed.table, table);
            assert_eq!(consumed.global, [("i".to_owned(), global)]);
        }
    }

    #[test]
    fn consumed_capacity_has_dynamodb_form() {
        let mut consumed = Consumed::of_table(1.0);
        consumed.global.push(("g".to_owned(), 2.0));
        let mut out = Vec::new();
        consumed.write("t", Wanted::Indexes, Split::None, &mut out);
        assert_eq!(
            String::from_utf8_lossy(&out),
            r#"{"TableName":"t","CapacityUnits":3.0,"Table":{"CapacityUnits":1.0},"GlobalSecondaryIndexes":{"g":{"CapacityUnits":2.0}}}"#
        );
        out.clear();
        consumed.write("t", Wanted::Total, Split::Write, &mut out);
        assert_eq!(
            String::from_utf8_lossy(&out),
            r#"{"TableName":"t","CapacityUnits":3.0,"WriteCapacityUnits":3.0}"#
        );
    }
}
