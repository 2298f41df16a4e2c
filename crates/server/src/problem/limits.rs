//! The limits that requests can exceed. `docs/limits.md` lists them, and `homeport_limit_exceeded_total` counts them.

/// Error codes of exceeded limits, with the names of the limits in the metric.
const LIMITS: [(&str, &str); 25] = [
    ("ALERT_OUTBOX_FULL", "alert_outbox"),
    ("BODY_TOO_LARGE", "body_bytes"),
    ("IDS_EXHAUSTED", "ids_per_tag"),
    ("OUTBOX_FULL", "push_outbox"),
    ("PAYLOAD_TOO_LARGE", "payload_bytes"),
    ("RATE_LIMITED", "request_rate"),
    ("RETAINED_FULL", "retained_messages"),
    ("TIMEOUT", "request_time"),
    ("TIMESTAMP_OCCUPIED", "records_per_moment"),
    ("TIME_IN_FUTURE", "future"),
    ("TOO_MANY_AT_ONCE", "events_per_moment"),
    ("TOO_MANY_BROADCASTS", "push_broadcasts"),
    ("TOO_MANY_COMMENTS", "alert_comments"),
    ("TOO_MANY_CONNECTIONS", "connections"),
    ("TOO_MANY_DECODERS", "charger_decoders"),
    ("TOO_MANY_DEFINITIONS", "alert_definitions"),
    ("TOO_MANY_DEVICES", "push_devices"),
    ("TOO_MANY_EXPORTS", "exports"),
    ("TOO_MANY_PEOPLE", "people"),
    ("TOO_MANY_PREVIEWS", "alert_previews"),
    ("TOO_MANY_READERS", "live_readers"),
    ("TOO_MANY_RULES", "rules"),
    ("TOO_MANY_SIGN_INS", "sign_ins"),
    ("TOO_MANY_SNOOZES", "alert_snoozes"),
    ("TOO_MANY_TOKENS", "tokens"),
];

/// The limit that an error code reports, if it is one.
pub(crate) fn limit_of(code: &str) -> Option<&'static str> {
    let mut limits = LIMITS.iter();
    let (_, limit) = limits.find(|(known, _)| *known == code)?;
    Some(limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_limit_is_documented() {
        let document = include_str!("../../../../docs/limits.md");
        for (code, limit) in LIMITS {
            let row = document
                .lines()
                .find(|line| line.contains(&format!("`{code}`")));
            let row = row.unwrap_or_else(|| panic!("docs/limits.md lacks {code}"));
            assert!(row.contains(&format!("`{limit}`")), "{row}");
        }
    }
}
