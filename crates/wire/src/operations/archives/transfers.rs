//! DescribeExport, DescribeImport, ListExports and ListImports: exports and imports, running or ended.

use std::sync::Arc;

use homeport_engine::{Transfer, TransferKind};
use serde::{Deserialize, Serialize};

use crate::access::one_resource;
use crate::constraints::Constraints;
use crate::failure::Failure;
use crate::input::{Integer, Text};
use crate::operations::page::{self, Page, PageMembers};
use crate::output;
use crate::service::Service;
use crate::table_name;
use crate::tables::transfer;

const PAGE_MAX: i64 = 25;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct NamedExport<'a> {
    #[serde(borrow)]
    export_arn: Option<Text<'a>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct NamedImport<'a> {
    #[serde(borrow)]
    import_arn: Option<Text<'a>>,
}

one_resource!(NamedExport, export, export_arn);

one_resource!(NamedImport, import, import_arn);

/// The request of ListExports, which has `MaxResults`, and of ListImports, which has `PageSize`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct ListInput<'a> {
    #[serde(borrow)]
    table_arn: Option<Text<'a>>,
    max_results: Option<Integer>,
    page_size: Option<Integer>,
    /// The id of the last transfer on the page before.
    #[serde(borrow)]
    next_token: Option<Text<'a>>,
}

one_resource!(ListInput, table, table_arn);

pub(crate) async fn describe_export(
    service: &Service,
    input: NamedExport<'_>,
) -> Result<Vec<u8>, Failure> {
    let given = input.export_arn.as_ref();
    let found = transfer::find(service.engine(), TransferKind::Export, given)?;
    let described = transfer::describe_export(&service.config().region, &found);
    output::single_member("ExportDescription", &described)
}

pub(crate) async fn describe_import(
    service: &Service,
    input: NamedImport<'_>,
) -> Result<Vec<u8>, Failure> {
    let given = input.import_arn.as_ref();
    let found = transfer::find(service.engine(), TransferKind::Import, given)?;
    let described = transfer::describe_import(&service.config().region, &found);
    output::single_member("ImportTableDescription", &described)
}

pub(crate) async fn list_exports(
    service: &Service,
    input: ListInput<'_>,
) -> Result<Vec<u8>, Failure> {
    let limit = ("maxResults", input.max_results);
    let page = page(service, TransferKind::Export, limit, &input)?;
    respond(
        service,
        &page,
        "ExportSummaries",
        transfer::summarise_export,
    )
}

pub(crate) async fn list_imports(
    service: &Service,
    input: ListInput<'_>,
) -> Result<Vec<u8>, Failure> {
    let limit = ("pageSize", input.page_size);
    let page = page(service, TransferKind::Import, limit, &input)?;
    respond(
        service,
        &page,
        "ImportSummaryList",
        transfer::summarise_import,
    )
}

/// A page of the transfers of one table or of all tables, by start time.
fn page(
    service: &Service,
    kind: TransferKind,
    (limit_path, limit): (&str, Option<Integer>),
    input: &ListInput<'_>,
) -> Result<Page<Arc<Transfer>>, Failure> {
    let mut constraints = Constraints::new();
    constraints.page_limit(limit_path, limit, PAGE_MAX);
    constraints.finish()?;
    let table = table_name::of_tables_if_given(input.table_arn.as_ref())?;
    let start = input.next_token.as_ref().map(Text::as_str);
    let mut listed = service.engine().transfers(kind);
    listed.retain(|transfer| {
        table.is_none_or(|table| transfer.table == table)
            && start.is_none_or(|start| transfer.id.as_str() > start)
    });
    Ok(Page::of(listed, page::limit(limit, PAGE_MAX)))
}

fn respond<S: Serialize>(
    service: &Service,
    page: &Page<Arc<Transfer>>,
    entries: &'static str,
    summarise: fn(&str, &Transfer) -> S,
) -> Result<Vec<u8>, Failure> {
    let region = &service.config().region;
    let members = PageMembers {
        entries,
        next: "NextToken",
    };
    page.respond(
        members,
        |transfer, out| output::serialized(out, &summarise(region, transfer)),
        |last| last.id.clone(),
    )
}
