//! The times of a fleet's messages.

/// Equally spaced message times, the last of which is the start of the run.
#[derive(Debug)]
pub(super) struct Schedule {
    pub(super) start_ms: i64,
    pub(super) interval_ms: i64,
    windows: u32,
}

impl Schedule {
    pub(super) fn new(windows: u32, interval_ms: i64, end_ms: i64) -> Self {
        Self {
            start_ms: end_ms - i64::from(windows) * interval_ms,
            interval_ms,
            windows,
        }
    }

    /// The time of a message.
    pub(super) fn at_ms(&self, window: u32) -> i64 {
        self.start_ms + (i64::from(window) + 1) * self.interval_ms
    }

    /// The time of the last message.
    pub(super) fn last_ms(&self) -> i64 {
        self.at_ms(self.windows - 1)
    }

    /// The message at this time, or at most `shift_ms_max` before it.
    pub(super) fn window_at(&self, at_ms: i64, shift_ms_max: i64) -> Option<u32> {
        let since = at_ms.checked_sub(self.start_ms)?;
        if since.rem_euclid(self.interval_ms) > shift_ms_max {
            return None;
        }
        let window = u32::try_from(since.div_euclid(self.interval_ms) - 1).ok()?;
        (window < self.windows).then_some(window)
    }
}
