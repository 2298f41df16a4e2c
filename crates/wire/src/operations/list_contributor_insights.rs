//! ListContributorInsights: the tables and indexes whose insights were ever switched, or those of one table.

use serde::Deserialize;

use crate::access::{Permission, Request, Resources};
use crate::constraints::Constraints;
use crate::failure::Failure;
use crate::input::{Integer, Text};
use crate::output::{self, Object};
use crate::service::Service;
use crate::table_name;
use crate::tables::insights::{Insights, Subject};
use crate::tables::settings::TableSettings;

const PAGE_MAX: i64 = 100;
/// What stands between a table and an index in a token; names have no such character.
const TOKEN_SEPARATOR: char = '/';
const TOKEN_MAX_BYTES: usize = 1024;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Input<'a> {
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

pub(super) async fn run(service: &Service, input: Input<'_>) -> Result<Vec<u8>, Failure> {
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
        // A table may have gone since its name was read.
        let Ok(description) = service.engine().describe_table(&table) else {
            continue;
        };
        for (index, insights) in TableSettings::read(&description.settings).insights {
            let is_behind = start.is_none_or(|last| (table.as_str(), index.as_str()) > last);
            if is_behind {
                found.push((table.clone(), index, insights));
            }
        }
        if found.len() > limit {
            break;
        }
    }
    let page = &found[..found.len().min(limit)];
    let mut out = Vec::with_capacity(64 + page.len() * 160);
    let mut object = Object::new(&mut out);
    let list = object.member("ContributorInsightsSummaries");
    output::list(list, page, |(table, index, insights), out| {
        let subject = Subject {
            table,
            index: Some(index.as_str()).filter(|name| !name.is_empty()),
        };
        let mut summary = Object::new(out);
        subject.write(&mut summary, insights.status());
        summary.text("ContributorInsightsMode", &insights.mode);
        summary.end();
        Ok::<_, Failure>(())
    })?;
    if let Some((table, index, _)) = page.last().filter(|_| found.len() > limit) {
        object.text("NextToken", &format!("{table}{TOKEN_SEPARATOR}{index}"));
    }
    object.end();
    Ok(out)
}

fn check(input: &Input<'_>) -> Result<usize, Failure> {
    let mut constraints = Constraints::new();
    constraints.at_most("maxResults", input.max_results, PAGE_MAX);
    constraints.text_length("nextToken", input.next_token.as_ref(), 1, TOKEN_MAX_BYTES);
    constraints.finish()?;
    // DynamoDB takes a page of none for one of the usual size.
    let limit = input.max_results.map_or(PAGE_MAX, |limit| limit.0);
    let limit = if limit < 1 { PAGE_MAX } else { limit };
    Ok(usize::try_from(limit).unwrap_or(1))
}
