//! RestoreTableToPointInTime: starts to restore the state of a table at a point in time as a new table.

use homeport_engine::RestorePoint;
use serde::Deserialize;

use crate::access::{Permission, Request, Resources};
use crate::constraints::Constraints;
use crate::failure::Failure;
use crate::input::{Flag, Text, Timestamp};
use crate::service::Service;
use crate::table_name;
use crate::tables::arn;
use crate::tables::restore_window;
use crate::tables::restored::{self, Overrides};
use crate::tables::settings::Restored;

#[derive(Debug, Deserialize)]
pub(crate) struct Input<'a> {
    #[serde(rename = "SourceTableArn", borrow)]
    source_arn: Option<Text<'a>>,
    #[serde(rename = "SourceTableName", borrow)]
    source: Option<Text<'a>>,
    #[serde(rename = "TargetTableName", borrow)]
    target: Option<Text<'a>>,
    #[serde(rename = "UseLatestRestorableTime")]
    use_latest: Option<Flag>,
    #[serde(rename = "RestoreDateTime")]
    at: Option<Timestamp>,
    #[serde(flatten)]
    changes: Overrides<'a>,
}

impl<'a> Request<'a> for Input<'a> {
    fn permissions(&self, resources: &Resources<'_>) -> Vec<Permission> {
        let sources = [self.source.as_ref(), self.source_arn.as_ref()];
        let sources = sources.into_iter().filter(Option::is_some);
        let mut permissions: Vec<_> = sources.map(|source| resources.table(source)).collect();
        if permissions.is_empty() {
            permissions.push(resources.any());
        }
        permissions.push(resources.table(self.target.as_ref()));
        permissions
    }
}

pub(crate) async fn run(service: &Service, input: Input<'_>) -> Result<Vec<u8>, Failure> {
    let changes = &input.changes;
    let mut constraints = Constraints::new();
    constraints.not_null("targetTableName", input.target.as_ref());
    constraints.resource_name("targetTableName", input.target.as_ref());
    changes.constrain(&mut constraints);
    constraints.finish()?;
    let (source, point) = check(&input)?;
    let engine = service.engine();
    let table = engine
        .describe_table(source)
        .map_err(|_| Failure::table_missing(source))?;
    let now_ms = engine.clock_status().commit_ms;
    let point = match point {
        RestorePoint::At(at_ms) => restore_window::point(service, source, at_ms),
        RestorePoint::Latest => RestorePoint::Latest,
    };
    let target = changes.table(
        input.target.as_ref().map_or("", Text::as_str),
        &table.schema,
        &table.settings,
        Restored {
            backup_arn: None,
            table_arn: arn::of_table(&service.config().region, source),
            at_ms: match point {
                RestorePoint::Latest => now_ms,
                RestorePoint::At(at_ms) => at_ms,
            },
        },
        now_ms,
    )?;
    let begun = engine.restore_table_to(source, point, target).await;
    restored::respond(service, begun)
}

fn check<'a>(input: &'a Input<'_>) -> Result<(&'a str, RestorePoint), Failure> {
    let source = match (&input.source, &input.source_arn) {
        (Some(_), Some(_)) | (None, None) => {
            return Err(Failure::invalid_values(
                "Exactly one of SourceTableName and SourceTableArn must be specified",
            ));
        }
        (Some(_), None) => table_name::of_tables(input.source.as_ref())?,
        (None, Some(_)) => table_name::of_tables(input.source_arn.as_ref())?,
    };
    let use_latest = input.use_latest.is_some_and(|flag| flag.0);
    let point = match (use_latest, input.at) {
        (true, None) => RestorePoint::Latest,
        (false, Some(Timestamp(at_ms))) => RestorePoint::At(at_ms),
        _ => {
            return Err(Failure::invalid_values(
                "Exactly one of UseLatestRestorableTime and RestoreDateTime must be specified",
            ));
        }
    };
    Ok((source, point))
}
