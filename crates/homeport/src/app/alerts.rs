//! Builds the alert system from the settings.

use std::sync::Arc;

use anyhow::Context as _;
use homeport_server::{AppState, Delivery, SmtpRelay, SmtpTls};
use homeport_systems::alerts::{PreviewLimits, Settings as AlertSettings, WebhookSecret, Worker};

use crate::config::{Settings, SmtpTlsSetting};

const SECS_PER_DAY: i64 = 24 * 60 * 60;

/// Converts the settings.
pub(crate) fn settings(settings: &Settings) -> anyhow::Result<AlertSettings> {
    let alerts = &settings.alerts;
    let days = i64::try_from(alerts.retention_days.get())?;
    let age_secs = i64::try_from(alerts.announce_max_age_secs.get())?;
    let secret = alerts.webhook_secret.as_ref();
    let secret = secret.map(|secret| WebhookSecret::try_from(secret.reveal().to_owned()));
    Ok(AlertSettings {
        outbox_max: alerts.outbox_max.count(),
        retention_secs: (days > 0).then_some(days * SECS_PER_DAY),
        silence_grace_secs: i64::try_from(alerts.silence_grace_secs.get())?,
        announce_max_age_secs: (age_secs > 0).then_some(age_secs),
        preview: PreviewLimits::default(),
        webhook_secret: secret.transpose().context("alerts.webhook_secret")?,
        has_email: alerts.smtp_host.is_some(),
    })
}

/// The worker that sends notifications.
pub(crate) fn worker(state: &AppState, settings: &Settings) -> anyhow::Result<Worker> {
    let delivery = Delivery::new(settings.alerts.private_addresses, relay(settings)?);
    Ok(Worker::new(state.alerts.clone(), Arc::new(delivery)))
}

fn relay(settings: &Settings) -> anyhow::Result<Option<SmtpRelay>> {
    let alerts = &settings.alerts;
    let (Some(host), Some(from)) = (&alerts.smtp_host, &alerts.smtp_from) else {
        return Ok(None);
    };
    let tls = match alerts.smtp_tls {
        SmtpTlsSetting::Starttls => SmtpTls::Starttls,
        SmtpTlsSetting::Implicit => SmtpTls::Implicit,
        SmtpTlsSetting::None => SmtpTls::None,
    };
    let (user, password) = (alerts.smtp_user.as_ref(), alerts.smtp_password.as_ref());
    let credentials = user
        .zip(password)
        .map(|(user, password)| (user.clone(), password.reveal().to_owned()));
    let port = u16::try_from(alerts.smtp_port.get())?;
    let relay = SmtpRelay::new(host, port, tls, credentials, from);
    Ok(Some(relay.context("preparing the SMTP relay")?))
}
