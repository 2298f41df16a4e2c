//! DescribeTimeToLive: which attribute holds the expiry of a table's items.

use serde::Deserialize;

use crate::access::{Permission, Request, Resources};
use crate::failure::Failure;
use crate::input::Text;
use crate::output::Object;
use crate::service::Service;
use crate::table_name;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Input<'a> {
    #[serde(borrow)]
    table_name: Option<Text<'a>>,
}

impl<'a> Request<'a> for Input<'a> {
    fn permissions(&self, resources: &Resources<'_>) -> Vec<Permission> {
        vec![resources.table(self.table_name.as_ref())]
    }
}

pub(super) async fn run(service: &Service, input: Input<'_>) -> Result<Vec<u8>, Failure> {
    let name = table_name::of_tables(input.table_name.as_ref())?;
    let table = service.engine().describe_table(name)?;
    let mut out = Vec::with_capacity(128);
    let mut object = Object::new(&mut out);
    object.object("TimeToLiveDescription", |object| {
        match &table.schema.ttl_attribute {
            Some(attribute) => {
                object.text("TimeToLiveStatus", "ENABLED");
                object.text("AttributeName", attribute);
            }
            None => object.text("TimeToLiveStatus", "DISABLED"),
        }
    });
    object.end();
    Ok(out)
}
