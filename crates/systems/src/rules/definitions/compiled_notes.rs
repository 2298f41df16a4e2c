//! Hints about a compiled rule that its author should see: it can never run, or its items never expire.

use super::compiled::{Action, Compiled};
use crate::messages::check_topic;
use crate::telemetry::schema::TTL;

/// The hints about a rule.
pub(in crate::rules) fn notes(rule: &Compiled) -> Vec<String> {
    let mut notes = Vec::new();
    notes.extend(never_runs(rule).map(str::to_owned));
    let actions = rule.actions.iter().enumerate();
    notes.extend(
        actions
            .filter(|(_, action)| has_no_ttl(rule, action))
            .map(|(at, _)| {
                format!(
                    "actions[{at}] writes to telemetry without {TTL}, so its items never expire; \
                 select one, for example `timestamp() + 2592000000 AS {TTL}` for 30 days"
                )
            }),
    );
    notes
}

fn never_runs(rule: &Compiled) -> Option<&'static str> {
    let filter = rule.statement.filter().as_str();
    if rule.statement.matches_nothing() {
        Some("the rule never runs: its WHERE clause is never true")
    } else if filter.starts_with('$') {
        Some(
            "the rule never runs without a bridge: clients and rules cannot publish on topics that begin with $",
        )
    } else if check_topic(&example_topic(filter)).is_err() {
        Some(
            "the rule never runs: no message can have a topic that its FROM clause matches; check the levels and the name of the thing",
        )
    } else {
        None
    }
}

/// The shortest topic that a filter matches.
fn example_topic(filter: &str) -> String {
    let filter = filter.strip_suffix("/#").unwrap_or(filter);
    let levels = filter.split('/').map(|level| match level {
        "+" | "#" => "x",
        level => level,
    });
    levels.collect::<Vec<_>>().join("/")
}

fn has_no_ttl(rule: &Compiled, action: &Action) -> bool {
    match action {
        Action::PutItem(table) => table.is_telemetry && !rule.statement.names_member(TTL),
        // The payload is one attribute, so nothing sets the expiry. UPDATE and DELETE add no item.
        Action::PutPayload(put) => put.table.is_telemetry && put.operation.is_none(),
        _ => false,
    }
}
