//! The attributes that the tables of all kinds share, and deliveries as stored maps.

use homeport_item::schema::{IndexSchema, KeyAttribute};
use homeport_item::{KeyKind, Map, Value};

use super::delivery::{Delivery, DeliveryState, Step};
use crate::time::{EpochMillis, UtcMillis};

/// Present while an entry is open, so that the index of due entries holds nothing else.
pub(crate) const WORK: &str = "work";
/// The value of `work`.
pub(crate) const WORK_PARTITION: &str = "due";
/// Finds open entries in the order in which they are due.
pub(super) const WORK_INDEX: &str = "work";
pub(crate) const DUE_AT_MS: &str = "due_at_ms";
/// Counts the writes of an entry, so that two workers never overwrite each other.
pub(crate) const VERSION: &str = "version";

pub(crate) const STATE: &str = "state";
const REASON: &str = "reason";
const ATTEMPTS: &str = "attempts";
const UNANSWERED: &str = "unanswered";
const ALONE: &str = "alone";
pub(crate) const STEPS: &str = "steps";
pub(crate) const STEP_AT: &str = "at";
pub(crate) const STEP: &str = "step";

pub(crate) fn work_index() -> IndexSchema {
    IndexSchema::global(
        WORK_INDEX,
        KeyAttribute::new(WORK, KeyKind::S),
        Some(KeyAttribute::new(DUE_AT_MS, KeyKind::N)),
    )
}

impl Delivery {
    /// The stored attributes of a delivery. Its time stays with the kind: it is stored under
    /// different names.
    pub(crate) fn attributes(&self) -> impl Iterator<Item = (&'static str, Value)> {
        [
            (STATE, Some(self.state.as_str().into())),
            (REASON, self.reason.as_deref().map(Value::from)),
            (ATTEMPTS, Some(i64::from(self.attempts).into())),
            (UNANSWERED, Some(i64::from(self.unanswered).into())),
            (ALONE, self.is_alone.then(|| true.into())),
            (STEPS, Some(stored_steps(&self.steps))),
        ]
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)))
    }

    pub(crate) fn parse<'a>(
        attribute: impl Fn(&str) -> Option<&'a Value>,
        next_at: Option<EpochMillis>,
    ) -> Option<Self> {
        let count = |name| u32::try_from(attribute(name)?.as_number()?.to_i64()?).ok();
        Some(Self {
            state: DeliveryState::from_stored(attribute(STATE)?.as_str()?)?,
            attempts: count(ATTEMPTS)?,
            unanswered: count(UNANSWERED)?,
            reason: attribute(REASON).and_then(Value::as_str).map(str::to_owned),
            steps: parse_steps(attribute(STEPS)?)?,
            next_at,
            is_alone: attribute(ALONE).and_then(Value::as_bool) == Some(true),
        })
    }
}

pub(crate) fn stored_steps(steps: &[Step]) -> Value {
    Value::L(steps.iter().map(stored_step).collect())
}

pub(crate) fn parse_steps(value: &Value) -> Option<Vec<Step>> {
    value.as_list()?.iter().map(parse_step).collect()
}

fn stored_step(step: &Step) -> Value {
    let members: [(&str, Value); 2] = [
        (STEP_AT, UtcMillis::new(step.at).to_string().into()),
        (STEP, step.what.as_str().into()),
    ];
    Value::M(Map::from_iter(
        members.map(|(name, value)| (name.to_owned(), value)),
    ))
}

fn parse_step(value: &Value) -> Option<Step> {
    let fields = value.as_map()?;
    let at: jiff::Timestamp = fields.get(STEP_AT)?.as_str()?.parse().ok()?;
    Some(Step {
        at: EpochMillis(at.as_millisecond()),
        what: fields.get(STEP)?.as_str()?.to_owned(),
    })
}
