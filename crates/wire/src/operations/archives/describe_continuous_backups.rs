//! DescribeContinuousBackups: whether point-in-time recovery is enabled for a table, and which times can be restored.

use crate::failure::Failure;
use crate::operations::tables::table_input::TableInput;
use crate::output::Object;
use crate::service::Service;
use crate::tables::restore_window::RestoreWindow;

pub(crate) async fn run(service: &Service, input: TableInput<'_>) -> Result<Vec<u8>, Failure> {
    respond(service, input.table()?)
}

/// The response with the state of a table's point-in-time recovery.
pub(super) fn respond(service: &Service, name: &str) -> Result<Vec<u8>, Failure> {
    let table = service
        .engine()
        .describe_table(name)
        .map_err(|_| Failure::table_missing(name))?;
    let now_ms = service.engine().clock_status().commit_ms;
    let mut out = Vec::with_capacity(256);
    let mut object = Object::new(&mut out);
    object.object("ContinuousBackupsDescription", |object| {
        // Continuous backups are always enabled; only point-in-time recovery can be disabled.
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
