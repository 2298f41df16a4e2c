//! ListContributorInsights: tables and indexes whose contributor insights were ever changed.

use serde::Deserialize;

use crate::access::{Permission, Request, Resources};
use crate::constraints::Constraints;
use crate::failure::Failure;
use crate::input::{Integer, Text};
use crate::operations::page::{self, Page, PageMembers};
use crate::output::Object;
use crate::service::Service;
use crate::table_name;
use crate::tables::insights::{Insights, Subject};
use crate::tables::settings::TableSettings;

const PAGE_MAX: i64 = 100;
const MEMBERS: PageMembers = PageMembers {
    entries: "ContributorInsightsSummaries",
    next: "NextToken",
};
/// Separates the table from the index in a token; names cannot contain it.
const TOKEN_SEPARATOR: char = '/';
const TOKEN_MAX_BYTES: usize = 1024;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Input<'a> {
    #[serde(borrow)]
    table_name: Option<Text<'a>>,
    #[serde(borrow)]
    next_token: Option<Text<'a>>,
    max_results: Option<Integer>,
}

impl<'a> Request<'a> for Input<'a> {
    fn permissions(&self, resources: &Resources<'_>) -> Vec<Permission> {
        vec![resources.table(self.table_name.as_ref())]
    }
}

pub(crate) async fn run(service: &Service, input: Input<'_>) -> Result<Vec<u8>, Failure> {
    let limit = check(&input)?;
    let tables = match &input.table_name {
        Some(_) => {
            let name = table_name::of_tables(input.table_name.as_ref())?;
            vec![service.engine().describe_table(name)?.schema.name]
        }
        None => service.engine().table_names(),
    };
    let start = input
        .next_token
        .as_ref()
        .and_then(|token| token.as_str().split_once(TOKEN_SEPARATOR));
    let mut found: Vec<(String, String, Insights)> = Vec::new();
    for table in tables {
        if start.is_some_and(|(last, _)| table.as_str() < last) {
            continue;
        }
        // The table may have been deleted since its name was read.
        let Ok(description) = service.engine().describe_table(&table) else {
            continue;
        };
        for (index, insights) in TableSettings::read(&description.settings).insights {
            let is_after_start = start.is_none_or(|last| (table.as_str(), index.as_str()) > last);
            if is_after_start {
                found.push((table.clone(), index, insights));
            }
        }
        if found.len() > limit {
            break;
        }
    }
    Page::of(found, limit).respond(
        MEMBERS,
        |(table, index, insights), out| {
            let subject = Subject {
                table,
                index: Some(index.as_str()).filter(|name| !name.is_empty()),
            };
            let mut summary = Object::new(out);
            subject.write(&mut summary, insights.status());
            summary.text("ContributorInsightsMode", &insights.mode);
            summary.end();
            Ok(())
        },
        |(table, index, _)| format!("{table}{TOKEN_SEPARATOR}{index}"),
    )
}

fn check(input: &Input<'_>) -> Result<usize, Failure> {
    let mut constraints = Constraints::new();
    constraints.at_most("maxResults", input.max_results, PAGE_MAX);
    constraints.text_length("nextToken", input.next_token.as_ref(), 1, TOKEN_MAX_BYTES);
    constraints.finish()?;
    // DynamoDB ignores a limit below 1.
    let limit = input.max_results.filter(|limit| limit.0 >= 1);
    Ok(page::limit(limit, PAGE_MAX))
}
