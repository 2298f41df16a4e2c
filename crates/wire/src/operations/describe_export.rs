//! DescribeExport: an export, on its way or ended.

use homeport_engine::TransferKind;
use serde::Deserialize;

use crate::access::{Permission, Request, Resources};
use crate::constraints::Constraints;
use crate::failure::Failure;
use crate::input::Text;
use crate::service::Service;
use crate::tables::{arn, transfer};

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Input<'a> {
    #[serde(borrow)]
    export_arn: Option<Text<'a>>,
}

impl<'a> Request<'a> for Input<'a> {
    fn permissions(&self, resources: &Resources<'_>) -> Vec<Permission> {
        vec![resources.export(self.export_arn.as_ref())]
    }
}

pub(super) async fn run(service: &Service, input: Input<'_>) -> Result<Vec<u8>, Failure> {
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
