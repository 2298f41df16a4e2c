//! DescribeTable: what is known about a table.

use homeport_engine::TableExtent;
use serde::{Deserialize, Serialize};

use crate::access::{Permission, Request, Resources};
use crate::failure::Failure;
use crate::input::Text;
use crate::output::Object;
use crate::service::Service;
use crate::table_name;
use crate::tables::description::{self, Described};

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
    wrapped("Table", &described(service, name).await?)
}

/// A table as it is now.
pub(super) async fn described(service: &Service, name: &str) -> Result<Described, Failure> {
    let description = service.engine().describe_table(name)?;
    let region = &service.config().region;
    if description.is_restoring {
        let extent = TableExtent::default();
        let described = description::describe(region, &description, &extent, "CREATING");
        return Ok(described);
    }
    let extent = service
        .engine()
        .table_extent(name)
        .await
        .map_err(|error| match error {
            homeport_store::StoreError::TableMissing(name) => Failure::table_not_found(&name),
            other => other.into(),
        })?;
    Ok(description::describe(
        region,
        &description,
        &extent,
        "ACTIVE",
    ))
}

/// An answer with one member.
pub(super) fn wrapped(name: &str, value: &impl Serialize) -> Result<Vec<u8>, Failure> {
    let mut out = Vec::with_capacity(1024);
    let mut object = Object::new(&mut out);
    serde_json::to_writer(object.member(name), value).map_err(|error| Failure::internal(&error))?;
    object.end();
    Ok(out)
}
