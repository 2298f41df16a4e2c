//! Logs, on standard error.

use std::io::IsTerminal as _;

use anyhow::Context as _;
use tracing_subscriber::EnvFilter;

use crate::config::{LogFormat, Logs};

/// Begins to log; once per process.
pub(crate) fn start(settings: &Logs) -> anyhow::Result<()> {
    let filter = EnvFilter::try_new(&settings.filter)
        .with_context(|| format!("the log filter {:?} cannot be read", settings.filter))?;
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        // Colours are for people, and files do not want them.
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr);
    match settings.format {
        LogFormat::Pretty => builder.init(),
        LogFormat::Json => builder.json().flatten_event(true).init(),
    }
    Ok(())
}
