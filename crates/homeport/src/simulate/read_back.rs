//! Asking for everything back, and comparing it with what the devices know.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use tokio::sync::Mutex;
use tokio::task::JoinSet;

use super::Run;
use super::device::{Ledger, Standing};
use super::dice::Dice;
use super::fleet::{Found, Page};
use super::patient;
use super::tally::Verdict;

/// Devices that are read at one time; more would only wait for connections.
const READERS: usize = 16;
/// Between two looks at what is behind.
const LOOK_PAUSE: Duration = Duration::from_millis(200);

pub(super) async fn all(run: &Arc<Run>, ledgers: Vec<Ledger>) -> anyhow::Result<Verdict> {
    let queue = Arc::new(Mutex::new(ledgers));
    // One for all: what is stuck is stuck for everyone.
    let deadline = Instant::now() + run.plan.patience;
    let mut readers = JoinSet::new();
    for _ in 0..READERS {
        let (run, queue) = (Arc::clone(run), Arc::clone(&queue));
        readers.spawn(async move {
            let mut total = Verdict::default();
            loop {
                let Some(ledger) = queue.lock().await.pop() else {
                    return anyhow::Ok(total);
                };
                total.add(device(&run, &ledger, deadline).await?);
                run.tally.devices_read.add(1);
            }
        });
    }
    let mut total = Verdict {
        took_nothing: run.tally.took_nothing(),
        ..Verdict::default()
    };
    while let Some(read) = readers.join_next().await {
        total.add(read.context("a reader's task ended early")??);
    }
    Ok(total)
}

/// What a look at a device's messages showed.
struct Look {
    seen: Vec<u32>,
    altered: u64,
    again: u64,
    underway: u64,
}

async fn device(run: &Run, ledger: &Ledger, deadline: Instant) -> anyhow::Result<Verdict> {
    let look = loop {
        let look = look(run, ledger).await?;
        // What is under way may get there: the server has answered for it, but is not done.
        if look.underway == 0 || Instant::now() >= deadline {
            break look;
        }
        tokio::time::sleep(LOOK_PAUSE).await;
    };
    let there = look.seen.iter().map(|count| u64::from(*count)).sum();
    run.tally.read_back.add(there + look.again);
    let uncounted = u64::from(!adds_up(run, ledger, there).await?);
    let is_kept = |window| run.plan.is_kept(window);
    let mut verdict = compare(ledger, &look.seen, run.fleet.keeps_repeats(), is_kept);
    verdict.altered = look.altered;
    verdict.stored_again += look.again;
    verdict.undelivered = look.underway;
    verdict.uncounted = uncounted;
    Ok(verdict)
}

async fn look(run: &Run, ledger: &Ledger) -> anyhow::Result<Look> {
    let mut look = Look {
        seen: vec![0; ledger.standings.len()],
        altered: 0,
        again: 0,
        underway: 0,
    };
    let mut cursor = None;
    loop {
        let page = page(run, ledger.device, cursor.as_deref()).await?;
        for found in page.found {
            let window = match found {
                Found::Intact(window) => window,
                Found::Altered(window) => {
                    look.altered += 1;
                    window
                }
                Found::Underway(window) => {
                    look.underway += 1;
                    window
                }
                Found::Again(_) => {
                    look.again += 1;
                    continue;
                }
                Found::Foreign => continue,
            };
            if let Some(count) = look.seen.get_mut(window as usize) {
                *count += 1;
            }
        }
        cursor = page.next_cursor;
        if cursor.is_none() {
            return Ok(look);
        }
    }
}

/// What it means that the messages were seen so often. Where repeats are kept, a message may be
/// there as often as it was sent. `is_kept` says which messages are too young to have expired.
fn compare(
    ledger: &Ledger,
    seen: &[u32],
    keeps_repeats: bool,
    is_kept: impl Fn(u32) -> bool,
) -> Verdict {
    let mut verdict = Verdict::default();
    let known = ledger.standings.iter().zip(&ledger.sent);
    for (window, ((standing, sent), count)) in (0..).zip(known.zip(seen)) {
        match (standing, count) {
            (Standing::Confirmed, 0) => verdict.missing += 1,
            (_, 2..) if keeps_repeats && count <= sent => {
                verdict.stored_again += u64::from(*count) - 1;
            }
            (_, 2..) => verdict.repeated += 1,
            (Standing::Open, 1) => verdict.unconfirmed += 1,
            _ => {}
        }
        match standing {
            Standing::Open => verdict.unanswered += 1,
            Standing::Rejected => {
                verdict.rejected += 1;
                verdict.kept_anyway += u64::from(*count > 0);
            }
            Standing::Expired if is_kept(window) => verdict.gone_early += 1,
            Standing::Confirmed | Standing::Expired | Standing::Overwritten => {}
        }
    }
    verdict
}

async fn page(run: &Run, device: u32, cursor: Option<&str>) -> anyhow::Result<Page> {
    let mut dice = Dice::new([run.plan.seed, u64::from(device), 2]);
    let credential = run.keys.for_reading(device);
    let call = || run.fleet.page(device, cursor);
    let answer = patient::ask(&run.client, credential, &run.plan, &mut dice, call).await;
    let answer = answer.with_context(|| format!("reading device {device}"))?;
    Ok(run.fleet.read_page(device, &answer)?)
}

/// Waits until the server's account of a device fits: some of it is made after it has answered.
async fn adds_up(run: &Run, ledger: &Ledger, there: u64) -> anyhow::Result<bool> {
    let device = ledger.device;
    let deadline = Instant::now() + run.plan.patience;
    let mut dice = Dice::new([run.plan.seed, u64::from(device), 8]);
    let identity = run.fleet.identity(device);
    let credential = identity.unwrap_or_else(|| run.keys.for_reading(device));
    if run.fleet.account(device).is_none() {
        return Ok(true);
    }
    let call = || run.fleet.account(device).expect("as above");
    loop {
        let answer = patient::ask(&run.client, credential, &run.plan, &mut dice, call).await;
        let answer = answer.with_context(|| format!("reading the account of device {device}"))?;
        let registrations = ledger.registrations;
        if run.fleet.adds_up(device, there, registrations, &answer)? {
            return Ok(true);
        }
        if Instant::now() >= deadline {
            return Ok(false);
        }
        tokio::time::sleep(LOOK_PAUSE).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ledger(standing: Standing, sent: u32) -> Ledger {
        Ledger {
            device: 0,
            standings: vec![standing],
            sent: vec![sent],
            registrations: 0,
        }
    }

    #[test]
    fn where_repeats_are_kept_a_message_is_there_as_often_as_it_was_sent() {
        let compare =
            |sent, seen| compare(&ledger(Standing::Confirmed, sent), &[seen], true, |_| true);
        assert_eq!(compare(3, 1), Verdict::default());
        assert_eq!((compare(3, 3).stored_again, compare(3, 3).repeated), (2, 0));
        assert_eq!((compare(2, 3).stored_again, compare(2, 3).repeated), (0, 1));
        assert_eq!(compare(2, 0).missing, 1);
    }

    #[test]
    fn what_is_confirmed_must_be_seen_once_and_nothing_twice() {
        use Standing::{Confirmed, Expired, Open, Overwritten, Rejected};
        for (standing, count, expected) in [
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
                    kept_anyway: 1,
                    ..Verdict::default()
                },
            ),
            (Overwritten, 1, Verdict::default()),
        ] {
            assert_eq!(
                compare(&ledger(standing, count), &[count], false, |_| false),
                expected,
                "{standing:?} {count}"
            );
        }
    }

    #[test]
    fn what_the_server_keeps_cannot_have_expired() {
        let verdict = compare(&ledger(Standing::Expired, 1), &[0], false, |window| {
            window == 0
        });
        assert_eq!((verdict.gone_early, verdict.is_good()), (1, false));
    }
}
