//! A statement with its parameters, as the three operations on statements read it.

use homeport_item::Value;
use homeport_partiql::{STATEMENT_MAX_CHARS, Statement};
use serde::Deserialize;

use crate::access::{self, Permission, Resources};
use crate::constraints::{Constraints, RETURN_ON_FAILURE};
use crate::failure::Failure;
use crate::input::{Attribute, Element, Flag, List, Named, Problem, Text, Wording};

/// One statement of a batch or a transaction.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct StatementInput<'a> {
    #[serde(borrow)]
    pub(crate) statement: Option<Text<'a>>,
    pub(crate) parameters: Option<List<Attribute>>,
    pub(crate) consistent_read: Option<Flag>,
    #[serde(borrow)]
    pub(crate) return_values_on_condition_check_failure: Option<Text<'a>>,
}

impl StatementInput<'_> {
    /// The permission that the statement needs.
    pub(crate) fn permission(&self, resources: &Resources<'_>) -> Permission {
        access::statement_permission(
            resources,
            self.statement.as_ref(),
            self.parameters.as_ref(),
            self.return_values_on_condition_check_failure.as_ref(),
        )
    }
}

impl Named for StatementInput<'_> {
    const NAME: &'static str = "ParameterizedStatement";
}

/// The constraints on a statement and its parameters. `path` is the prefix of the names of the members.
pub(crate) fn constrain(
    constraints: &mut Constraints,
    path: &str,
    given: &StatementInput<'_>,
    between: impl FnOnce(&mut Constraints),
) {
    constraints.one_of(
        &format!("{path}returnValuesOnConditionCheckFailure"),
        given.return_values_on_condition_check_failure.as_ref(),
        RETURN_ON_FAILURE,
    );
    let statement_path = format!("{path}statement");
    constraints.not_null(&statement_path, given.statement.as_ref());
    if let Some(statement) = &given.statement {
        constraints.length(
            &statement_path,
            statement.as_str(),
            statement.as_str().chars().count(),
            1,
            STATEMENT_MAX_CHARS,
        );
    }
    between(constraints);
    constraints.list_length(
        &format!("{path}parameters"),
        given.parameters.as_ref(),
        1,
        usize::MAX,
    );
}

/// The constraints on the statements of a batch or a transaction.
pub(crate) fn constrain_list(
    constraints: &mut Constraints,
    path: &str,
    given: Option<&List<Element<StatementInput<'_>>>>,
    most: usize,
) {
    constraints.not_null(path, given);
    constraints.list_length(path, given, 1, most);
    for (at, Element(statement)) in given.iter().flat_map(|list| list.0.iter().enumerate()) {
        let path = format!("{path}.{}.member.", at + 1);
        constrain(constraints, &path, statement, |_| {});
    }
}

pub(crate) fn parameters(given: Option<&List<Attribute>>) -> Result<Vec<Value>, Failure> {
    let given = given.map_or(&[][..], |list| &list.0);
    given
        .iter()
        .map(|Attribute(read)| {
            let failure = |problem: Problem| problem.failure(Wording::Older);
            read.clone().map_err(failure)
        })
        .collect()
}

/// Parses the statement. The constraints have checked that it is there.
pub(crate) fn parse(given: Option<&Text<'_>>, parameters: &[Value]) -> Result<Statement, Failure> {
    let text = given.map_or("", Text::as_str);
    Statement::parse(text, parameters).map_err(|error| Failure::validation(error.to_string()))
}

pub(crate) fn old_on_failure(given: &StatementInput<'_>) -> bool {
    let given = given.return_values_on_condition_check_failure.as_ref();
    given.is_some_and(|given| given.as_str() == "ALL_OLD")
}
