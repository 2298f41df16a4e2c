//! Requests that are repeated until the server answers.

use std::time::Instant;

use anyhow::bail;
use hyper::body::Bytes;

use crate::Plan;
use crate::connection::Backoff;
use crate::connection::{CallFailure, Client, Credential};
use crate::fleets::Call;
use crate::random::SeededRandom;

/// Sends the request that `call` builds, until it succeeds or the plan's patience ends.
pub(crate) async fn ask_until_answered(
    client: &Client,
    credential: &Credential,
    plan: &Plan,
    random: &mut SeededRandom,
    call: impl Fn() -> Call,
) -> anyhow::Result<Bytes> {
    let deadline = Instant::now() + plan.patience;
    let mut backoff = Backoff::default();
    loop {
        let permit = client.permit().await;
        match client.send(&permit, call(), credential).await {
            Ok(answer) => return Ok(answer),
            Err(CallFailure::Rejected(reason)) => {
                bail!("the server rejected the request: {reason}")
            }
            Err(CallFailure::Retry(_, reason)) if Instant::now() >= deadline => {
                bail!("the server did not answer within --patience: {reason}")
            }
            Err(CallFailure::Retry(asked, _)) => {
                drop(permit);
                tokio::time::sleep(backoff.failed(asked, random)).await;
            }
        }
    }
}
