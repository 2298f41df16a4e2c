//! DescribeExport: an export, on its way or ended.

use bytes::Bytes;
use homeport_engine::TransferKind;
use serde::Deserialize;

use crate::constraints::Constraints;
use crate::failure::Failure;
use crate::input::{self, Text};
use crate::service::Service;
use crate::tables::{arn, transfer};

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Input<'a> {
    #[serde(borrow)]
    export_arn: Option<Text<'a>>,
}

pub(super) async fn run(service: &Service, body: &Bytes) -> Result<Vec<u8>, Failure> {
    let input: Input<'_> = input::read(body)?;
    let given = input.export_arn.as_ref();
    let mut constraints = Constraints::new();
    constraints.not_null("exportArn", given);
    constraints.text_length("exportArn", given, arn::LEN.0, arn::LEN.1);
    constraints.finish()?;
    let given = given.map_or("", Text::as_str);
    let (table, id) = arn::export_of(given)
        .ok_or_else(|| Failure::validation(format!("Invalid ExportArn: {given}")))?;
    let found = service.engine().transfer(TransferKind::Export, id);
    let found = found
        .filter(|found| found.table == table)
        .ok_or_else(|| Failure::export_not_found(given))?;
    let described = transfer::describe_export(&service.config().region, &found);
    super::describe_table::wrapped("ExportDescription", &described)
}
