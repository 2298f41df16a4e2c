//! Lines for the person who runs a fleet.

use std::fmt;
use std::io::Write as _;

/// Prints a line to standard error, which the reader may have closed.
pub(crate) fn note(line: fmt::Arguments<'_>) {
    // There is nowhere left to report a failure.
    let _ = writeln!(std::io::stderr(), "{line}");
}
