//! DescribeContinuousBackups: whether a table's past is kept, and which moments can be restored.

use bytes::Bytes;
use serde::Deserialize;

use crate::failure::Failure;
use crate::input::{self, Text};
use crate::output::Object;
use crate::service::Service;
use crate::table_name;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Input<'a> {
    #[serde(borrow)]
    table_name: Option<Text<'a>>,
}

pub(super) async fn run(service: &Service, body: &Bytes) -> Result<Vec<u8>, Failure> {
    let input: Input<'_> = input::read(body)?;
    let name = table_name::of_tables(input.table_name.as_ref())?;
    answer(service, name)
}

/// The state of a table's continuous backups.
pub(super) fn answer(service: &Service, name: &str) -> Result<Vec<u8>, Failure> {
    let table = service
        .engine()
        .describe_table(name)
        .map_err(|_| Failure::table_missing(name))?;
    let now_ms = service.config().clock.now_ms();
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
            // Whole seconds, since clients cut fractions off. In the second in which the past begins
            // to be kept there is none yet.
            let earliest = history.reaches_back_to_ms(now_ms).saturating_add(999) / 1000;
            let latest = (now_ms - 1) / 1000;
            if latest < earliest {
                return;
            }
            for (name, secs) in [
                ("EarliestRestorableDateTime", earliest),
                ("LatestRestorableDateTime", latest),
            ] {
                let out = object.member(name);
                out.extend_from_slice(secs.to_string().as_bytes());
            }
        });
    });
    object.end();
    Ok(out)
}
