//! `homeport encryption`: shows the encryption of a data directory, changes its master key, and makes sealed copies.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use homeport_engine::{Copied, MasterKey, Options, SealStatus};
use jiff::Timestamp;

use crate::arguments::{CopyArguments, EncryptionCommand, RotateArguments};
use crate::begin;
use crate::commands::maintenance::must_be_embedded;
use crate::config::Settings;
use crate::storage::backend;
use crate::storage::master_key::{self, KeySource};
use crate::storage::secrets::FILES;

pub(crate) async fn run(command: EncryptionCommand) -> anyhow::Result<ExitCode> {
    let work = move || match command {
        EncryptionCommand::Status(flags) => status(&begin(&flags)?),
        EncryptionCommand::Rotate(arguments) => rotate(&begin(&arguments.flags)?, &arguments),
        EncryptionCommand::Seal(arguments) => seal(&begin(&arguments.flags)?, &arguments),
        EncryptionCommand::Unseal(arguments) => unseal(&begin(&arguments.flags)?, &arguments),
    };
    // Off the runtime: it reads and writes the whole store, and waits for commands.
    let text = tokio::task::spawn_blocking(work).await??;
    print_line!("{text}");
    Ok(ExitCode::SUCCESS)
}

fn status(settings: &Settings) -> anyhow::Result<String> {
    let data_dir = existing(settings)?;
    let name = data_dir.display();
    Ok(match homeport_engine::seal_status(data_dir)? {
        None => format!("{name} is not sealed"),
        Some(status) => format!("{name} {}", describe(&status)),
    })
}

fn rotate(settings: &Settings, arguments: &RotateArguments) -> anyhow::Result<String> {
    let data_dir = existing(settings)?;
    let from = given(settings)?;
    let new = KeySource {
        text: arguments.new_master_key.as_ref(),
        file: arguments.new_master_key_file.as_deref(),
        command: arguments.new_master_key_command.as_deref(),
    };
    let Some(to) = new.read().context("reading the new master key")? else {
        bail!(
            "no new master key; give it with --new-master-key-file, --new-master-key-command or HOMEPORT_NEW_MASTER_KEY"
        );
    };
    let status = homeport_engine::change_master_key(data_dir, &from, &to)?;
    Ok(format!(
        "{} {}; the old key {} no longer opens it, but backups made before still need that key",
        data_dir.display(),
        describe(&status),
        from.fingerprint()
    ))
}

fn seal(settings: &Settings, arguments: &CopyArguments) -> anyhow::Result<String> {
    let data_dir = existing(settings)?;
    let key = given(settings)?;
    // A sealed source gets new data keys.
    let is_sealed = homeport_engine::seal_status(data_dir)?.is_some();
    let source_key = is_sealed.then(|| key.clone());
    copy(data_dir, source_key, &arguments.to, Some(key))
}

fn unseal(settings: &Settings, arguments: &CopyArguments) -> anyhow::Result<String> {
    let key = given(settings)?;
    copy(existing(settings)?, Some(key), &arguments.to, None)
}

fn copy(
    source: &Path,
    source_key: Option<MasterKey>,
    target: &Path,
    target_key: Option<MasterKey>,
) -> anyhow::Result<String> {
    let options = Options {
        master_key: source_key,
        ..Options::default()
    };
    let form = match &target_key {
        Some(key) => format!(
            "sealed under the master key with fingerprint {}",
            key.fingerprint()
        ),
        None => "not sealed".to_owned(),
    };
    // API keys are useless without the pepper that hashed them, so secrets are copied too.
    let copied = homeport_engine::copy_sealed(source, target, &options, target_key, &FILES)?;
    let Copied {
        entries, backups, ..
    } = copied;
    Ok(format!(
        "{} has the {entries} entries, {backups} backups of tables and the server's own secrets of {}, and is {form}",
        target.display(),
        source.display()
    ))
}

fn describe(status: &SealStatus) -> String {
    let day = |at_ms: Option<i64>| {
        let at = at_ms.and_then(|at_ms| Timestamp::from_millisecond(at_ms).ok());
        at.map_or_else(String::new, |at| at.to_string())
    };
    let keys = match status.data_keys {
        0 => "no data keys yet".to_owned(),
        1 => format!("1 data key, of {}", day(status.newest_at_ms)),
        count => format!(
            "{count} data keys, of {} to {}",
            day(status.oldest_at_ms),
            day(status.newest_at_ms)
        ),
    };
    format!(
        "is sealed under the master key with fingerprint {}, with {keys}",
        status.fingerprint
    )
}

fn existing(settings: &Settings) -> anyhow::Result<&Path> {
    must_be_embedded(settings)?;
    backend::must_exist(&settings.data.dir)?;
    Ok(&settings.data.dir)
}

fn given(settings: &Settings) -> anyhow::Result<MasterKey> {
    let key = master_key::read(&settings.encryption)?;
    key.context("no master key; give it with --master-key-file, --master-key-command or HOMEPORT_MASTER_KEY")
}
