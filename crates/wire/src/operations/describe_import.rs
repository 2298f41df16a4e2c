//! DescribeImport: an import, on its way or ended.

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
    import_arn: Option<Text<'a>>,
}

impl<'a> Request<'a> for Input<'a> {
    fn permissions(&self, resources: &Resources<'_>) -> Vec<Permission> {
        vec![resources.import(self.import_arn.as_ref())]
    }
}

pub(super) async fn run(service: &Service, input: Input<'_>) -> Result<Vec<u8>, Failure> {
    let given = input.import_arn.as_ref();
    let mut constraints = Constraints::new();
    constraints.not_null("importArn", given);
    constraints.text_length("importArn", given, arn::LEN.0, arn::LEN.1);
    constraints.finish()?;
    let given = given.map_or("", Text::as_str);
    let (table, id) = arn::import_of(given)
        .ok_or_else(|| Failure::validation(format!("Invalid ImportArn: {given}")))?;
    let found = service.engine().transfer(TransferKind::Import, id);
    let found = found
        .filter(|found| found.table == table)
        .ok_or_else(|| Failure::import_not_found(given))?;
    let described = transfer::describe_import(&service.config().region, &found);
    super::describe_table::wrapped("ImportTableDescription", &described)
}
