//! Standard output and standard error. A reader may close them at any time, as `head` does. That must not panic: a command
//! ends quietly, and a server continues.

use std::fmt;
use std::io::{ErrorKind, Write as _};
use std::process::ExitCode;

/// Standard output is closed, so further output is useless.
#[derive(Debug, thiserror::Error)]
#[error("standard output is closed")]
pub(crate) struct OutputClosed;

/// Prints a line to standard output.
macro_rules! print_line {
    ($($line:tt)+) => { $crate::output::line(format_args!($($line)+)) };
}

/// Prints a line to standard error.
macro_rules! print_notice {
    ($($line:tt)+) => { $crate::output::error_line(format_args!($($line)+)) };
}

pub(crate) fn line(line: fmt::Arguments<'_>) {
    match writeln!(std::io::stdout(), "{line}") {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            print_notice!("homeport: cannot write to standard output: {error}");
        }
        _ => {}
    }
}

pub(crate) fn error_line(line: fmt::Arguments<'_>) {
    // There is nowhere left to report a failure.
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Prints a document.
pub(crate) fn print(text: &str) -> anyhow::Result<ExitCode> {
    match write(text.as_bytes()) {
        Err(error) if !error.is::<OutputClosed>() => Err(error),
        _ => Ok(ExitCode::SUCCESS),
    }
}

/// Writes a part of a long output.
///
/// # Errors
/// [`OutputClosed`] if the reader has closed the pipe, or another write error.
pub(crate) fn write(bytes: &[u8]) -> anyhow::Result<()> {
    let mut stdout = std::io::stdout().lock();
    let written = stdout.write_all(bytes).and_then(|()| stdout.flush());
    written.map_err(|error| match error.kind() {
        ErrorKind::BrokenPipe => OutputClosed.into(),
        _ => anyhow::Error::from(error).context("cannot write to standard output"),
    })
}
