//! DescribeContinuousBackups: point-in-time recovery is off.

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
    if service.engine().table(name).is_err() {
        return Err(Failure::table_missing(name));
    }
    let mut out = Vec::with_capacity(160);
    let mut object = Object::new(&mut out);
    object.object("ContinuousBackupsDescription", |object| {
        object.text("ContinuousBackupsStatus", "DISABLED");
        object.object("PointInTimeRecoveryDescription", |object| {
            object.text("PointInTimeRecoveryStatus", "DISABLED");
        });
    });
    object.end();
    Ok(out)
}
