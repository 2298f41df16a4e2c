//! DeleteTable: deletes a table with all its items and indexes.

use homeport_engine::TableSize;

use super::table_input::TableInput;
use crate::failure::Failure;
use crate::output;
use crate::service::Service;
use crate::tables::description;
use crate::tables::settings::TableSettings;

pub(crate) async fn run(service: &Service, input: TableInput<'_>) -> Result<Vec<u8>, Failure> {
    let name = input.table()?;
    let table = service.engine().describe_table(name)?;
    if table.is_restoring {
        return Err(Failure::being_created(name));
    }
    let deleted = service
        .engine()
        .delete_table_if(name, |settings| {
            match TableSettings::read(settings).deletion_protection {
                true => Err(Failure::validation(
                    "Resource cannot be deleted as it is currently protected against deletion. Disable deletion protection first.",
                )),
                false => Ok(()),
            }
        })
        .await?;
    let described = description::describe(
        &service.config().region,
        &deleted,
        &TableSize::default(),
        "DELETING",
    );
    output::single_member("TableDescription", &described)
}
