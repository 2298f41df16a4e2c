//! Pages of exports and imports.

use std::sync::Arc;

use homeport_engine::{Engine, Transfer, TransferKind};

use crate::constraints::Constraints;
use crate::failure::Failure;
use crate::input::{Integer, Text};
use crate::operations::page::{self, Page};
use crate::table_name;

const PAGE_MAX: i64 = 25;

/// A page of the transfers of one table or of all tables. A token is the id of the last transfer on the page before.
pub(super) fn read(
    engine: &Engine,
    kind: TransferKind,
    table: Option<&Text<'_>>,
    (limit_path, limit): (&str, Option<Integer>),
    token: Option<&Text<'_>>,
) -> Result<Page<Arc<Transfer>>, Failure> {
    let mut constraints = Constraints::new();
    constraints.page_limit(limit_path, limit, PAGE_MAX);
    constraints.finish()?;
    let table = match table {
        Some(_) => Some(table_name::of_tables(table)?),
        None => None,
    };
    let start = token.map(Text::as_str);
    let mut listed = engine.transfers(kind);
    listed.retain(|transfer| {
        table.is_none_or(|table| transfer.table == table)
            && start.is_none_or(|start| transfer.id.as_str() > start)
    });
    Ok(Page::of(listed, page::limit(limit, PAGE_MAX)))
}
