//! The permissions that PartiQL statements need.

use homeport_item::expression::Condition;
use homeport_partiql::{ReturnValues, Statement};

use super::attribute_names::{known, update_names};
use super::permission::{Permission, Resource};
use super::request_context::{RequestContext, Values};
use super::resources::{Resources, key_text};
use crate::input::{Attribute, List, Text};
use crate::partiql;

/// The permission for a statement with its parameters.
pub(crate) fn permission(
    resources: &Resources<'_>,
    statement: Option<&Text<'_>>,
    parameters: Option<&List<Attribute>>,
    on_failure: Option<&Text<'_>>,
) -> Permission {
    let parsed = partiql::parameters(parameters)
        .and_then(|parameters| partiql::parse(statement, &parameters));
    match parsed {
        Ok(statement) => of_statement(resources, &statement, on_failure),
        // The operation will reject it. It needs the permission of the most powerful statement.
        Err(_) => Permission::new("dynamodb:PartiQLDelete".to_owned(), Resource::any()).unknown(),
    }
}

fn of_statement(
    resources: &Resources<'_>,
    statement: &Statement,
    on_failure: Option<&Text<'_>>,
) -> Permission {
    let table = statement.table();
    let (action, index, condition, mut names) = match statement {
        Statement::Select(select) | Statement::Exists(select) => (
            "PartiQLSelect",
            select.target.index.as_deref(),
            select.condition.clone(),
            select
                .projection
                .iter()
                .map(|path| path.name().to_owned())
                .collect(),
        ),
        Statement::Update(update) => (
            "PartiQLUpdate",
            update.target.index.as_deref(),
            update.condition.clone(),
            update_names(&update.update),
        ),
        Statement::Delete(delete) => (
            "PartiQLDelete",
            delete.target.index.as_deref(),
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
    let partition = resources.partition_name(table, index);
    let conjuncts = condition.map_or(Vec::new(), Condition::conjuncts);
    let leading_keys = match (statement, &partition) {
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
    let select = match statement {
        Statement::Select(select) if select.projection.is_empty() => Values::one("ALL_ATTRIBUTES"),
        Statement::Select(_) => Values::one("SPECIFIC_ATTRIBUTES"),
        _ => Values::Absent,
    };
    for path in conjuncts.iter().flat_map(Condition::paths) {
        names.push(path.name().to_owned());
    }
    let resource = match index {
        Some(index) => resources.index_arn(table, index),
        None => resources.table_arn(table),
    };
    let permission = Permission::new(format!("dynamodb:{action}"), Resource::One(resource));
    permission.with(RequestContext {
        leading_keys,
        attributes: known(names),
        select,
        return_values: returned(statement).with(Values::returned_on_failure(on_failure)),
        enclosing_operation: Values::one(resources.operation()),
        full_table_scan: Values::one(if whole_table { "true" } else { "false" }),
        ..RequestContext::default()
    })
}

/// The RETURNING clause as a value of `ReturnValues`.
fn returned(statement: &Statement) -> Values {
    let returning = statement.returning().map(|returning| match returning {
        ReturnValues::AllOld => "ALL_OLD",
        ReturnValues::AllNew => "ALL_NEW",
        ReturnValues::ModifiedOld => "UPDATED_OLD",
        ReturnValues::ModifiedNew => "UPDATED_NEW",
    });
    returning.map_or(Values::Absent, Values::one)
}

/// All partitions that the parts of a condition name.
fn named_partitions(conjuncts: &[Condition], name: &str) -> Values {
    conjuncts
        .iter()
        .filter_map(|conjunct| partiql::choices(conjunct, name))
        .flatten()
        .fold(Values::Absent, |known, value| known.with(key_text(value)))
}

/// Whether a SELECT reads the whole table: no condition names the partition, or more than one does.
fn is_scan(conjuncts: &[Condition], name: &str) -> bool {
    let named = conjuncts
        .iter()
        .filter(|conjunct| partiql::choices(conjunct, name).is_some());
    named.count() != 1
}
