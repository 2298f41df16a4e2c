//! Executing a plan: when this returns, all writes are durable. What rules republish is returned to the caller.

use std::time::Instant;

use async_trait::async_trait;
use homeport_store::StoreError;

use super::failure::Failure;
use super::plan::{ActionRef, Effect, Notice, Plan};
use super::stats::Counted;
use crate::messages::{Intake, IntakeError, Message};
use crate::push::PushError;
use crate::rules::RuleEngine;

#[async_trait]
impl Intake for RuleEngine {
    async fn take(&self, message: &Message) -> Result<Vec<Message>, IntakeError> {
        if message.publisher.is_alerts() {
            // IMPORTANT: as telemetry it would be judged. An alert about a silence would end the
            // silence and start the next one, forever.
            return Ok(Vec::new());
        }
        let plan = self.plan(&self.registry(), message);
        if plan.is_empty() {
            return Ok(Vec::new());
        }
        let began = Instant::now();
        let matched = plan.matched.clone();
        let outcome = self.carry_out(message, plan).await;
        let took = began.elapsed();
        for rule in matched {
            rule.stats.took(took);
        }
        Ok(outcome?)
    }
}

impl Plan {
    fn is_empty(&self) -> bool {
        self.writes.is_empty()
            && self.messages.is_empty()
            && self.notices.is_empty()
            && self.matched.is_empty()
    }
}

impl RuleEngine {
    /// Executes a plan and then the error actions of its permanent failures, which have no error actions of
    /// their own. Returns the messages that rules republish.
    ///
    /// # Errors
    /// When the store fails. The completed effects stay, and are repeated with the message: at least
    /// once, as on AWS.
    pub(in crate::rules) async fn carry_out(
        &self,
        message: &Message,
        mut plan: Plan,
    ) -> Result<Vec<Message>, StoreError> {
        let mut republished = Vec::new();
        while !plan.is_empty() {
            let mut failed = self.write_all(plan.writes).await?;
            self.notify_all(plan.notices, &mut failed).await?;
            for Effect { by, what } in plan.messages {
                by.rule.stats.count(Counted::ActionsDone);
                republished.push(what);
            }
            plan = Plan::default();
            for (by, reason) in failed {
                let failure = Failure::of_action(message, by.action, by.resource, reason);
                if by.is_error_action {
                    by.rule.stats.count(Counted::ActionsFailed);
                    by.rule.stats.keep(failure);
                } else {
                    self.fail(&by.rule, message, failure, &mut plan);
                }
            }
        }
        Ok(republished)
    }

    async fn notify_all(
        &self,
        notices: Vec<Effect<Notice>>,
        failed: &mut Vec<(ActionRef, String)>,
    ) -> Result<(), StoreError> {
        for Effect { by, what } in notices {
            match self.inner.push.notify(&what.user, what.message, None).await {
                Ok(_) => by.rule.stats.count(Counted::ActionsDone),
                Err(PushError::Store(error)) if error.is_transient() => return Err(error),
                Err(error) => failed.push((by, error.to_string())),
            }
        }
        Ok(())
    }
}
