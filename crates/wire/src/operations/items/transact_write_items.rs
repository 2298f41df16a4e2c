//! TransactWriteItems: several writes and conditions, of which all or none take effect.

use homeport_engine::TransactionResult;
use homeport_item::expression;
use homeport_store::{
    Action, ConditionCheck, Delete, Put, TRANSACTION_ACTIONS_MAX, Transaction, Update,
};
use serde::Deserialize;

use super::writing::{self, Collections, FirstChecked};
use crate::access::{self, Expressions, Permission, Request, RequestContext, Resources, Values};
use crate::capacity::{self, ConsumedByTable, Split, TRANSACTION_FACTOR, Wanted};
use crate::constraints::{Constraints, RETURN_CAPACITY, RETURN_METRICS, RETURN_ON_FAILURE};
use crate::expressions;
use crate::failure::Failure;
use crate::input::{Attribute, Attributes, Element, Field, List, Mapping, Named, Text, Wording};
use crate::output::Object;
use crate::service::Service;
use crate::table_name;

pub(crate) const TOKEN_MAX: usize = 36;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Input<'a> {
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

/// Any of the four actions. Each ignores the fields of the others.
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
    /// The action that needs a permission.
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

pub(crate) async fn run(service: &Service, input: Input<'_>) -> Result<Vec<u8>, Failure> {
    let wanted = Wanted::of(input.return_consumed_capacity.as_ref());
    let metrics = writing::wants_metrics(input.return_item_collection_metrics.as_ref());
    let transaction = check(input)?;
    let mut tables = Vec::new();
    let mut collections = Collections::default();
    for action in &transaction.actions {
        writing::check_paths(service, action, FirstChecked::Condition)?;
        if wanted.anything() {
            tables.push(action.table().to_owned());
        }
        if metrics {
            collections.add(service, action.table(), action)?;
        }
    }
    let done = service
        .engine()
        .write_together(transaction, wanted.anything())
        .await?;
    Ok(respond(&done, &tables, &collections, wanted))
}

fn respond(
    done: &TransactionResult,
    tables: &[String],
    collections: &Collections,
    wanted: Wanted,
) -> Vec<u8> {
    let mut out = Vec::with_capacity(64);
    let mut object = Object::new(&mut out);
    write_capacity(&mut object, done, tables, wanted);
    collections.write(&mut object);
    object.end();
    out
}

/// Writes the capacity that a transaction used of each table; `tables` has the table of each action.
pub(crate) fn write_capacity(
    object: &mut Object<'_>,
    done: &TransactionResult,
    tables: &[String],
    wanted: Wanted,
) {
    let mut consumed = ConsumedByTable::default();
    for (at, table) in tables.iter().enumerate() {
        let of_table = consumed.of(table);
        match done.costs.get(at) {
            Some(cost) => of_table.add_write(cost, TRANSACTION_FACTOR),
            // A repeated transaction is only looked up.
            None => of_table.table += capacity::read_units(0, true) * TRANSACTION_FACTOR,
        }
    }
    let split = if done.repeated {
        Split::Read
    } else {
        Split::Write
    };
    consumed.write(object, wanted, split);
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
    // The path is only built for an invalid name.
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
    match &attributes {
        // The depth of a key is checked after the expressions.
        Err(problem) if !(problem.is_too_deep() && kind != Kind::Put) => {
            return Err(problem.failure(Wording::Older));
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
        Wording::Older,
    )?;
    let update = match &update_expression {
        Some(text) => expression::Update::parse(text.as_str(), &mut placeholders)?,
        None => expression::Update::new(),
    };
    let condition = expressions::condition(given.condition_expression.as_ref(), &mut placeholders)?;
    placeholders.check_all_used()?;
    let attributes = attributes.map_err(|problem| problem.failure(Wording::Older))?;
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
        (Kind::Check, Some(condition)) => Action::Check(ConditionCheck {
            old_on_failure,
            ..ConditionCheck::new(table, attributes, condition)
        }),
        // The constraints reject a check without a condition.
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
    fn invalid_transactions_get_dynamodb_errors() {
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
    fn all_four_actions_are_read() {
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
