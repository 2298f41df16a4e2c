//! DescribeTable: the description of a table.

use homeport_engine::TableSize;

use super::table_input::TableInput;
use crate::failure::Failure;
use crate::output;
use crate::service::Service;
use crate::tables::description::{self, Described};

pub(crate) async fn run(service: &Service, input: TableInput<'_>) -> Result<Vec<u8>, Failure> {
    let name = input.table()?;
    output::single_member("Table", &describe(service, name).await?)
}

/// The current description of a table.
pub(super) async fn describe(service: &Service, name: &str) -> Result<Described, Failure> {
    let description = service.engine().describe_table(name)?;
    let region = &service.config().region;
    if description.is_restoring {
        let extent = TableSize::default();
        let described = description::describe(region, &description, &extent, "CREATING");
        return Ok(described);
    }
    let extent = service
        .engine()
        .table_size(name)
        .await
        .map_err(|error| match error {
            homeport_store::StoreError::TableNotFound(name) => Failure::table_not_found(&name),
            other => other.into(),
        })?;
    Ok(description::describe(
        region,
        &description,
        &extent,
        "ACTIVE",
    ))
}
