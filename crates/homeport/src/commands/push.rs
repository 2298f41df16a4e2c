//! `homeport push`: clean-up and checks of the runbook, in the store or through the server that has it open. Both return
//! the same bodies.

use std::process::ExitCode;
use std::sync::Arc;

use homeport_server::{PushCheck, PushCleanup, PushDeviceCheck};
use homeport_store::SystemClock;
use homeport_systems::push::{Push, UserId, schema};
use serde_json::json;

use crate::app::state;
use crate::arguments::{CleanupArguments, PushAccess, PushCheckArguments, PushCommand};
use crate::client::server_client::{ServerClient, escape_query_value};
use crate::commands::store_access::StoreAccess;
use crate::config::Settings;
use crate::storage::backend::Backend;
use crate::{begin, print};

/// Access to the devices of users.
enum Devices {
    Store { push: Box<Push>, backend: Backend },
    Server(Box<ServerClient>),
}

pub(crate) async fn run(command: PushCommand) -> anyhow::Result<ExitCode> {
    match command {
        PushCommand::Cleanup(arguments) => cleanup(arguments).await,
        PushCommand::Check(arguments) => check(arguments).await,
    }
}

async fn cleanup(arguments: CleanupArguments) -> anyhow::Result<ExitCode> {
    let settings = begin(&arguments.access.flags)?;
    let devices = Devices::open(&arguments.access, &settings).await?;
    let (days, dry_run) = (arguments.older_than_days, arguments.dry_run);
    let cleaned = devices.clean_up(days, dry_run).await;
    devices.close().await?;
    let cleaned = cleaned?;
    print(&if dry_run {
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
    let settings = begin(&arguments.access.flags)?;
    let devices = Devices::open(&arguments.access, &settings).await?;
    let found = devices.check(arguments.user.as_ref()).await;
    devices.close().await?;
    let found = found?;
    let mut text = show_table(&settings.push.table, &found);
    if let Some(devices) = &found.user_devices {
        text.push_str(&show_devices(devices));
    }
    print(&text)
}

impl Devices {
    async fn open(access: &PushAccess, settings: &Settings) -> anyhow::Result<Self> {
        match StoreAccess::open(settings, access.url.as_ref()).await? {
            StoreAccess::Store(backend) => Self::in_store(backend, settings).await,
            StoreAccess::Server(server) => Ok(Self::Server(server)),
        }
    }

    /// Creates missing tables, which the runbook checks first.
    async fn in_store(backend: Backend, settings: &Settings) -> anyhow::Result<Self> {
        let tables = schema::tables(&settings.push.table, settings.push.broadcast_index);
        backend.store.ensure_tables(&tables).await?;
        let push = Push::new(
            Arc::clone(&backend.store),
            Arc::new(SystemClock),
            state::push_settings(settings)?,
        )
        .with_removal_clock(backend.removal_clock());
        Ok(Self::Store {
            push: Box::new(push),
            backend,
        })
    }

    async fn clean_up(&self, older_than_days: u32, dry_run: bool) -> anyhow::Result<PushCleanup> {
        match self {
            Self::Store { push, .. } => Ok(push.clean_up(older_than_days, dry_run).await?.into()),
            Self::Server(server) => {
                let body = json!({"older_than_days": older_than_days, "dry_run": dry_run});
                server
                    .ask("POST", "/v1/push/cleanup", body.to_string())
                    .await
            }
        }
    }

    async fn check(&self, user: Option<&UserId>) -> anyhow::Result<PushCheck> {
        match self {
            Self::Store { push, .. } => {
                let table = push.check_table().await?;
                let devices = match user {
                    Some(user) => Some(push.check_user(user).await?),
                    None => None,
                };
                Ok(PushCheck::new(&table, devices))
            }
            Self::Server(server) => {
                let query = user.map(|user| escape_query_value(user.as_str()));
                let query = query.map(|user| format!("?userId={user}"));
                let path = format!("/v1/push/check{}", query.unwrap_or_default());
                server.ask("GET", &path, String::new()).await
            }
        }
    }

    async fn close(self) -> anyhow::Result<()> {
        match self {
            Self::Store { push, backend } => {
                drop(push);
                backend.close().await
            }
            Self::Server(_) => Ok(()),
        }
    }
}

fn show_table(name: &str, found: &PushCheck) -> String {
    format!(
        "table {name}: exists, with the expected keys and expiry\n\
         devices: {}, of them active: {} ({} ios, {} android)\n\
         without an expiry: {}\n\
         with a token that Expo does not take: {}\n\
         notifications in the outbox: {}\n",
        found.devices,
        found.active,
        found.active_ios,
        found.active_android,
        found.without_expiry,
        found.wrong_token,
        found.outbox_open
    )
}

fn show_devices(devices: &[PushDeviceCheck]) -> String {
    if devices.is_empty() {
        return "the user has no device, or all have expired\n".to_owned();
    }
    devices.iter().map(show_device).collect()
}

fn show_device(device: &PushDeviceCheck) -> String {
    let expiry = match device.expires_at {
        Some(secs) => format!("expires at {secs}"),
        None => "never expires".to_owned(),
    };
    let last = match &device.last_notification {
        None => "no notification yet".to_owned(),
        Some(last) => {
            let reason = last.reason.as_ref().map(|reason| format!(" ({reason})"));
            format!(
                "last notification: {}{}",
                last.state,
                reason.unwrap_or_default()
            )
        }
    };
    let line = format!(
        "device {}: {}; {expiry}; {last}",
        device.device_id, device.explanation
    );
    let printable = |char: char| if char.is_control() { '\u{FFFD}' } else { char };
    line.chars().map(printable).chain(['\n']).collect()
}

#[cfg(test)]
mod tests {
    use homeport_systems::push::{DeviceVerdict, UserDeviceCheck};
    use homeport_systems::time::EpochSeconds;

    use super::*;

    #[test]
    fn each_device_has_its_verdict() {
        let device = |verdict, expires_at: Option<i64>| {
            PushDeviceCheck::from(UserDeviceCheck {
                device_id: "a\u{1b}".to_owned(),
                verdict,
                is_active: verdict != DeviceVerdict::Inactive,
                expires_at: expires_at.map(EpochSeconds),
                has_valid_token: verdict != DeviceVerdict::InvalidToken,
                last_notification: None,
            })
        };
        let text = show_devices(&[
            device(DeviceVerdict::Reachable, Some(7)),
            device(DeviceVerdict::Inactive, Some(7)),
            device(DeviceVerdict::InvalidToken, None),
        ]);
        assert_eq!(
            text,
            "device a\u{FFFD}: gets notifications; expires at 7; no notification yet\n\
             device a\u{FFFD}: gets no notifications until it registers again: inactive; expires at 7; no notification yet\n\
             device a\u{FFFD}: gets no notifications: invalid Expo push token; never expires; no notification yet\n"
        );
        assert!(show_devices(&[]).contains("no device"));
    }
}
