//! Progress of a run: a bar on a terminal, otherwise a line every few seconds.

use std::io::IsTerminal as _;
use std::sync::Arc;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::Run;
use crate::stderr::note;

const BAR_EVERY: Duration = Duration::from_millis(200);
const LINE_EVERY: Duration = Duration::from_secs(5);
const TEMPLATE: &str = "{prefix:<13} [{elapsed_precise}] {bar:40} {pos}/{len} ({per_sec}) {msg}";

pub(crate) struct Progress {
    task: JoinHandle<()>,
    stop: tokio::sync::oneshot::Sender<()>,
}

/// Progress within a stage.
#[derive(Clone, Copy)]
struct Position {
    at: u64,
    of: u64,
}

impl Progress {
    pub(crate) fn start(run: Arc<Run>, stage: &'static str) -> Self {
        let (stop, stopped) = tokio::sync::oneshot::channel();
        let is_terminal = std::io::stderr().is_terminal();
        let task = tokio::spawn(async move {
            if is_terminal {
                bar(&run, stage, stopped).await;
            } else {
                lines(&run, stage, stopped).await;
            }
        });
        Self { task, stop }
    }

    pub(crate) async fn stop(self) {
        let _ = self.stop.send(());
        let _ = self.task.await;
    }
}

fn position(run: &Run, stage: &str) -> Position {
    let devices = u64::from(run.plan.devices);
    match stage {
        "delivering" => Position {
            at: run.tally.settled(),
            of: devices * u64::from(run.plan.windows),
        },
        _ => Position {
            at: run.tally.devices_read.get(),
            of: devices,
        },
    }
}

fn message(run: &Run) -> String {
    format!(
        "{} duplicates, {} disconnects, {} retries",
        run.tally.duplicates.get(),
        run.tally.disconnects.get(),
        run.tally.retries.get()
    )
}

async fn bar(run: &Run, stage: &'static str, mut stopped: tokio::sync::oneshot::Receiver<()>) {
    let bar =
        ProgressBar::with_draw_target(Some(position(run, stage).of), ProgressDrawTarget::stderr());
    let style = ProgressStyle::with_template(TEMPLATE).expect("the template is well-formed");
    bar.set_style(style);
    bar.set_prefix(stage);
    let mut ticks = tokio::time::interval(BAR_EVERY);
    loop {
        let is_last = tokio::select! {
            _ = ticks.tick() => false,
            _ = &mut stopped => true,
        };
        bar.set_position(position(run, stage).at);
        bar.set_message(message(run));
        if is_last {
            return bar.abandon();
        }
    }
}

async fn lines(run: &Run, stage: &'static str, mut stopped: tokio::sync::oneshot::Receiver<()>) {
    let begun = Instant::now();
    let mut ticks = tokio::time::interval_at(begun + LINE_EVERY, LINE_EVERY);
    loop {
        let is_last = tokio::select! {
            _ = ticks.tick() => false,
            _ = &mut stopped => true,
        };
        let Position { at, of } = position(run, stage);
        let secs = begun.elapsed().as_secs();
        note(format_args!(
            "{stage}: {secs} s, {at} of {of}, {}",
            message(run)
        ));
        if is_last {
            return;
        }
    }
}
