//! Reading messages: ranges of one thing, the newest match, and one type across all things.

use homeport_item::Item;
use homeport_item::expression::{Condition, KeyCondition, Path, SortCondition};
use homeport_store::{Delete, Query, WriteError};

use super::types::{MessageType, ThingName};
use super::{PAGE_MAX, Telemetry, TelemetryError, schema};
use crate::cursor::Cursor;
use crate::pages::{self, Page};
use crate::severity::Severity;
use crate::time::{EpochMillis, Order};

/// Items that the search for the newest match reads first. Every further read is [`LATEST_GROWTH`] times as
/// large, up to [`LATEST_LOOK_MAX`].
const LATEST_LOOK_FIRST: usize = 16;
const LATEST_GROWTH: usize = 4;
const LATEST_LOOK_MAX: usize = 4096;

/// Which messages are wanted; both ends are included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HistoryRange {
    pub from: Option<EpochMillis>,
    pub to: Option<EpochMillis>,
    pub order: Order,
}

/// Messages across all things.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FleetSelection {
    Type(MessageType),
    /// Messages with a severity, of one type or of all types.
    Severity(Severity, Option<MessageType>),
}

impl Telemetry {
    /// Messages of a thing in a range of time, of one type or of all types.
    ///
    /// # Errors
    /// When the cursor belongs to another list or the store fails.
    pub async fn history(
        &self,
        thing: &ThingName,
        message_type: Option<&MessageType>,
        range: HistoryRange,
        limit: usize,
        cursor: Option<Cursor>,
    ) -> Result<Page<Item>, TelemetryError> {
        let list = format!("telemetry/{thing}/{message_type:?}/{range:?}");
        let condition = KeyCondition::new(schema::THING_NAME, thing);
        let mut query = Query::new(&self.table.name, condition);
        query.filter = message_type.map(of_type);
        self.page(query, range, &list, limit, cursor).await
    }

    /// Messages of one type or severity across all things.
    ///
    /// # Errors
    /// When the cursor belongs to another list or the store fails.
    pub async fn of_fleet(
        &self,
        selection: &FleetSelection,
        range: HistoryRange,
        limit: usize,
        cursor: Option<Cursor>,
    ) -> Result<Page<Item>, TelemetryError> {
        let list = format!("telemetry-fleet/{selection:?}/{range:?}");
        let query = |attribute, value, index| {
            let condition = KeyCondition::new(attribute, value);
            Query::new(&self.table.name, condition).on_index(index)
        };
        let query = match selection {
            FleetSelection::Type(message_type) => query(
                schema::MESSAGE_TYPE,
                message_type.as_str(),
                schema::MESSAGE_TYPE_INDEX,
            ),
            FleetSelection::Severity(severity, message_type) => {
                let mut query = query(
                    schema::SEVERITY,
                    severity.as_str(),
                    schema::ALERT_SEVERITY_INDEX,
                );
                query.filter = message_type.as_ref().map(of_type);
                query
            }
        };
        self.page(query, range, &list, limit, cursor).await
    }

    async fn page(
        &self,
        mut query: Query,
        range: HistoryRange,
        list: &str,
        limit: usize,
        cursor: Option<Cursor>,
    ) -> Result<Page<Item>, TelemetryError> {
        let start = cursor.map(|cursor| cursor.start_of(list)).transpose()?;
        match (range.from, range.to) {
            // DynamoDB rejects a range that ends before it begins.
            (Some(from), Some(to)) if from > to => {
                return Ok(Page::default());
            }
            (Some(from), Some(to)) => bound(
                &mut query,
                SortCondition::Between(from.0.into(), to.0.into()),
            ),
            (Some(from), None) => bound(&mut query, SortCondition::GreaterOrEqual(from.0.into())),
            (None, Some(to)) => bound(&mut query, SortCondition::LessOrEqual(to.0.into())),
            (None, None) => {}
        }
        query.descending = range.order == Order::NewestFirst;
        query.start = start;
        let limit = limit.clamp(1, PAGE_MAX);
        Ok(pages::read_page(&*self.store, &self.table, query, list, limit).await?)
    }

    /// The newest message of a thing, or its newest message of one type, however many other messages came
    /// later.
    ///
    /// # Errors
    /// When there is no such message or the store fails.
    pub async fn latest(
        &self,
        thing: &ThingName,
        message_type: Option<&MessageType>,
    ) -> Result<Item, TelemetryError> {
        let condition = KeyCondition::new(schema::THING_NAME, thing);
        let mut query = Query::new(&self.table.name, condition).descending();
        query.filter = message_type.map(of_type);
        // Without a filter the first item is the result, unless the page of the store only has expired items.
        let mut look = message_type.map_or(1, |_| LATEST_LOOK_FIRST);
        loop {
            let page = self.store.query(query.clone().limit(look)).await?;
            if let Some(item) = page.items.into_iter().next() {
                return Ok(item);
            }
            query.start = page.next;
            if query.start.is_none() {
                return Err(TelemetryError::NoMessage(thing.clone()));
            }
            look = (look * LATEST_GROWTH).min(LATEST_LOOK_MAX);
        }
    }
}

impl Telemetry {
    /// Deletes one message. Others, and what rules derived from it, stay.
    ///
    /// # Errors
    /// When there is no such message or the store fails.
    pub async fn delete_message(
        &self,
        thing: &ThingName,
        at: EpochMillis,
    ) -> Result<(), TelemetryError> {
        let key = Item::new()
            .with(schema::THING_NAME, thing)
            .with(schema::TIMESTAMP, at.0);
        let exists = Condition::exists(Path::from(schema::THING_NAME));
        let delete = Delete::new(&self.table.name, key).when(exists);
        match self.store.delete(delete).await {
            Ok(_) => Ok(()),
            Err(WriteError::ConditionFailed { .. }) => {
                Err(TelemetryError::NoMessage(thing.clone()))
            }
            Err(WriteError::Store(error)) => Err(error.into()),
        }
    }
}

fn of_type(message_type: &MessageType) -> Condition {
    Path::from(schema::MESSAGE_TYPE).equals(message_type)
}

fn bound(query: &mut Query, condition: SortCondition) {
    query.key_condition.sort = Some((schema::TIMESTAMP.to_owned(), condition));
}
