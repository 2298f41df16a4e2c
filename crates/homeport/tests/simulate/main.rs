//! `homeport simulate` against a real server that is killed meanwhile, and against servers that misbehave.

mod faulty_servers;
mod fleets;
mod phones;
mod restarts;
#[path = "../support/mod.rs"]
mod support;
mod vans;

use std::process::Output;

use support::homeport;

/// A count in the report.
fn count(output: &Output, name: &str) -> u64 {
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|rest| rest.trim().parse().ok())
        .unwrap_or_else(|| panic!("no {name} in {}", show(output)))
}

fn show(output: &Output) -> String {
    format!(
        "{}\n{}\n{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}
