//! ListTables: the names of all tables, sorted.

use homeport_item::json;
use serde::Deserialize;

use crate::access::{Permission, Request, Resources};
use crate::constraints::Constraints;
use crate::failure::Failure;
use crate::input::{Integer, Text};
use crate::operations::page::{self, Page, PageMembers};
use crate::service::Service;

const PAGE_MAX: i64 = 100;
const MEMBERS: PageMembers = PageMembers {
    entries: "TableNames",
    next: "LastEvaluatedTableName",
};

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Input<'a> {
    #[serde(borrow)]
    exclusive_start_table_name: Option<Text<'a>>,
    limit: Option<Integer>,
}

impl<'a> Request<'a> for Input<'a> {
    fn permissions(&self, resources: &Resources<'_>) -> Vec<Permission> {
        vec![resources.any()]
    }
}

pub(crate) async fn run(service: &Service, input: Input<'_>) -> Result<Vec<u8>, Failure> {
    let limit = check(&input)?;
    let start = input
        .exclusive_start_table_name
        .as_ref()
        .map_or("", Text::as_str);
    let names = service.engine().table_names();
    let names = names.into_iter().filter(|name| name.as_str() > start);
    Page::of(names, limit).respond(
        MEMBERS,
        |name, out| {
            json::write_string(name, out);
            Ok(())
        },
        String::clone,
    )
}

fn check(input: &Input<'_>) -> Result<usize, Failure> {
    let mut constraints = Constraints::new();
    let start = input.exclusive_start_table_name.as_ref();
    constraints.resource_name("exclusiveStartTableName", start);
    constraints.page_limit("limit", input.limit, PAGE_MAX);
    constraints.finish()?;
    Ok(page::limit(input.limit, PAGE_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input;

    #[test]
    fn invalid_requests_get_dynamodb_errors() {
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
