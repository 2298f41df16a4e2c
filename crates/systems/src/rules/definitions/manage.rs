//! Creating, changing, enabling, disabling and deleting rules. Every change is a new version; old
//! versions stay readable.

use std::sync::Arc;

use homeport_item::Item;
use homeport_store::{Get, StoreError};

use super::compiled;
use super::document::{NewRule, RuleDocument};
use super::name::RuleName;
use super::rule::{Rule, RuleVersion, RuleView, Source};
use crate::cursor::Cursor;
use crate::documents::schema::NAME;
use crate::documents::{Change, ChangeError, VERSIONS_KEPT};
use crate::json_object::Object;
use crate::pages::Page;
use crate::rules::execution::failure::Failure;
use crate::rules::execution::stats::RuleStats;
use crate::rules::{PAGE_MAX, RULES_MAX, RuleEngine, RuleError};

const LIST: &str = "rules";

impl RuleEngine {
    /// Creates a rule.
    ///
    /// # Errors
    /// When the rule is invalid, the name is taken, or the store fails.
    pub async fn create(&self, new: NewRule) -> Result<RuleView, RuleError> {
        let NewRule {
            rule_name,
            topic_rule_payload,
        } = new;
        let _one_at_a_time = self.inner.changing.lock().await;
        self.check(&rule_name, &topic_rule_payload).await?;
        self.make(rule_name, topic_rule_payload).await
    }

    /// Creates or replaces a rule; returns whether it is new.
    ///
    /// # Errors
    /// When the rule is invalid, `expected` is not the stored version, or the store fails.
    pub async fn put(
        &self,
        name: &RuleName,
        document: RuleDocument,
        expected: Option<i64>,
    ) -> Result<(RuleView, bool), RuleError> {
        let _one_at_a_time = self.inner.changing.lock().await;
        self.check(name, &document).await?;
        match self.stored(name).await {
            Ok(current) => {
                let view = self.replace(current, document, expected).await?;
                Ok((view, false))
            }
            Err(RuleError::Missing(_)) if expected.is_none() => {
                Ok((self.make(name.clone(), document).await?, true))
            }
            Err(error) => Err(error),
        }
    }

    /// Changes members of a rule; null removes a member.
    ///
    /// # Errors
    /// When the rule does not exist, the result is invalid, `expected` is not the stored version, or the
    /// store fails.
    pub async fn patch(
        &self,
        name: &RuleName,
        changes: serde_json::Map<String, serde_json::Value>,
        expected: Option<i64>,
    ) -> Result<RuleView, RuleError> {
        let _one_at_a_time = self.inner.changing.lock().await;
        let current = self.stored(name).await?;
        let document = serde_json::to_value(&*current.document);
        let mut members = match document {
            Ok(serde_json::Value::Object(members)) => members,
            _ => return Err(RuleError::Malformed("a rule is no object".to_owned())),
        };
        // A member that may be absent may also be null.
        members.extend(changes);
        let Object(document) = serde_json::from_value::<Object<RuleDocument>>(members.into())
            .map_err(|error| RuleError::invalid("the rule", error.to_string()))?;
        self.check(name, &document).await?;
        self.replace(current, document, expected).await
    }

    /// Enables or disables a rule.
    ///
    /// # Errors
    /// When the rule does not exist or the store fails.
    pub async fn switch(&self, name: &RuleName, is_on: bool) -> Result<RuleView, RuleError> {
        let _one_at_a_time = self.inner.changing.lock().await;
        let current = self.stored(name).await?;
        if current.document.rule_disabled != is_on {
            return self.known(name);
        }
        let document = RuleDocument {
            rule_disabled: !is_on,
            ..(*current.document).clone()
        };
        self.replace(current, document, None).await
    }

    /// Deletes a rule. Its versions stay readable.
    ///
    /// # Errors
    /// When the rule does not exist, `expected` is not the stored version, or the store fails.
    pub async fn delete(&self, name: &RuleName, expected: Option<i64>) -> Result<(), RuleError> {
        let _one_at_a_time = self.inner.changing.lock().await;
        let current = self.stored(name).await?;
        let read = check_version(&current, expected)?;
        let last = Rule {
            version: read + 1,
            updated_at: self.now(),
            ..current
        };
        let document = last.to_document(true);
        self.write(&last, Change::Delete(&document, read)).await?;
        self.reload_after_change().await;
        Ok(())
    }

    async fn make(&self, name: RuleName, document: RuleDocument) -> Result<RuleView, RuleError> {
        let registry = self.registry();
        if registry
            .rule(&name)
            .is_some_and(|rule| rule.source == Source::File)
        {
            return Err(RuleError::InFile(name));
        }
        if registry.len() >= RULES_MAX {
            return Err(RuleError::TooMany);
        }
        let versions = self.read_versions(&name, 1).await?;
        let last = versions.first().map_or(0, |last| last.rule.version);
        let now = self.now();
        let rule = Rule {
            name,
            document: Arc::new(document),
            version: last + 1,
            created_at: now,
            updated_at: now,
            source: Source::Store,
        };
        let document = rule.to_document(false);
        self.write(&rule, Change::Create(&document)).await?;
        self.reload_after_change().await;
        self.known(&rule.name)
    }

    async fn replace(
        &self,
        current: Rule,
        document: RuleDocument,
        expected: Option<i64>,
    ) -> Result<RuleView, RuleError> {
        let read = check_version(&current, expected)?;
        let rule = Rule {
            document: Arc::new(document),
            version: read + 1,
            updated_at: self.now(),
            ..current
        };
        let document = rule.to_document(false);
        self.write(&rule, Change::Replace(&document, read)).await?;
        self.reload_after_change().await;
        self.known(&rule.name)
    }

    /// Validates a rule.
    async fn check(&self, name: &RuleName, document: &RuleDocument) -> Result<(), RuleError> {
        let stats = Arc::new(RuleStats::unseen());
        let compiled = compiled::compile(name, document, &self.inner.tables, stats)?;
        let actions = compiled.actions.iter().enumerate();
        let places = actions.map(|(at, action)| (format!("actions[{at}]"), action));
        let error = compiled.error_action.iter();
        let error = error.map(|action| ("errorAction".to_owned(), action));
        for (place, action) in places.chain(error) {
            if let Some(table) = action.target().filter(|table| table.schema.is_none())
                && !self.has_table(&table.name).await?
            {
                return Err(RuleError::TableNotFound {
                    place,
                    table: table.name.clone(),
                });
            }
        }
        Ok(())
    }

    /// Whether a table exists that is not Homeport's. Reading any item of it shows that, whatever its
    /// keys are.
    async fn has_table(&self, name: &str) -> Result<bool, RuleError> {
        let key = Item::new().with("homeport", "is this table there?");
        match self.inner.store.get(Get::new(name, key)).await {
            Ok(_) | Err(StoreError::Invalid(_) | StoreError::IndexNotFound { .. }) => Ok(true),
            Err(StoreError::TableNotFound(_)) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    async fn write(&self, rule: &Rule, change: Change<'_>) -> Result<(), RuleError> {
        match self.inner.documents.write(change).await {
            Ok(()) => Ok(()),
            Err(ChangeError::Store(error)) => Err(error.into()),
            Err(ChangeError::Overtaken) => {
                let is_new = matches!(change, Change::Create(_));
                Err(self.overtaken(&rule.name, is_new).await)
            }
        }
    }

    /// The error after another process changed the rule meanwhile.
    async fn overtaken(&self, name: &RuleName, is_new: bool) -> RuleError {
        match self.stored(name).await {
            Ok(_) if is_new => RuleError::Exists(name.clone()),
            Ok(current) => RuleError::Changed {
                name: current.name,
                actual: current.version,
            },
            // Created and deleted in the meantime.
            Err(RuleError::Missing(_)) if is_new => StoreError::Throttled.into(),
            Err(error) => error,
        }
    }

    /// Loads a stored change. A failure is only logged: the change itself is durable.
    async fn reload_after_change(&self) {
        if let Err(error) = self.reload().await {
            tracing::warn!(%error, "loading a changed rule failed; its old version keeps running");
        }
    }

    /// Reads a rule from the store.
    async fn stored(&self, name: &RuleName) -> Result<Rule, RuleError> {
        let in_file = |rule: &Rule| rule.source == Source::File;
        if self.registry().rule(name).is_some_and(in_file) {
            return Err(RuleError::InFile(name.clone()));
        }
        let item = self.inner.documents.get(name.as_str()).await?;
        let item = item.ok_or_else(|| RuleError::Missing(name.clone()))?;
        Rule::from_item(&item)
    }

    fn known(&self, name: &RuleName) -> Result<RuleView, RuleError> {
        let view = self.registry().view(name);
        view.ok_or_else(|| RuleError::Missing(name.clone()))
    }

    /// A loaded rule.
    ///
    /// # Errors
    /// When the rule does not exist.
    pub fn rule(&self, name: &RuleName) -> Result<RuleView, RuleError> {
        self.known(name)
    }

    /// Lists the loaded rules by name.
    ///
    /// # Errors
    /// When the cursor is of another list.
    pub fn rules(&self, limit: usize, cursor: Option<Cursor>) -> Result<Page<RuleView>, RuleError> {
        let start = cursor.map(|cursor| cursor.start_of(LIST)).transpose()?;
        let after = start.as_ref().and_then(|start| start.get(NAME)?.as_str());
        let limit = limit.clamp(1, PAGE_MAX);
        let registry = self.registry();
        let mut rules: Vec<_> = registry.views_after(after).take(limit + 1).collect();
        let has_more = rules.len() > limit;
        rules.truncate(limit);
        let last = rules.last().filter(|_| has_more);
        let next = last.map(|last| {
            let key = Item::new().with(NAME, last.rule.name.as_str());
            Cursor::new(LIST, key)
        });
        Ok(Page { items: rules, next })
    }

    /// Lists the stored versions of a rule, newest first, also of a deleted one.
    ///
    /// # Errors
    /// When the rule never existed or the store fails.
    pub async fn versions(&self, name: &RuleName) -> Result<Vec<RuleVersion>, RuleError> {
        let limit = usize::try_from(VERSIONS_KEPT).unwrap_or(usize::MAX);
        let versions = self.read_versions(name, limit).await?;
        if versions.is_empty() {
            return match self.registry().rule(name) {
                Some(rule) if rule.source == Source::File => Err(RuleError::InFile(name.clone())),
                _ => Err(RuleError::Missing(name.clone())),
            };
        }
        Ok(versions)
    }

    /// Reads a version of a rule.
    ///
    /// # Errors
    /// When the version does not exist or the store fails.
    pub async fn version(&self, name: &RuleName, version: i64) -> Result<RuleVersion, RuleError> {
        let item = self.inner.documents.version(name.as_str(), version).await?;
        let item = item.ok_or_else(|| RuleError::VersionMissing(name.clone()))?;
        RuleVersion::from_item(&item)
    }

    async fn read_versions(
        &self,
        name: &RuleName,
        limit: usize,
    ) -> Result<Vec<RuleVersion>, RuleError> {
        let items = self.inner.documents.versions(name.as_str(), limit).await?;
        items.iter().map(RuleVersion::from_item).collect()
    }

    /// The last failures of a rule in this process, newest first.
    ///
    /// # Errors
    /// When the rule does not exist.
    pub fn failures(&self, name: &RuleName) -> Result<Vec<Failure>, RuleError> {
        let registry = self.registry();
        let stats = registry.stats(name);
        let stats = stats.ok_or_else(|| RuleError::Missing(name.clone()))?;
        Ok(stats.failures())
    }
}

fn check_version(current: &Rule, expected: Option<i64>) -> Result<i64, RuleError> {
    match expected {
        Some(expected) if expected != current.version => Err(RuleError::Changed {
            name: current.name.clone(),
            actual: current.version,
        }),
        _ => Ok(current.version),
    }
}
