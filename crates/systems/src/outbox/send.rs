//! Claim, send, record: the one way in which an entry leaves.

use std::collections::BTreeSet;
use std::time::Duration;

use homeport_store::{Action, StoreError};
use tokio::task::JoinSet;

use super::delivery::DeliveryState;
use super::entry::{Decision, Entry, OutboxKind, Place};
use super::error::SendError;
use super::stored::WORK_PARTITION;
use crate::time::EpochMillis;

/// Attempts to record an answer before it counts as unanswered.
const RECORD_ATTEMPTS_MAX: u32 = 5;
/// How long after handing a message over its result is looked for.
const RESULT_PAUSE_MS: i64 = 1000;
/// The pause after the first failed attempt. Each further one is twice as long.
const RECORD_PAUSE: Duration = Duration::from_millis(200);

/// The result of one request.
pub(crate) struct BatchResult<E> {
    /// Messages in the request, answered or not.
    pub(crate) sent: usize,
    /// Why the request failed as a whole.
    pub(crate) failure: Option<SendError>,
    /// Whether the answers are stored.
    pub(crate) recorded: Result<(), E>,
}

/// The entries that are due, the longest waiting first.
pub(crate) async fn due_entries<K: OutboxKind>(
    kind: &K,
    limit: usize,
) -> Result<Vec<K::Entry>, K::Error> {
    due_entries_in(kind, WORK_PARTITION, limit).await
}

/// The entries of a lane that are due, for a kind that has several.
pub(crate) async fn due_entries_in<K: OutboxKind>(
    kind: &K,
    lane: &str,
    limit: usize,
) -> Result<Vec<K::Entry>, K::Error> {
    let items = kind.queue().due_items(lane, kind.now(), limit).await?;
    let mut entries = Vec::with_capacity(items.len());
    for item in &items {
        match kind.parse(item) {
            Ok(entry) => entries.push(entry),
            Err(error) => kind.skip_malformed(item, error).await?,
        }
    }
    Ok(entries)
}

/// Sends each entry in a request of its own, `parallel_max` at a time; returns how many were sent.
pub(crate) async fn send_each<K: OutboxKind>(
    kind: &K,
    entries: Vec<K::Entry>,
    parallel_max: usize,
) -> Result<usize, K::Error> {
    let mut entries = entries.into_iter();
    let (mut sending, mut sent, mut failure) = (JoinSet::new(), 0, None);
    loop {
        while sending.len() < parallel_max
            && let Some(entry) = entries.next()
        {
            let kind = kind.clone();
            sending.spawn(async move {
                let batch = send_batch(&kind, &mut [entry], 1).await?;
                batch.recorded.map(|()| batch.sent)
            });
        }
        // After a failure the requests under way still end and are recorded.
        match sending.join_next().await {
            None => break,
            Some(Ok(Ok(count))) => sent += count,
            Some(Ok(Err(error))) => failure = Some(error),
            Some(Err(error)) => {
                failure = Some(StoreError::Unavailable(format!("a sender ended: {error}")).into());
            }
        }
    }
    failure.map_or(Ok(sent), Err)
}

/// Sends what is due of these entries in one request of at most `room` messages.
///
/// # Errors
/// When nothing could be claimed because the store fails. What was due stays due.
pub(crate) async fn send_batch<K: OutboxKind>(
    kind: &K,
    entries: &mut [K::Entry],
    room: usize,
) -> Result<BatchResult<K::Error>, K::Error> {
    let policy = kind.policy();
    let selection = select(kind, entries, room);
    let claimed = claim(kind, entries, selection).await?;
    if claimed.messages.is_empty() {
        return Ok(BatchResult {
            sent: claimed.handed_over,
            failure: None,
            recorded: Ok(()),
        });
    }
    let (places, messages): (Vec<Place>, Vec<_>) = claimed.messages.into_iter().unzip();
    let answers = tokio::time::timeout(policy.send_timeout, kind.send(messages)).await;
    let answers = answers.unwrap_or_else(|_| {
        let secs = policy.send_timeout.as_secs();
        Err(SendError::Unanswered(format!(
            "no answer within {secs} seconds"
        )))
    });
    let failure = apply(kind, entries, &places, answers);
    let recorded = record(kind, entries, &places).await;
    Ok(BatchResult {
        sent: places.len() + claimed.handed_over,
        failure,
        recorded,
    })
}

/// What to send next.
#[derive(Default)]
struct Selection {
    places: Vec<Place>,
    /// Entries to save, also if nothing of them is sent.
    changed: BTreeSet<usize>,
}

/// Selects undecided deliveries that are due, oldest first. An expired claim means that nobody recorded
/// an answer.
fn select<K: OutboxKind>(kind: &K, entries: &mut [K::Entry], room: usize) -> Selection {
    let now = kind.now();
    let mut selection = Selection::default();
    for (index, entry) in entries.iter_mut().enumerate() {
        let policy = kind.policy_of(entry);
        for number in 0..entry.delivery_count() {
            let delivery = entry.delivery_mut(number);
            let count = selection.places.len();
            if count == room {
                return selection;
            }
            if !delivery.is_undecided() || !delivery.is_due(now) || (delivery.is_alone && count > 0)
            {
                continue;
            }
            selection.changed.insert(index);
            if delivery.state == DeliveryState::Sending {
                let reason = "not answered: the process ended or the store was unavailable";
                // The claim lasted longer than the usual pause: it is sent again right away.
                delivery.unanswered(policy, now, reason);
                if delivery.state == DeliveryState::Failed {
                    continue;
                }
            }
            selection.places.push(Place {
                entry: index,
                delivery: number,
            });
            if delivery.is_alone {
                return selection;
            }
        }
    }
    selection
}

/// Messages that this worker has claimed.
struct Claimed<M> {
    messages: Vec<(Place, M)>,
    /// Deliveries that another outbox took.
    handed_over: usize,
}

/// Stores the decisions about deliveries, above all the claims of those that are sent now.
async fn claim<K: OutboxKind>(
    kind: &K,
    entries: &mut [K::Entry],
    selection: Selection,
) -> Result<Claimed<K::Message>, K::Error> {
    let Selection {
        places,
        mut changed,
    } = selection;
    let decisions = kind.prepare(entries, &places).await?;
    let now = kind.now();
    let mut messages = Vec::with_capacity(places.len());
    let mut handed_over = 0;
    for (place, decision) in places.into_iter().zip(decisions) {
        let entry = &mut entries[place.entry];
        let policy = kind.policy_of(entry);
        let delivery = entry.delivery_mut(place.delivery);
        match decision {
            Decision::Send(message) => {
                delivery.claim(policy, now);
                messages.push((place, message));
            }
            Decision::HandOver(writes) => {
                changed.remove(&place.entry);
                let is_taken = hand_over(kind, entry, place.delivery, writes).await?;
                handed_over += usize::from(is_taken);
            }
            Decision::Arrived(DeliveryState::Delivered, step) => {
                delivery.delivered(policy, now, step);
            }
            Decision::Arrived(_, step) => delivery.sent(policy, now, step, None),
            Decision::Fail(reason) => delivery.fail(policy, now, reason),
            Decision::Drop(reason) => delivery.drop_unsent(policy, now, reason),
            Decision::Wait(until) => delivery.next_at = Some(until),
        }
    }
    let mut failure = None;
    for index in changed {
        let entry = &mut entries[index];
        let saved = match report_failure(kind, entry).await {
            Ok(()) => save(kind, entry).await,
            Err(error) => Err(error),
        };
        if !matches!(saved, Ok(true)) {
            messages.retain(|(place, _)| place.entry != index);
        }
        failure = failure.or(saved.err());
    }
    match failure {
        Some(error) if messages.is_empty() => Err(error),
        failure => {
            // What is claimed is sent; the rest stays due.
            if let Some(error) = failure {
                tracing::warn!(%error, table = kind.queue().table, "an entry was not claimed");
            }
            Ok(Claimed {
                messages,
                handed_over,
            })
        }
    }
}

/// Records in one commit with the writes that put a message into another outbox that it has it; false when
/// that outbox is full, or another worker has changed the entry.
async fn hand_over<K: OutboxKind>(
    kind: &K,
    entry: &mut K::Entry,
    index: usize,
    writes: Vec<Action>,
) -> Result<bool, K::Error> {
    let (policy, now) = (kind.policy_of(entry), kind.now());
    entry.delivery_mut(index).claim(policy, now);
    let mut taken = entry.clone();
    let next_at = EpochMillis(now.0 + RESULT_PAUSE_MS);
    taken.delivery_mut(index).handed_over(now, next_at);
    if save_with(kind, &mut taken, writes).await? {
        kind.after_hand_over(&taken);
        *entry = taken;
        return Ok(true);
    }
    let reason = "not taken: the outbox of push is full";
    let delivery = entry.delivery_mut(index);
    delivery.retry(policy, now, None, reason);
    save(kind, entry).await?;
    Ok(false)
}

/// Applies the answers to their deliveries; returns why the request failed as a whole.
fn apply<K: OutboxKind>(
    kind: &K,
    entries: &mut [K::Entry],
    places: &[Place],
    answers: Result<Vec<K::Answer>, SendError>,
) -> Option<SendError> {
    let error = match answers {
        Ok(answers) if answers.len() == places.len() => {
            for (place, answer) in places.iter().zip(answers) {
                kind.apply_answer(&mut entries[place.entry], place.delivery, answer);
            }
            return None;
        }
        Ok(answers) => {
            let (answers, messages) = (answers.len(), places.len());
            SendError::Unanswered(format!("{answers} answers for {messages} messages"))
        }
        Err(error) => error,
    };
    tracing::debug!(%error, table = kind.queue().table, messages = places.len(), "sending failed");
    let now = kind.now();
    for place in places {
        let entry = &mut entries[place.entry];
        let policy = kind.policy_of(entry);
        let delivery = entry.delivery_mut(place.delivery);
        delivery.apply_error(policy, now, &error, places.len());
    }
    Some(error)
}

/// Records what was applied. IMPORTANT: an answer that is lost here is a message that is sent twice,
/// so a short outage of the store is waited out.
async fn record<K: OutboxKind>(
    kind: &K,
    entries: &mut [K::Entry],
    places: &[Place],
) -> Result<(), K::Error> {
    let changed: BTreeSet<usize> = places.iter().map(|place| place.entry).collect();
    let mut failure = None;
    for index in changed {
        let entry = &mut entries[index];
        let recorded = match report_failure(kind, entry).await {
            Ok(()) => save_until_stored(kind, entry).await,
            Err(error) => Err(error),
        };
        if let Err(error) = recorded {
            failure.get_or_insert(error);
        }
    }
    failure.map_or(Ok(()), Err)
}

/// Saves an entry, several times if the store fails.
async fn save_until_stored<K: OutboxKind>(kind: &K, entry: &mut K::Entry) -> Result<(), K::Error> {
    let mut pause = RECORD_PAUSE;
    for _ in 1..RECORD_ATTEMPTS_MAX {
        if save(kind, entry).await.is_ok() {
            return Ok(());
        }
        tokio::time::sleep(pause).await;
        pause *= 2;
    }
    save(kind, entry).await.map(|_| ())
}

async fn report_failure<K: OutboxKind>(kind: &K, entry: &K::Entry) -> Result<(), K::Error> {
    let mut deliveries = (0..entry.delivery_count()).map(|index| entry.delivery(index));
    let is_failed = deliveries.any(|delivery| delivery.state == DeliveryState::Failed);
    if is_failed && entry.due_at().is_none() {
        kind.before_failure(entry).await?;
    }
    Ok(())
}

/// Writes an entry that was read before; false when another worker has changed it since.
pub(crate) async fn save<K: OutboxKind>(kind: &K, entry: &mut K::Entry) -> Result<bool, K::Error> {
    save_with(kind, entry, Vec::new()).await
}

async fn save_with<K: OutboxKind>(
    kind: &K,
    entry: &mut K::Entry,
    mut others: Vec<Action>,
) -> Result<bool, K::Error> {
    // IMPORTANT: an entry that was not written keeps its version. The next version is what another
    // worker wrote, and a write on that condition would undo it.
    let mut written = entry.clone();
    let action = kind.write(&mut written)?;
    let is_finished = written.due_at().is_none();
    others.extend(kind.write_beside(entry, &written));
    let is_saved = kind.queue().write(action, others, is_finished).await?;
    if is_saved {
        *entry = written;
        if is_finished {
            kind.after_finish(entry);
        }
    }
    Ok(is_saved)
}
