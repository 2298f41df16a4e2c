//! DescribeTimeToLive: the attribute that holds the expiry time of a table's items.

use super::table_input::TableInput;
use crate::failure::Failure;
use crate::output::Object;
use crate::service::Service;

pub(crate) async fn run(service: &Service, input: TableInput<'_>) -> Result<Vec<u8>, Failure> {
    let name = input.table()?;
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
