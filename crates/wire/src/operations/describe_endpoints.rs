//! DescribeEndpoints: where to send requests. It is here that they come already.

use bytes::Bytes;
use serde::de::IgnoredAny;

use crate::failure::Failure;
use crate::input;
use crate::output::{self, Object};
use crate::service::Service;

const CACHE_MINUTES: usize = 1440;

pub(super) async fn run(service: &Service, body: &Bytes) -> Result<Vec<u8>, Failure> {
    input::read::<IgnoredAny>(body)?;
    let address = format!("dynamodb.{}.amazonaws.com", service.config().region);
    let mut out = Vec::with_capacity(128);
    let mut object = Object::new(&mut out);
    output::list(object.member("Endpoints"), [address], |address, out| {
        let mut endpoint = Object::new(out);
        endpoint.text("Address", &address);
        endpoint.count("CachePeriodInMinutes", CACHE_MINUTES);
        endpoint.end();
        Ok::<_, Failure>(())
    })?;
    object.end();
    Ok(out)
}
