//! What PartiQL statements need.

use homeport_item::Value;
use homeport_item::expression::Condition;
use homeport_partiql::Statement;
use serde_json::{Map, Value as Json};

use super::needs::{Need, Reader, text};
use super::needs_of_items::{key_text, update_names};
use super::request_context::{RequestContext, Values};
use crate::partiql;

type Request = Map<String, Json>;

/// The statements of a batch or a transaction.
pub(super) fn several(reader: &Reader<'_>, request: &Request, member: &str) -> Vec<Need> {
    let elements = request.get(member).and_then(Json::as_array);
    let statements = elements.into_iter().flatten().filter_map(Json::as_object);
    statements.map(|statement| one(reader, statement)).collect()
}

/// A statement with its parameters.
pub(super) fn one(reader: &Reader<'_>, request: &Request) -> Need {
    let statement = match parsed(request) {
        Some(statement) => statement,
        // Its operation refuses it. Until then it counts as what could do the most.
        None => {
            return Need {
                action: "dynamodb:PartiQLDelete".to_owned(),
                resource: "*".to_owned(),
                context: RequestContext {
                    leading_keys: Values::Unknown,
                    attributes: Values::Unknown,
                    ..RequestContext::default()
                },
            };
        }
    };
    let table = statement.table().to_owned();
    let (action, index, condition, names) = match &statement {
        Statement::Select(select) | Statement::Exists(select) => (
            "PartiQLSelect",
            select.target.index.clone(),
            select.condition.clone(),
            select
                .projection
                .iter()
                .map(|path| path.name().to_owned())
                .collect(),
        ),
        Statement::Update(update) => (
            "PartiQLUpdate",
            update.target.index.clone(),
            update.condition.clone(),
            update_names(&update.update),
        ),
        Statement::Delete(delete) => (
            "PartiQLDelete",
            delete.target.index.clone(),
            delete.condition.clone(),
            Vec::new(),
        ),
        Statement::Insert(insert) => (
            "PartiQLInsert",
            None,
            None,
            insert
                .item
                .iter()
                .map(|(name, _)| name.to_owned())
                .collect(),
        ),
    };
    let partition = reader.partition_name(&table, index.as_deref());
    let conjuncts = condition.clone().map_or(Vec::new(), Condition::conjuncts);
    let leading_keys = match (&statement, &partition) {
        (_, None) => Values::Unknown,
        (Statement::Insert(insert), Some(name)) => {
            let value = insert.item.get(name);
            value.map_or(Values::Unknown, key_text)
        }
        (_, Some(name)) => named_partitions(&conjuncts, name),
    };
    let whole_table = statement.is_read()
        && partition
            .as_ref()
            .is_none_or(|name| is_scan(&conjuncts, name));
    let select = match &statement {
        Statement::Select(select) if select.projection.is_empty() => Values::one("ALL_ATTRIBUTES"),
        Statement::Select(_) => Values::one("SPECIFIC_ATTRIBUTES"),
        _ => Values::Absent,
    };
    let mut names: Vec<String> = names;
    for path in conjuncts.iter().flat_map(Condition::paths) {
        names.push(path.name().to_owned());
    }
    Need {
        action: format!("dynamodb:{action}"),
        resource: match &index {
            Some(index) => reader.index_arn(&table, index),
            None => reader.table_arn(&table),
        },
        context: RequestContext {
            leading_keys,
            attributes: match names.is_empty() {
                true => Values::Absent,
                false => Values::Known(names),
            },
            select,
            enclosing_operation: Values::one(reader.operation),
            full_table_scan: Values::one(if whole_table { "true" } else { "false" }),
            ..RequestContext::default()
        },
    }
}

fn parsed(request: &Request) -> Option<Statement> {
    let parameters = match request.get("Parameters") {
        None | Some(Json::Null) => Vec::new(),
        Some(Json::Array(parameters)) => parameters
            .iter()
            .filter(|parameter| !parameter.is_null())
            .map(|parameter| serde_json::from_value(parameter.clone()).ok())
            .collect::<Option<Vec<Value>>>()?,
        Some(_) => return None,
    };
    Statement::parse(text(request, "Statement")?, &parameters).ok()
}

/// All partitions that a condition names, whether or not several of its parts name one.
fn named_partitions(conjuncts: &[Condition], name: &str) -> Values {
    conjuncts
        .iter()
        .filter_map(|conjunct| partiql::choices(conjunct, name))
        .flatten()
        .fold(Values::Absent, |known, value| known.with(key_text(value)))
}

/// Whether a SELECT reads the whole table: the partition is not named, or in more ways than a query can use.
fn is_scan(conjuncts: &[Condition], name: &str) -> bool {
    let named = conjuncts
        .iter()
        .filter(|conjunct| partiql::choices(conjunct, name).is_some());
    named.count() != 1
}
