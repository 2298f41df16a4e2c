//! A slow target: a proxy that throttles some requests and leaves parts of batches unprocessed.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use crate::script::{Answer, error, server, success};

const TIMEOUT: Duration = Duration::from_secs(30);

/// The rejected requests.
#[derive(Debug, Default)]
pub(crate) struct Refused {
    pub(crate) requests: AtomicUsize,
    pub(crate) parts: AtomicUsize,
}

/// Starts a proxy for `url`; returns its address and the rejected requests.
pub(crate) async fn before(url: &str) -> (String, Arc<Refused>) {
    let address = url.trim_start_matches("http://").to_owned();
    let refused = Arc::new(Refused::default());
    let counts = Arc::clone(&refused);
    let batches = AtomicUsize::new(0);
    let url = server::serve(move |operation, body| {
        if operation != "BatchWriteItem" {
            return tokio::task::block_in_place(|| forward(&address, &operation, &body));
        }
        match batches.fetch_add(1, Ordering::Relaxed) {
            0 | 5 => {
                counts.requests.fetch_add(1, Ordering::Relaxed);
                error(400, "ProvisionedThroughputExceededException")
            }
            number if number % 2 == 0 => {
                let (taken, left) = halves(&body);
                counts.parts.fetch_add(1, Ordering::Relaxed);
                tokio::task::block_in_place(|| forward(&address, &operation, &taken))?;
                success(&json!({"UnprocessedItems": left}).to_string())
            }
            _ => tokio::task::block_in_place(|| forward(&address, &operation, &body)),
        }
    })
    .await;
    (url, refused)
}

/// Splits a batch in two halves.
fn halves(body: &str) -> (String, Value) {
    let mut batch: Value = serde_json::from_str(body).expect("JSON");
    let mut left = batch["RequestItems"].clone();
    let tables = batch["RequestItems"].as_object_mut().expect("tables");
    for (table, writes) in tables {
        let writes = writes.as_array_mut().expect("writes");
        let rest = writes.split_off(writes.len().div_ceil(2));
        left[table] = rest.into();
    }
    let left = left.as_object().expect("tables").clone();
    let left = left
        .into_iter()
        .filter(|(_, writes)| writes.as_array().is_some_and(|writes| !writes.is_empty()));
    (
        batch.to_string(),
        left.collect::<serde_json::Map<_, _>>().into(),
    )
}

/// Forwards a request to the real target.
fn forward(address: &str, operation: &str, body: &str) -> Answer {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(TIMEOUT)).ok()?;
    let head = format!(
        "POST / HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-type: application/x-amz-json-1.0\r\nx-amz-target: DynamoDB_20120810.{operation}\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all((head + body).as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let status = head.split_whitespace().nth(1)?.parse().ok()?;
    Some((status, body.to_owned()))
}
