//! ListExports: the exports of one table or of all, in the order of their times.

use homeport_engine::TransferKind;
use serde::Deserialize;

use crate::access::{Permission, Request, Resources};
use crate::constraints::Constraints;
use crate::failure::Failure;
use crate::input::{Integer, Text};
use crate::output::{self, Object};
use crate::service::Service;
use crate::table_name;
use crate::tables::transfer;

const PAGE_MAX: i64 = 25;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Input<'a> {
    #[serde(borrow)]
    table_arn: Option<Text<'a>>,
    max_results: Option<Integer>,
    #[serde(borrow)]
    next_token: Option<Text<'a>>,
}

impl<'a> Request<'a> for Input<'a> {
    fn permissions(&self, resources: &Resources<'_>) -> Vec<Permission> {
        vec![resources.table(self.table_arn.as_ref())]
    }
}

pub(super) async fn run(service: &Service, input: Input<'_>) -> Result<Vec<u8>, Failure> {
    let mut constraints = Constraints::new();
    constraints.at_least("maxResults", input.max_results, 1);
    constraints.at_most("maxResults", input.max_results, PAGE_MAX);
    constraints.finish()?;
    let table = match &input.table_arn {
        Some(_) => Some(table_name::of_tables(input.table_arn.as_ref())?),
        None => None,
    };
    let limit = input.max_results.map_or(PAGE_MAX, |limit| limit.0);
    let limit = usize::try_from(limit).unwrap_or(1);
    let mut listed = service.engine().transfers(TransferKind::Export);
    // A token is the id of the last that was listed.
    let start = input.next_token.as_ref().map(Text::as_str);
    listed.retain(|export| {
        table.is_none_or(|table| export.table == table)
            && start.is_none_or(|start| export.id.as_str() > start)
    });
    let has_more = listed.len() > limit;
    listed.truncate(limit);
    let mut out = Vec::with_capacity(64 + listed.len() * 512);
    let mut object = Object::new(&mut out);
    let region = &service.config().region;
    output::list(object.member("ExportSummaries"), &listed, |export, out| {
        serde_json::to_writer(out, &transfer::summarise_export(region, export))
            .map_err(|error| Failure::internal(&error))
    })?;
    if let Some(last) = listed.last().filter(|_| has_more) {
        object.text("NextToken", &last.id);
    }
    object.end();
    Ok(out)
}
