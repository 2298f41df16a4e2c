//! DescribeLimits: DynamoDB's default quotas, which have no effect here.

use serde::Deserialize;

use crate::access::{Permission, Request, Resources};
use crate::failure::Failure;
use crate::output::Object;
use crate::service::Service;

/// A request without members.
#[derive(Debug, Deserialize)]
pub(crate) struct Input {}

impl Request<'_> for Input {
    fn permissions(&self, resources: &Resources<'_>) -> Vec<Permission> {
        vec![resources.any()]
    }
}

pub(crate) async fn run(_: &Service, _: Input) -> Result<Vec<u8>, Failure> {
    let mut out = Vec::with_capacity(192);
    let mut object = Object::new(&mut out);
    object.count("AccountMaxReadCapacityUnits", 80_000);
    object.count("AccountMaxWriteCapacityUnits", 80_000);
    object.count("TableMaxReadCapacityUnits", 40_000);
    object.count("TableMaxWriteCapacityUnits", 40_000);
    object.end();
    Ok(out)
}
