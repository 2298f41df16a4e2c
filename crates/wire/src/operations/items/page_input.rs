//! The requests of Query and Scan, which have most members and checks in common.

use homeport_item::Item;
use homeport_item::expression::{
    Condition, ExpressionError, KeyCondition, KeyConditions, Placeholders, Projection,
};
use homeport_item::schema::KeySchema;
use serde::{Deserialize, Deserializer};

use super::reading::{self, Select};
use crate::access::{self, Expressions, Permission, Request, RequestContext, Resources, Values};
use crate::capacity::Wanted;
use crate::constraints::{Constraints, RETURN_CAPACITY, SELECT};
use crate::expressions;
use crate::failure::Failure;
use crate::input::{Attribute, Attributes, Flag, Integer, Mapping, Text, Wording};
use crate::legacy;
use crate::table_name;

pub(super) const SEGMENTS_MAX: i64 = 1_000_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum PageKind {
    #[default]
    Query,
    Scan,
}

/// The members of a request for a page of items, in either operation.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct PageInput<'a> {
    #[serde(skip)]
    kind: PageKind,
    #[serde(borrow)]
    table_name: Option<Text<'a>>,
    #[serde(borrow)]
    index_name: Option<Text<'a>>,
    #[serde(borrow)]
    filter_expression: Option<Text<'a>>,
    #[serde(borrow)]
    projection_expression: Option<Text<'a>>,
    #[serde(borrow)]
    expression_attribute_names: Option<Mapping<'a, Text<'a>>>,
    #[serde(borrow)]
    expression_attribute_values: Option<Mapping<'a, Attribute>>,
    #[serde(borrow)]
    select: Option<Text<'a>>,
    limit: Option<Integer>,
    consistent_read: Option<Flag>,
    exclusive_start_key: Option<Attributes>,
    #[serde(borrow)]
    return_consumed_capacity: Option<Text<'a>>,
    #[serde(borrow)]
    attributes_to_get: Option<legacy::AttributesToGet<'a>>,
    #[serde(borrow)]
    query_filter: Option<legacy::Conditions<'a>>,
    #[serde(borrow)]
    scan_filter: Option<legacy::Conditions<'a>>,
    /// `QueryFilter` or `ScanFilter`.
    #[serde(skip)]
    filter: Option<legacy::Conditions<'a>>,
    #[serde(borrow)]
    conditional_operator: Option<Text<'a>>,
    /// Only in a query, as the next two.
    #[serde(borrow)]
    key_condition_expression: Option<Text<'a>>,
    #[serde(borrow)]
    key_conditions: Option<legacy::Conditions<'a>>,
    scan_index_forward: Option<Flag>,
    /// Only in a scan, as the next one.
    pub(super) segment: Option<Integer>,
    pub(super) total_segments: Option<Integer>,
}

/// The request of one operation, which ignores the members that only the other has.
macro_rules! page_request {
    ($name:ident, $kind:ident) => {
        #[derive(Debug)]
        pub(crate) struct $name<'a>(pub(super) PageInput<'a>);

        impl<'de: 'a, 'a> Deserialize<'de> for $name<'a> {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let input = PageInput::deserialize(deserializer)?;
                Ok(Self(input.of(PageKind::$kind)))
            }
        }

        impl<'a> Request<'a> for $name<'a> {
            fn permissions(&self, resources: &Resources<'_>) -> Vec<Permission> {
                vec![self.0.permission(resources)]
            }
        }
    };
}

page_request!(QueryInput, Query);
page_request!(ScanInput, Scan);

/// The key conditions of a query, in either form.
#[derive(Debug)]
pub(super) enum RequestedKeys {
    Expression(KeyConditions),
    Legacy(legacy::KeyConditions),
}

impl RequestedKeys {
    pub(super) fn bind(self, keys: &KeySchema) -> Result<KeyCondition, Failure> {
        match self {
            Self::Expression(conditions) => Ok(conditions.bind(keys)?),
            Self::Legacy(conditions) => conditions.bind(keys),
        }
    }
}

/// A request that passed every check that needs no table.
#[derive(Debug)]
pub(super) struct CheckedPage {
    pub(super) table: String,
    pub(super) index: Option<String>,
    /// Empty in a scan.
    pub(super) keys: RequestedKeys,
    pub(super) filter: Option<Condition>,
    /// The attributes of a filter without expressions.
    pub(super) legacy_filter_names: Vec<String>,
    pub(super) projection: Option<Projection>,
    pub(super) select: Select,
    pub(super) limit: Option<usize>,
    pub(super) start: Option<Item>,
    pub(super) descending: bool,
    pub(super) consistent: bool,
    pub(super) capacity: Wanted,
}

impl PageInput<'_> {
    /// Keeps the members of one operation.
    fn of(mut self, kind: PageKind) -> Self {
        self.kind = kind;
        match kind {
            PageKind::Query => {
                self.filter = self.query_filter.take();
                self.segment = None;
                self.total_segments = None;
            }
            PageKind::Scan => {
                self.filter = self.scan_filter.take();
                self.key_condition_expression = None;
                self.key_conditions = None;
                self.scan_index_forward = None;
            }
        }
        self
    }

    fn permission(&self, resources: &Resources<'_>) -> Permission {
        let (table, index) = (self.table_name.as_ref(), self.index_name.as_ref());
        let names_attributes =
            self.projection_expression.is_some() || self.attributes_to_get.is_some();
        let expressions = Expressions {
            names: self.expression_attribute_names.as_ref(),
            values: self.expression_attribute_values.as_ref(),
            filter: self.filter_expression.as_ref(),
            key_condition: self.key_condition_expression.as_ref(),
            projection: self.projection_expression.as_ref(),
            ..Expressions::default()
        };
        let leading_keys = match self.kind {
            PageKind::Query => self.partition(resources, &expressions),
            PageKind::Scan => Values::Absent,
        };
        let context = RequestContext {
            leading_keys,
            attributes: Values::keys(self.key_conditions.as_ref())
                .with(Values::keys(self.filter.as_ref()))
                .with(access::listed(self.attributes_to_get.as_ref()))
                .with(expressions.attributes()),
            select: Values::select(self.select.as_ref(), names_attributes, index.is_some()),
            return_consumed_capacity: Values::given(self.return_consumed_capacity.as_ref()),
            ..RequestContext::default()
        };
        resources.index(table, index).with(context)
    }

    /// The partition that a query reads.
    fn partition(&self, resources: &Resources<'_>, expressions: &Expressions<'_>) -> Values {
        let table = self.table_name.as_ref().map_or("", Text::as_str);
        let index = self.index_name.as_ref().map(Text::as_str);
        match (
            resources.partition_name(table, index),
            &self.key_condition_expression,
        ) {
            (None, _) => Values::Unknown,
            (Some(name), Some(_)) => expressions.partition(&name),
            (Some(name), None) => legacy::partition(self.key_conditions.as_ref(), &name),
        }
    }

    /// Checks everything that needs no table, in DynamoDB's order. `check_own` runs before the checks of `Select`.
    pub(super) fn check(
        mut self,
        check_own: impl FnOnce(&Self) -> Result<(), Failure>,
    ) -> Result<CheckedPage, Failure> {
        let wording = match self.kind {
            PageKind::Query => Wording::Newer,
            PageKind::Scan => Wording::Older,
        };
        let mut constraints = Constraints::new();
        let table = table_name::of_items(self.table_name.as_ref(), &mut constraints)?.to_owned();
        self.constrain(&mut constraints);
        let filters = self.filter.as_ref().map_or(0, |filter| filter.0.len());
        let join = legacy::join(self.conditional_operator.as_ref(), filters);
        if self.kind == PageKind::Query && filters > 1 {
            // A query reports an invalid operator before the constraints, and alone.
            join.clone()?;
        }
        constraints.finish()?;
        self.check_parameters()?;
        let join = join?;
        legacy::check_values(self.filter.as_ref(), wording)?;
        legacy::check_values(self.key_conditions.as_ref(), wording)?;
        let legacy_filter = legacy::filter(self.filter.as_ref(), join)?;
        let listed = legacy::projection(self.attributes_to_get.as_ref())?;
        let start = reading::start_key(self.exclusive_start_key.take(), wording)?;
        check_own(&self)?;
        let select = self.select()?;
        let mut placeholders = expressions::placeholders(
            self.expression_attribute_names.as_ref(),
            self.expression_attribute_values.as_ref(),
            wording,
        )?;
        let key_condition = self.key_condition(&mut placeholders)?;
        let filter = expressions::filter(self.filter_expression.as_ref(), &mut placeholders)?;
        let projection =
            expressions::projection(self.projection_expression.as_ref(), &mut placeholders)?;
        let key_condition = key_condition.transpose()?;
        placeholders.check_all_used()?;
        let keys = match (key_condition, &self.key_conditions) {
            (Some(conditions), _) => RequestedKeys::Expression(conditions),
            (None, Some(given)) => RequestedKeys::Legacy(legacy::KeyConditions::read(given)?),
            (None, None) => RequestedKeys::Expression(KeyConditions::new(Vec::new())),
        };
        let legacy_filter_names = self.filter.iter().flat_map(|filter| &filter.0);
        Ok(CheckedPage {
            table,
            keys,
            filter: filter.or(legacy_filter),
            legacy_filter_names: legacy_filter_names
                .map(|(name, _)| name.to_string())
                .collect(),
            projection: projection.or(listed),
            select,
            limit: self.limit.and_then(|limit| usize::try_from(limit.0).ok()),
            start,
            descending: self.scan_index_forward.is_some_and(|flag| !flag.0),
            consistent: self.consistent_read.is_some_and(|flag| flag.0),
            capacity: Wanted::of(self.return_consumed_capacity.as_ref()),
            index: self.index_name.map(|name| name.0.into_owned()),
        })
    }

    fn constrain(&self, constraints: &mut Constraints) {
        let is_query = self.kind == PageKind::Query;
        if !is_query {
            constraints.at_least("limit", self.limit, 1);
        } else if self.limit.is_some_and(|Integer(limit)| limit < 1) {
            // A query names the member as in the request and without its value.
            constraints.unnamed(
                "Value at 'Limit' failed to satisfy constraint: Member must have value greater than or equal to 1",
            );
        }
        constraints.one_of(
            "returnConsumedCapacity",
            self.return_consumed_capacity.as_ref(),
            RETURN_CAPACITY,
        );
        constraints.at_least("segment", self.segment, 0);
        constraints.at_most("segment", self.segment, SEGMENTS_MAX - 1);
        constraints.one_of("select", self.select.as_ref(), SELECT);
        constraints.at_least("totalSegments", self.total_segments, 1);
        constraints.at_most("totalSegments", self.total_segments, SEGMENTS_MAX);
        constraints.resource_name("indexName", self.index_name.as_ref());
        legacy::constrain_names(
            constraints,
            "attributesToGet",
            self.attributes_to_get.as_ref(),
        );
        legacy::constrain(constraints, "keyConditions", self.key_conditions.as_ref());
        let filter = if is_query {
            "queryFilter"
        } else {
            "scanFilter"
        };
        legacy::constrain(constraints, filter, self.filter.as_ref());
    }

    fn check_parameters(&self) -> Result<(), Failure> {
        let (filter, expressions) = match self.kind {
            PageKind::Query => ("QueryFilter", 2),
            PageKind::Scan => ("ScanFilter", 1),
        };
        let has_key_expression = self.key_condition_expression.is_some();
        expressions::check_parameters(
            &[
                ("FilterExpression", self.filter_expression.is_some()),
                ("KeyConditionExpression", has_key_expression),
            ][..expressions],
            &[("ProjectionExpression", self.projection_expression.is_some())],
            &[
                ("AttributesToGet", self.attributes_to_get.is_some()),
                (filter, self.filter.is_some()),
                ("ConditionalOperator", self.conditional_operator.is_some()),
                // Key conditions may be combined with expressions other than the one on keys.
                (
                    "KeyConditions",
                    self.key_conditions.is_some() && has_key_expression,
                ),
            ],
            self.expression_attribute_names.is_some(),
            self.expression_attribute_values.is_some(),
        )
    }

    /// A query without any condition on keys is invalid.
    pub(super) fn require_key_condition(&self) -> Result<(), Failure> {
        if self.key_condition_expression.is_none() && self.key_conditions.is_none() {
            return Err(Failure::validation(
                "Either the KeyConditions or KeyConditionExpression parameter must be specified in the request.",
            ));
        }
        Ok(())
    }

    fn select(&self) -> Result<Select, Failure> {
        let projection = reading::projecting(
            self.projection_expression.is_some(),
            self.attributes_to_get.is_some(),
        );
        let has_index = self.index_name.is_some();
        Select::of(self.select.as_ref(), projection, has_index).map_err(|text| match self.kind {
            PageKind::Query => Failure::violations(format!("1 validation error detected: {text}")),
            PageKind::Scan => Failure::validation(text),
        })
    }

    /// Parses the key condition. Syntax errors are returned at once. The inner errors, about operators that no key condition
    /// may have, are reported after those of the other expressions.
    fn key_condition(
        &self,
        placeholders: &mut Placeholders,
    ) -> Result<Option<Result<KeyConditions, ExpressionError>>, Failure> {
        let Some(text) = &self.key_condition_expression else {
            return Ok(None);
        };
        match KeyConditions::parse(text.as_str(), placeholders) {
            Err(error @ ExpressionError::Invalid { .. }) => Err(error.into()),
            parsed => Ok(Some(parsed)),
        }
    }
}
