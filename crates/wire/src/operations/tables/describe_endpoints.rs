//! DescribeEndpoints: the address to send requests to, which is the one that this request used.

use serde::Deserialize;

use crate::access::{Permission, Request, Resources};
use crate::failure::Failure;
use crate::output::{self, Object};
use crate::service::Service;

const CACHE_MINUTES: usize = 1440;

/// A request without members.
#[derive(Debug, Deserialize)]
pub(crate) struct Input {}

impl Request<'_> for Input {
    fn permissions(&self, resources: &Resources<'_>) -> Vec<Permission> {
        vec![resources.any()]
    }
}

pub(crate) async fn run(service: &Service, _: Input) -> Result<Vec<u8>, Failure> {
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
