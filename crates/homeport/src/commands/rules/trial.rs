//! `homeport rules test`: evaluates a statement on a message, without a server.

use std::process::ExitCode;

use anyhow::Context as _;
use homeport_store::{Clock as _, SystemClock};
use homeport_systems::rules::{Reason, Trial, TrialOutcome};
use homeport_systems::time::EpochMillis;

use crate::arguments::TestRuleArguments;
use crate::print;

/// Evaluates the statement. The exit code tells whether it selects the message.
pub(super) fn run(arguments: TestRuleArguments) -> anyhow::Result<ExitCode> {
    let from_file = |path: &std::path::PathBuf| {
        std::fs::read(path).with_context(|| format!("reading {}", path.display()))
    };
    let sql = match (arguments.sql, arguments.sql_file) {
        (Some(sql), _) => sql,
        (None, Some(path)) => String::from_utf8(from_file(&path)?)?,
        (None, None) => anyhow::bail!("give --sql or --sql-file"),
    };
    let payload = match (arguments.payload, arguments.payload_file) {
        (Some(payload), _) => payload.into_bytes(),
        (None, Some(path)) => from_file(&path)?,
        (None, None) => b"{}".to_vec(),
    };
    let now = EpochMillis(SystemClock.now_ms());
    let trial = Trial {
        sql,
        topic: arguments.topic,
        payload,
        client_id: arguments.client_id,
        received_at: arguments.timestamp.map_or(now, EpochMillis),
    };
    let outcome = trial.run()?;
    print(&show(&outcome))?;
    Ok(match outcome.result {
        Some(_) => ExitCode::SUCCESS,
        None => ExitCode::FAILURE,
    })
}

fn show(outcome: &TrialOutcome) -> String {
    let mut text = match &outcome.result {
        Some(result) => format!("{result}\n"),
        None => "the statement does not select this message\n".to_owned(),
    };
    if let Some(reason) = &outcome.unmet {
        text.push_str(&format!("because {}\n", line(reason)));
    }
    for reason in &outcome.undefined {
        text.push_str(&format!("Undefined: {}\n", line(reason)));
    }
    text
}

fn line(reason: &Reason) -> String {
    match reason.place {
        Some((line, column)) if !reason.text.is_empty() => format!(
            "`{}` at line {line}, column {column}: {}",
            reason.text, reason.reason
        ),
        _ => reason.reason.clone(),
    }
}
