//! Processing a message: its effects are planned and executed, and all writes are durable when this
//! returns.

use std::time::Instant;

use async_trait::async_trait;
use homeport_store::StoreError;

use super::RuleEngine;
use super::failure::Failure;
use super::plan::{ActionRef, Effect, Notice, Plan};
use super::stats::Counted;
use crate::messages::{Intake, Message};
use crate::push::PushError;

#[async_trait]
impl Intake for RuleEngine {
    async fn take(&self, message: &Message) -> Result<(), StoreError> {
        if message.publisher.is_alerts() {
            // IMPORTANT: as telemetry it would be judged. An alert about a silence would end the
            // silence and start the next one, forever.
            return Ok(());
        }
        let plan = self.plan(&self.registry(), message);
        if plan.is_empty() {
            return Ok(());
        }
        let began = Instant::now();
        let matched = plan.matched.clone();
        let outcome = self.carry_out(message, plan).await;
        let took = began.elapsed();
        for rule in matched {
            rule.stats.took(took);
        }
        outcome
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
    /// Executes a plan. Permanent failures run error actions at the end, which have no error actions of
    /// their own.
    ///
    /// # Errors
    /// When the store fails. The completed effects stay, and are repeated with the message: at least
    /// once, as on AWS.
    async fn carry_out(&self, message: &Message, plan: Plan) -> Result<(), StoreError> {
        let mut failed = self.once(message, plan).await?;
        if failed.is_empty() {
            return Ok(());
        }
        let mut errors = Plan::default();
        for (by, reason) in failed.drain(..) {
            let failure = Failure::of_action(message, by.action, by.resource, reason);
            if by.is_error_action {
                by.rule.stats.count(Counted::ActionsFailed);
                by.rule.stats.keep(failure);
            } else {
                self.fail(&by.rule, message, failure, &mut errors);
            }
        }
        self.carry_out_errors(message, errors).await
    }

    /// Executes error actions; their failures are only stored.
    pub(super) async fn carry_out_errors(
        &self,
        message: &Message,
        errors: Plan,
    ) -> Result<(), StoreError> {
        for (by, reason) in self.once(message, errors).await? {
            by.rule.stats.count(Counted::ActionsFailed);
            let failure = Failure::of_action(message, by.action, by.resource, reason);
            by.rule.stats.keep(failure);
        }
        Ok(())
    }

    /// Executes a plan; returns permanent failures with their reasons.
    async fn once(
        &self,
        message: &Message,
        plan: Plan,
    ) -> Result<Vec<(ActionRef, String)>, StoreError> {
        let mut failed = Vec::new();
        // IMPORTANT: tables first, so that receivers of a rule's message find its data.
        self.write_all(message, plan.writes, &mut failed).await?;
        for Effect { by, what } in plan.messages {
            match self.inner.publish.publish(what).await {
                Ok(()) => by.rule.stats.count(Counted::ActionsDone),
                Err(error) if error.is_transient() => return Err(error),
                Err(error) => failed.push((by, error.to_string())),
            }
        }
        for Effect { by, what } in plan.notices {
            let Notice { user, message } = what;
            match self.inner.push.notify(&user, message, None).await {
                Ok(_) => by.rule.stats.count(Counted::ActionsDone),
                Err(PushError::Store(error)) if error.is_transient() => return Err(error),
                Err(error) => failed.push((by, error.to_string())),
            }
        }
        Ok(failed)
    }
}
