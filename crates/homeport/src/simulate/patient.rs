//! One question, asked until it is answered or patience ends.

use std::time::Instant;

use anyhow::bail;
use hyper::body::Bytes;

use super::Plan;
use super::backoff::Backoff;
use super::client::{CallFailure, Client, Credential};
use super::dice::Dice;
use super::fleet::Call;

/// Asks what `call` makes, anew each time, until there is an answer.
pub(super) async fn ask(
    client: &Client,
    credential: &Credential,
    plan: &Plan,
    dice: &mut Dice,
    call: impl Fn() -> Call,
) -> anyhow::Result<Bytes> {
    let deadline = Instant::now() + plan.patience;
    let mut backoff = Backoff::default();
    loop {
        let permit = client.permit().await;
        match client.send(&permit, call(), credential).await {
            Ok(answer) => return Ok(answer),
            Err(CallFailure::Refused(said)) => bail!("the server refuses: {said}"),
            Err(CallFailure::Again(_, said)) if Instant::now() >= deadline => {
                bail!("the server does not answer: {said}")
            }
            Err(CallFailure::Again(asked, _)) => {
                drop(permit);
                tokio::time::sleep(backoff.failed(asked, dice)).await;
            }
        }
    }
}
