//! Creating, reading, replacing and deleting definitions at runtime.

use homeport_item::expression::{Condition as Expression, KeyCondition, Path};
use homeport_store::{Get, Put, Query, StoreError, WriteError};

use super::definition::{Definition, DefinitionTerms, Target};
use crate::alerts::types::{DefinitionId, WebhookSecret};
use crate::alerts::{Alerts, AlertsError, DEFINITIONS_MAX, PAGE_MAX, schema};
use crate::cursor::Cursor;
use crate::fleet::SystemName;
use crate::pages::{self, Page};

/// Pages of watches that are settled before a request is answered; the worker settles the rest.
const PAGES_AT_ONCE: usize = 10;
/// Attempts at a change while other processes change the same definition.
const TRIES_MAX: u32 = 5;
const LIST: &str = "alert definitions";

impl Alerts {
    /// Creates a definition. If it is enabled, all data that is stored after the answer is judged.
    ///
    /// # Errors
    /// When the terms are invalid, there are too many definitions, or the store fails.
    pub async fn create(&self, terms: DefinitionTerms) -> Result<Definition, AlertsError> {
        let terms = self.checked(terms, None)?;
        let _changing = self.0.changing.lock().await;
        if self.refresh().await?.definitions.len() >= DEFINITIONS_MAX {
            return Err(AlertsError::TooManyDefinitions);
        }
        if terms.is_enabled {
            self.follow_from_now(&terms.source).await?;
        }
        let now = self.now();
        let definition = Definition {
            id: DefinitionId::new(now),
            terms,
            created_at: now,
            updated_at: now,
            revision: 1,
            epoch: 1,
            since: now,
            settled_epoch: 0,
            is_deleted: false,
        };
        let put = Put::new(schema::DEFINITIONS, definition.to_item()?)
            .when(Expression::not_exists(schema::SHELF));
        match self.0.store.put(put).await {
            Ok(_) => {}
            Err(WriteError::Store(error)) => return Err(error.into()),
            Err(WriteError::ConditionFailed { .. }) => return Err(StoreError::Throttled.into()),
        }
        self.changed(&definition).await;
        Ok(definition)
    }

    /// Reads a definition.
    ///
    /// # Errors
    /// When the definition does not exist, or the store fails.
    pub async fn definition(&self, id: &DefinitionId) -> Result<Definition, AlertsError> {
        let get = Get::new(schema::DEFINITIONS, schema::definition_key(id));
        let item = self.0.store.get(get).await?;
        let definition = item.as_ref().map(Definition::from_item).transpose()?;
        definition
            .filter(|definition| !definition.is_deleted)
            .ok_or(AlertsError::DefinitionMissing)
    }

    /// Lists definitions, oldest first.
    ///
    /// # Errors
    /// When the cursor is of another list, or the store fails.
    pub async fn definitions(
        &self,
        limit: usize,
        cursor: Option<Cursor>,
    ) -> Result<Page<Definition>, AlertsError> {
        let start = cursor.map(|cursor| cursor.start_of(LIST)).transpose()?;
        let condition = KeyCondition::new(schema::SHELF, schema::DEFINITIONS_SHELF);
        let query = Query {
            consistent: true,
            ..Query::new(schema::DEFINITIONS, condition)
        };
        let query = query
            .filter(Expression::not_exists(schema::DELETED))
            .starting_after(start);
        let (store, table) = (&*self.0.store, schema::definitions());
        let page = pages::read_page(store, &table, query, LIST, limit.min(PAGE_MAX)).await?;
        Ok(page.readable(&table, Definition::from_item))
    }

    /// Replaces the terms of a definition. If it still watches the same data in the same way, its
    /// alerts stay; otherwise they are cleared, and judging starts over. A webhook without a secret
    /// keeps the stored secret of its URL.
    ///
    /// # Errors
    /// When the definition does not exist, the terms are invalid, or the store fails.
    pub async fn replace(
        &self,
        id: &DefinitionId,
        terms: DefinitionTerms,
    ) -> Result<Definition, AlertsError> {
        let _changing = self.0.changing.lock().await;
        for _ in 0..TRIES_MAX {
            let before = self.definition(id).await?;
            let terms = self.checked(terms.clone(), Some(&before))?;
            let mut definition = before.clone();
            if !terms.watches_like(&before.terms) {
                self.refresh().await?;
                if terms.is_enabled {
                    self.follow_from_now(&terms.source).await?;
                }
                definition.epoch += 1;
                definition.since = self.now();
            }
            definition.terms = terms;
            if self.write(&before, &mut definition).await? {
                self.changed(&definition).await;
                return Ok(definition);
            }
        }
        Err(StoreError::Throttled.into())
    }

    /// Deletes a definition and clears its alerts.
    ///
    /// # Errors
    /// When the definition does not exist, or the store fails.
    pub async fn delete(&self, id: &DefinitionId) -> Result<(), AlertsError> {
        let _changing = self.0.changing.lock().await;
        for _ in 0..TRIES_MAX {
            let before = self.definition(id).await?;
            let mut definition = before.clone();
            definition.is_deleted = true;
            definition.epoch += 1;
            if self.write(&before, &mut definition).await? {
                self.changed(&definition).await;
                return Ok(());
            }
        }
        Err(StoreError::Throttled.into())
    }

    async fn write(
        &self,
        before: &Definition,
        definition: &mut Definition,
    ) -> Result<bool, AlertsError> {
        definition.revision = before.revision + 1;
        definition.updated_at = self.now();
        let put = Put::new(schema::DEFINITIONS, definition.to_item()?)
            .when(Path::from(schema::REVISION).equals(before.revision));
        match self.0.store.put(put).await {
            Ok(_) => Ok(true),
            Err(WriteError::ConditionFailed { .. }) => Ok(false),
            Err(WriteError::Store(error)) => Err(error.into()),
        }
    }

    /// Applies a stored change. The worker retries later what fails here: the change itself is
    /// durable.
    async fn changed(&self, definition: &Definition) {
        if let Err(error) = self.refresh().await {
            tracing::warn!(%error, "loading a changed definition failed; it will be retried");
        }
        if !definition.is_settled() {
            match self.settle(definition, PAGES_AT_ONCE).await {
                Ok(true) => {
                    if let Err(error) = self.refresh().await {
                        tracing::warn!(%error, "loading a settled definition failed; it will be retried");
                    }
                }
                Ok(false) => {}
                Err(error) => {
                    tracing::warn!(%error, "settling a definition failed; it will be retried")
                }
            }
        }
        self.0.work.notify_one();
    }

    fn checked(
        &self,
        terms: DefinitionTerms,
        before: Option<&Definition>,
    ) -> Result<DefinitionTerms, AlertsError> {
        let mut terms = terms.check()?;
        self.source(&terms.source)?;
        if self.0.reactions.is_none() && terms.is_enabled {
            return Err(AlertsError::Unavailable(
                "this store has no change log that alerts could follow",
            ));
        }
        for target in &mut terms.targets {
            match target {
                Target::Email { .. } if !self.0.settings.has_email => {
                    return Err(AlertsError::Unavailable(
                        "e-mail is not configured: set alerts.smtp_host and alerts.smtp_from",
                    ));
                }
                Target::Webhook { url, secret } if secret.is_none() => {
                    *secret = before.and_then(|before| before.secret_of(url.as_str()));
                    if secret.is_none() && self.0.settings.webhook_secret.is_none() {
                        return Err(AlertsError::Unavailable(
                            "a webhook needs a secret: send one, or set alerts.webhook_secret",
                        ));
                    }
                }
                _ => {}
            }
        }
        Ok(terms)
    }

    /// Follows a source from now on, so that data stored after the answer is judged.
    async fn follow_from_now(&self, system: &SystemName) -> Result<(), AlertsError> {
        let Some(reactions) = &self.0.reactions else {
            return Ok(());
        };
        if self.0.registry.now().needs(system) {
            return Ok(());
        }
        let reaction = self.reaction(system)?;
        self.ensure_stream(self.source(system)?).await?;
        let begun = reactions.begin_at_end(&reaction).await;
        begun.map_err(|error| StoreError::Unavailable(error.to_string()).into())
    }
}

impl Definition {
    /// The secret of the webhook with this URL, if it has its own.
    pub(in crate::alerts) fn secret_of(&self, wanted: &str) -> Option<WebhookSecret> {
        self.terms.targets.iter().find_map(|target| match target {
            Target::Webhook { url, secret } if url.as_str() == wanted => secret.clone(),
            _ => None,
        })
    }
}
