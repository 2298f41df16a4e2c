//! The cost of a write: the sizes that DynamoDB derives its capacity units from.

use homeport_item::binary::DecodeError;

use crate::catalogue::table::Table;
use crate::storage::record::{self, Record};
use crate::storage::vault::UserValue;

/// The sizes of an item before and after a write, in the table and in each index.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WriteCost {
    pub old_bytes: Option<usize>,
    pub new_bytes: Option<usize>,
    /// The indexes whose entries changed.
    pub indexes: Vec<IndexCost>,
}

/// The sizes of an item's entry in one index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexCost {
    pub name: String,
    pub local: bool,
    pub old_bytes: Option<usize>,
    pub new_bytes: Option<usize>,
    /// The entry kept its key: one write instead of two.
    pub in_place: bool,
}

impl WriteCost {
    pub(crate) fn of(
        table: &Table,
        key: &[u8],
        old: Option<&UserValue>,
        new: Option<&UserValue>,
    ) -> Result<Self, DecodeError> {
        let size =
            |value: Option<&UserValue>| value.map(|value| record::size_of(value)).transpose();
        let mut cost = Self {
            old_bytes: size(old)?,
            new_bytes: size(new)?,
            indexes: Vec::new(),
        };
        for index in &table.indexes {
            let entry = |value: Option<&UserValue>| match value {
                Some(value) => {
                    let record = Record::new(&table.key, key, value)?;
                    index.entry(table.ttl_attribute(), &record, key, value)
                }
                None => Ok(None),
            };
            let (before, after) = (entry(old)?, entry(new)?);
            if before == after {
                continue;
            }
            cost.indexes.push(IndexCost {
                name: index.schema.name.clone(),
                local: index.schema.local,
                old_bytes: size(before.as_ref().map(|(_, value)| value))?,
                new_bytes: size(after.as_ref().map(|(_, value)| value))?,
                in_place: matches!((&before, &after), (Some(old), Some(new)) if old.0 == new.0),
            });
        }
        Ok(cost)
    }
}
