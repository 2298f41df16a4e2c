//! Converts the names in a request to permissions on ARNs.
//!
//! IMPORTANT: names are resolved by the functions that the operations use (`table_name::named`, `tables::arn`), so that the
//! authorized resource is the one that is used. Region and account of an ARN are ignored: there is only one of each.

use homeport_engine::Engine;
use homeport_item::Value;

use super::permission::{Permission, Resource};
use super::request_context::Values;
use crate::input::{Attributes, Text};
use crate::streams;
use crate::streams::iterator::ShardIterator;
use crate::table_name;
use crate::tables::arn::{self, TablePart};

/// Resolves the names in the request of an operation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Resources<'s> {
    pub(super) engine: &'s Engine,
    pub(super) region: &'s str,
    pub(super) operation: &'static str,
}

impl Resources<'_> {
    pub(crate) fn operation(&self) -> &'static str {
        self.operation
    }

    /// The permission for the operation itself on a resource.
    fn own(&self, resource: Resource) -> Permission {
        Permission::new(format!("dynamodb:{}", self.operation), resource)
    }

    fn own_or_any(&self, arn: Option<String>) -> Permission {
        self.own(arn.map_or_else(Resource::any, Resource::One))
    }

    /// For an operation without a specific resource.
    pub(crate) fn any(&self) -> Permission {
        self.own(Resource::any())
    }

    /// A table by its name or ARN; `*` if the request names no table.
    pub(crate) fn table(&self, given: Option<&Text<'_>>) -> Permission {
        self.own_or_any(given.map(|given| self.table_arn(table_name::named(given.as_str()))))
    }

    /// An index, or the table if the request names no index.
    pub(crate) fn index(&self, table: Option<&Text<'_>>, index: Option<&Text<'_>>) -> Permission {
        match (table, index) {
            (Some(table), Some(index)) => {
                let table = table_name::named(table.as_str());
                self.own(Resource::One(self.index_arn(table, index.as_str())))
            }
            _ => self.table(table),
        }
    }

    pub(crate) fn stream(&self, given: Option<&Text<'_>>) -> Permission {
        self.part(given, TablePart::Stream)
    }

    pub(crate) fn backup(&self, given: Option<&Text<'_>>) -> Permission {
        self.part(given, TablePart::Backup)
    }

    pub(crate) fn export(&self, given: Option<&Text<'_>>) -> Permission {
        self.part(given, TablePart::Export)
    }

    pub(crate) fn import(&self, given: Option<&Text<'_>>) -> Permission {
        self.part(given, TablePart::Import)
    }

    /// A stream, backup, export or import of a table.
    fn part(&self, given: Option<&Text<'_>>, part: TablePart) -> Permission {
        let named = given.and_then(|given| arn::part_of(given.as_str(), part));
        self.own_or_any(named.map(|(table, id)| arn::of_part(self.region, table, part, id)))
    }

    /// The stream that a shard iterator reads; the ARN in the iterator's text is ignored.
    pub(crate) fn iterated_stream(&self, given: Option<&Text<'_>>) -> Permission {
        let stream = given
            .and_then(|given| ShardIterator::parse(given.as_str()))
            .and_then(|iterator| self.engine.stream(iterator.stream));
        self.own_or_any(stream.map(|stream| streams::arn_of(self.region, &stream)))
    }

    /// An action of S3 on a bucket.
    pub(crate) fn bucket(&self, action: &str, bucket: Option<&Text<'_>>) -> Permission {
        let arn = bucket.map(|bucket| format!("arn:aws:s3:::{}", bucket.as_str()));
        Permission::new(
            action.to_owned(),
            arn.map_or_else(Resource::any, Resource::One),
        )
    }

    /// An action of S3 on every object whose key begins with a prefix.
    pub(crate) fn objects(
        &self,
        action: &str,
        bucket: Option<&Text<'_>>,
        prefix: &str,
    ) -> Permission {
        let arn = bucket.map(|bucket| format!("arn:aws:s3:::{}/{prefix}", bucket.as_str()));
        Permission::new(
            action.to_owned(),
            arn.map_or_else(Resource::any, Resource::Prefix),
        )
    }

    /// The action of another operation that the request includes: a transaction reads and writes items, and a new table may have
    /// tags.
    pub(crate) fn included_action(&self, action: &str, table: Option<&Text<'_>>) -> Permission {
        Permission {
            action: format!("dynamodb:{action}"),
            ..self.table(table)
        }
    }

    pub(super) fn table_arn(&self, table: &str) -> String {
        arn::of_table(self.region, table)
    }

    pub(super) fn index_arn(&self, table: &str, index: &str) -> String {
        arn::of_index(self.region, table, index)
    }

    /// The partition key of an item or a key.
    pub(crate) fn leading_key(
        &self,
        table: Option<&Text<'_>>,
        attributes: Option<&Attributes>,
    ) -> Values {
        let value = self
            .partition_name(table.map_or("", Text::as_str), None)
            .and_then(|name| attributes?.0.as_ref().ok()?.get(&name));
        value.map_or(Values::Unknown, key_text)
    }

    /// The name of the partition key of a table or an index; `None` if it does not exist.
    pub(crate) fn partition_name(&self, table: &str, index: Option<&str>) -> Option<String> {
        let view = self.engine.table(table_name::named(table)).ok()?;
        let schema = view.schema();
        let key = match index {
            None => &schema.key,
            Some(name) => &schema.index(name)?.key,
        };
        Some(key.partition.name.clone())
    }
}

/// The value of a key in the form of policies.
pub(crate) fn key_text(value: &Value) -> Values {
    use base64::Engine as _;
    match value {
        Value::S(text) => Values::one(text),
        Value::N(number) => Values::one(&number.to_string()),
        Value::B(bytes) => Values::one(&base64::engine::general_purpose::STANDARD.encode(bytes)),
        _ => Values::Unknown,
    }
}
