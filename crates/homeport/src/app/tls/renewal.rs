//! Uses new certificates without a restart, and keeps the address file's certificate current.

use std::path::PathBuf;
use std::time::Duration;

use homeport_server::Certificate;
use tokio::time::Instant;

use super::CertificateExpiry;
use super::self_signed::SelfSigned;
use crate::client::address;
use crate::config::Settings;

/// How often the log repeats that a certificate expires, and how often a self-signed one is checked.
const DAILY: Duration = Duration::from_secs(24 * 60 * 60);

/// Watches the certificates.
#[derive(Clone)]
pub(crate) struct Renewal {
    /// The certificate of the HTTP port.
    own: Option<Certificate>,
    certificates: CertificateExpiry,
    self_signed: Option<SelfSigned>,
    data_dir: PathBuf,
    every: Duration,
}

impl Renewal {
    pub(super) fn new(
        settings: &Settings,
        own: Option<Certificate>,
        certificates: CertificateExpiry,
        self_signed: Option<SelfSigned>,
    ) -> Self {
        Self {
            own,
            certificates,
            self_signed,
            data_dir: settings.data.dir.clone(),
            every: Duration::from_secs(settings.tls.reload_every_secs.get()),
        }
    }

    /// Writes the certificate by which commands on this machine recognize the server.
    pub(crate) fn write_certificate(&self) -> anyhow::Result<()> {
        match &self.own {
            Some(own) => address::write_certificate(&self.data_dir, &own.der()),
            None => Ok(()),
        }
    }

    /// Checks the files until `stop` completes.
    pub(crate) async fn run_until(self, stop: impl Future<Output = ()>) {
        let mut stop = std::pin::pin!(stop);
        let mut checked_daily_at = Instant::now();
        loop {
            tokio::select! {
                () = &mut stop => return,
                () = tokio::time::sleep(self.every) => {}
            }
            let is_daily = checked_daily_at.elapsed() >= DAILY;
            if is_daily {
                checked_daily_at = Instant::now();
            }
            let renewal = self.clone();
            // Files may be on a network.
            let check = tokio::task::spawn_blocking(move || renewal.check(is_daily)).await;
            if let Err(error) = check {
                std::panic::resume_unwind(error.into_panic());
            }
        }
    }

    fn check(&self, is_daily: bool) {
        if is_daily {
            if let Some(self_signed) = &self.self_signed
                && let Err(error) = self_signed.ensure()
            {
                tracing::warn!(
                    error = format!("{error:#}"),
                    "cannot renew the self-signed certificate"
                );
            }
            self.certificates.log_warning();
        }
        for certificate in &self.certificates.0 {
            let file = certificate.files().certificate.display();
            match certificate.reload() {
                Ok(false) => {}
                Ok(true) => {
                    tracing::info!(%file, "new TLS certificate in use");
                    if let Err(error) = self.write_certificate() {
                        tracing::warn!(
                            error = format!("{error:#}"),
                            "commands on this machine may not recognize the server"
                        );
                    }
                    self.certificates.log_warning();
                }
                Err(error) => {
                    let error = format!("{:#}", anyhow::Error::new(error));
                    tracing::warn!(%file, error, "the new TLS certificate cannot be used; the previous one stays in use");
                }
            }
        }
    }
}
