//! DescribeLimits: DynamoDB's default quotas. Nothing here is limited by them.

use bytes::Bytes;
use serde::de::IgnoredAny;

use crate::failure::Failure;
use crate::input;
use crate::output::Object;
use crate::service::Service;

pub(super) async fn run(_: &Service, body: &Bytes) -> Result<Vec<u8>, Failure> {
    input::read::<IgnoredAny>(body)?;
    let mut out = Vec::with_capacity(192);
    let mut object = Object::new(&mut out);
    object.count("AccountMaxReadCapacityUnits", 80_000);
    object.count("AccountMaxWriteCapacityUnits", 80_000);
    object.count("TableMaxReadCapacityUnits", 40_000);
    object.count("TableMaxWriteCapacityUnits", 40_000);
    object.end();
    Ok(out)
}
