//! Notifications as items, and how they are written: each on the condition that nobody else has
//! moved it on, the last time together with the count of what is open.

use homeport_item::expression::{Condition, Path, Update};
use homeport_item::{Item, Map, Value};
use homeport_store::{
    Action, CancelReason, Get, Put, StoreError, TransactError, Transaction,
    Update as UpdateRequest, WriteError,
};

use super::measured::store_error;
use super::message::Message;
use super::notification::{DeviceFate, DeviceState, Notification, NotificationId, Step};
use super::types::UserId;
use super::{NOTIFICATION_RETENTION_SECS, Push, PushError, schema};
use crate::time::{EpochMillis, UtcMillis};

/// How often a write is tried that got in another's way.
pub(super) const CONFLICTS_MAX: u32 = 6;
/// The pause before the second try; every further one is twice as long.
pub(super) const CONFLICT_PAUSE: std::time::Duration = std::time::Duration::from_millis(20);

pub(super) fn notification_key(user: &UserId, id: &NotificationId) -> Item {
    schema::key(
        schema::user_partition(user),
        format!("{}{id}", schema::NOTIFICATION),
    )
}

pub(super) fn to_item(notification: &Notification) -> Item {
    let forget_at = notification.created_at.seconds();
    let mut item = notification_key(&notification.user_id, &notification.id)
        .with(schema::NOTIFICATION_ID, notification.id.as_str())
        .with(schema::NOTIFIED_USER_ID, &notification.user_id)
        .with(schema::CREATED_AT, notification.created_at.0)
        .with(schema::MESSAGE, notification.message.to_json())
        .with(schema::VERSION, notification.version)
        .with(
            schema::FORGET_AT,
            forget_at.plus_secs(NOTIFICATION_RETENTION_SECS).0,
        )
        .with(
            schema::DEVICES,
            Value::L(notification.devices.iter().map(from_fate).collect()),
        );
    if let Some(due) = notification.due_at() {
        item.insert(schema::WORK, schema::WORK_PARTITION);
        item.insert(schema::DUE_AT_MS, due.0);
    }
    if let Some(at) = notification.finished_at {
        item.insert(schema::FINISHED_AT, at.0);
    }
    item
}

fn from_fate(fate: &DeviceFate) -> Value {
    let steps = fate.steps.iter().map(|step| {
        let members: [(&str, Value); 2] = [
            (schema::STEP_AT, UtcMillis::new(step.at).to_string().into()),
            (schema::STEP, step.what.as_str().into()),
        ];
        Value::M(Map::from_iter(
            members.map(|(name, value)| (name.to_owned(), value)),
        ))
    });
    let fields: [(&str, Option<Value>); 12] = [
        (
            schema::NOTIFIED_DEVICE_ID,
            Some(Value::from(&fate.device_id)),
        ),
        (schema::STATE, Some(fate.state.as_str().into())),
        (
            schema::TICKET_ID,
            fate.ticket_id.as_deref().map(Value::from),
        ),
        (schema::REASON, fate.reason.as_deref().map(Value::from)),
        (
            schema::TOKEN_DIGEST,
            fate.token_digest.as_deref().map(Value::from),
        ),
        (schema::ATTEMPTS, Some(i64::from(fate.attempts).into())),
        (schema::UNANSWERED, Some(i64::from(fate.unanswered).into())),
        (schema::NEXT_AT_MS, fate.next_at.map(|at| at.0.into())),
        (schema::SENT_AT_MS, fate.sent_at.map(|at| at.0.into())),
        (schema::ALONE, fate.is_alone.then(|| true.into())),
        (schema::DEACTIVATE, fate.deactivate.then(|| true.into())),
        (schema::STEPS, Some(Value::L(steps.collect()))),
    ];
    let fields = fields.into_iter();
    Value::M(
        fields
            .filter_map(|(name, value)| Some((name.to_owned(), value?)))
            .collect(),
    )
}

pub(super) fn from_item(item: &Item) -> Result<Notification, PushError> {
    let malformed = || PushError::Malformed("a notification is not as it was written".to_owned());
    parse(item).ok_or_else(malformed)
}

fn parse(item: &Item) -> Option<Notification> {
    let text = |name| item.get(name).and_then(Value::as_str);
    let whole = |name| item.get(name)?.as_number()?.to_i64();
    let devices = item.get(schema::DEVICES)?.as_list()?;
    Some(Notification {
        id: text(schema::NOTIFICATION_ID)?.parse().ok()?,
        user_id: text(schema::NOTIFIED_USER_ID)?.parse().ok()?,
        message: Message::from_json(text(schema::MESSAGE)?)?,
        created_at: EpochMillis(whole(schema::CREATED_AT)?),
        finished_at: whole(schema::FINISHED_AT).map(EpochMillis),
        devices: devices.iter().map(parse_fate).collect::<Option<_>>()?,
        version: whole(schema::VERSION)?,
    })
}

fn parse_fate(value: &Value) -> Option<DeviceFate> {
    let fields = value.as_map()?;
    let text = |name| fields.get(name).and_then(Value::as_str);
    let whole = |name| fields.get(name)?.as_number()?.to_i64();
    let flag = |name| fields.get(name).and_then(Value::as_bool) == Some(true);
    let state = text(schema::STATE)?;
    let steps = fields.get(schema::STEPS)?.as_list()?.iter();
    Some(DeviceFate {
        device_id: text(schema::NOTIFIED_DEVICE_ID)?.parse().ok()?,
        state: *DeviceState::ALL.iter().find(|one| one.as_str() == state)?,
        ticket_id: text(schema::TICKET_ID).map(str::to_owned),
        reason: text(schema::REASON).map(str::to_owned),
        attempts: u32::try_from(whole(schema::ATTEMPTS)?).ok()?,
        unanswered: u32::try_from(whole(schema::UNANSWERED)?).ok()?,
        steps: steps.map(parse_step).collect::<Option<_>>()?,
        next_at: whole(schema::NEXT_AT_MS).map(EpochMillis),
        sent_at: whole(schema::SENT_AT_MS).map(EpochMillis),
        token_digest: text(schema::TOKEN_DIGEST).map(str::to_owned),
        is_alone: flag(schema::ALONE),
        deactivate: flag(schema::DEACTIVATE),
    })
}

fn parse_step(value: &Value) -> Option<Step> {
    let fields = value.as_map()?;
    let at: jiff::Timestamp = fields.get(schema::STEP_AT)?.as_str()?.parse().ok()?;
    Some(Step {
        at: EpochMillis(at.as_millisecond()),
        what: fields.get(schema::STEP)?.as_str()?.to_owned(),
    })
}

impl Push {
    /// Writes a notification that was read before; false when someone else has moved it on since.
    pub(super) async fn save(&self, notification: &mut Notification) -> Result<bool, PushError> {
        let read = notification.version;
        notification.version = read + 1;
        let is_finished = notification.due_at().is_none();
        notification.finished_at = is_finished.then(|| self.now());
        let put = Put::new(schema::NOTIFICATIONS, to_item(notification))
            .when(Path::from(schema::VERSION).equals(read));
        let saved = if is_finished {
            self.commit(vec![put.into(), count_open(-1, None).into()])
                .await
        } else {
            match self.store.put(put).await {
                Ok(_) => Ok(true),
                Err(WriteError::ConditionFailed { .. }) => Ok(false),
                Err(WriteError::Store(error)) => Err(store_error(error)),
            }
        };
        if saved != Ok(true) {
            // IMPORTANT: what was not written keeps its version. One more would be the version that
            // someone else wrote, and the next write would undo theirs.
            notification.version = read;
        }
        saved
    }

    /// Carries out a transaction whose first action alone has a condition; false when it does not
    /// hold.
    async fn commit(&self, actions: Vec<Action>) -> Result<bool, PushError> {
        let mut pause = CONFLICT_PAUSE;
        for _ in 0..CONFLICTS_MAX {
            let transaction = Transaction::new(actions.clone());
            match self.store.transact(transaction).await {
                Ok(()) => return Ok(true),
                Err(TransactError::Cancelled(reasons)) => {
                    if matches!(reasons.first(), Some(CancelReason::ConditionFailed { .. })) {
                        return Ok(false);
                    }
                    tokio::time::sleep(pause).await;
                    pause *= 2;
                }
                Err(TransactError::TokenMismatch) => break,
                Err(TransactError::Store(error)) => return Err(store_error(error)),
            }
        }
        Err(store_error(StoreError::Throttled))
    }

    /// How many notifications are accepted and not finished.
    pub(super) async fn open_notifications(&self) -> Result<i64, PushError> {
        let get = Get::new(schema::NOTIFICATIONS, schema::outbox_key());
        let item = self.store.get(get).await.map_err(store_error)?;
        let open = item
            .as_ref()
            .and_then(|item| item.get(schema::OPEN)?.as_number()?.to_i64());
        Ok(open.unwrap_or(0))
    }
}

/// Moves the count of open notifications, while it is below a limit.
pub(super) fn count_open(by: i64, below: Option<i64>) -> UpdateRequest {
    let update = Update::new().add(schema::OPEN, by);
    let request = UpdateRequest::new(schema::NOTIFICATIONS, schema::outbox_key(), update);
    match below {
        Some(limit) => request.when(
            Condition::not_exists(schema::OPEN).or(Path::from(schema::OPEN).less_than(limit)),
        ),
        None => request,
    }
}
