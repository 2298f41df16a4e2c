//! Bodies of requests and responses about tables.

use std::collections::BTreeMap;

use homeport_item::schema::{IndexProjection, IndexSchema, KeyAttribute, KeySchema, StreamView};
use homeport_item::{Item, KeyKind, Value};
use homeport_systems::browse::{Asked, AskedKeys, Filter, FoundPage, PAGE_MAX, SortOperator};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::console::StoredTable;
use crate::openapi::enums::KeyComparison;
use crate::problem::Problem;
use crate::request::{WholeNumber, check_limit, json_object, parse_cursor, present};

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = TableList)]
pub(in crate::routes::console) struct TableListBody {
    pub(super) tables: Vec<TableBody>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Table)]
pub(in crate::routes::console) struct TableBody {
    name: String,
    /// `ACTIVE`, or another status of DynamoDB
    status: &'static str,
    /// An estimate where counting would take long; absent if unknown
    #[serde(skip_serializing_if = "Option::is_none")]
    items: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
    keys: KeysBody,
    indexes: Vec<IndexBody>,
    /// Attribute with the expiry time of an item
    #[serde(skip_serializing_if = "Option::is_none")]
    ttl_attribute: Option<String>,
    /// View type of the stream, if the table has one
    #[serde(skip_serializing_if = "Option::is_none")]
    stream: Option<&'static str>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = TableKeys)]
struct KeysBody {
    partition: KeyBody,
    #[serde(skip_serializing_if = "Option::is_none")]
    sort: Option<KeyBody>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = TableKey)]
struct KeyBody {
    name: String,
    /// `S`, `N` or `B`
    r#type: &'static str,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = TableIndex)]
struct IndexBody {
    name: String,
    keys: KeysBody,
    /// `ALL`, `KEYS_ONLY` or `INCLUDE`
    projection: &'static str,
    /// `ACTIVE`, or `CREATING` while the index is being filled
    status: &'static str,
}

/// An attribute value in DynamoDB's JSON, such as `{"S": "text"}`.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(transparent)]
#[schema(as = AttributeValue, value_type = Object, example = json!({"S": "text"}))]
pub(in crate::routes::console) struct ValueBody(Value);

/// An item in DynamoDB's JSON.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(transparent)]
#[schema(as = TableItem, value_type = Object, example = json!({"id": {"S": "a"}}))]
pub(in crate::routes::console) struct ItemBody(pub(super) Item);

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = SortCondition)]
struct SortBody {
    op: KeyComparison,
    /// Two for `between`, else one
    #[schema(min_items = 1, max_items = 2)]
    values: Vec<ValueBody>,
}

/// A filter as DynamoDB writes it.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = TableFilter)]
struct FilterBody {
    #[serde(default)]
    #[schema(example = "#s = :s")]
    expression: String,
    /// Names by their placeholders, such as `#s`
    #[serde(default)]
    names: BTreeMap<String, String>,
    /// Values by their placeholders, such as `:s`
    #[serde(default)]
    values: BTreeMap<String, ValueBody>,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::routes::console) struct QueryTable {
    /// Index; the table itself if absent
    index: Option<String>,
    partition: ValueBody,
    #[serde(default, deserialize_with = "json_object::optional")]
    sort: Option<SortBody>,
    #[serde(default, deserialize_with = "json_object::optional")]
    filter: Option<FilterBody>,
    /// Maximum number of items on a page
    #[schema(value_type = Option<i32>, minimum = 1, maximum = 1000, default = 100)]
    limit: Option<WholeNumber>,
    /// Cursor of the previous page
    cursor: Option<String>,
    /// Sort by descending sort key
    #[serde(default)]
    descending: bool,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::routes::console) struct ScanTable {
    /// Index; the table itself if absent
    index: Option<String>,
    #[serde(default, deserialize_with = "json_object::optional")]
    filter: Option<FilterBody>,
    /// Maximum number of items on a page
    #[schema(value_type = Option<i32>, minimum = 1, maximum = 1000, default = 100)]
    limit: Option<WholeNumber>,
    /// Cursor of the previous page
    cursor: Option<String>,
}

/// A query, or a scan if there is no partition, without limit and cursor.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::routes::console) struct TableSelection {
    index: Option<String>,
    partition: Option<ValueBody>,
    #[serde(default, deserialize_with = "json_object::optional")]
    sort: Option<SortBody>,
    #[serde(default, deserialize_with = "json_object::optional")]
    filter: Option<FilterBody>,
    #[serde(default)]
    descending: bool,
}

impl TableSelection {
    pub(in crate::routes::console) fn into_request(self) -> Asked {
        let sort = self.sort.map(Into::into);
        Asked {
            index: self.index,
            keys: self
                .partition
                .map(|ValueBody(partition)| AskedKeys { partition, sort }),
            filter: self.filter.map(Into::into),
            descending: self.descending,
            ..Asked::default()
        }
    }
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = TableItemList)]
pub(in crate::routes::console) struct ItemListBody {
    /// Items in DynamoDB JSON
    #[schema(value_type = Vec<Object>)]
    items: Vec<Item>,
    /// Number of items before filtering
    scanned: usize,
    /// Cursor of the next page; absent on the last page. A page that is not the last can have fewer items than the
    /// limit, or none
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::routes::console) struct PutTableItem {
    pub(super) item: ItemBody,
    /// Replace the item only if it equals this one. Null only creates an item; absent replaces any item
    #[serde(default, deserialize_with = "present")]
    pub(super) if_unchanged: Option<Option<ItemBody>>,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::routes::console) struct DeleteTableItem {
    /// The attributes of the primary key
    pub(super) key: ItemBody,
    /// Delete the item only if it equals this one
    pub(super) if_unchanged: Option<ItemBody>,
}

impl From<&KeySchema> for KeysBody {
    fn from(key: &KeySchema) -> Self {
        let body = |attribute: &KeyAttribute| KeyBody {
            name: attribute.name.clone(),
            r#type: match attribute.kind {
                KeyKind::S => "S",
                KeyKind::N => "N",
                KeyKind::B => "B",
            },
        };
        Self {
            partition: body(&key.partition),
            sort: key.sort.as_ref().map(body),
        }
    }
}

impl From<StoredTable> for TableBody {
    fn from(table: StoredTable) -> Self {
        let filling = table.indexes_filling;
        let indexes = table
            .schema
            .indexes
            .iter()
            .map(|index: &IndexSchema| IndexBody {
                name: index.name.clone(),
                keys: (&index.key).into(),
                projection: match index.projection {
                    IndexProjection::All => "ALL",
                    IndexProjection::KeysOnly => "KEYS_ONLY",
                    IndexProjection::Include(_) => "INCLUDE",
                },
                status: match filling.contains(&index.name) {
                    true => "CREATING",
                    false => "ACTIVE",
                },
            });
        Self {
            status: table.status,
            items: table.items,
            bytes: table.bytes,
            keys: (&table.schema.key).into(),
            indexes: indexes.collect(),
            ttl_attribute: table.schema.ttl_attribute,
            stream: table.schema.stream.map(|view| match view {
                StreamView::KeysOnly => "KEYS_ONLY",
                StreamView::NewImage => "NEW_IMAGE",
                StreamView::OldImage => "OLD_IMAGE",
                StreamView::NewAndOldImages => "NEW_AND_OLD_IMAGES",
            }),
            name: table.schema.name,
        }
    }
}

impl From<FilterBody> for Filter {
    fn from(body: FilterBody) -> Self {
        let values = body.values.into_iter();
        Self {
            expression: body.expression,
            names: body.names.into_iter().collect(),
            values: values
                .map(|(name, ValueBody(value))| (name, value))
                .collect(),
        }
    }
}

impl From<SortBody> for (SortOperator, Vec<Value>) {
    fn from(body: SortBody) -> Self {
        let values = body.values.into_iter();
        (body.op.0, values.map(|ValueBody(value)| value).collect())
    }
}

impl From<FoundPage> for ItemListBody {
    fn from(page: FoundPage) -> Self {
        Self {
            items: page.items,
            scanned: page.scanned,
            next_cursor: page.next.map(|cursor| cursor.encode()),
        }
    }
}

impl QueryTable {
    pub(super) fn into_request(self) -> Result<Asked, Problem> {
        Ok(Asked {
            index: self.index,
            keys: Some(AskedKeys {
                partition: self.partition.0,
                sort: self.sort.map(Into::into),
            }),
            filter: self.filter.map(Into::into),
            limit: parse_limit(self.limit)?,
            cursor: parse_cursor(self.cursor.as_deref())?,
            descending: self.descending,
        })
    }
}

impl ScanTable {
    pub(super) fn into_request(self) -> Result<Asked, Problem> {
        Ok(Asked {
            index: self.index,
            filter: self.filter.map(Into::into),
            limit: parse_limit(self.limit)?,
            cursor: parse_cursor(self.cursor.as_deref())?,
            ..Asked::default()
        })
    }
}

fn parse_limit(limit: Option<WholeNumber>) -> Result<usize, Problem> {
    // Negative limits are rejected like zero.
    let limit = limit.map(|WholeNumber(limit)| usize::try_from(limit).unwrap_or(0));
    check_limit(limit, PAGE_MAX)
}
