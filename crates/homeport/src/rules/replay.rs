//! `homeport rules replay`: a rule run over stored history. Nothing is written.

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use homeport_store::{Clock, SystemClock};
use homeport_systems::messages::PublishSlot;
use homeport_systems::plain_json;
use homeport_systems::rules::{
    Difference, Replay, ReplayRange, Replayed, RuleDocument, RuleEngine, WouldWrite,
};
use homeport_systems::telemetry::{self, Telemetry};
use homeport_systems::time::{EpochMillis, UtcMillis};

use super::place::engine_on;
use crate::arguments::ReplayArguments;
use crate::backend::{self, Backend};
use crate::config::{Settings, StoreKind};
use crate::{begin, print};

/// What a replay came to.
#[derive(Default)]
struct Totals {
    messages: usize,
    same: usize,
    different: usize,
    failed: usize,
}

pub(super) async fn run(asked: ReplayArguments) -> anyhow::Result<ExitCode> {
    let settings = begin(&asked.place.flags)?;
    if settings.store.kind == StoreKind::Embedded {
        backend::must_exist(&settings.data.dir)?;
    }
    let backend = match Backend::open(&settings).await {
        Ok(backend) => backend,
        Err(error) => bail!("{error:#}; a replay needs a store that no server has open"),
    };
    let engine = engine_on(&backend, &settings).await?;
    let replayed = replay(&engine, &backend, &settings, &asked).await;
    drop(engine);
    backend.close().await?;
    replayed
}

async fn replay(
    engine: &RuleEngine,
    backend: &Backend,
    settings: &Settings,
    asked: &ReplayArguments,
) -> anyhow::Result<ExitCode> {
    let document = match &asked.file {
        Some(path) => {
            let text = std::fs::read_to_string(path)
                .with_context(|| format!("reading {}", path.display()))?;
            serde_json::from_str::<RuleDocument>(&text)
                .with_context(|| format!("reading {}", path.display()))?
        }
        None => (*engine.rule(&asked.name)?.rule.document).clone(),
    };
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let telemetry = Telemetry::new(
        Arc::clone(&backend.store),
        clock,
        Arc::new(PublishSlot::new()),
        &telemetry::Settings {
            table: settings.telemetry.table.clone(),
        },
    );
    let range = ReplayRange {
        thing: asked.thing.clone(),
        from: asked.from.map(EpochMillis),
        to: asked.to.map(EpochMillis),
    };
    let replay = engine.replay(&asked.name, &document, telemetry, range)?;
    let totals = show_all(replay).await?;
    print(&format!(
        "{} messages: {} writes as it is there, {} different, {} failures; nothing was written\n",
        totals.messages, totals.same, totals.different, totals.failed
    ))
}

async fn show_all(mut replay: Replay) -> anyhow::Result<Totals> {
    let mut totals = Totals::default();
    while let Some(page) = replay.page().await? {
        for replayed in &page {
            totals.messages += 1;
            totals.failed += replayed.failures.len();
            for write in &replayed.would_write {
                match write.difference {
                    Difference::Same => totals.same += 1,
                    _ => totals.different += 1,
                }
            }
            print(&show(replayed))?;
        }
    }
    Ok(totals)
}

/// What differs about one message; nothing if all is as it is there.
fn show(replayed: &Replayed) -> String {
    let mut lines = Vec::new();
    for write in &replayed.would_write {
        lines.extend(show_write(write));
    }
    lines.extend(
        replayed
            .other_effects
            .iter()
            .map(|effect| format!("would {effect}")),
    );
    let failures = replayed.failures.iter();
    lines.extend(failures.map(|reason| format!("would fail: {reason}")));
    if lines.is_empty() {
        return String::new();
    }
    let at = UtcMillis::new(replayed.at);
    let lines = lines.iter().map(|line| format!("  {line}\n"));
    format!("{at} {}\n{}", replayed.topic, lines.collect::<String>())
}

fn show_write(write: &WouldWrite) -> Vec<String> {
    let table = &write.table;
    let key = write.key.as_ref().map(plain_json::item).unwrap_or_default();
    match &write.difference {
        Difference::Same => Vec::new(),
        Difference::New(item) => vec![format!("{table} + {}", plain_json::item(item))],
        Difference::Unknown(item) => vec![format!("{table} ? {}", plain_json::item(item))],
        Difference::Removed => vec![format!("{table} - {key}")],
        Difference::Changed(changes) => {
            let mut lines = vec![format!("{table} {key}")];
            for (name, is, would_be) in changes {
                if let Some(is) = is {
                    lines.push(format!("  - {name}: {}", plain_json::value(is)));
                }
                if let Some(would_be) = would_be {
                    lines.push(format!("  + {name}: {}", plain_json::value(would_be)));
                }
            }
            lines
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use homeport_item::{Item, Value};

    #[test]
    fn a_difference_is_shown_line_by_line() {
        let key = Item::new().with("thing_name", "a").with("timestamp", 7);
        let replayed = Replayed {
            at: EpochMillis(7),
            topic: "van/a/telemetry".to_owned(),
            would_write: vec![WouldWrite {
                table: "van-telemetry".to_owned(),
                key: Some(key),
                difference: Difference::Changed(vec![
                    (
                        "volts".to_owned(),
                        Some(Value::from(12)),
                        Some(Value::from(13)),
                    ),
                    ("ttl".to_owned(), Some(Value::from(1)), None),
                ]),
            }],
            other_effects: vec!["republish on low/a".to_owned()],
            failures: Vec::new(),
        };
        assert_eq!(
            show(&replayed),
            "1970-01-01T00:00:00.007Z van/a/telemetry\n\
             \x20 van-telemetry {\"thing_name\":\"a\",\"timestamp\":7}\n\
             \x20   - volts: 12\n\
             \x20   + volts: 13\n\
             \x20   - ttl: 1\n\
             \x20 would republish on low/a\n"
        );
    }
}
