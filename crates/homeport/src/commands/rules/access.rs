//! Access to rules: in the store, or through the server that has it open. Both return the same bodies.

use std::sync::Arc;

use anyhow::{Context as _, bail};
use homeport_server::{ReplayBody, RuleBody};
use homeport_store::{Clock, SystemClock};
use homeport_systems::cursor::Cursor;
use homeport_systems::push::Push;
use homeport_systems::rules::{
    NewRule, PAGE_MAX, REPLAY_PAGE_MAX, ReplayRange, RuleDocument, RuleEngine, RuleEngineDeps,
    RuleName,
};
use homeport_systems::telemetry::{self, Telemetry};
use homeport_systems::time::EpochMillis;
use serde_json::Value;

use crate::app::{self, state};
use crate::arguments::RulesAccess;
use crate::begin;
use crate::client::server_client::{ServerClient, escape_query_value};
use crate::commands::store_access::StoreAccess;
use crate::config::Settings;
use crate::storage::backend::Backend;

const PATH: &str = "/v1/rules";

pub(super) enum Rules {
    Store {
        engine: RuleEngine,
        telemetry: Telemetry,
        backend: Backend,
    },
    Server(Box<ServerClient>),
}

impl Rules {
    pub(super) async fn open(access: &RulesAccess) -> anyhow::Result<Self> {
        let settings = begin(&access.flags)?;
        match StoreAccess::open(&settings, access.url.as_ref()).await? {
            StoreAccess::Store(backend) => Self::in_store(backend, &settings).await,
            StoreAccess::Server(server) => Ok(Self::Server(server)),
        }
    }

    async fn in_store(backend: Backend, settings: &Settings) -> anyhow::Result<Self> {
        let engine = engine_on(&backend, settings).await?;
        let telemetry = Telemetry::new(
            Arc::clone(&backend.store),
            Arc::new(SystemClock),
            &telemetry::Settings {
                table: settings.telemetry.table.clone(),
            },
        );
        Ok(Self::Store {
            engine,
            telemetry,
            backend,
        })
    }

    pub(super) async fn list(&self) -> anyhow::Result<Vec<Value>> {
        let mut rules = Vec::new();
        let mut cursor: Option<String> = None;
        loop {
            let (page, next) = match self {
                Self::Store { engine, .. } => {
                    let cursor = cursor.as_deref().map(Cursor::decode).transpose()?;
                    let page = engine.rules(PAGE_MAX, cursor)?;
                    let rules = page.items.into_iter();
                    let rules = rules.map(|view| serde_json::to_value(RuleBody::from(view)));
                    let next = page.next.map(|cursor| cursor.encode());
                    (rules.collect::<Result<Vec<_>, _>>()?, next)
                }
                Self::Server(server) => {
                    let mut path = format!("{PATH}?limit={PAGE_MAX}");
                    if let Some(cursor) = &cursor {
                        path.push_str(&format!("&cursor={cursor}"));
                    }
                    let mut page: Value = server.ask("GET", &path, String::new()).await?;
                    let next = page["next_cursor"].as_str().map(str::to_owned);
                    match page["rules"].take() {
                        Value::Array(rules) => (rules, next),
                        _ => bail!("unexpected response from the server; is it a Homeport server?"),
                    }
                }
            };
            rules.extend(page);
            cursor = next;
            if cursor.is_none() {
                return Ok(rules);
            }
        }
    }

    pub(super) async fn get(&self, name: &RuleName) -> anyhow::Result<Value> {
        match self {
            Self::Store { engine, .. } => body(engine.rule(name)?),
            Self::Server(server) => {
                let path = format!("{PATH}/{name}");
                server.ask("GET", &path, String::new()).await
            }
        }
    }

    /// Creates a rule from a document's text.
    pub(super) async fn create(&self, name: &RuleName, document: &str) -> anyhow::Result<Value> {
        let topic_rule_payload: RuleDocument = serde_json::from_str(document)?;
        match self {
            Self::Store { engine, .. } => {
                let new = NewRule {
                    rule_name: name.clone(),
                    topic_rule_payload,
                };
                body(engine.create(new).await?)
            }
            Self::Server(server) => {
                let new = serde_json::json!({
                    "ruleName": name.as_str(),
                    "topicRulePayload": topic_rule_payload,
                });
                server.ask("POST", PATH, new.to_string()).await
            }
        }
    }

    pub(super) async fn switch(&self, name: &RuleName, is_on: bool) -> anyhow::Result<()> {
        match self {
            Self::Store { engine, .. } => {
                engine.switch(name, is_on).await?;
                Ok(())
            }
            Self::Server(server) => {
                let word = if is_on { "enable" } else { "disable" };
                server.tell("POST", &format!("{PATH}/{name}/{word}")).await
            }
        }
    }

    pub(super) async fn delete(&self, name: &RuleName) -> anyhow::Result<()> {
        match self {
            Self::Store { engine, .. } => Ok(engine.delete(name, None).await?),
            Self::Server(server) => server.tell("DELETE", &format!("{PATH}/{name}")).await,
        }
    }

    /// Runs one page of stored history through a rule, or through `document` instead.
    pub(super) async fn replay(
        &self,
        name: &RuleName,
        document: Option<&RuleDocument>,
        range: &ReplayRange,
        cursor: Option<&str>,
    ) -> anyhow::Result<ReplayBody> {
        match self {
            Self::Store {
                engine, telemetry, ..
            } => {
                let stored = match document {
                    Some(_) => None,
                    None => Some(engine.rule(name)?.rule.document),
                };
                let document = document
                    .or(stored.as_deref())
                    .context("set if there is no document")?;
                let replay = engine.replay(name, document, telemetry.clone(), range.clone())?;
                let cursor = cursor.map(Cursor::decode).transpose()?;
                let mut replay = replay.starting_at(cursor);
                Ok(ReplayBody::next(&mut replay, REPLAY_PAGE_MAX).await?)
            }
            Self::Server(server) => {
                let time = |at: Option<EpochMillis>| at.map(|at| at.0.to_string());
                let mut path = format!(
                    "{PATH}/{name}/replay?thing={}",
                    escape_query_value(range.thing.as_str())
                );
                let rest = [
                    ("from", time(range.from)),
                    ("to", time(range.to)),
                    // Cursors are made of characters that need no escape.
                    ("cursor", cursor.map(str::to_owned)),
                ];
                for (name, value) in rest {
                    if let Some(value) = value {
                        path.push_str(&format!("&{name}={value}"));
                    }
                }
                let body = match document {
                    Some(document) => serde_json::json!({"topicRulePayload": document}),
                    None => serde_json::json!({}),
                };
                server.ask("POST", &path, body.to_string()).await
            }
        }
    }

    pub(super) async fn close(self) -> anyhow::Result<()> {
        match self {
            Self::Store {
                engine,
                telemetry,
                backend,
            } => {
                drop((engine, telemetry));
                backend.close().await
            }
            Self::Server(_) => Ok(()),
        }
    }
}

/// A rule engine on a store that is open in this process.
async fn engine_on(backend: &Backend, settings: &Settings) -> anyhow::Result<RuleEngine> {
    let tables = homeport_systems::schema::tables(&state::table_names(settings));
    backend.store.ensure_tables(&tables).await?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let push = Push::new(
        Arc::clone(&backend.store),
        Arc::clone(&clock),
        state::push_settings(settings)?,
    );
    let deps = RuleEngineDeps {
        store: Arc::clone(&backend.store),
        clock,
        push,
        tables,
        telemetry_table: settings.telemetry.table.clone(),
        future_limit: app::state::future_limit(settings)?,
        sns_topics: app::rules::sns_topics(settings),
    };
    let engine = RuleEngine::new(deps, app::rules::of_file(settings)?)
        .map_err(|error| app::rules::in_file(settings, &error))?;
    engine.load().await.context("loading the rules")?;
    Ok(engine)
}

fn body(view: homeport_systems::rules::RuleView) -> anyhow::Result<Value> {
    Ok(serde_json::to_value(RuleBody::from(view))?)
}
