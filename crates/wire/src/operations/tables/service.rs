//! DescribeLimits and DescribeEndpoints: the quotas and the address of the service.

use serde::Deserialize;

use crate::access::{Permission, Request, Resources};
use crate::failure::Failure;
use crate::output::{self, Object};
use crate::service::Service;

const CACHE_MINUTES: usize = 1440;

/// A request without members.
#[derive(Debug, Deserialize)]
pub(crate) struct EmptyInput {}

impl Request<'_> for EmptyInput {
    fn permissions(&self, resources: &Resources<'_>) -> Vec<Permission> {
        vec![resources.any()]
    }
}

/// DynamoDB's default quotas, which have no effect here.
pub(crate) async fn describe_limits(_: &Service, _: EmptyInput) -> Result<Vec<u8>, Failure> {
    let mut out = Vec::with_capacity(192);
    let mut object = Object::new(&mut out);
    object.count("AccountMaxReadCapacityUnits", 80_000);
    object.count("AccountMaxWriteCapacityUnits", 80_000);
    object.count("TableMaxReadCapacityUnits", 40_000);
    object.count("TableMaxWriteCapacityUnits", 40_000);
    object.end();
    Ok(out)
}

/// The address to send requests to, which is the one that this request used.
pub(crate) async fn describe_endpoints(
    service: &Service,
    _: EmptyInput,
) -> Result<Vec<u8>, Failure> {
    let address = service.host();
    let mut out = Vec::with_capacity(128);
    let mut object = Object::new(&mut out);
    output::list(object.member("Endpoints"), [address], |address, out| {
        let mut endpoint = Object::new(out);
        endpoint.text("Address", address);
        endpoint.count("CachePeriodInMinutes", CACHE_MINUTES);
        endpoint.end();
    });
    object.end();
    Ok(out)
}
