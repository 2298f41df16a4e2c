//! Table names in requests, which may also be ARNs.

use crate::constraints::{Constraints, is_name};
use crate::failure::Failure;
use crate::input::Text;
use crate::tables::arn;

const NAME_MAX: usize = 255;
const NAME_MIN: usize = 3;

/// The name of the table with this name or ARN.
pub(crate) fn named(given: &str) -> &str {
    arn::table_of(given).unwrap_or(given)
}

/// The table of an operation on items. An invalid name is reported at once, a missing one with the other constraints.
pub(crate) fn of_items<'a>(
    given: Option<&'a Text<'_>>,
    constraints: &mut Constraints,
) -> Result<&'a str, Failure> {
    of_items_at("tableName", given, constraints)
}

pub(crate) fn of_items_at<'a>(
    path: &str,
    given: Option<&'a Text<'_>>,
    constraints: &mut Constraints,
) -> Result<&'a str, Failure> {
    let Some(given) = given else {
        constraints.not_null::<Text<'_>>(path, None);
        return Ok("");
    };
    check_items_name(path, given.as_str())
}

pub(crate) fn check_items_name<'a>(path: &str, given: &'a str) -> Result<&'a str, Failure> {
    if let Some(name) = arn::table_of(given) {
        return Ok(name);
    }
    let refused = |constraint: &str| {
        Err(Failure::violations(format!(
            "1 validation error detected: Value '{given}' at '{path}' failed to satisfy constraint: {constraint}"
        )))
    };
    if given.is_empty() {
        // This violation alone has the spelling of the request and no value.
        let spelled = path.replacen("tableName", "TableName", 1);
        return Err(Failure::violations(format!(
            "1 validation error detected: Value at '{spelled}' failed to satisfy constraint: Member must have length greater than or equal to 1"
        )));
    }
    if given.len() > NAME_MAX {
        return refused("Member must have length less than or equal to 255");
    }
    if !is_name(given) {
        return refused("Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+");
    }
    if given.len() < NAME_MIN {
        return refused("Member must have length greater than or equal to 3");
    }
    Ok(given)
}

/// The table of an operation on tables.
pub(crate) fn of_tables<'a>(given: Option<&'a Text<'_>>) -> Result<&'a str, Failure> {
    let Some(given) = given else {
        return Err(Failure::validation(
            "The parameter 'TableName' is required but was not present in the request",
        ));
    };
    if let Some(name) = arn::table_of(given.as_str()) {
        return Ok(name);
    }
    if !(NAME_MIN..=NAME_MAX).contains(&given.as_str().len()) {
        return Err(Failure::validation(
            "TableName must be at least 3 characters long and at most 255 characters long",
        ));
    }
    let mut constraints = Constraints::new();
    constraints.name_pattern("tableName", Some(given));
    constraints.finish()?;
    Ok(given.as_str())
}

/// The table of an operation that may name one.
pub(crate) fn of_tables_if_given<'a>(
    given: Option<&'a Text<'_>>,
) -> Result<Option<&'a str>, Failure> {
    given.map(|given| of_tables(Some(given))).transpose()
}

/// The name of a new table.
pub(crate) fn of_new_table<'a>(given: Option<&'a Text<'_>>) -> Result<&'a str, Failure> {
    let within = |given: &&Text<'_>| (NAME_MIN..=NAME_MAX).contains(&given.as_str().len());
    if given.filter(|given| !within(given)).is_some() {
        let mut constraints = Constraints::new();
        constraints.resource_name("tableName", given);
        constraints.finish()?;
    }
    of_tables(given)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::borrow::Cow;

    fn items(name: &str) -> Result<String, String> {
        let text = Text(Cow::Borrowed(name));
        of_items(Some(&text), &mut Constraints::new())
            .map(str::to_owned)
            .map_err(|failure| failure.text().unwrap_or_default().to_owned())
    }

    #[test]
    fn names_and_arns_are_accepted() {
        assert_eq!(items("abc"), Ok("abc".to_owned()));
        assert_eq!(
            items("arn:aws:dynamodb:us-east-1:000000000000:table/readings"),
            Ok("readings".to_owned())
        );
    }

    #[test]
    fn invalid_names_are_rejected_first() {
        assert_eq!(
            items(""),
            Err("1 validation error detected: Value at 'TableName' failed to satisfy constraint: Member must have length greater than or equal to 1".to_owned())
        );
        assert_eq!(
            items("x!y"),
            Err("1 validation error detected: Value 'x!y' at 'tableName' failed to satisfy constraint: Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+".to_owned())
        );
        let short = Text(Cow::Borrowed("ab"));
        assert_eq!(
            of_tables(Some(&short)).map_err(|failure| failure.text().map(str::to_owned)),
            Err(Some(
                "TableName must be at least 3 characters long and at most 255 characters long"
                    .to_owned()
            ))
        );
        assert_eq!(
            of_new_table(Some(&short)).map_err(|failure| failure.text().map(str::to_owned)),
            Err(Some("1 validation error detected: Value 'ab' at 'tableName' failed to satisfy constraint: Member must have length greater than or equal to 3".to_owned()))
        );
    }
}
