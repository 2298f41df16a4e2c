//! Loading rules from the store and the file, at the start and after changes of other processes.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use homeport_item::Item;
use homeport_item::expression::Condition;
use homeport_store::{Action, CancelReason, Get, Put, StoreError, TransactError, Transaction};

use super::compiled::{self, KnownTables};
use super::document::{NewRule, RuleDocument};
use super::name::RuleName;
use super::registry::Registry;
use super::rule::{Rule, Source};
use crate::documents::schema::{CREATED_AT, PK, key};
use crate::rules::execution::stats::RuleStats;
use crate::rules::{RULES_MAX, RuleEngine, RuleError, schema};
use crate::time::EpochMillis;

/// How often a process checks for changes of other processes.
pub const REFRESH_EVERY: Duration = Duration::from_secs(5);
/// Rules of a file.
pub const FILE_RULES_MAX: usize = 1000;
/// A value that the stored count of changes never has.
pub(in crate::rules) const NEVER: i64 = -1;

/// Validates the rules of the file.
pub(in crate::rules) fn from_file(
    rules: Vec<NewRule>,
    tables: &KnownTables,
    now: EpochMillis,
) -> Result<Vec<Rule>, RuleError> {
    if rules.len() > FILE_RULES_MAX {
        return Err(RuleError::TooMany);
    }
    let mut read: Vec<Rule> = Vec::with_capacity(rules.len());
    for new in rules {
        if read.iter().any(|rule| rule.name == new.rule_name) {
            return Err(RuleError::Exists(new.rule_name));
        }
        let stats = Arc::new(RuleStats::unseen());
        compiled::compile(&new.rule_name, &new.topic_rule_payload, tables, stats)?;
        read.push(Rule {
            name: new.rule_name,
            document: Arc::new(new.topic_rule_payload),
            version: 0,
            created_at: now,
            updated_at: now,
            source: Source::File,
        });
    }
    Ok(read)
}

impl RuleEngine {
    /// Creates the shipped rules, once for each store, and loads all rules.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn load(&self) -> Result<(), RuleError> {
        for (name, document) in super::shipped::shipped(&self.inner.telemetry_table) {
            self.make_shipped(name, document).await?;
        }
        self.reload().await
    }

    /// Creates a shipped rule once for each store. If it is deleted later, it stays deleted.
    async fn make_shipped(&self, name: RuleName, document: RuleDocument) -> Result<(), RuleError> {
        let documents = &self.inner.documents;
        let key = key(schema::SHIPPED, name.as_str());
        let get = Get::new(schema::RULES, key.clone());
        if self.inner.store.get(get).await?.is_some() {
            return Ok(());
        }
        let now = self.now();
        let rule = Rule {
            name,
            document: Arc::new(document),
            version: 1,
            created_at: now,
            updated_at: now,
            source: Source::Store,
        };
        let new = |item: Item| -> Action {
            let put = Put::new(schema::RULES, item);
            put.when(Condition::not_exists(PK)).into()
        };
        let marker = key.with(CREATED_AT, now.0);
        let document = rule.to_document(false);
        let actions = vec![
            new(marker.clone()),
            new(document.to_item(documents.current)),
            new(document.to_version_item()),
            documents.count_change(),
        ];
        match self.inner.store.transact(Transaction::new(actions)).await {
            Ok(()) => Ok(()),
            Err(TransactError::Cancelled(reasons)) => {
                if matches!(reasons.first(), Some(CancelReason::ConditionFailed { .. })) {
                    // Another process has created it.
                    return Ok(());
                }
                let taken = reasons
                    .iter()
                    .any(|reason| matches!(reason, CancelReason::ConditionFailed { .. }));
                if taken {
                    // A rule of this name exists already and is kept.
                    let put = Put::new(schema::RULES, marker);
                    return self.inner.store.put(put).await.map(|_| ()).or_else(
                        |error| match error {
                            homeport_store::WriteError::ConditionFailed { .. } => Ok(()),
                            homeport_store::WriteError::Store(error) => Err(error.into()),
                        },
                    );
                }
                Err(StoreError::Throttled.into())
            }
            Err(TransactError::TokenMismatch) => Err(StoreError::Throttled.into()),
            Err(TransactError::Store(error)) => Err(error.into()),
        }
    }

    /// Loads all rules.
    pub(in crate::rules) async fn reload(&self) -> Result<(), RuleError> {
        // IMPORTANT: the count is read before the rules, so that the next check sees a change in
        // between.
        let changed = self.inner.documents.change_count().await?;
        let mut rules = self.stored_rules().await?;
        rules.extend(self.inner.file_rules.iter().cloned());
        let before = self.registry();
        let registry = Arc::new(Registry::new(rules, &self.inner.tables, &before));
        let mut current = self
            .inner
            .registry
            .write()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        // A slower reader with older rules must not replace newer ones.
        if changed >= self.inner.changed.load(Ordering::Acquire) {
            *current = registry;
            self.inner.changed.store(changed, Ordering::Release);
        }
        Ok(())
    }

    async fn stored_rules(&self) -> Result<Vec<Rule>, RuleError> {
        let items = self.inner.documents.all(RULES_MAX).await?;
        let rules = items.iter().filter_map(|item| {
            // A malformed item must not block the other rules.
            Rule::from_item(item)
                .inspect_err(|error| tracing::warn!(%error, "skipped a malformed rule"))
                .ok()
        });
        Ok(rules.collect())
    }

    /// Loads all rules again if another process has changed any.
    ///
    /// # Errors
    /// When the store fails; the rules stay as they were.
    pub async fn refresh(&self) -> Result<bool, RuleError> {
        if self.inner.documents.change_count().await? == self.inner.changed.load(Ordering::Acquire)
        {
            return Ok(false);
        }
        self.reload().await?;
        Ok(true)
    }

    /// Loads changes of other processes until `stop` completes.
    pub async fn refresh_until(&self, stop: impl Future<Output = ()>) {
        let mut stop = pin!(stop);
        loop {
            tokio::select! {
                () = &mut stop => return,
                () = tokio::time::sleep(REFRESH_EVERY) => {}
            }
            if let Err(error) = self.refresh().await {
                tracing::warn!(%error, "checking for changed rules failed; the loaded rules keep running");
            }
        }
    }
}
