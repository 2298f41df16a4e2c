//! ListImports: the imports of one table or of all tables, by start time.

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
    entries: "ImportSummaryList",
    next: "NextToken",
};

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Input<'a> {
    #[serde(borrow)]
    table_arn: Option<Text<'a>>,
    page_size: Option<Integer>,
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
        TransferKind::Import,
        input.table_arn.as_ref(),
        ("pageSize", input.page_size),
        input.next_token.as_ref(),
    )?;
    let region = &service.config().region;
    page.respond(
        MEMBERS,
        |import, out| output::serialized(out, &transfer::summarise_import(region, import)),
        |last| last.id.clone(),
    )
}
