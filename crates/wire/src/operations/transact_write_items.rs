//! TransactWriteItems: several writes and conditions, all or none.

use homeport_engine::TransactionDone;
use homeport_item::Item;
use homeport_item::expression;
use homeport_store::{Action, Check, Delete, Put, TRANSACTION_ACTIONS_MAX, Transaction, Update};
use serde::Deserialize;

use super::writing;
use crate::access::{self, Expressions, Permission, Request, RequestContext, Resources, Values};
use crate::capacity::{self, Consumed, Split, TRANSACTION_FACTOR, Wanted};
use crate::constraints::{Constraints, RETURN_CAPACITY, RETURN_METRICS, RETURN_ON_FAILURE};
use crate::expressions;
use crate::failure::Failure;
use crate::input::{Attribute, Attributes, Element, Field, List, Mapping, Named, Problem, Text};
use crate::output::{self, Object};
use crate::service::Service;
use crate::table_name;

pub(super) const TOKEN_MAX: usize = 36;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Input<'a> {
    #[serde(borrow)]
    transact_items: Option<List<Element<TransactWriteItem<'a>>>>,
    #[serde(borrow)]
    client_request_token: Option<Text<'a>>,
    #[serde(borrow)]
    return_consumed_capacity: Option<Text<'a>>,
    #[serde(borrow)]
    return_item_collection_metrics: Option<Text<'a>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct TransactWriteItem<'a> {
    #[serde(borrow)]
    put: Option<Field<ActionInput<'a>>>,
    #[serde(borrow)]
    update: Option<Field<ActionInput<'a>>>,
    #[serde(borrow)]
    delete: Option<Field<ActionInput<'a>>>,
    #[serde(borrow)]
    condition_check: Option<Field<ActionInput<'a>>>,
}

/// Any of the four actions; which fields count depends on which it is.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ActionInput<'a> {
    #[serde(borrow)]
    table_name: Option<Text<'a>>,
    item: Option<Attributes>,
    key: Option<Attributes>,
    #[serde(borrow)]
    update_expression: Option<Text<'a>>,
    #[serde(borrow)]
    condition_expression: Option<Text<'a>>,
    #[serde(borrow)]
    expression_attribute_names: Option<Mapping<'a, Text<'a>>>,
    #[serde(borrow)]
    expression_attribute_values: Option<Mapping<'a, Attribute>>,
    #[serde(borrow)]
    return_values_on_condition_check_failure: Option<Text<'a>>,
}

impl Named for TransactWriteItem<'_> {
    const NAME: &'static str = "TransactWriteItem";
}

impl Named for ActionInput<'_> {
    const NAME: &'static str = "Put";
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Put,
    Update,
    Delete,
    Check,
}

impl Kind {
    /// The action that a permission is needed for.
    fn action(self) -> &'static str {
        match self {
            Self::Put => "PutItem",
            Self::Update => "UpdateItem",
            Self::Delete => "DeleteItem",
            Self::Check => "ConditionCheckItem",
        }
    }

    /// The field's name in messages.
    fn field(self) -> &'static str {
        match self {
            Self::Put => "put",
            Self::Update => "update",
            Self::Delete => "delete",
            Self::Check => "conditionCheck",
        }
    }
}

impl<'a> Request<'a> for Input<'a> {
    fn permissions(&self, resources: &Resources<'_>) -> Vec<Permission> {
        let items = self.transact_items.iter();
        let items = items.flat_map(|items| items.first(TRANSACTION_ACTIONS_MAX));
        let actions = items.flat_map(|Element(item)| given(item));
        actions
            .map(|(kind, action)| {
                let table = action.table_name.as_ref();
                let written = match kind {
                    Kind::Put => action.item.as_ref(),
                    _ => action.key.as_ref(),
                };
                let update = action.update_expression.as_ref();
                let expressions = Expressions {
                    names: action.expression_attribute_names.as_ref(),
                    values: action.expression_attribute_values.as_ref(),
                    condition: action.condition_expression.as_ref(),
                    update: update.filter(|_| kind == Kind::Update),
                    ..Expressions::default()
                };
                let on_failure = action.return_values_on_condition_check_failure.as_ref();
                let context = RequestContext {
                    leading_keys: resources.leading_key(table, written),
                    attributes: access::attributes_of(written).with(expressions.attributes()),
                    return_values: Values::returned_on_failure(on_failure),
                    return_consumed_capacity: Values::given(self.return_consumed_capacity.as_ref()),
                    enclosing_operation: Values::one(resources.operation()),
                    ..RequestContext::default()
                };
                resources
                    .included_action(kind.action(), table)
                    .with(context)
            })
            .collect()
    }
}

pub(super) async fn run(service: &Service, input: Input<'_>) -> Result<Vec<u8>, Failure> {
    let wanted = Wanted::of(input.return_consumed_capacity.as_ref());
    let metrics = writing::wants_metrics(input.return_item_collection_metrics.as_ref());
    let transaction = check(input)?;
    let mut tables = Vec::new();
    let mut collections: Vec<(String, Vec<Item>)> = Vec::new();
    for action in &transaction.actions {
        check_paths(service, action)?;
        if wanted.anything() {
            tables.push(action.table().to_owned());
        }
        if metrics {
            add_collection(service, action, &mut collections)?;
        }
    }
    let done = service
        .engine()
        .write_together(transaction, wanted.anything())
        .await?;
    Ok(answer(&done, &tables, &collections, wanted))
}

fn check_paths(service: &Service, action: &Action) -> Result<(), Failure> {
    let (condition, update) = match action {
        Action::Put(put) => (put.condition.as_ref(), None),
        Action::Delete(delete) => (delete.condition.as_ref(), None),
        Action::Check(check) => (Some(&check.condition), None),
        Action::Update(update) => (update.condition.as_ref(), Some(&update.update)),
    };
    if condition.is_none() && update.is_none() {
        return Ok(());
    }
    let view = service.engine().table(action.table())?;
    let condition = condition
        .into_iter()
        .flat_map(|condition| condition.paths());
    let update = update.into_iter().flat_map(|update| update.paths());
    expressions::check_key_paths(view.schema(), condition.chain(update))
}

fn add_collection(
    service: &Service,
    action: &Action,
    collections: &mut Vec<(String, Vec<Item>)>,
) -> Result<(), Failure> {
    let attributes = match action {
        Action::Put(put) => &put.item,
        Action::Update(update) => &update.key,
        Action::Delete(delete) => &delete.key,
        Action::Check(_) => return Ok(()),
    };
    let Some(key) = writing::collection_key(service, action.table(), attributes, true)? else {
        return Ok(());
    };
    let table = action.table();
    match collections.iter_mut().find(|(known, _)| known == table) {
        Some((_, keys)) if keys.contains(&key) => {}
        Some((_, keys)) => keys.push(key),
        None => collections.push((table.to_owned(), vec![key])),
    }
    Ok(())
}

fn answer(
    done: &TransactionDone,
    tables: &[String],
    collections: &[(String, Vec<Item>)],
    wanted: Wanted,
) -> Vec<u8> {
    let mut out = Vec::with_capacity(64);
    let mut object = Object::new(&mut out);
    write_capacity(&mut object, done, tables, wanted);
    if !collections.is_empty() {
        let mut tables = Object::new(object.member("ItemCollectionMetrics"));
        for (table, keys) in collections {
            write_list(tables.member(table), keys, writing::write_metrics);
        }
        tables.end();
    }
    object.end();
    out
}

/// Writes what a transaction used of each table; `tables` names each action's.
pub(super) fn write_capacity(
    object: &mut Object<'_>,
    done: &TransactionDone,
    tables: &[String],
    wanted: Wanted,
) {
    if !wanted.anything() {
        return;
    }
    let mut consumed: Vec<(&str, Consumed)> = Vec::new();
    for (at, table) in tables.iter().enumerate() {
        let known = consumed.iter().position(|(known, _)| known == table);
        let known = known.unwrap_or_else(|| {
            consumed.push((table, Consumed::default()));
            consumed.len() - 1
        });
        let of_table = &mut consumed[known].1;
        match done.costs.get(at) {
            Some(cost) => of_table.add_write(cost, TRANSACTION_FACTOR),
            // A repeat is only looked up.
            None => of_table.table += capacity::read_units(0, true) * TRANSACTION_FACTOR,
        }
    }
    let split = if done.repeated {
        Split::Read
    } else {
        Split::Write
    };
    write_list(
        object.member("ConsumedCapacity"),
        &consumed,
        |entry, out| {
            entry.1.write(entry.0, wanted, split, out);
        },
    );
}

fn write_list<T>(out: &mut Vec<u8>, elements: &[T], write: impl Fn(&T, &mut Vec<u8>)) {
    let written: Result<(), std::convert::Infallible> =
        output::list(out, elements, |element, out| {
            write(element, out);
            Ok(())
        });
    debug_assert!(written.is_ok());
}

fn check(input: Input<'_>) -> Result<Transaction, Failure> {
    let mut constraints = Constraints::new();
    let items = input.transact_items.as_ref();
    constraints.not_null("transactItems", items);
    constraints.list_length("transactItems", items, 1, TRANSACTION_ACTIONS_MAX);
    constraints.text_length(
        "clientRequestToken",
        input.client_request_token.as_ref(),
        1,
        TOKEN_MAX,
    );
    constraints.one_of(
        "returnConsumedCapacity",
        input.return_consumed_capacity.as_ref(),
        RETURN_CAPACITY,
    );
    constraints.one_of(
        "returnItemCollectionMetrics",
        input.return_item_collection_metrics.as_ref(),
        RETURN_METRICS,
    );
    for (at, Element(item)) in items.iter().flat_map(|items| items.0.iter().enumerate()) {
        for (kind, given) in given(item) {
            constrain(at, kind, given, &mut constraints)?;
        }
    }
    constraints.finish()?;
    let items = input.transact_items.map_or(Vec::new(), |items| items.0);
    let actions = items
        .into_iter()
        .map(|Element(item)| action(item))
        .collect::<Result<_, _>>()?;
    Ok(Transaction {
        actions,
        token: input.client_request_token.map(|token| token.0.into_owned()),
    })
}

fn given<'i, 'a>(
    item: &'i TransactWriteItem<'a>,
) -> impl Iterator<Item = (Kind, &'i ActionInput<'a>)> {
    [
        (Kind::Check, &item.condition_check),
        (Kind::Put, &item.put),
        (Kind::Delete, &item.delete),
        (Kind::Update, &item.update),
    ]
    .into_iter()
    .filter_map(|(kind, field)| Some((kind, &field.as_ref()?.0)))
}

fn constrain(
    at: usize,
    kind: Kind,
    given: &ActionInput<'_>,
    constraints: &mut Constraints,
) -> Result<(), Failure> {
    let path = |field: &str| format!("transactItems.{}.member.{}.{field}", at + 1, kind.field());
    // Names are checked without the path, which is only put together where something is wrong.
    if given.table_name.is_none()
        || given
            .table_name
            .as_ref()
            .is_some_and(|name| name.0.len() < 3)
    {
        let name = given.table_name.as_ref();
        table_name::of_items_at(&path("tableName"), name, constraints)?;
    }
    match kind {
        Kind::Put if given.item.is_none() => {
            constraints.not_null::<Attributes>(&path("item"), None);
        }
        Kind::Put => {}
        _ if given.key.is_none() => constraints.not_null::<Attributes>(&path("key"), None),
        _ => {}
    }
    if kind == Kind::Update && given.update_expression.is_none() {
        constraints.not_null::<Text<'_>>(&path("updateExpression"), None);
    }
    if kind == Kind::Check && given.condition_expression.is_none() {
        constraints.not_null::<Text<'_>>(&path("conditionExpression"), None);
    }
    if let Some(returned) = &given.return_values_on_condition_check_failure {
        constraints.one_of(
            &path("returnValuesOnConditionCheckFailure"),
            Some(returned),
            RETURN_ON_FAILURE,
        );
    }
    Ok(())
}

fn action(item: TransactWriteItem<'_>) -> Result<Action, Failure> {
    let fields = [
        (Kind::Check, item.condition_check),
        (Kind::Put, item.put),
        (Kind::Delete, item.delete),
        (Kind::Update, item.update),
    ];
    let mut present = fields
        .into_iter()
        .filter_map(|(kind, field)| Some((kind, field?.0)));
    let (kind, given) = match (present.next(), present.next()) {
        (Some(only), None) => only,
        (None, _) => {
            return Err(Failure::validation(
                "Invalid Request: TransactWriteRequest should contain Delete or Put or Update request",
            ));
        }
        (Some(_), Some(_)) => {
            return Err(Failure::validation(
                "TransactItems can only contain one of Check, Put, Update or Delete",
            ));
        }
    };
    let table = table_name::of_items(given.table_name.as_ref(), &mut Constraints::new())?;
    let table = table.to_owned();
    let attributes = match kind {
        Kind::Put => writing::read(given.item),
        _ => writing::read(given.key),
    };
    let refused = |problem: &Problem| Failure::validation(problem.older());
    match &attributes {
        // How deep a key is comes after the expressions.
        Err(problem) if !(problem.is_too_deep() && kind != Kind::Put) => {
            return Err(refused(problem));
        }
        Ok(item) if kind == Kind::Put => item.check()?,
        _ => {}
    }
    let update_expression = given.update_expression.filter(|_| kind == Kind::Update);
    let possible = [
        ("UpdateExpression", update_expression.is_some()),
        ("ConditionExpression", given.condition_expression.is_some()),
    ];
    expressions::check_parameters(
        if kind == Kind::Update {
            &possible
        } else {
            &possible[1..]
        },
        &[],
        &[],
        given.expression_attribute_names.is_some(),
        given.expression_attribute_values.is_some(),
    )?;
    let mut placeholders = expressions::placeholders(
        given.expression_attribute_names.as_ref(),
        given.expression_attribute_values.as_ref(),
        expressions::Values::Older,
    )?;
    let update = match &update_expression {
        Some(text) => expression::Update::parse(text.as_str(), &mut placeholders)?,
        None => expression::Update::new(),
    };
    let condition = expressions::condition(given.condition_expression.as_ref(), &mut placeholders)?;
    placeholders.check_all_used()?;
    let attributes = attributes.map_err(|problem| refused(&problem))?;
    let old_on_failure =
        writing::old_on_failure(given.return_values_on_condition_check_failure.as_ref());
    Ok(match (kind, condition) {
        (Kind::Put, condition) => Action::Put(Put {
            condition,
            old_on_failure,
            ..Put::new(table, attributes)
        }),
        (Kind::Update, condition) => Action::Update(Update {
            condition,
            old_on_failure,
            ..Update::new(table, attributes, update)
        }),
        (Kind::Delete, condition) => Action::Delete(Delete {
            condition,
            old_on_failure,
            ..Delete::new(table, attributes)
        }),
        (Kind::Check, Some(condition)) => Action::Check(Check {
            old_on_failure,
            ..Check::new(table, attributes, condition)
        }),
        // The constraints let no check without a condition through.
        (Kind::Check, None) => {
            return Err(Failure::validation(
                "TransactItems can only contain one of Check, Put, Update or Delete",
            ));
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input;

    #[test]
    fn bad_requests_are_refused() {
        let many = vec![r#"{"Put":{"TableName":"abc","Item":{"a":{"S":"x"}}}}"#; 101].join(",");
        let too_many = format!(r#"{{"TransactItems":[{many}]}}"#);
        for (body, text) in [
            (
                r#"{"TransactItems":[]}"#,
                "1 validation error detected: Value '[]' at 'transactItems' failed to satisfy constraint: Member must have length greater than or equal to 1",
            ),
            (
                &too_many,
                "1 validation error detected: Value '[...]' at 'transactItems' failed to satisfy constraint: Member must have length less than or equal to 100",
            ),
            (
                r#"{"TransactItems":[{}]}"#,
                "Invalid Request: TransactWriteRequest should contain Delete or Put or Update request",
            ),
            (
                r#"{"TransactItems":[{"Put":{"TableName":"abc","Item":{}},"Delete":{"TableName":"abc","Key":{}}}]}"#,
                "TransactItems can only contain one of Check, Put, Update or Delete",
            ),
            (
                r#"{"TransactItems":[{"Update":{"TableName":"abc","Key":{}}}]}"#,
                "1 validation error detected: Value null at 'transactItems.1.member.update.updateExpression' failed to satisfy constraint: Member must not be null",
            ),
            (
                r#"{"TransactItems":[{"Delete":{"TableName":"abc","Key":{},"ExpressionAttributeValues":{":a":{"S":"x"}}}}]}"#,
                "ExpressionAttributeValues can only be specified when using expressions: ConditionExpression is null",
            ),
            (
                r#"{"TransactItems":[{"Delete":{"TableName":"a!c","Key":{}}}]}"#,
                "1 validation error detected: Value 'a!c' at 'tableName' failed to satisfy constraint: Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+",
            ),
            (
                r#"{"TransactItems":[{"Delete":{"TableName":"abc","Key":{}}}],"ClientRequestToken":""}"#,
                "1 validation error detected: Value '' at 'clientRequestToken' failed to satisfy constraint: Member must have length greater than or equal to 1",
            ),
        ] {
            let input = input::read(body.as_bytes()).expect("well-formed");
            let failure = check(input).expect_err("refused");
            assert_eq!(failure.text(), Some(text), "{body}");
        }
    }

    #[test]
    fn the_four_actions_are_understood() {
        let body = br#"{"TransactItems":[
            {"Put":{"TableName":"abc","Item":{"a":{"S":"1"}}}},
            {"Update":{"TableName":"abc","Key":{"a":{"S":"2"}},"UpdateExpression":"REMOVE b"}},
            {"Delete":{"TableName":"abc","Key":{"a":{"S":"3"}}}},
            {"ConditionCheck":{"TableName":"abc","Key":{"a":{"S":"4"}},"ConditionExpression":"attribute_exists(a)"}}
        ],"ClientRequestToken":"t"}"#;
        let transaction = check(input::read(body).expect("well-formed")).expect("valid");
        assert_eq!(transaction.token.as_deref(), Some("t"));
        assert!(matches!(
            transaction.actions[..],
            [
                Action::Put(_),
                Action::Update(_),
                Action::Delete(_),
                Action::Check(_)
            ]
        ));
    }
}
