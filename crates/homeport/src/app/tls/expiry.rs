//! The time at which the certificates expire: as a metric, in health checks and in the log.

use homeport_server::Certificate;
use jiff::Timestamp;

/// How long before a certificate expires operators are warned.
const WARN_BEFORE_SECS: i64 = 14 * 24 * 60 * 60;

/// The certificates of all ports.
#[derive(Debug, Clone, Default)]
pub(crate) struct CertificateExpiry(pub(super) Vec<Certificate>);

impl CertificateExpiry {
    /// The earliest end of all certificates, in seconds since the epoch.
    pub(crate) fn earliest(&self) -> Option<i64> {
        self.0.iter().map(Certificate::expires_at).min()
    }

    /// A warning if a certificate expires soon. It contains no path, because anyone can read it.
    pub(crate) fn warning(&self) -> Option<String> {
        warning(self.earliest()?, Timestamp::now().as_second())
    }

    /// Writes the warning to the log, with the file of the certificate.
    pub(super) fn log_warning(&self) {
        let now = Timestamp::now().as_second();
        for certificate in &self.0 {
            if let Some(warning) = warning(certificate.expires_at(), now) {
                let file = certificate.files().certificate.display();
                tracing::warn!(%file, "{warning}");
            }
        }
    }
}

fn warning(expires_at: i64, now: i64) -> Option<String> {
    let verb = match expires_at - now {
        ..=0 => "expired",
        1..=WARN_BEFORE_SECS => "expires",
        _ => return None,
    };
    // Years beyond 9999 are not soon.
    let at = Timestamp::from_second(expires_at).ok()?;
    Some(format!(
        "the TLS certificate {verb} at {at}; replace its files, which needs no restart"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warning_begins_two_weeks_before_expiry() {
        let expires_at = 1_800_000_000;
        assert_eq!(warning(expires_at, expires_at - WARN_BEFORE_SECS - 1), None);
        for (secs_before, expected) in [
            (WARN_BEFORE_SECS, "expires at 2027-01-15T08:00:00Z"),
            (1, "expires at"),
            (0, "expired at"),
            (-1, "expired at"),
        ] {
            let warning = warning(expires_at, expires_at - secs_before).expect("a warning");
            assert!(warning.contains(expected), "{secs_before}: {warning}");
        }
    }
}
