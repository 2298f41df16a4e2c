//! Trying a statement on a message that somebody made up: what it selects, and why every part of it
//! that has no value has none. Nothing is written and no action runs.

use homeport_rules::{Note, Outcome, Payload, Statement};

use super::RuleEngine;
use super::plan::{random, seen, with_sources};
use crate::messages::{Delivery, Message, Properties, Publisher};
use crate::time::EpochMillis;

/// What is tried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trial {
    pub sql: String,
    pub topic: String,
    pub payload: Vec<u8>,
    pub client_id: Option<String>,
    /// What `timestamp()` answers.
    pub received_at: EpochMillis,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrialOutcome {
    /// The result as JSON, if the statement selects the message.
    pub result: Option<String>,
    /// Why the statement does not select it, or cannot tell.
    pub unmet: Option<Reason>,
    /// Why parts have no value, in the order in which they were looked at.
    pub undefined: Vec<Reason>,
}

/// A reason with the part of the statement that it is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason {
    /// Both from 1; none where it is about the message as a whole.
    pub place: Option<(usize, usize)>,
    pub text: String,
    pub reason: String,
}

/// Why nothing could be tried.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TrialError {
    #[error("sql: {0}")]
    Statement(String),
    #[error("topic: {0}")]
    Topic(String),
}

impl Trial {
    /// Tries the statement.
    ///
    /// # Errors
    /// When the statement or the topic is none.
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
    /// The time that a trial runs at unless it names one.
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
