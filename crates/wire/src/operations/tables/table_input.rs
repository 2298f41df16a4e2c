//! The request of the operations that only name a table.

use serde::Deserialize;

use crate::access::one_resource;
use crate::failure::Failure;
use crate::input::Text;
use crate::table_name;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct TableInput<'a> {
    #[serde(borrow)]
    table_name: Option<Text<'a>>,
}

one_resource!(TableInput, table, table_name);

impl TableInput<'_> {
    /// The name of the table.
    pub(crate) fn table(&self) -> Result<&str, Failure> {
        table_name::of_tables(self.table_name.as_ref())
    }
}
