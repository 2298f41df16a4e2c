//! `homeport simulate` as a person runs it: against a real server that is killed under it, and
//! against servers that lie.

mod fleets;
mod lies;
mod phones;
mod restarts;
mod vans;

use std::process::{Command, Output, Stdio};

/// `homeport` without any setting of the person who runs the tests.
fn homeport(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_homeport"));
    for (name, _) in std::env::vars() {
        if name.starts_with("HOMEPORT_") {
            command.env_remove(name);
        }
    }
    command.args(arguments).stdin(Stdio::null());
    command
}

/// A line of the summary.
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
