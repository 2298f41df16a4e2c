//! Trying a statement on a sample message: its result, and the reason for every part without a value.
//! Nothing is written and no action runs.

use homeport_rules::{Note, Outcome, Payload, Statement};

use crate::messages::{Delivery, Message, Properties, Publisher};
use crate::rules::RuleEngine;
use crate::rules::execution::plan::{random, seen, with_sources};
use crate::time::EpochMillis;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trial {
    pub sql: String,
    pub topic: String,
    pub payload: Vec<u8>,
    pub client_id: Option<String>,
    /// The value of `timestamp()`.
    pub received_at: EpochMillis,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrialOutcome {
    /// The result as JSON, if the message matches.
    pub result: Option<String>,
    /// Why the message does not match, or why the statement failed.
    pub unmet: Option<Reason>,
    /// Why parts have no value, in the order of evaluation.
    pub undefined: Vec<Reason>,
}

/// A reason with its place in the statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason {
    /// Line and column from 1; `None` if it is about the message as a whole.
    pub place: Option<(usize, usize)>,
    pub text: String,
    pub reason: String,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TrialError {
    #[error("sql: {0}")]
    Statement(String),
    #[error("topic: {0}")]
    Topic(String),
}

impl Trial {
    /// Runs the statement.
    ///
    /// # Errors
    /// When the statement or the topic is invalid.
    pub fn run(self) -> Result<TrialOutcome, TrialError> {
        let statement = Statement::parse(&self.sql)
            .map_err(|error| TrialError::Statement(error.to_string()))?;
        homeport_rules::topic::check_name(&self.topic)
            .map_err(|error| TrialError::Topic(error.to_string()))?;
        let message = Message {
            topic: self.topic,
            payload: self.payload.into(),
            delivery: Delivery::AtMostOnce,
            retain: false,
            publisher: Publisher {
                client_id: self.client_id,
                principal: None,
            },
            received_at: self.received_at,
            properties: Properties::default(),
            hops: 0,
        };
        let payload = Payload::new(&message.payload);
        let explanation = statement.explain(&seen(&message, &payload, "trial"), &mut random);
        let unmet = explanation.unmet.map(Reason::from);
        let (result, unmet) = match explanation.outcome {
            Ok(Outcome::Matched(value)) => (Some(value.to_json()), unmet),
            Ok(Outcome::NotMatched) => (None, unmet),
            Err(error) => (
                None,
                Some(Reason {
                    place: None,
                    text: String::new(),
                    reason: with_sources(&error),
                }),
            ),
        };
        Ok(TrialOutcome {
            result,
            unmet,
            undefined: explanation
                .undefined
                .into_iter()
                .map(Reason::from)
                .collect(),
        })
    }
}

impl RuleEngine {
    /// The default time of a trial.
    #[must_use]
    pub fn trial_time(&self) -> EpochMillis {
        self.now()
    }
}

impl From<Note> for Reason {
    fn from(note: Note) -> Self {
        Self {
            place: Some((note.line, note.column)),
            text: note.text,
            reason: note.reason,
        }
    }
}
