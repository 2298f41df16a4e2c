//! Reads all messages back and compares them with what the devices know.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use tokio::sync::Mutex;
use tokio::task::JoinSet;

use crate::Run;
use crate::connection::ask_until_answered;
use crate::device::{DeviceRecord, MessageState};
use crate::fleets::{Page, ReadBack};
use crate::random::SeededRandom;
use crate::tally::Verdict;

/// Devices that are read concurrently.
const READERS: usize = 16;
/// Wait between two polls of a device whose messages are still being processed.
const POLL_EVERY: Duration = Duration::from_millis(200);

pub(crate) async fn read_back(
    run: &Arc<Run>,
    records: Vec<DeviceRecord>,
) -> anyhow::Result<Verdict> {
    let queue = Arc::new(Mutex::new(records));
    // One deadline for all devices: if processing hangs, it hangs for all.
    let deadline = Instant::now() + run.plan.patience;
    let mut readers = JoinSet::new();
    for _ in 0..READERS {
        let (run, queue) = (Arc::clone(run), Arc::clone(&queue));
        readers.spawn(async move {
            let mut total = Verdict::default();
            loop {
                let Some(record) = queue.lock().await.pop() else {
                    return anyhow::Ok(total);
                };
                total.add(check_device(&run, &record, deadline).await?);
                run.tally.devices_read.add(1);
            }
        });
    }
    let mut total = Verdict {
        accepted_nothing: run.tally.accepted_nothing(),
        ..Verdict::default()
    };
    while let Some(read) = readers.join_next().await {
        total.add(read.context("a task that reads messages back failed")??);
    }
    Ok(total)
}

/// The stored messages of a device.
struct StoredMessages {
    seen: Vec<u32>,
    altered: u64,
    again: u64,
    underway: u64,
}

async fn check_device(
    run: &Run,
    record: &DeviceRecord,
    deadline: Instant,
) -> anyhow::Result<Verdict> {
    let stored = loop {
        let stored = read_device(run, record).await?;
        // The server accepted these messages but is still processing them.
        if stored.underway == 0 || Instant::now() >= deadline {
            break stored;
        }
        tokio::time::sleep(POLL_EVERY).await;
    };
    let there = stored.seen.iter().map(|count| u64::from(*count)).sum();
    run.tally.read_back.add(there + stored.again);
    let uncounted = u64::from(!totals_match(run, record, there).await?);
    let is_kept = |window| run.plan.is_kept(window);
    let mut verdict = compare(record, &stored.seen, run.fleet.stores_repeats(), is_kept);
    verdict.altered = stored.altered;
    verdict.stored_again += stored.again;
    verdict.undelivered = stored.underway;
    verdict.uncounted = uncounted;
    Ok(verdict)
}

async fn read_device(run: &Run, record: &DeviceRecord) -> anyhow::Result<StoredMessages> {
    let mut stored = StoredMessages {
        seen: vec![0; record.states.len()],
        altered: 0,
        again: 0,
        underway: 0,
    };
    let mut cursor = None;
    loop {
        let page = page(run, record.device, cursor.as_deref()).await?;
        for found in page.found {
            let window = match found {
                ReadBack::Intact(window) => window,
                ReadBack::Altered(window) => {
                    stored.altered += 1;
                    window
                }
                ReadBack::Underway(window) => {
                    stored.underway += 1;
                    window
                }
                ReadBack::Again(_) => {
                    stored.again += 1;
                    continue;
                }
                ReadBack::Foreign => continue,
            };
            if let Some(count) = stored.seen.get_mut(window as usize) {
                *count += 1;
            }
        }
        cursor = page.next_cursor;
        if cursor.is_none() {
            return Ok(stored);
        }
    }
}

/// Compares counts of stored messages with a device's record. With `stores_repeats`, a message may be stored as often as it
/// was sent. `is_kept` tells which messages are too young to have expired.
fn compare(
    record: &DeviceRecord,
    seen: &[u32],
    stores_repeats: bool,
    is_kept: impl Fn(u32) -> bool,
) -> Verdict {
    let mut verdict = Verdict::default();
    let known = record.states.iter().zip(&record.sent);
    for (window, ((state, sent), count)) in (0..).zip(known.zip(seen)) {
        match (state, count) {
            (MessageState::Confirmed, 0) => verdict.missing += 1,
            (_, 2..) if stores_repeats && count <= sent => {
                verdict.stored_again += u64::from(*count) - 1;
            }
            (_, 2..) => verdict.repeated += 1,
            (MessageState::Open, 1) => verdict.unconfirmed += 1,
            _ => {}
        }
        match state {
            MessageState::Open => verdict.unanswered += 1,
            MessageState::Rejected => {
                verdict.rejected += 1;
                verdict.rejected_but_stored += u64::from(*count > 0);
            }
            MessageState::Expired if is_kept(window) => verdict.expired_early += 1,
            MessageState::Confirmed | MessageState::Expired | MessageState::Overwritten => {}
        }
    }
    verdict
}

async fn page(run: &Run, device: u32, cursor: Option<&str>) -> anyhow::Result<Page> {
    let mut random = SeededRandom::new([run.plan.seed, u64::from(device), 2]);
    let credential = run.keys.for_reading(device);
    let call = || run.fleet.page(device, cursor);
    let answer = ask_until_answered(&run.client, credential, &run.plan, &mut random, call).await;
    let answer = answer.with_context(|| format!("reading device {device}"))?;
    Ok(run.fleet.read_page(device, &answer)?)
}

/// Waits until the server's totals of a device match: some are updated after the response.
async fn totals_match(run: &Run, record: &DeviceRecord, there: u64) -> anyhow::Result<bool> {
    let device = record.device;
    let deadline = Instant::now() + run.plan.patience;
    let mut random = SeededRandom::new([run.plan.seed, u64::from(device), 8]);
    let registration_credential = run.fleet.registration_credential(device);
    let credential = registration_credential.unwrap_or_else(|| run.keys.for_reading(device));
    if run.fleet.totals(device).is_none() {
        return Ok(true);
    }
    let call = || run.fleet.totals(device).expect("checked before the loop");
    loop {
        let answer =
            ask_until_answered(&run.client, credential, &run.plan, &mut random, call).await;
        let answer = answer.with_context(|| format!("reading the totals of device {device}"))?;
        let registrations = record.registrations;
        if run
            .fleet
            .totals_match(device, there, registrations, &answer)?
        {
            return Ok(true);
        }
        if Instant::now() >= deadline {
            return Ok(false);
        }
        tokio::time::sleep(POLL_EVERY).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(state: MessageState, sent: u32) -> DeviceRecord {
        DeviceRecord {
            device: 0,
            states: vec![state],
            sent: vec![sent],
            registrations: 0,
        }
    }

    #[test]
    fn repeats_may_not_exceed_sends() {
        let compare = |sent, seen| {
            compare(
                &record(MessageState::Confirmed, sent),
                &[seen],
                true,
                |_| true,
            )
        };
        assert_eq!(compare(3, 1), Verdict::default());
        assert_eq!((compare(3, 3).stored_again, compare(3, 3).repeated), (2, 0));
        assert_eq!((compare(2, 3).stored_again, compare(2, 3).repeated), (0, 1));
        assert_eq!(compare(2, 0).missing, 1);
    }

    #[test]
    fn confirmed_message_must_be_stored_exactly_once() {
        use MessageState::{Confirmed, Expired, Open, Overwritten, Rejected};
        for (state, count, expected) in [
            (Confirmed, 1, Verdict::default()),
            (
                Confirmed,
                0,
                Verdict {
                    missing: 1,
                    ..Verdict::default()
                },
            ),
            (
                Confirmed,
                2,
                Verdict {
                    repeated: 1,
                    ..Verdict::default()
                },
            ),
            (
                Open,
                0,
                Verdict {
                    unanswered: 1,
                    ..Verdict::default()
                },
            ),
            (
                Open,
                1,
                Verdict {
                    unanswered: 1,
                    unconfirmed: 1,
                    ..Verdict::default()
                },
            ),
            (
                Open,
                3,
                Verdict {
                    unanswered: 1,
                    repeated: 1,
                    ..Verdict::default()
                },
            ),
            (Expired, 0, Verdict::default()),
            (
                Rejected,
                0,
                Verdict {
                    rejected: 1,
                    ..Verdict::default()
                },
            ),
            (
                Rejected,
                1,
                Verdict {
                    rejected: 1,
                    rejected_but_stored: 1,
                    ..Verdict::default()
                },
            ),
            (Overwritten, 1, Verdict::default()),
        ] {
            assert_eq!(
                compare(&record(state, count), &[count], false, |_| false),
                expected,
                "{state:?} {count}"
            );
        }
    }

    #[test]
    fn message_within_retention_cannot_have_expired() {
        let verdict = compare(&record(MessageState::Expired, 1), &[0], false, |window| {
            window == 0
        });
        assert_eq!((verdict.expired_early, verdict.is_good()), (1, false));
    }
}
