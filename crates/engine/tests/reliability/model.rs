//! A reference model: items in ordered maps, everything else computed on demand. Like the engine, it keeps
//! expired items until they are swept.

use std::collections::BTreeMap;

use homeport_item::expression::{Condition, Projection, SortCondition};
use homeport_item::schema::{IndexSchema, KeySchema, TableSchema};
use homeport_item::{Item, Number, Value};
use homeport_store::{
    Action, CancelReason, Page, Query, ReturnValues, StoreError, TransactError, Transaction,
    WriteError,
};

const TOKEN_LIFETIME_MS: i64 = 10 * 60 * 1000;
const EXPIRY_AGE_MAX_SECS: i64 = 5 * 365 * 24 * 60 * 60;

#[derive(Debug, Default)]
pub(crate) struct Model {
    pub(crate) tables: BTreeMap<String, Table>,
    tokens: BTreeMap<String, (Vec<Action>, i64)>,
    pub(crate) now_ms: i64,
}

#[derive(Debug, Clone)]
pub(crate) struct Table {
    pub(crate) schema: TableSchema,
    pub(crate) items: BTreeMap<Key, Item>,
}

/// Key values in DynamoDB's order.
pub(crate) type Key = Vec<Ordered>;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Ordered {
    N(Number),
    S(String),
    B(Vec<u8>),
}

impl Model {
    pub(crate) fn at_ms(now_ms: i64) -> Self {
        Self {
            now_ms,
            ..Self::default()
        }
    }

    pub(crate) fn now_secs(&self) -> i64 {
        self.now_ms.div_euclid(1000)
    }

    pub(crate) fn add_table(&mut self, schema: TableSchema) {
        let table = Table {
            schema,
            items: BTreeMap::new(),
        };
        self.tables.insert(table.schema.name.clone(), table);
    }

    pub(crate) fn write_one(&mut self, action: Action) -> Result<Option<Item>, WriteError> {
        let returning = returning(&action);
        self.check(&action)?;
        let decided = self.decide(&action).map_err(|reason| match reason {
            CancelReason::ConditionFailed { old } => WriteError::ConditionFailed { old },
            CancelReason::Invalid(reason) => StoreError::Invalid(reason).into(),
            other => panic!("the model never cancels for {other:?}"),
        })?;
        let answer = decided.answer(returning);
        self.apply(decided);
        Ok(answer)
    }

    pub(crate) fn transact(&mut self, transaction: Transaction) -> Result<(), TransactError> {
        let Transaction { actions, token } = transaction;
        let mut keys = Vec::new();
        for action in &actions {
            keys.push((action.table().to_owned(), self.check(action)?));
        }
        keys.sort();
        if keys.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(StoreError::invalid("twice").into());
        }
        if let Some((before, at_ms)) = token.as_ref().and_then(|token| self.tokens.get(token))
            && self.now_ms - at_ms < TOKEN_LIFETIME_MS
        {
            return if *before == actions {
                Ok(())
            } else {
                Err(TransactError::TokenMismatch)
            };
        }
        let decided: Vec<_> = actions.iter().map(|action| self.decide(action)).collect();
        if decided.iter().any(Result::is_err) {
            let reasons = decided
                .into_iter()
                .map(|decided| decided.err().unwrap_or(CancelReason::None));
            return Err(TransactError::Cancelled(reasons.collect()));
        }
        for decided in decided.into_iter().flatten() {
            self.apply(decided);
        }
        if let Some(token) = token {
            self.tokens.insert(token, (actions, self.now_ms));
        }
        Ok(())
    }

    pub(crate) fn get(&self, table: &str, key: &Item) -> Option<Item> {
        let table = &self.tables[table];
        let key = key_in(&table.schema.key, key).unwrap();
        table.visible(&key, self.now_secs()).cloned()
    }

    /// A page of a query, with the engine's page limits.
    pub(crate) fn query(&self, query: &Query) -> Page {
        let table = &self.tables[&query.table];
        let index = query.index.as_deref().map(|name| {
            table
                .schema
                .index(name)
                .expect("the model is asked for indexes that it has")
        });
        let mut rows = table.rows(index, self.now_secs());
        let schema = index.map_or(&table.schema.key, |index| &index.key);
        rows.retain(|(_, item)| {
            item.get(&schema.partition.name) == Some(&query.key_condition.partition)
                && query
                    .key_condition
                    .sort
                    .as_ref()
                    .is_none_or(|(name, sort)| {
                        fits(item.get(name).expect("rows have their keys"), sort)
                    })
        });
        if query.descending {
            rows.reverse();
        }
        if let Some(start) = &query.start {
            let start = table.place(index, start).unwrap();
            rows.retain(|(place, _)| {
                if query.descending {
                    *place < start
                } else {
                    *place > start
                }
            });
        }
        let is_full = query.limit.is_some_and(|limit| rows.len() >= limit);
        rows.truncate(query.limit.unwrap_or(usize::MAX));
        let next = rows.last().filter(|_| is_full).map(|(_, item)| {
            item.iter()
                .filter(|(name, _)| schema.has(name) || table.schema.key.has(name))
                .map(|(name, value)| (name, value.clone()))
                .collect()
        });
        let scanned = rows.len();
        let scanned_bytes = rows.iter().map(|(_, item)| item.size()).sum();
        let items: Vec<Item> = rows
            .into_iter()
            .map(|(_, item)| item)
            .filter(|item| holds(query.filter.as_ref(), item))
            .collect();
        Page {
            count: items.len(),
            items,
            scanned,
            scanned_bytes,
            next,
        }
    }

    /// Deletes expired items and returns their number.
    pub(crate) fn sweep(&mut self) -> u64 {
        let now_secs = self.now_secs();
        let mut swept = 0;
        for table in self.tables.values_mut() {
            let schema = &table.schema;
            let before = table.items.len();
            table
                .items
                .retain(|_, item| !is_expired(schema, item, now_secs));
            swept += before - table.items.len();
        }
        swept as u64
    }

    /// Checks that need no stored item.
    fn check(&self, action: &Action) -> Result<Key, StoreError> {
        let invalid = |text: &str| StoreError::invalid(text);
        let schema = &self.tables[action.table()].schema;
        let key = match action {
            Action::Put(put) => {
                schema.key.values(&put.item).map_err(|_| invalid("key"))?;
                check_index_keys(schema, &put.item).map_err(StoreError::invalid)?;
                &put.item
            }
            Action::Update(update) => &update.key,
            Action::Delete(delete) => &delete.key,
            Action::Check(check) => &check.key,
        };
        key_in(&schema.key, key).ok_or_else(|| invalid("key"))
    }

    fn decide(&self, action: &Action) -> Result<Decided, CancelReason> {
        let table = &self.tables[action.table()];
        let key = self.check(action).expect("checked before");
        let old = table.visible(&key, self.now_secs()).cloned();
        let (condition, old_on_failure) = match action {
            Action::Put(put) => (put.condition.as_ref(), put.old_on_failure),
            Action::Update(update) => (update.condition.as_ref(), update.old_on_failure),
            Action::Delete(delete) => (delete.condition.as_ref(), delete.old_on_failure),
            Action::Check(check) => (Some(&check.condition), check.old_on_failure),
        };
        if !holds(condition, old.as_ref().unwrap_or(&Item::new())) {
            let old = old.filter(|_| old_on_failure).map(Box::new);
            return Err(CancelReason::ConditionFailed { old });
        }
        let mut touched = Projection::default();
        let new = match action {
            Action::Put(put) => Some(put.item.clone()),
            Action::Delete(_) => None,
            Action::Check(_) => old.clone(),
            Action::Update(update) if old.is_none() && !update.update.creates_item() => None,
            Action::Update(update) => {
                touched.paths = update.update.paths().cloned().collect();
                let mut item = old.clone().unwrap_or_else(|| update.key.clone());
                update
                    .update
                    .apply(&mut item)
                    .map_err(|error| CancelReason::invalid(error.to_string()))?;
                check_index_keys(&table.schema, &item).map_err(CancelReason::invalid)?;
                Some(item)
            }
        };
        // A check writes nothing. Updates that remove from an expired item, and deletes, leave it to the
        // sweeper.
        let writes = match action {
            Action::Check(_) => false,
            _ => old.is_some() || new.is_some(),
        };
        Ok(Decided {
            table: action.table().to_owned(),
            key,
            old,
            new,
            touched,
            writes,
        })
    }

    fn apply(&mut self, decided: Decided) {
        if !decided.writes {
            return;
        }
        let items = &mut self.tables.get_mut(&decided.table).unwrap().items;
        match decided.new {
            Some(item) => items.insert(decided.key, item),
            None => items.remove(&decided.key),
        };
    }
}

struct Decided {
    table: String,
    key: Key,
    old: Option<Item>,
    new: Option<Item>,
    touched: Projection,
    writes: bool,
}

impl Decided {
    fn answer(&self, returning: ReturnValues) -> Option<Item> {
        let touched = |item: &Option<Item>| item.as_ref().map(|item| self.touched.apply(item));
        match returning {
            ReturnValues::None => None,
            ReturnValues::AllOld => self.old.clone(),
            ReturnValues::AllNew => self.new.clone(),
            ReturnValues::UpdatedOld => touched(&self.old),
            ReturnValues::UpdatedNew => touched(&self.new),
        }
        .filter(|item| !item.is_empty())
    }
}

impl Table {
    fn visible(&self, key: &Key, now_secs: i64) -> Option<&Item> {
        self.items
            .get(key)
            .filter(|item| !is_expired(&self.schema, item, now_secs))
    }

    /// The visible items of the table or an index in order, with their positions.
    pub(crate) fn rows(
        &self,
        index: Option<&IndexSchema>,
        now_secs: i64,
    ) -> Vec<((Key, Key), Item)> {
        let mut rows: Vec<_> = self
            .items
            .values()
            .filter(|item| !is_expired(&self.schema, item, now_secs))
            .filter_map(|item| {
                let place = self.place(index, item)?;
                let shown = item
                    .iter()
                    .filter(|(name, _)| {
                        index.is_none_or(|index| index.projects(&self.schema.key, name))
                    })
                    .map(|(name, value)| (name, value.clone()))
                    .collect();
                Some((place, shown))
            })
            .collect();
        rows.sort_by(|one, other| one.0.cmp(&other.0));
        rows
    }

    fn place(&self, index: Option<&IndexSchema>, item: &Item) -> Option<(Key, Key)> {
        let own = key_in(&self.schema.key, item)?;
        match index {
            Some(index) => Some((key_in(&index.key, item)?, own)),
            None => Some((own, Vec::new())),
        }
    }
}

fn returning(action: &Action) -> ReturnValues {
    match action {
        Action::Put(put) => put.returning,
        Action::Update(update) => update.returning,
        Action::Delete(delete) => delete.returning,
        Action::Check(_) => ReturnValues::None,
    }
}

fn holds(condition: Option<&Condition>, item: &Item) -> bool {
    condition.is_none_or(|condition| condition.matches(item).unwrap())
}

fn key_in(schema: &KeySchema, item: &Item) -> Option<Key> {
    schema.values(item).ok()?;
    schema
        .attributes()
        .map(|attribute| ordered(item.get(&attribute.name)?))
        .collect()
}

fn ordered(value: &Value) -> Option<Ordered> {
    match value {
        Value::N(number) => Some(Ordered::N(*number)),
        Value::S(text) => Some(Ordered::S(text.clone())),
        Value::B(bytes) => Some(Ordered::B(bytes.clone())),
        _ => None,
    }
}

fn fits(value: &Value, sort: &SortCondition) -> bool {
    let value = ordered(value);
    let of = ordered;
    match sort {
        SortCondition::Equal(other) => value == of(other),
        SortCondition::Less(other) => value < of(other),
        SortCondition::LessOrEqual(other) => value <= of(other),
        SortCondition::Greater(other) => value > of(other),
        SortCondition::GreaterOrEqual(other) => value >= of(other),
        SortCondition::Between(from, to) => value >= of(from) && value <= of(to),
        SortCondition::BeginsWith(prefix) => match (value, of(prefix)) {
            (Some(Ordered::S(text)), Some(Ordered::S(prefix))) => text.starts_with(&prefix),
            (Some(Ordered::B(bytes)), Some(Ordered::B(prefix))) => bytes.starts_with(&prefix),
            other => panic!("no beginnings: {other:?}"),
        },
    }
}

fn check_index_keys(schema: &TableSchema, item: &Item) -> Result<(), String> {
    for index in &schema.indexes {
        let partition = item.get(&index.key.partition.name);
        let sort = index
            .key
            .sort
            .as_ref()
            .and_then(|sort| item.get(&sort.name));
        let partition_fits = partition.is_none_or(|value| index.key.check_partition(value).is_ok());
        if !partition_fits || sort.is_some_and(|value| index.key.check_sort(value).is_err()) {
            return Err(format!("a key of index {}", index.name));
        }
    }
    Ok(())
}

fn is_expired(schema: &TableSchema, item: &Item, now_secs: i64) -> bool {
    let attribute = schema.ttl_attribute.as_ref();
    let Some(Value::N(at)) = attribute.and_then(|name| item.get(name)) else {
        return false;
    };
    let at = at.floor_i64();
    at > 0 && at <= now_secs && now_secs - at <= EXPIRY_AGE_MAX_SECS
}

/// Whether one key value is at most another.
pub(crate) fn in_order(one: &Value, other: &Value) -> bool {
    ordered(one) <= ordered(other)
}
