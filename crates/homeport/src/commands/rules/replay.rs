//! `homeport rules replay`: runs a rule over stored history, in the store or on the server that has it open, without
//! writing.

use std::process::ExitCode;

use anyhow::Context as _;
use homeport_server::{DifferenceKind, ReplayTotalsBody, ReplayedBody, WouldWriteBody};
use homeport_systems::rules::{ReplayRange, RuleDocument};
use homeport_systems::time::EpochMillis;
use serde_json::value::RawValue;

use super::access::Rules;
use crate::arguments::ReplayArguments;
use crate::{output, print};

pub(super) async fn run(arguments: ReplayArguments) -> anyhow::Result<ExitCode> {
    let rules = Rules::open(&arguments.access).await?;
    let replayed = replay(&rules, &arguments).await;
    rules.close().await?;
    let totals = replayed?;
    print(&format!(
        "{} messages: {} writes equal to stored items, {} different, {} failures; nothing was written\n",
        totals.messages, totals.same, totals.different, totals.failures
    ))
}

/// Prints page after page.
async fn replay(rules: &Rules, arguments: &ReplayArguments) -> anyhow::Result<ReplayTotalsBody> {
    let document = match &arguments.file {
        Some(path) => {
            let reading = || format!("reading {}", path.display());
            let text = std::fs::read_to_string(path).with_context(reading)?;
            Some(serde_json::from_str::<RuleDocument>(&text).with_context(reading)?)
        }
        None => None,
    };
    let range = ReplayRange {
        thing: arguments.thing.clone(),
        from: arguments.from.map(EpochMillis),
        to: arguments.to.map(EpochMillis),
    };
    let mut totals = ReplayTotalsBody::default();
    let mut cursor: Option<String> = None;
    loop {
        let page = rules
            .replay(
                &arguments.name,
                document.as_ref(),
                &range,
                cursor.as_deref(),
            )
            .await?;
        totals.messages += page.totals.messages;
        totals.same += page.totals.same;
        totals.different += page.totals.different;
        totals.failures += page.totals.failures;
        let shown: String = page.messages.iter().map(show).collect();
        output::write(shown.as_bytes())?;
        cursor = page.next_cursor;
        if cursor.is_none() {
            return Ok(totals);
        }
    }
}

/// The differences that one message would make.
fn show(replayed: &ReplayedBody) -> String {
    let effects = replayed.effects.iter();
    let failures = replayed.failures.iter();
    let lines = (replayed.writes.iter().flat_map(show_write))
        .chain(effects.map(|effect| format!("would {effect}")))
        .chain(failures.map(|reason| format!("would fail: {reason}")))
        .map(|line| format!("  {line}\n"));
    format!(
        "{} {}\n{}",
        replayed.at,
        replayed.topic,
        lines.collect::<String>()
    )
}

fn show_write(write: &WouldWriteBody) -> Vec<String> {
    let table = &write.table;
    let text = |json: &Option<Box<RawValue>>| {
        json.as_ref()
            .map_or(String::new(), |json| json.get().to_owned())
    };
    let (key, item) = (text(&write.key), text(&write.item));
    match write.difference {
        DifferenceKind::Same => Vec::new(),
        DifferenceKind::New => vec![format!("{table} + {item}")],
        DifferenceKind::Unknown => vec![format!("{table} ? {item}")],
        DifferenceKind::Removed => vec![format!("{table} - {key}")],
        DifferenceKind::Changed => {
            let mut lines = vec![format!("{table} {key}")];
            for change in &write.changes {
                let name = &change.attribute;
                if let Some(is) = &change.is {
                    lines.push(format!("  - {name}: {is}"));
                }
                if let Some(would_be) = &change.would_be {
                    lines.push(format!("  + {name}: {would_be}"));
                }
            }
            lines
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn difference_is_shown_line_by_line() {
        let replayed = r#"{
            "at": "1970-01-01T00:00:00.007Z", "topic": "van/a/telemetry",
            "writes": [{"table": "van-telemetry", "key": {"thing_name":"a","timestamp":7}, "difference": "changed",
                "changes": [{"attribute": "volts", "is": 12, "wouldBe": 13.50}, {"attribute": "ttl", "is": 1}]}],
            "effects": ["republish on low/a"], "failures": []}"#;
        let replayed: ReplayedBody = serde_json::from_str(replayed).expect("a message");
        assert_eq!(
            show(&replayed),
            "1970-01-01T00:00:00.007Z van/a/telemetry\n\
             \x20 van-telemetry {\"thing_name\":\"a\",\"timestamp\":7}\n\
             \x20   - volts: 12\n\
             \x20   + volts: 13.50\n\
             \x20   - ttl: 1\n\
             \x20 would republish on low/a\n"
        );
    }
}
