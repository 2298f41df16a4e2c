//! DescribeLimits: DynamoDB's default quotas. Nothing here is limited by them.

use serde::Deserialize;

use crate::access::{Permission, Request, Resources};
use crate::failure::Failure;
use crate::output::Object;
use crate::service::Service;

/// Without members.
#[derive(Debug, Deserialize)]
pub(super) struct Input {}

impl Request<'_> for Input {
    fn permissions(&self, resources: &Resources<'_>) -> Vec<Permission> {
        vec![resources.any()]
    }
}

pub(super) async fn run(_: &Service, _: Input) -> Result<Vec<u8>, Failure> {
    let mut out = Vec::with_capacity(192);
    let mut object = Object::new(&mut out);
    object.count("AccountMaxReadCapacityUnits", 80_000);
    object.count("AccountMaxWriteCapacityUnits", 80_000);
    object.count("TableMaxReadCapacityUnits", 40_000);
    object.count("TableMaxWriteCapacityUnits", 40_000);
    object.end();
    Ok(out)
}
