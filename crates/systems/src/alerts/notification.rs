//! A notification about an alert on its way to one target, with a trace of every step; and how it
//! is stored: each write on the condition that nobody else has moved it on, the last one together
//! with the count of what is open.

use homeport_item::expression::{Condition as Expression, Path, Update};
use homeport_item::{Item, Map, Value};
use homeport_store::{Get, Put, Update as UpdateRequest};

use super::definition::Target;
use super::types::{AlertId, DefinitionId};
use super::{Alerts, AlertsError, schema};
use crate::time::{EpochMillis, UtcMillis};

/// What is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    Raised,
    Cleared,
}

/// How far a notification has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotificationState {
    /// Waits to be sent: for its time, for the first try or for the next one.
    Queued,
    /// Is on its way, or was when the process ended.
    Sending,
    /// The target has taken it.
    Sent,
    /// The target will not get it.
    Failed,
    /// There was no reason to send it any more.
    Dropped,
}

/// Something that happened, in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    pub at: EpochMillis,
    pub what: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notification {
    pub alert_id: AlertId,
    pub definition_id: DefinitionId,
    pub event: Event,
    /// Which of the definition's targets it was.
    pub number: usize,
    /// Without the secret, which is looked up when it is needed.
    pub target: Target,
    pub state: NotificationState,
    pub attempts: u32,
    /// How many of these were never answered: each may have arrived.
    pub unanswered: u32,
    pub steps: Vec<Step>,
    /// When something is to be done; nothing more is when this is absent.
    pub(super) next_at: Option<EpochMillis>,
    pub(super) version: i64,
}

impl Event {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Raised => "raised",
            Self::Cleared => "cleared",
        }
    }
}

impl NotificationState {
    const ALL: [Self; 5] = [
        Self::Queued,
        Self::Sending,
        Self::Sent,
        Self::Failed,
        Self::Dropped,
    ];

    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Sending => "sending",
            Self::Sent => "sent",
            Self::Failed => "failed",
            Self::Dropped => "dropped",
        }
    }
}

impl Notification {
    /// One that waits until a moment.
    pub(super) fn queued(
        alert_id: &AlertId,
        definition_id: &DefinitionId,
        event: Event,
        number: usize,
        target: &Target,
        now: EpochMillis,
        due_at: EpochMillis,
    ) -> Self {
        let mut notification = Self {
            alert_id: alert_id.clone(),
            definition_id: definition_id.clone(),
            event,
            number,
            target: match target {
                Target::Webhook { url, .. } => Target::Webhook {
                    url: url.clone(),
                    secret: None,
                },
                target => target.clone(),
            },
            state: NotificationState::Queued,
            attempts: 0,
            unanswered: 0,
            steps: Vec::new(),
            next_at: Some(due_at),
            version: 1,
        };
        let mut what = notification.target.shown();
        if due_at > now {
            what.push_str(&format!(", held back until {}", UtcMillis::new(due_at)));
        }
        notification.note(now, what);
        notification
    }

    pub(super) fn note(&mut self, at: EpochMillis, what: impl Into<String>) {
        self.steps.push(Step {
            at,
            what: what.into(),
        });
    }

    /// Ends it.
    pub(super) fn finish(
        &mut self,
        now: EpochMillis,
        state: NotificationState,
        what: impl Into<String>,
    ) {
        self.note(now, what);
        self.state = state;
        self.next_at = None;
        metrics::counter!(NOTIFICATIONS, "outcome" => state.as_str()).increment(1);
    }

    /// Whether nothing more will be done, and the target has it or may have it.
    pub(super) fn may_have_arrived(&self) -> bool {
        self.next_at.is_none() && (self.state == NotificationState::Sent || self.unanswered > 0)
    }

    /// The sort key, which also names it to targets together with the alert.
    pub(super) fn name(&self) -> String {
        name(self.event, self.number)
    }

    pub(super) fn to_item(&self, retention_secs: Option<i64>) -> Result<Item, AlertsError> {
        let target = serde_json::to_string(&self.target)
            .map_err(|error| AlertsError::Malformed(error.to_string()))?;
        let steps = self.steps.iter().map(|step| {
            let members: [(&str, Value); 2] = [
                (schema::STEP_AT, UtcMillis::new(step.at).to_string().into()),
                (schema::STEP, step.what.as_str().into()),
            ];
            Value::M(Map::from_iter(
                members.map(|(name, value)| (name.to_owned(), value)),
            ))
        });
        let mut item = schema::notification_key(&self.alert_id, &self.name())
            .with(schema::DEFINITION_ID, &self.definition_id)
            .with(schema::TARGET, target)
            .with(schema::STATE, self.state.as_str())
            .with(schema::ATTEMPTS, self.attempts)
            .with(schema::UNANSWERED, self.unanswered)
            .with(schema::VERSION, self.version)
            .with(schema::STEPS, Value::L(steps.collect()));
        match (self.next_at, self.steps.last(), retention_secs) {
            (Some(due), _, _) => {
                item.insert(schema::WORK, schema::WORK_PARTITION);
                item.insert(schema::DUE_AT_MS, due.0);
            }
            (None, Some(last), Some(retention)) => {
                let forget_at = last.at.seconds().plus_secs(retention);
                item.insert(schema::FORGET_AT, forget_at.0);
            }
            _ => {}
        }
        Ok(item)
    }

    pub(super) fn from_item(item: &Item) -> Result<Self, AlertsError> {
        Self::parse(item).ok_or_else(|| {
            AlertsError::Malformed("a notification is not as it was written".to_owned())
        })
    }

    fn parse(item: &Item) -> Option<Self> {
        let text = |name: &str| item.get(name).and_then(Value::as_str);
        let whole = |name: &str| item.get(name)?.as_number()?.to_i64();
        let (event, number) = text(schema::NOTIFICATION)?.split_once('#')?;
        let state = text(schema::STATE)?;
        let step = |value: &Value| {
            let fields = value.as_map()?;
            let at: jiff::Timestamp = fields.get(schema::STEP_AT)?.as_str()?.parse().ok()?;
            Some(Step {
                at: EpochMillis(at.as_millisecond()),
                what: fields.get(schema::STEP)?.as_str()?.to_owned(),
            })
        };
        let steps = item.get(schema::STEPS)?.as_list()?;
        Some(Self {
            alert_id: text(schema::ALERT_ID)?.parse().ok()?,
            definition_id: text(schema::DEFINITION_ID)?.parse().ok()?,
            event: [Event::Raised, Event::Cleared]
                .into_iter()
                .find(|one| one.as_str() == event)?,
            number: number.parse().ok()?,
            target: serde_json::from_str(text(schema::TARGET)?).ok()?,
            state: *NotificationState::ALL
                .iter()
                .find(|one| one.as_str() == state)?,
            attempts: u32::try_from(whole(schema::ATTEMPTS)?).ok()?,
            unanswered: u32::try_from(whole(schema::UNANSWERED)?).ok()?,
            steps: steps.iter().map(step).collect::<Option<_>>()?,
            next_at: whole(schema::DUE_AT_MS).map(EpochMillis),
            version: whole(schema::VERSION)?,
        })
    }
}

const NOTIFICATIONS: &str = "homeport_alert_notifications_total";

pub(super) fn name(event: Event, number: usize) -> String {
    format!("{}#{number:02}", event.as_str())
}

/// Moves the count of open notifications, while it stays within a limit.
pub(super) fn count_open(by: i64, within: Option<i64>) -> UpdateRequest {
    let update = Update::new().add(schema::COUNT, by);
    let request = UpdateRequest::new(schema::OUTBOX, schema::counter_key(), update);
    match within {
        Some(limit) => request.when(
            Expression::not_exists(schema::COUNT).or(Path::from(schema::COUNT).at_most(limit - by)),
        ),
        None => request,
    }
}

impl Alerts {
    /// Writes a notification that was read before; false when someone else has moved it on since.
    pub(super) async fn save(&self, notification: &mut Notification) -> Result<bool, AlertsError> {
        let read = notification.version;
        notification.version = read + 1;
        let item = notification.to_item(self.0.settings.retention_secs)?;
        let put = Put::new(schema::OUTBOX, item).when(Path::from(schema::VERSION).equals(read));
        let mut actions = vec![put.into()];
        if notification.next_at.is_none() {
            actions.push(count_open(-1, None).into());
        }
        let saved = self.commit(actions).await;
        if !matches!(saved, Ok(true)) {
            // IMPORTANT: what was not written keeps its version. One more would be the version that
            // someone else wrote, and the next write would undo theirs.
            notification.version = read;
        }
        saved
    }

    /// How many notifications are not finished.
    pub(super) async fn open_notifications(&self) -> Result<i64, AlertsError> {
        let get = Get::new(schema::OUTBOX, schema::counter_key());
        let item = self.0.store.get(get).await?;
        let count = item
            .as_ref()
            .and_then(|item| item.get(schema::COUNT)?.as_number()?.to_i64());
        Ok(count.unwrap_or(0))
    }
}
