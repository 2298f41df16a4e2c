//! The requests of PutItem, UpdateItem and DeleteItem, which have the same members, permissions and checks.

use homeport_item::expression::Update;
use homeport_store::{self as store, Action, Delete, Put, ReturnValues};
use serde::{Deserialize, Deserializer};

use super::writing::{self, FirstChecked};
use crate::access::{self, Expressions, Permission, Request, RequestContext, Resources, Values};
use crate::capacity::Wanted;
use crate::constraints::{
    CONDITIONAL_OPERATORS, Constraints, RETURN_CAPACITY, RETURN_METRICS, RETURN_VALUES,
};
use crate::expressions;
use crate::failure::Failure;
use crate::input::{self, Attribute, Attributes, Mapping, Text, Wording};
use crate::legacy;
use crate::service::Service;
use crate::table_name;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum WriteKind {
    #[default]
    Put,
    Update,
    Delete,
}

/// The members of a request that writes one item, in any of the three operations.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct WriteInput<'a> {
    #[serde(skip)]
    kind: WriteKind,
    #[serde(borrow)]
    table_name: Option<Text<'a>>,
    item: Option<Attributes>,
    key: Option<Attributes>,
    /// The new item of a put; the key of the item in an update or delete.
    #[serde(skip)]
    attributes: Option<Attributes>,
    #[serde(borrow)]
    update_expression: Option<Text<'a>>,
    #[serde(borrow)]
    condition_expression: Option<Text<'a>>,
    #[serde(borrow)]
    expression_attribute_names: Option<Mapping<'a, Text<'a>>>,
    #[serde(borrow)]
    expression_attribute_values: Option<Mapping<'a, Attribute>>,
    #[serde(borrow)]
    return_values: Option<Text<'a>>,
    #[serde(borrow)]
    return_values_on_condition_check_failure: Option<Text<'a>>,
    #[serde(borrow)]
    return_consumed_capacity: Option<Text<'a>>,
    #[serde(borrow)]
    return_item_collection_metrics: Option<Text<'a>>,
    #[serde(borrow)]
    attribute_updates: Option<legacy::AttributeUpdates<'a>>,
    #[serde(borrow)]
    expected: Option<legacy::Expected<'a>>,
    #[serde(borrow)]
    conditional_operator: Option<Text<'a>>,
    /// The JSON text. An invalid request is read again for its depth.
    #[serde(skip)]
    body: &'a [u8],
}

/// The request of one operation, which ignores the members that only the others have.
macro_rules! write_request {
    ($name:ident, $kind:ident) => {
        #[derive(Debug)]
        pub(crate) struct $name<'a>(pub(super) WriteInput<'a>);

        impl<'de: 'a, 'a> Deserialize<'de> for $name<'a> {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let input = WriteInput::deserialize(deserializer)?;
                Ok(Self(input.of(WriteKind::$kind)))
            }
        }

        impl<'a> Request<'a> for $name<'a> {
            fn read(body: &'a [u8]) -> Result<Self, Failure> {
                let Self(input) = input::read(body)?;
                Ok(Self(WriteInput { body, ..input }))
            }

            fn permissions(&self, resources: &Resources<'_>) -> Vec<Permission> {
                vec![self.0.permission(resources)]
            }
        }
    };
}

write_request!(PutInput, Put);
write_request!(UpdateInput, Update);
write_request!(DeleteInput, Delete);

impl WriteInput<'_> {
    /// Keeps the members of one operation.
    fn of(mut self, kind: WriteKind) -> Self {
        self.kind = kind;
        self.attributes = match kind {
            WriteKind::Put => self.item.take(),
            WriteKind::Update | WriteKind::Delete => self.key.take(),
        };
        if kind != WriteKind::Update {
            self.update_expression = None;
            self.attribute_updates = None;
        }
        self
    }

    fn permission(&self, resources: &Resources<'_>) -> Permission {
        let table = self.table_name.as_ref();
        let expressions = Expressions {
            names: self.expression_attribute_names.as_ref(),
            values: self.expression_attribute_values.as_ref(),
            condition: self.condition_expression.as_ref(),
            update: self.update_expression.as_ref(),
            ..Expressions::default()
        };
        let on_failure = self.return_values_on_condition_check_failure.as_ref();
        let context = RequestContext {
            leading_keys: resources.leading_key(table, self.attributes.as_ref()),
            attributes: access::attributes_of(self.attributes.as_ref())
                .with(Values::keys(self.attribute_updates.as_ref()))
                .with(Values::keys(self.expected.as_ref()))
                .with(expressions.attributes()),
            return_values: Values::given(self.return_values.as_ref())
                .with(Values::returned_on_failure(on_failure)),
            return_consumed_capacity: Values::given(self.return_consumed_capacity.as_ref()),
            ..RequestContext::default()
        };
        resources.table(table).with(context)
    }

    /// Checks the request, writes the item and builds the response.
    pub(super) async fn run(self, service: &Service) -> Result<Vec<u8>, Failure> {
        let capacity = Wanted::of(self.return_consumed_capacity.as_ref());
        let metrics = writing::wants_metrics(self.return_item_collection_metrics.as_ref());
        let has_attribute_updates = self.attribute_updates.is_some();
        self.check_very_deep()?;
        let action = self.check()?;
        writing::check_paths(service, &action, FirstChecked::Update)?;
        let collection = match metrics {
            true => writing::collection_key(service, &action)?,
            false => None,
        };
        let table = action.table().to_owned();
        let written = service.engine().write(action, capacity.anything()).await;
        let written = written.map_err(match has_attribute_updates {
            true => legacy::failure,
            false => Failure::from,
        })?;
        Ok(writing::respond(
            &table,
            &written,
            capacity,
            collection.as_ref(),
        ))
    }

    /// Checks everything that needs no table, in DynamoDB's order.
    pub(super) fn check(self) -> Result<Action, Failure> {
        self.check_in_order().map_err(Failure::counted)
    }

    fn check_in_order(self) -> Result<Action, Failure> {
        let is_update = self.kind == WriteKind::Update;
        if is_update && self.attributes.is_none() {
            self.check_without_key()?;
        }
        let mut constraints = Constraints::new();
        let table = table_name::of_items(self.table_name.as_ref(), &mut constraints)?.to_owned();
        if is_update {
            // An unknown value ends the checks of UpdateItem alone.
            let mut first = Constraints::new();
            first.return_values(self.return_values.as_ref());
            first.finish()?;
        }
        let member = match self.kind {
            WriteKind::Put => "item",
            WriteKind::Update | WriteKind::Delete => "key",
        };
        constraints.not_null(member, self.attributes.as_ref());
        writing::constrain_response(
            &mut constraints,
            self.return_consumed_capacity.as_ref(),
            self.return_values.as_ref(),
            self.return_item_collection_metrics.as_ref(),
            self.return_values_on_condition_check_failure.as_ref(),
        );
        constraints.finish()?;
        self.check_parameters()?;
        let expected = self.expected.as_ref();
        let join = legacy::join(
            self.conditional_operator.as_ref(),
            expected.map_or(0, |expected| expected.0.len()),
        )?;
        let attributes = writing::attributes(self.attributes, Wording::Newer)?;
        let (returning, updates) = match self.kind {
            WriteKind::Update => (
                returning(self.return_values.as_ref()),
                legacy::update(self.attribute_updates.as_ref())?,
            ),
            WriteKind::Put | WriteKind::Delete => (
                writing::returning_old(self.return_values.as_ref())?,
                Update::new(),
            ),
        };
        let expected = legacy::condition(expected, join)?;
        if self.kind == WriteKind::Put {
            attributes.check()?;
        }
        let mut placeholders = expressions::placeholders(
            self.expression_attribute_names.as_ref(),
            self.expression_attribute_values.as_ref(),
            Wording::Newer,
        )?;
        let update = match &self.update_expression {
            Some(text) => Update::parse(text.as_str(), &mut placeholders)?,
            None => updates,
        };
        let condition =
            expressions::condition(self.condition_expression.as_ref(), &mut placeholders)?;
        placeholders.check_all_used()?;
        let condition = condition.or(expected);
        let old_on_failure =
            writing::old_on_failure(self.return_values_on_condition_check_failure.as_ref());
        Ok(match self.kind {
            WriteKind::Put => Action::Put(Put {
                table,
                item: attributes,
                condition,
                returning,
                old_on_failure,
            }),
            WriteKind::Update => Action::Update(store::Update {
                table,
                key: attributes,
                update,
                condition,
                returning,
                old_on_failure,
            }),
            WriteKind::Delete => Action::Delete(Delete {
                table,
                key: attributes,
                condition,
                returning,
                old_on_failure,
            }),
        })
    }

    fn check_parameters(&self) -> Result<(), Failure> {
        let expressions = [
            ("UpdateExpression", self.update_expression.is_some()),
            ("ConditionExpression", self.condition_expression.is_some()),
        ];
        let first = usize::from(self.kind != WriteKind::Update);
        expressions::check_parameters(
            &expressions[first..],
            &[],
            &[
                ("AttributeUpdates", self.attribute_updates.is_some()),
                ("Expected", self.expected.is_some()),
                ("ConditionalOperator", self.conditional_operator.is_some()),
            ],
            self.expression_attribute_names.is_some(),
            self.expression_attribute_values.is_some(),
        )
    }

    /// The violations of an UpdateItem request without a key: DynamoDB then checks the other members too, and names each
    /// with its value.
    fn check_without_key(&self) -> Result<(), Failure> {
        let mut constraints = Constraints::new();
        constraints.one_of(
            "returnConsumedCapacity",
            self.return_consumed_capacity.as_ref(),
            RETURN_CAPACITY,
        );
        constraints.not_null("tableName", self.table_name.as_ref());
        constraints.text_length("tableName", self.table_name.as_ref(), 1, usize::MAX);
        constraints.one_of(
            "returnItemCollectionMetrics",
            self.return_item_collection_metrics.as_ref(),
            RETURN_METRICS,
        );
        constraints.one_of("returnValues", self.return_values.as_ref(), RETURN_VALUES);
        constraints.one_of(
            "conditionalOperator",
            self.conditional_operator.as_ref(),
            CONDITIONAL_OPERATORS,
        );
        constraints.not_null("key", self.attributes.as_ref());
        constraints.finish()
    }

    /// Checks the options of a very deep request, which DynamoDB does before it checks the depth and in its older wording.
    fn check_very_deep(&self) -> Result<(), Failure> {
        let (values, operator) = (
            self.return_values.as_ref(),
            self.conditional_operator.as_ref(),
        );
        let is_one_of = |given: Option<&Text<'_>>, allowed: &[&str]| {
            given.is_none_or(|given| allowed.contains(&given.as_str()))
        };
        let is_returnable =
            self.kind == WriteKind::Update || writing::returning_old(values).is_ok();
        let is_known =
            is_one_of(values, RETURN_VALUES) && is_one_of(operator, CONDITIONAL_OPERATORS);
        if (is_known && is_returnable) || !input::is_very_deep(self.body) {
            return Ok(());
        }
        let mut constraints = Constraints::new();
        constraints.one_of("returnValues", values, RETURN_VALUES);
        constraints.one_of("conditionalOperator", operator, CONDITIONAL_OPERATORS);
        constraints.finish()?;
        writing::returning_old(values).map(|_| ())
    }
}

/// The value of `ReturnValues` of an update, which the constraints have checked.
fn returning(given: Option<&Text<'_>>) -> ReturnValues {
    match given.map(Text::as_str) {
        Some("ALL_OLD") => ReturnValues::AllOld,
        Some("ALL_NEW") => ReturnValues::AllNew,
        Some("UPDATED_OLD") => ReturnValues::UpdatedOld,
        Some("UPDATED_NEW") => ReturnValues::UpdatedNew,
        _ => ReturnValues::None,
    }
}
