//! Finds items by the keys of a table or an index, or all items, with a filter.

use homeport_item::expression::{Condition, KeyCondition, Placeholders, SortCondition};
use homeport_item::schema::{KeySchema, TableSchema};
use homeport_item::{Item, Value};
use homeport_store::{Query, Scan};

use super::{BrowseError, PAGE_MAX, TableBrowser};
use crate::cursor::Cursor;

/// Items that one request reads at most. With a filter, most of them may not match.
const LOOKED_AT_MAX: usize = 10_000;

/// Which items are wanted.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Asked {
    pub index: Option<String>,
    /// All items unless keys are given.
    pub keys: Option<AskedKeys>,
    pub filter: Option<Filter>,
    pub limit: usize,
    pub cursor: Option<Cursor>,
    pub descending: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub struct AskedKeys {
    pub partition: Value,
    pub sort: Option<(SortOperator, Vec<Value>)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SortOperator {
    Equal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    BeginsWith,
    Between,
}

/// A filter expression of DynamoDB.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Filter {
    pub expression: String,
    pub names: Vec<(String, String)>,
    pub values: Vec<(String, Value)>,
}

/// A page of items. It may have fewer items than its limit, or none, without being the last.
#[derive(Debug, Clone, PartialEq)]
pub struct FoundPage {
    pub items: Vec<Item>,
    /// Items that were read.
    pub scanned: usize,
    /// Absent on the last page.
    pub next: Option<Cursor>,
}

impl TableBrowser {
    /// The matching items, sorted by the sort key when keys are given.
    ///
    /// # Errors
    /// When the request is invalid or the store fails.
    pub async fn find(&self, table: &TableSchema, asked: Asked) -> Result<FoundPage, BrowseError> {
        let list = format!(
            "tables/{}/{:?}/{:?}/{:?}/{}",
            table.name, asked.index, asked.keys, asked.filter, asked.descending
        );
        let mut start = asked
            .cursor
            .map(|cursor| cursor.start_of(&list))
            .transpose()?;
        let key = match &asked.index {
            Some(name) => {
                let index = table.index(name);
                &index
                    .ok_or_else(|| BrowseError::IndexNotFound(name.clone()))?
                    .key
            }
            None => &table.key,
        };
        let filter = asked
            .filter
            .as_ref()
            .filter(|filter| !filter.expression.trim().is_empty());
        let filter = filter.map(|filter| filter.condition()).transpose()?;
        let condition = asked
            .keys
            .as_ref()
            .map(|keys| keys.condition(key))
            .transpose()?;
        let limit = asked.limit.clamp(1, PAGE_MAX);
        let mut found = FoundPage {
            items: Vec::new(),
            scanned: 0,
            next: None,
        };
        loop {
            // Without a filter the page has every item that was read.
            let look = match filter {
                Some(_) => PAGE_MAX,
                None => limit - found.items.len(),
            };
            let page = match &condition {
                Some(condition) => {
                    let query = Query {
                        index: asked.index.clone(),
                        filter: filter.clone(),
                        descending: asked.descending,
                        start: start.take(),
                        ..Query::new(&table.name, condition.clone())
                    };
                    self.store.query(query.limit(look)).await?
                }
                None => {
                    let scan = Scan {
                        index: asked.index.clone(),
                        filter: filter.clone(),
                        start: start.take(),
                        ..Scan::new(&table.name)
                    };
                    self.store.scan(scan.limit(look)).await?
                }
            };
            found.scanned += page.scanned;
            found.items.extend(page.items);
            start = page.next;
            if found.items.len() > limit {
                // Continue after the last item that fits into the page.
                found.items.truncate(limit);
                let last = found.items.last();
                start = last.map(|last| key_of(table, asked.index.as_deref(), last));
            }
            if start.is_none() || found.items.len() >= limit || found.scanned >= LOOKED_AT_MAX {
                found.next = start.map(|start| Cursor::new(list, start));
                return Ok(found);
            }
        }
    }
}

impl AskedKeys {
    fn condition(&self, key: &KeySchema) -> Result<KeyCondition, BrowseError> {
        let checked = key.check_partition(&self.partition);
        checked.map_err(|error| BrowseError::Invalid(error.to_string()))?;
        let condition = KeyCondition::new(key.partition.name.as_str(), self.partition.clone());
        let Some((operator, values)) = &self.sort else {
            return Ok(condition);
        };
        let Some(sort) = &key.sort else {
            return Err(BrowseError::Invalid(
                "these keys have no sort key".to_owned(),
            ));
        };
        let one = || match values.as_slice() {
            [value] => Ok(value.clone()),
            _ => Err(BrowseError::Invalid(
                "this comparison takes one value".to_owned(),
            )),
        };
        let sort_condition = match operator {
            SortOperator::Equal => SortCondition::Equal(one()?),
            SortOperator::Less => SortCondition::Less(one()?),
            SortOperator::LessOrEqual => SortCondition::LessOrEqual(one()?),
            SortOperator::Greater => SortCondition::Greater(one()?),
            SortOperator::GreaterOrEqual => SortCondition::GreaterOrEqual(one()?),
            SortOperator::BeginsWith => SortCondition::BeginsWith(one()?),
            SortOperator::Between => match values.as_slice() {
                [low, high] => SortCondition::Between(low.clone(), high.clone()),
                _ => return Err(BrowseError::Invalid("between takes two values".to_owned())),
            },
        };
        let condition = condition.with_sort(sort.name.as_str(), sort_condition);
        condition.check(key)?;
        Ok(condition)
    }
}

impl Filter {
    fn condition(&self) -> Result<Condition, BrowseError> {
        let mut placeholders = Placeholders::new(self.names.clone(), self.values.clone())?;
        let condition = Condition::parse_filter(&self.expression, &mut placeholders)?;
        placeholders.check_all_used()?;
        Ok(condition)
    }
}

/// The key attributes of an item in a table or index.
fn key_of(table: &TableSchema, index: Option<&str>, item: &Item) -> Item {
    let index = index.and_then(|name| table.index(name));
    let keys = std::iter::once(&table.key).chain(index.map(|index| &index.key));
    let attributes = keys.flat_map(|key| key.attributes());
    attributes
        .filter_map(|attribute| {
            let value = item.get(&attribute.name)?;
            Some((attribute.name.clone(), value.clone()))
        })
        .collect()
}
