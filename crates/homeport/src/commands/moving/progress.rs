//! Progress of a move: single events are one line each, continuing work prints a line every few seconds.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use homeport_remote::{MoveEvent, TableComparison};

/// Time between two lines about the same work.
const LINE_EVERY: Duration = Duration::from_secs(2);

pub(super) struct Progress(Mutex<State>);

#[derive(Default)]
struct State {
    /// Table, count and time of the last line.
    last: Option<(String, u64, Instant)>,
    tables: usize,
    tables_copied: usize,
}

impl Progress {
    pub(super) fn new() -> Self {
        Self(Mutex::default())
    }

    pub(super) fn show(&self, event: &MoveEvent<'_>) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(line) = state.line(event, Instant::now()) {
            print_line!("{line}");
        }
    }
}

impl State {
    fn line(&mut self, event: &MoveEvent<'_>, now: Instant) -> Option<String> {
        match event {
            MoveEvent::Tables { moved, others } => {
                self.tables = *moved;
                Some(match others {
                    0 => format!("{moved} tables"),
                    _ => {
                        format!("{moved} tables; {others} other tables of the source are not moved")
                    }
                })
            }
            MoveEvent::StreamOn { table } => Some(format!(
                "{table}: enabled a stream for the duration of the move"
            )),
            MoveEvent::StreamOff { table } => Some(format!("{table}: disabled the stream again")),
            MoveEvent::Emptied { table, items } => {
                let rate = self.rate(table, *items, now)?;
                Some(format!(
                    "{table}: {items} items deleted at the target{rate}"
                ))
            }
            MoveEvent::Copied { table, items } => {
                let rate = self.rate(table, *items, now)?;
                Some(format!("{table}: {items} items copied{rate}"))
            }
            MoveEvent::CopyEnded { table, items } => {
                self.tables_copied += 1;
                self.last = None;
                Some(format!(
                    "{table}: all {items} items copied ({} of {} tables)",
                    self.tables_copied, self.tables
                ))
            }
            MoveEvent::CopyRestarted { table } => {
                self.tables_copied = self.tables_copied.saturating_sub(1);
                Some(format!(
                    "{table}: its stream no longer has all changes since the last run; copying it again"
                ))
            }
            MoveEvent::Carried {
                table,
                changes,
                lag_ms,
            } => {
                let rate = self.rate(table, *changes, now)?;
                let lag_secs = lag_ms.max(&0) / 1000;
                Some(format!(
                    "{table}: {changes} changes applied{rate}, {lag_secs} s behind"
                ))
            }
            MoveEvent::Comparing { table, items: 0 } => {
                self.last = Some(((*table).to_owned(), 0, now));
                None
            }
            MoveEvent::Comparing { table, items } => {
                let rate = self.rate(table, *items, now)?;
                Some(format!("{table}: {items} items read to compare{rate}"))
            }
            MoveEvent::TableGone { table } => Some(format!(
                "{table}: deleted from the source; the target's table stays unchanged"
            )),
            MoveEvent::Compared(table) => Some(compared(table)),
        }
    }

    /// The rate of a count, or `None` if it is too early for a line.
    fn rate(&mut self, table: &str, count: u64, now: Instant) -> Option<String> {
        let before = match &self.last {
            Some((last, before, since)) if last == table => {
                let elapsed = now.duration_since(*since);
                if elapsed < LINE_EVERY {
                    return None;
                }
                Some((*before, elapsed))
            }
            _ => None,
        };
        self.last = Some((table.to_owned(), count, now));
        Some(match before {
            Some((before, elapsed)) if count > before => {
                let millis = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
                let rate = (count - before).saturating_mul(1000) / millis.max(1);
                format!(", {rate}/s")
            }
            _ => String::new(),
        })
    }
}

fn compared(table: &TableComparison) -> String {
    let name = &table.table;
    if table.source_hash == table.target_hash && table.source_items == table.target_items {
        return format!(
            "{name}: equal, {} items with content {}",
            table.source_items, table.source_hash
        );
    }
    if !table.different.is_empty() {
        return format!(
            "{name}: DIFFERENT in {} items, such as {}",
            table.different.len(),
            table.different[0]
        );
    }
    if table.in_motion > 0 {
        return format!(
            "{name}: equal except {} items that are being written",
            table.in_motion
        );
    }
    format!(
        "{name}: equal; items that changed or expired in the meantime were compared one by one; {} items at the source",
        table.source_items
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn continuing_work_prints_its_rate_at_intervals() {
        let mut state = State::default();
        let begun = Instant::now();
        let mut line = |items, millis| {
            let event = MoveEvent::Copied { table: "t", items };
            state.line(&event, begun + Duration::from_millis(millis))
        };
        assert_eq!(line(10, 0).as_deref(), Some("t: 10 items copied"));
        assert_eq!(line(20, 1999), None);
        assert_eq!(
            line(4010, 4000).as_deref(),
            Some("t: 4010 items copied, 1000/s")
        );
    }
}
