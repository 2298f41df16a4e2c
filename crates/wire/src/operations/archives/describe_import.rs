//! DescribeImport: an import, running or ended.

use homeport_engine::TransferKind;
use serde::Deserialize;

use crate::access::{Permission, Request, Resources};
use crate::failure::Failure;
use crate::input::Text;
use crate::output;
use crate::service::Service;
use crate::tables::transfer;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Input<'a> {
    #[serde(borrow)]
    import_arn: Option<Text<'a>>,
}

impl<'a> Request<'a> for Input<'a> {
    fn permissions(&self, resources: &Resources<'_>) -> Vec<Permission> {
        vec![resources.import(self.import_arn.as_ref())]
    }
}

pub(crate) async fn run(service: &Service, input: Input<'_>) -> Result<Vec<u8>, Failure> {
    let given = input.import_arn.as_ref();
    let found = transfer::find(service.engine(), TransferKind::Import, given)?;
    let described = transfer::describe_import(&service.config().region, &found);
    output::single_member("ImportTableDescription", &described)
}
