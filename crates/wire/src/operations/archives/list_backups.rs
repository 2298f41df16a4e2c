//! ListBackups: the backups of one table or of all tables, by creation time.

use serde::Deserialize;

use crate::access::one_resource;
use crate::constraints::Constraints;
use crate::failure::Failure;
use crate::input::{Integer, Text, Timestamp};
use crate::operations::page::{self, Page, PageMembers};
use crate::output;
use crate::service::Service;
use crate::table_name;
use crate::tables::arn::{self, TablePart};
use crate::tables::backup;

const PAGE_MAX: i64 = 100;
const MEMBERS: PageMembers = PageMembers {
    entries: "BackupSummaries",
    next: "LastEvaluatedBackupArn",
};

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Input<'a> {
    #[serde(borrow)]
    table_name: Option<Text<'a>>,
    limit: Option<Integer>,
    time_range_lower_bound: Option<Timestamp>,
    time_range_upper_bound: Option<Timestamp>,
    #[serde(borrow)]
    exclusive_start_backup_arn: Option<Text<'a>>,
    #[serde(borrow)]
    backup_type: Option<Text<'a>>,
}

one_resource!(Input, table, table_name);

pub(crate) async fn run(service: &Service, input: Input<'_>) -> Result<Vec<u8>, Failure> {
    let limit = check(&input)?;
    let table = table_name::of_tables_if_given(input.table_name.as_ref())?;
    let start = match &input.exclusive_start_backup_arn {
        Some(given) => {
            let (_, id) = arn::part_of(given.as_str(), TablePart::Backup).ok_or_else(|| {
                Failure::validation(format!(
                    "The provided exclusiveStartBackupArn is not valid: {}",
                    given.as_str()
                ))
            })?;
            Some(id)
        }
        None => None,
    };
    // Every backup here is a user's: there are no system backups.
    let shows_users = input
        .backup_type
        .as_ref()
        .is_none_or(|kind| matches!(kind.as_str(), "USER" | "ALL"));
    let mut backups = service.engine().table_backups();
    backups.retain(|backup| {
        let from = input.time_range_lower_bound.map(|bound| bound.0);
        let until = input.time_range_upper_bound.map(|bound| bound.0);
        shows_users
            && table.is_none_or(|table| backup.schema.name == table)
            && start.is_none_or(|start| backup.id.as_str() > start)
            && from.is_none_or(|from| backup.taken_at_ms >= from)
            && until.is_none_or(|until| backup.taken_at_ms < until)
    });
    let region = &service.config().region;
    Page::of(backups, limit).respond(
        MEMBERS,
        |backup, out| output::serialized(out, &backup::summary(region, backup)),
        |last| backup::arn_of(region, last),
    )
}

fn check(input: &Input<'_>) -> Result<usize, Failure> {
    let mut constraints = Constraints::new();
    constraints.page_limit("limit", input.limit, PAGE_MAX);
    let start = input.exclusive_start_backup_arn.as_ref();
    constraints.text_length("exclusiveStartBackupArn", start, arn::LEN.0, arn::LEN.1);
    constraints.one_of(
        "backupType",
        input.backup_type.as_ref(),
        &["USER", "SYSTEM", "AWS_BACKUP", "ALL"],
    );
    constraints.finish()?;
    Ok(page::limit(input.limit, PAGE_MAX))
}
