//! UpdateContinuousBackups: enables or disables point-in-time recovery of a table.

use homeport_engine::HISTORY_DAYS_MAX;
use serde::Deserialize;

use super::describe_continuous_backups;
use crate::access::one_resource;
use crate::constraints::Constraints;
use crate::failure::Failure;
use crate::input::{Field, Flag, Integer, Named, Text};
use crate::service::Service;
use crate::table_name;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Input<'a> {
    #[serde(borrow)]
    table_name: Option<Text<'a>>,
    point_in_time_recovery_specification: Option<Field<Specification>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Specification {
    point_in_time_recovery_enabled: Option<Flag>,
    recovery_period_in_days: Option<Integer>,
}

impl Named for Specification {
    const NAME: &'static str = "PointInTimeRecoverySpecification";
}

one_resource!(Input, table, table_name);

pub(crate) async fn run(service: &Service, input: Input<'_>) -> Result<Vec<u8>, Failure> {
    let name = table_name::of_tables(input.table_name.as_ref())?;
    let requested = check(&input)?;
    let _change = service.begin_table_change().await;
    let engine = service.engine();
    let table = engine
        .describe_table(name)
        .map_err(|_| Failure::table_missing(name))?;
    // Without a period in the request, the current one stays.
    let period = requested.map(|days| {
        let kept = table.history.map(|history| history.period_days);
        days.or(kept).unwrap_or(HISTORY_DAYS_MAX)
    });
    engine.set_history(name, period).await?;
    describe_continuous_backups::respond(service, name)
}

/// The requested retention: `None` disables recovery, and the inner value is the number of days, if given.
fn check(input: &Input<'_>) -> Result<Option<Option<u32>>, Failure> {
    const PATH: &str = "pointInTimeRecoverySpecification";
    let mut constraints = Constraints::new();
    let given = input.point_in_time_recovery_specification.as_ref();
    constraints.not_null(PATH, given);
    let mut requested = None;
    if let Some(Field(given)) = given {
        let enabled = given.point_in_time_recovery_enabled;
        let path = format!("{PATH}.pointInTimeRecoveryEnabled");
        constraints.not_null(&path, enabled.as_ref());
        let path = format!("{PATH}.recoveryPeriodInDays");
        let days = given.recovery_period_in_days;
        constraints.at_least(&path, days, 1);
        constraints.at_most(&path, days, i64::from(HISTORY_DAYS_MAX));
        let days = days.and_then(|days| u32::try_from(days.0).ok());
        requested = enabled.filter(|flag| flag.0).map(|_| days);
    }
    constraints.finish()?;
    Ok(requested)
}
