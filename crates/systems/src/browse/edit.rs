//! Changes one item on the condition that it has not been changed in the meantime.

use homeport_item::Item;
use homeport_item::expression::{Condition, Path};
use homeport_item::schema::TableSchema;
use homeport_store::{Delete, Get, Put, WriteError};

use super::{BrowseError, TableBrowser};

/// Attributes that the condition of a write names. DynamoDB accepts a few hundred operators.
const CONDITIONS_MAX: usize = 100;

/// The expected state of the item before the write.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Expected {
    #[default]
    Anything,
    Absent,
    /// The item as it was read.
    Unchanged(Item),
}

impl TableBrowser {
    /// Creates or replaces an item.
    ///
    /// # Errors
    /// When the table rejects the item, the item is not as expected, or the store fails.
    pub async fn put(
        &self,
        table: &TableSchema,
        item: Item,
        expected: Expected,
    ) -> Result<(), BrowseError> {
        let invalid = |reason: String| BrowseError::Invalid(reason);
        table
            .key
            .values(&item)
            .map_err(|error| invalid(error.to_string()))?;
        item.check().map_err(|error| invalid(error.to_string()))?;
        let mut put = Put::new(&table.name, item.clone());
        put.condition = self
            .condition(table, &key(table, &item), Some(&item), expected)
            .await?;
        match self.store.put(put).await {
            Ok(_) => Ok(()),
            Err(error) => Err(failure(error)),
        }
    }

    /// Deletes an item. A missing item is not an error.
    ///
    /// # Errors
    /// When the key does not fit the table, the item is not as expected, or the store fails.
    pub async fn delete(
        &self,
        table: &TableSchema,
        key: Item,
        expected: Expected,
    ) -> Result<(), BrowseError> {
        let exact = table.key.exact_values(&key);
        exact.map_err(|error| BrowseError::Invalid(error.to_string()))?;
        let mut delete = Delete::new(&table.name, key.clone());
        delete.condition = self.condition(table, &key, None, expected).await?;
        match self.store.delete(delete).await {
            Ok(_) => Ok(()),
            Err(error) => Err(failure(error)),
        }
    }

    /// Makes the condition that the item is as expected. The whole item is compared first; the condition then
    /// checks every known attribute until the write.
    async fn condition(
        &self,
        table: &TableSchema,
        key: &Item,
        new: Option<&Item>,
        expected: Expected,
    ) -> Result<Option<Condition>, BrowseError> {
        let old = match expected {
            Expected::Anything => return Ok(None),
            Expected::Absent => {
                let partition = table.key.partition.name.as_str();
                return Ok(Some(Condition::not_exists(Path::new(partition))));
            }
            Expected::Unchanged(old) => old,
        };
        let now = self.store.get(Get::new(&table.name, key.clone())).await?;
        if now.as_ref() != Some(&old) {
            return Err(BrowseError::Changed);
        }
        let same = old
            .iter()
            .map(|(name, value)| Path::new(name).equals(value.clone()));
        let added = new.into_iter().flat_map(Item::iter);
        let added = added
            .filter(|(name, _)| old.get(name).is_none())
            .map(|(name, _)| Condition::not_exists(Path::new(name)));
        Ok(same
            .chain(added)
            .take(CONDITIONS_MAX)
            .reduce(Condition::and))
    }
}

fn key(table: &TableSchema, item: &Item) -> Item {
    let attributes = table.key.attributes();
    attributes
        .filter_map(|attribute| {
            let value = item.get(&attribute.name)?;
            Some((attribute.name.clone(), value.clone()))
        })
        .collect()
}

fn failure(error: WriteError) -> BrowseError {
    match error {
        WriteError::ConditionFailed { .. } => BrowseError::Changed,
        WriteError::Store(error) => error.into(),
    }
}
