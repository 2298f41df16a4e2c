//! Times in requests. Every route parses them here: milliseconds since 1970, RFC 3339, or relative to the present as
//! `-24h`; for chargers also a wall clock as their keys have it.

use homeport_systems::chargers::MountainTime;
use homeport_systems::cursor::Cursor;
use homeport_systems::time::{EpochMillis, FutureLimit, TimeInFuture, parse_time};

use crate::problem::Problem;
use crate::state::AppState;

/// Parses the times of one request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RequestTimes {
    /// The moment to which relative times refer.
    now: EpochMillis,
    accepts_mountain_time: bool,
    future_limit: FutureLimit,
}

/// The bounds of a range of time, both included.
pub(crate) type Bounds = (Option<EpochMillis>, Option<EpochMillis>);

impl RequestTimes {
    /// Relative times refer to the present, on later pages of a list to the time of the first page.
    pub(crate) fn new(state: &AppState, cursor: Option<&Cursor>) -> Self {
        let first_page = cursor.and_then(Cursor::now);
        Self {
            now: first_page.unwrap_or_else(|| EpochMillis(state.clock.now_ms())),
            accepts_mountain_time: false,
            future_limit: state.future_limit,
        }
    }

    /// Checks that the time of data is not too far ahead.
    pub(crate) fn check_future(&self, at: EpochMillis) -> Result<(), TimeInFuture> {
        self.future_limit.check(at, self.now)
    }

    /// Accepts wall clocks of America/Denver too.
    pub(crate) fn or_mountain_time(self) -> Self {
        Self {
            accepts_mountain_time: true,
            ..self
        }
    }

    /// The moment to which relative times refer.
    pub(crate) fn now(&self) -> EpochMillis {
        self.now
    }

    /// Parses the time of the field `name`.
    pub(crate) fn parse(&self, name: &str, text: &str) -> Result<EpochMillis, Problem> {
        self.parse_as(name, text, MountainTime::assumed)
    }

    /// Parses the bounds of a range. In the repeated hour, a range includes both instants of a wall clock.
    pub(crate) fn bounds(&self, from: Option<&str>, to: Option<&str>) -> Result<Bounds, Problem> {
        let from = from.map(|text| self.parse_as("from", text, MountainTime::earliest));
        let to = to.map(|text| self.parse_as("to", text, MountainTime::latest));
        let (from, to) = (from.transpose()?, to.transpose()?);
        if let (Some(from), Some(to)) = (from, to) {
            check_order(from, to)?;
        }
        Ok((from, to))
    }

    /// The cursor of the next page, whose relative times refer to the same moment.
    pub(crate) fn keep_now(&self, next: Option<Cursor>) -> Option<Cursor> {
        next.map(|cursor| cursor.relative_to(self.now))
    }

    /// The same cursor as text.
    pub(crate) fn next_cursor(&self, next: Option<Cursor>) -> Option<String> {
        self.keep_now(next).map(|cursor| cursor.encode())
    }

    fn parse_as(
        &self,
        name: &str,
        text: &str,
        instant_of: fn(MountainTime) -> EpochMillis,
    ) -> Result<EpochMillis, Problem> {
        if self.accepts_mountain_time
            && let Ok(wall_clock) = text.parse::<MountainTime>()
        {
            return Ok(instant_of(wall_clock));
        }
        parse_time(text, self.now).ok_or_else(|| {
            let wall_clock = if self.accepts_mountain_time {
                ", a wall clock in Mountain Time such as 2026-02-21 14:30:00.000,"
            } else {
                ""
            };
            Problem::invalid(format!(
                "{name} must be milliseconds since 1970, a time such as 2024-01-15T10:30:00Z{wall_clock} or an age \
                 such as -24h"
            ))
        })
    }
}

/// Checks that a range does not end before it starts.
pub(crate) fn check_order<T: PartialOrd>(from: T, to: T) -> Result<(), Problem> {
    if from > to {
        return Err(Problem::invalid("from must not be later than to"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(accepts_mountain_time: bool) -> RequestTimes {
        RequestTimes {
            now: EpochMillis(1_800_000_000_000),
            accepts_mountain_time,
            future_limit: FutureLimit::default(),
        }
    }

    #[test]
    fn ranges_must_not_end_before_they_start() {
        let bounds = |from, to| times(false).bounds(Some(from), Some(to)).is_ok();
        assert!(bounds("5", "5"));
        assert!(bounds("-24h", "-1h"));
        assert!(!bounds("-1h", "-24h"));
        assert!(!bounds("6", "5"));
    }

    #[test]
    fn only_charger_routes_accept_wall_clocks() {
        // This wall clock comes twice, an hour apart.
        let text = "2026-11-01 01:30:00.000";
        assert!(times(false).parse("from", text).is_err());
        let (from, to) = times(true).bounds(Some(text), Some(text)).expect("a range");
        assert_eq!(
            (from, to),
            (
                Some(EpochMillis(1_793_518_200_000)),
                Some(EpochMillis(1_793_521_800_000))
            )
        );
    }

    #[test]
    fn next_page_keeps_the_moment_of_relative_times() {
        let times = times(false);
        let cursor = times.next_cursor(Some(Cursor::decode(&cursor()).expect("a cursor")));
        let cursor = Cursor::decode(&cursor.expect("a page")).expect("a cursor");
        assert_eq!(cursor.now(), Some(times.now));
    }

    /// A cursor as an earlier page returned it.
    fn cursor() -> String {
        use base64::Engine as _;
        base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(r#"[2,{"l":"","s":{}}]"#)
    }
}
