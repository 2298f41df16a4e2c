//! The tables of all systems, with the operations that Homeport uses on each. Commands that create tables or
//! grant permissions read this list.

use homeport_item::schema::TableSchema;

use crate::{
    alerts, api_keys, chargers, messages, people, push, reactions, records, removal, rules,
    sensors, telemetry,
};

/// An operation on a table or an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    Get,
    Put,
    Update,
    Delete,
    /// A condition on an item that a transaction does not write.
    Check,
    Query,
    Scan,
    BatchGet,
    BatchWrite,
}

/// A table with the operations that its system uses, alone or in transactions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsedTable {
    pub schema: TableSchema,
    pub operations: &'static [Operation],
    /// On each of its indexes.
    pub index_operations: &'static [Operation],
    /// Whether alerts or the live feed may follow the table. They enable its stream when they first need it.
    pub may_be_watched: bool,
}

/// A system with its tables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct System {
    pub name: &'static str,
    pub tables: Vec<UsedTable>,
}

/// The names of the tables that settings can rename, and the index that a setting adds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableNames {
    pub records: String,
    pub device_tokens: String,
    /// Whether the table of device tokens has the index for broadcasts.
    pub broadcast_index: bool,
    pub telemetry: String,
}

impl Default for TableNames {
    fn default() -> Self {
        Self {
            records: records::Settings::default().table,
            device_tokens: push::Settings::default().table,
            broadcast_index: push::Settings::default().broadcast_index,
            telemetry: telemetry::Settings::default().table,
        }
    }
}

/// All systems. A test compares the operations with those that the systems use.
#[must_use]
pub fn systems(names: &TableNames) -> Vec<System> {
    use Operation::{BatchGet, BatchWrite, Check, Delete, Get, Put, Query, Scan, Update};
    let used = |schema, operations, index_operations| UsedTable {
        schema,
        operations,
        index_operations,
        may_be_watched: false,
    };
    let watched = |used| UsedTable {
        may_be_watched: true,
        ..used
    };
    vec![
        System {
            name: "sensors",
            tables: vec![
                watched(used(
                    sensors::schema::devices(),
                    &[Get, Put, Update, Delete, BatchGet],
                    &[Query],
                )),
                watched(used(
                    sensors::schema::device_readings(),
                    &[Put, Delete, Query, BatchWrite],
                    &[],
                )),
                used(
                    sensors::schema::processed_batches(),
                    &[Put, BatchWrite],
                    &[],
                ),
            ],
        },
        System {
            name: "chargers",
            tables: vec![
                used(
                    chargers::schema::events(),
                    &[Put, Delete, Query, BatchWrite],
                    &[Query],
                ),
                watched(used(
                    chargers::schema::device_state(),
                    &[Get, Update, Delete, Query, Scan, BatchGet, BatchWrite],
                    &[],
                )),
                used(
                    chargers::schema::devices(),
                    &[Get, Update, Delete, Check, Scan, BatchGet],
                    &[],
                ),
                used(
                    chargers::schema::daily_stats(),
                    &[Put, Delete, Query, BatchWrite],
                    &[],
                ),
                used(
                    chargers::schema::decoders(),
                    &[Get, Put, Update, Delete, Query],
                    &[],
                ),
            ],
        },
        System {
            name: "push",
            tables: vec![
                watched(used(
                    push::schema::device_tokens(&names.device_tokens, names.broadcast_index),
                    &[Get, Put, Update, Delete, Check, Query, Scan, BatchGet],
                    &[Query],
                )),
                watched(used(
                    push::schema::notifications(),
                    &[Get, Put, Update, Delete, Query, BatchGet],
                    &[Query],
                )),
            ],
        },
        System {
            name: "records",
            tables: vec![
                watched(used(
                    records::schema::table(&names.records),
                    &[
                        Get, Put, Update, Delete, Check, Query, Scan, BatchGet, BatchWrite,
                    ],
                    &[],
                )),
                used(records::schema::record_ids(), &[Get, Put], &[]),
            ],
        },
        System {
            name: "alerts",
            tables: vec![
                used(
                    alerts::schema::definitions(),
                    &[Get, Put, Update, Delete, Check, Query],
                    &[],
                ),
                used(
                    alerts::schema::watches(),
                    &[Get, Put, Delete, Query, BatchGet],
                    &[Query],
                ),
                watched(used(
                    alerts::schema::alerts(),
                    &[Get, Put, Update],
                    &[Query],
                )),
                used(
                    alerts::schema::outbox(),
                    &[Get, Put, Update, Query],
                    &[Query],
                ),
            ],
        },
        System {
            name: "telemetry",
            tables: vec![watched(used(
                telemetry::schema::telemetry(&names.telemetry),
                &[Get, Put, Query, Scan],
                &[Query],
            ))],
        },
        System {
            name: "rules",
            tables: vec![
                used(
                    rules::schema::rules(),
                    &[Get, Put, Update, Delete, Query],
                    &[],
                ),
                used(rules::schema::requests(), &[Put, Update, Delete], &[Query]),
            ],
        },
        System {
            name: "messages",
            tables: vec![
                used(
                    messages::schema::sessions(),
                    &[Put, Update, Delete, Scan],
                    &[],
                ),
                used(messages::schema::queue(), &[Query, BatchWrite], &[]),
                used(messages::schema::retained(), &[Put, Scan, BatchGet], &[]),
            ],
        },
        System {
            name: "reactions",
            tables: vec![used(reactions::schema::positions(), &[Get, Put], &[])],
        },
        System {
            name: "removals",
            tables: vec![used(
                removal::schema::removals(),
                &[Get, Put, Delete, Check, Query],
                &[],
            )],
        },
        System {
            name: "api_keys",
            tables: vec![
                used(
                    api_keys::schema::api_keys(),
                    &[Get, Put, Update, BatchGet],
                    &[Query],
                ),
                used(api_keys::schema::secret_checks(), &[Get, Put], &[]),
            ],
        },
        System {
            name: "people",
            tables: vec![
                used(people::schema::people(), &[Get, Put, Delete, Query], &[]),
                used(
                    people::schema::credentials(),
                    &[Get, Put, Update, Delete, Query],
                    &[],
                ),
            ],
        },
    ]
}

/// The tables of all systems.
#[must_use]
pub fn tables(names: &TableNames) -> Vec<TableSchema> {
    let tables = systems(names).into_iter().flat_map(|system| system.tables);
    tables.map(|table| table.schema).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_table_is_listed_once() {
        let names = TableNames::default();
        let all = [
            sensors::schema::tables(),
            chargers::schema::tables(),
            push::schema::tables(&names.device_tokens, names.broadcast_index),
            records::schema::tables(&names.records),
            alerts::schema::tables(),
            telemetry::schema::tables(&names.telemetry),
            rules::schema::tables(),
            messages::schema::tables(),
            reactions::schema::tables(),
            removal::schema::tables(),
            api_keys::schema::tables(),
            people::schema::tables(),
        ]
        .concat();
        assert_eq!(tables(&names), all);
        let mut names: Vec<_> = all.iter().map(|table| table.name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all.len());
    }
}
