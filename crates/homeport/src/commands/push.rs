//! `homeport push`: clean-up and checks of the runbook, on a store without a running server, or on Amazon DynamoDB.

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::bail;
use homeport_store::SystemClock;
use homeport_systems::push::{Push, TableCheck, UserDeviceCheck, schema};

use crate::app::state;
use crate::arguments::{CleanupArguments, PushCheckArguments, PushCommand};
use crate::config::{Settings, StoreKind};
use crate::storage::backend::{self, Backend};
use crate::{begin, print};

pub(crate) async fn run(command: PushCommand) -> anyhow::Result<ExitCode> {
    match command {
        PushCommand::Cleanup(arguments) => cleanup(arguments).await,
        PushCommand::Check(arguments) => check(arguments).await,
    }
}

async fn cleanup(arguments: CleanupArguments) -> anyhow::Result<ExitCode> {
    let (push, backend) = open(&begin(&arguments.flags)?).await?;
    let cleaned = push
        .clean_up(arguments.older_than_days, arguments.dry_run)
        .await;
    drop(push);
    backend.close().await?;
    let cleaned = cleaned?;
    let days = arguments.older_than_days;
    print(&if arguments.dry_run {
        format!(
            "{} devices were inactive for more than {days} days; dry run: nothing was deleted\n",
            cleaned.found
        )
    } else {
        format!(
            "deleted {} of {} devices that were inactive for more than {days} days\n",
            cleaned.deleted, cleaned.found
        )
    })
}

async fn check(arguments: PushCheckArguments) -> anyhow::Result<ExitCode> {
    let settings = begin(&arguments.flags)?;
    let (push, backend) = open(&settings).await?;
    let table = push.check_table().await;
    let devices = match &arguments.user {
        Some(user) => Some(push.check_user(user).await),
        None => None,
    };
    drop(push);
    backend.close().await?;
    let mut text = show_table(&settings.push.table, &table?);
    if let Some(devices) = devices {
        text.push_str(&show_devices(&devices?));
    }
    print(&text)
}

/// Opens the store and creates missing tables, which the runbook checks first.
async fn open(settings: &Settings) -> anyhow::Result<(Push, Backend)> {
    if settings.store.kind == StoreKind::Embedded {
        backend::must_exist(&settings.data.dir)?;
    }
    let backend = match Backend::open(settings).await {
        Ok(backend) => backend,
        Err(error) => bail!(
            "{error:#}; if a server has the store open, use its routes /v1/push/check and /v1/push/cleanup"
        ),
    };
    let tables = schema::tables(&settings.push.table);
    backend.store.ensure_tables(&tables).await?;
    let push = Push::new(
        Arc::clone(&backend.store),
        Arc::new(SystemClock),
        state::push_settings(settings)?,
    )
    .with_removal_clock(backend.removal_clock());
    Ok((push, backend))
}

fn show_table(name: &str, found: &TableCheck) -> String {
    format!(
        "table {name}: exists, with the expected keys and expiry\n\
         devices: {}, of them active: {}\n\
         without an expiry: {}\n\
         with a token that Expo does not take: {}\n\
         notifications in the outbox: {}\n",
        found.devices, found.active, found.without_expiry, found.wrong_token, found.outbox_open
    )
}

fn show_devices(devices: &[UserDeviceCheck]) -> String {
    if devices.is_empty() {
        return "the user has no device, or all have expired\n".to_owned();
    }
    let lines = devices.iter().map(|device| {
        let verdict = match (device.is_active, device.has_right_token) {
            (true, true) => "gets notifications",
            (false, _) => "inactive: gets no notifications until it registers again",
            (true, false) => "gets no notifications: invalid Expo push token",
        };
        let expiry = match device.expires_at {
            Some(secs) => format!("expires at {secs}"),
            None => "never expires".to_owned(),
        };
        let id: String = device
            .device_id
            .chars()
            .map(|char| if char.is_control() { '\u{FFFD}' } else { char })
            .collect();
        format!("device {id}: {verdict}; {expiry}\n")
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_device_has_its_verdict() {
        let device = |is_active, has_right_token, expires_at| UserDeviceCheck {
            device_id: "a\u{1b}".to_owned(),
            is_active,
            expires_at,
            has_right_token,
        };
        let text = show_devices(&[
            device(true, true, Some(7)),
            device(false, true, Some(7)),
            device(true, false, None),
        ]);
        assert_eq!(
            text,
            "device a\u{FFFD}: gets notifications; expires at 7\n\
             device a\u{FFFD}: inactive: gets no notifications until it registers again; expires at 7\n\
             device a\u{FFFD}: gets no notifications: invalid Expo push token; never expires\n"
        );
        assert!(show_devices(&[]).contains("no device"));
    }
}
