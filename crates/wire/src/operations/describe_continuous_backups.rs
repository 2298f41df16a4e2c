//! DescribeContinuousBackups: whether a table's past is kept, and which moments can be restored.

use serde::Deserialize;

use crate::access::{Permission, Request, Resources};
use crate::failure::Failure;
use crate::input::Text;
use crate::output::Object;
use crate::service::Service;
use crate::table_name;
use crate::tables::restore_window::RestoreWindow;

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
    answer(service, name)
}

/// The state of a table's continuous backups.
pub(super) fn answer(service: &Service, name: &str) -> Result<Vec<u8>, Failure> {
    let table = service
        .engine()
        .describe_table(name)
        .map_err(|_| Failure::table_missing(name))?;
    let now_ms = service.engine().clock_status().commit_ms;
    let mut out = Vec::with_capacity(256);
    let mut object = Object::new(&mut out);
    object.object("ContinuousBackupsDescription", |object| {
        // The status of a table is always this; what can be off is recovery.
        object.text("ContinuousBackupsStatus", "ENABLED");
        object.object("PointInTimeRecoveryDescription", |object| {
            let Some(history) = table.history else {
                object.text("PointInTimeRecoveryStatus", "DISABLED");
                return;
            };
            object.text("PointInTimeRecoveryStatus", "ENABLED");
            let days = usize::try_from(history.period_days).unwrap_or(usize::MAX);
            object.count("RecoveryPeriodInDays", days);
            let window = RestoreWindow::of(&history, now_ms);
            for (name, secs) in [
                ("EarliestRestorableDateTime", window.earliest_secs),
                ("LatestRestorableDateTime", window.latest_secs),
            ] {
                let out = object.member(name);
                out.extend_from_slice(secs.to_string().as_bytes());
            }
        });
    });
    object.end();
    Ok(out)
}
