//! Logs, on standard error.

use std::io::{self, IsTerminal as _, Write};

use anyhow::Context as _;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::config::{LogFormat, Logs};

/// Starts logging. Call it once per process.
pub(crate) fn start(settings: &Logs) -> anyhow::Result<()> {
    // Colors on terminals only.
    let colours = io::stderr().is_terminal();
    dispatch(settings, colours, io::stderr)?.init();
    Ok(())
}

fn dispatch<W: Write + 'static>(
    settings: &Logs,
    colours: bool,
    writer: impl Fn() -> W + Send + Sync + 'static,
) -> anyhow::Result<tracing::Dispatch> {
    let filter = EnvFilter::try_new(&settings.filter).with_context(|| {
        format!(
            "invalid log filter {:?}; use a level such as info, or levels by module",
            settings.filter
        )
    })?;
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(colours)
        // A failing write must not end the process, and reporting it would panic.
        .log_internal_errors(false)
        .with_writer(move || OneLine(writer()));
    Ok(match settings.format {
        LogFormat::Pretty => builder.into(),
        LogFormat::Json => builder.json().flatten_event(true).into(),
    })
}

/// Writes an event, which arrives in one call, as one line. Client text in an error must not look like a separate
/// event.
struct OneLine<W>(W);

impl<W: Write> Write for OneLine<W> {
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let text = event.strip_suffix(b"\n").unwrap_or(event);
        let is_break = |byte: &u8| matches!(byte, b'\n' | b'\r');
        if !text.iter().any(is_break) {
            return self.0.write(event);
        }
        let mut line = Vec::with_capacity(event.len() + 16);
        for byte in text {
            match byte {
                b'\n' => line.extend_from_slice(b"\\n"),
                b'\r' => line.extend_from_slice(b"\\r"),
                byte => line.push(*byte),
            }
        }
        line.push(b'\n');
        self.0.write_all(&line)?;
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl Write for Written {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().expect("no panic").write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn client_text_adds_no_line() {
        for format in [LogFormat::Pretty, LogFormat::Json] {
            let settings = Logs {
                filter: "info".to_owned(),
                format,
            };
            let written = Written::default();
            let writer = written.clone();
            let dispatch = dispatch(&settings, false, move || writer.clone()).expect("a filter");
            tracing::dispatcher::with_default(&dispatch, || {
                let text = "a\r\nINFO homeport::audit: operation=\"forged\"";
                let error = io::Error::other(text);
                tracing::info!(target: "homeport::audit", resource = text, "a call");
                tracing::error!(%error, "a request failed");
                tracing::error!(error = &error as &dyn std::error::Error, "an export failed");
            });
            let written = written.0.lock().expect("no panic").clone();
            let written = String::from_utf8(written).expect("UTF-8");
            assert_eq!(written.lines().count(), 3, "{written}");
            assert!(!written.contains('\r'), "{written}");
        }
    }
}
