//! ListExports: the exports of one table or of all tables, by start time.

use homeport_engine::TransferKind;
use serde::Deserialize;

use super::transfer_pages;
use crate::access::{Permission, Request, Resources};
use crate::failure::Failure;
use crate::input::{Integer, Text};
use crate::operations::page::PageMembers;
use crate::output;
use crate::service::Service;
use crate::tables::transfer;

const MEMBERS: PageMembers = PageMembers {
    entries: "ExportSummaries",
    next: "NextToken",
};

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Input<'a> {
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

pub(crate) async fn run(service: &Service, input: Input<'_>) -> Result<Vec<u8>, Failure> {
    let page = transfer_pages::read(
        service.engine(),
        TransferKind::Export,
        input.table_arn.as_ref(),
        ("maxResults", input.max_results),
        input.next_token.as_ref(),
    )?;
    let region = &service.config().region;
    page.respond(
        MEMBERS,
        |export, out| output::serialized(out, &transfer::summarise_export(region, export)),
        |last| last.id.clone(),
    )
}
