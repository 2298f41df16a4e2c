//! The times that a table with point-in-time recovery can be restored to. They are commit times, which may differ from the wall
//! clock.

use homeport_engine::{History, RestorePoint};

use crate::service::Service;

/// The first and the last second that a table can be restored to. Whole seconds, because clients truncate fractions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RestoreWindow {
    pub(crate) earliest_secs: i64,
    pub(crate) latest_secs: i64,
    /// The first restorable time, within the first second.
    earliest_ms: i64,
}

impl RestoreWindow {
    /// The window at `now_ms`. It has one second until the second in which recovery was enabled is over.
    pub(crate) fn of(history: &History, now_ms: i64) -> Self {
        let earliest_ms = history.reaches_back_to_ms(now_ms);
        let earliest_secs = earliest_ms.div_euclid(1000);
        Self {
            earliest_secs,
            latest_secs: (now_ms - 1).div_euclid(1000).max(earliest_secs),
            earliest_ms,
        }
    }

    fn point(self, at_ms: i64, now_ms: i64) -> RestorePoint {
        let is_first =
            (self.earliest_secs.saturating_mul(1000)..=self.earliest_ms).contains(&at_ms);
        match is_first {
            // Recovery was enabled in this millisecond, which is not over yet.
            true if self.earliest_ms >= now_ms => RestorePoint::Latest,
            true => RestorePoint::At(self.earliest_ms),
            false => RestorePoint::At(at_ms),
        }
    }
}

/// The restore point for a requested time.
pub(crate) fn point(service: &Service, table: &str, at_ms: i64) -> RestorePoint {
    let now_ms = service.engine().clock_status().commit_ms;
    let described = service.engine().describe_table(table).ok();
    match described.and_then(|table| table.history) {
        Some(history) => RestoreWindow::of(&history, now_ms).point(at_ms, now_ms),
        None => RestorePoint::At(at_ms),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recovery_window_exists_at_once() {
        let history = History {
            since_ms: 5_400,
            period_days: 35,
        };
        for (now_ms, earliest_secs, latest_secs) in [
            (5_400, 5, 5),
            (5_999, 5, 5),
            (6_000, 5, 5),
            (6_001, 5, 6),
            (9_000, 5, 8),
        ] {
            let window = RestoreWindow::of(&history, now_ms);
            let seconds = (window.earliest_secs, window.latest_secs);
            assert_eq!(seconds, (earliest_secs, latest_secs), "{now_ms}");
        }
    }

    #[test]
    fn first_second_begins_with_recovery() {
        let history = History {
            since_ms: 5_400,
            period_days: 35,
        };
        for (at_ms, now_ms, point) in [
            (5_000, 5_400, RestorePoint::Latest),
            (5_000, 5_401, RestorePoint::At(5_400)),
            (5_399, 9_000, RestorePoint::At(5_400)),
            (5_401, 9_000, RestorePoint::At(5_401)),
            (4_999, 9_000, RestorePoint::At(4_999)),
        ] {
            let window = RestoreWindow::of(&history, now_ms);
            assert_eq!(window.point(at_ms, now_ms), point, "{at_ms} {now_ms}");
        }
    }
}
