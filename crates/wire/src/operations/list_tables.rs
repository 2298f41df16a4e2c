//! ListTables: the names of the tables, in order.

use serde::Deserialize;

use crate::access::{Permission, Request, Resources};
use crate::constraints::Constraints;
use crate::failure::Failure;
use crate::input::{Integer, Text};
use crate::output::{self, Object};
use crate::service::Service;

const PAGE_MAX: i64 = 100;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Input<'a> {
    #[serde(borrow)]
    exclusive_start_table_name: Option<Text<'a>>,
    limit: Option<Integer>,
}

impl<'a> Request<'a> for Input<'a> {
    fn permissions(&self, resources: &Resources<'_>) -> Vec<Permission> {
        vec![resources.any()]
    }
}

pub(super) async fn run(service: &Service, input: Input<'_>) -> Result<Vec<u8>, Failure> {
    let limit = check(&input)?;
    let start = input
        .exclusive_start_table_name
        .as_ref()
        .map_or("", Text::as_str);
    let names = service.engine().table_names();
    let behind: Vec<&String> = names
        .iter()
        .filter(|name| start.is_empty() || name.as_str() > start)
        .collect();
    let page = &behind[..behind.len().min(limit)];
    let mut out = Vec::with_capacity(256);
    let mut object = Object::new(&mut out);
    output::list(object.member("TableNames"), page, |name, out| {
        homeport_item::json::write_string(name, out);
        Ok::<_, Failure>(())
    })?;
    if let Some(last) = page.last().filter(|_| behind.len() > limit) {
        object.text("LastEvaluatedTableName", last);
    }
    object.end();
    Ok(out)
}

fn check(input: &Input<'_>) -> Result<usize, Failure> {
    let mut constraints = Constraints::new();
    let start = input.exclusive_start_table_name.as_ref();
    constraints.name_pattern("exclusiveStartTableName", start);
    constraints.text_length("exclusiveStartTableName", start, 3, 255);
    constraints.at_least("limit", input.limit, 1);
    constraints.at_most("limit", input.limit, PAGE_MAX);
    constraints.finish()?;
    let limit = input.limit.map_or(PAGE_MAX, |limit| limit.0);
    Ok(usize::try_from(limit).unwrap_or(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input;

    #[test]
    fn limits_and_names_are_checked() {
        for (body, text) in [
            (
                r#"{"Limit":0}"#,
                "1 validation error detected: Value '0' at 'limit' failed to satisfy constraint: Member must have value greater than or equal to 1",
            ),
            (
                r#"{"Limit":101}"#,
                "1 validation error detected: Value '101' at 'limit' failed to satisfy constraint: Member must have value less than or equal to 100",
            ),
            (
                r#"{"ExclusiveStartTableName":"a!b"}"#,
                "1 validation error detected: Value 'a!b' at 'exclusiveStartTableName' failed to satisfy constraint: Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+",
            ),
        ] {
            let input: Input<'_> = input::read(body.as_bytes()).expect("well-formed");
            let failure = check(&input).expect_err("refused");
            assert_eq!(failure.text(), Some(text), "{body}");
        }
    }
}
