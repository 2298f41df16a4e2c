//! `homeport export`: writes what devices stored to a file, from the store or through the server that has it open.

use std::io::{IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context as _;
use homeport_store::{Clock, SystemClock};
use homeport_systems::export::{CsvText, DeviceExport, Export, Format};
use homeport_systems::fleet::{Fleet, SYSTEMS, SourceDeps, Sources};
use homeport_systems::time::EpochMillis;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::app::console;
use crate::app::state;
use crate::arguments::ExportArguments;
use crate::client::server_client::{ServerClient, escape_query_value};
use crate::commands::store_access::StoreAccess;
use crate::config::Settings;
use crate::storage::backend::Backend;
use crate::{begin, output};

const DEVICES_BAR: &str = "[{elapsed_precise}] {bar:40} {pos}/{len} devices {msg}";
const BYTES_BAR: &str = "[{elapsed_precise}] {spinner} {bytes} ({bytes_per_sec})";

pub(crate) async fn run(arguments: ExportArguments) -> anyhow::Result<ExitCode> {
    let settings = begin(&arguments.flags)?;
    let wanted = DeviceExport {
        system: arguments.system,
        device: arguments.device.clone(),
        from: moment("--from", arguments.from.as_deref())?.unwrap_or(EpochMillis(0)),
        to: moment("--to", arguments.to.as_deref())?.unwrap_or(EpochMillis(i64::MAX)),
    };
    let format = match arguments.raw {
        true => arguments.format.raw(),
        false => arguments.format,
    };
    let mut file = File::create(arguments.output.as_deref())?;
    match StoreAccess::open(&settings, arguments.url.as_ref()).await? {
        StoreAccess::Store(backend) => {
            let written = write(&backend, &settings, wanted, format, &mut file).await;
            backend.close().await?;
            written?;
        }
        StoreAccess::Server(server) => download(&server, &wanted, format, &mut file).await?,
    }
    file.finish()
}

fn moment(flag: &str, text: Option<&str>) -> anyhow::Result<Option<EpochMillis>> {
    let Some(text) = text else {
        return Ok(None);
    };
    if let Ok(millis) = text.parse() {
        return Ok(Some(EpochMillis(millis)));
    }
    let timestamp: jiff::Timestamp = text.parse().with_context(|| {
        format!("{flag} must be milliseconds since 1970 or a time such as 2024-01-15T10:30:00Z")
    })?;
    Ok(Some(EpochMillis(timestamp.as_millisecond())))
}

async fn write(
    backend: &Backend,
    settings: &Settings,
    wanted: DeviceExport,
    format: Format,
    file: &mut File,
) -> anyhow::Result<()> {
    let names = state::table_names(settings);
    let tables = homeport_systems::schema::tables(&names);
    backend.store.ensure_tables(&tables).await?;
    let store = &backend.store;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let deps = SourceDeps::for_reading(store, &clock, &names);
    let sources = Sources::connect(&SYSTEMS, &deps);
    let expectations = console::expectations(settings)?;
    let fleet = Fleet::new(Arc::clone(store), clock, sources, expectations);
    let mut export = Export::of_devices(&fleet, wanted, format).await?;
    let bar = bar(DEVICES_BAR)?;
    bar.set_length(export.progress().devices as u64);
    while let Some(bytes) = export.next_bytes().await? {
        file.write_all(&bytes)?;
        let progress = export.progress();
        bar.set_position(progress.devices_done as u64);
        bar.set_message(format!("{} items", progress.rows));
    }
    bar.finish_and_clear();
    let progress = export.progress();
    print_notice!(
        "{} items of {} devices",
        progress.rows,
        progress.devices_done
    );
    Ok(())
}

async fn download(
    server: &ServerClient,
    wanted: &DeviceExport,
    format: Format,
    file: &mut File,
) -> anyhow::Result<()> {
    let mut path = format!(
        "/v1/export/{}?format={}&from={}&to={}",
        wanted.system,
        format.as_str(),
        wanted.from.0,
        wanted.to.0
    );
    if format == Format::Csv(CsvText::Raw) {
        path.push_str("&raw=true");
    }
    if let Some(device) = &wanted.device {
        path.push_str("&device=");
        path.push_str(&escape_query_value(device));
    }
    let bar = bar(BYTES_BAR)?;
    let mut parts = server.download(&path).await?;
    let mut bytes = 0;
    while let Some(part) = parts.recv().await {
        let part = part?;
        bytes += part.len() as u64;
        file.write_all(&part)?;
        bar.set_position(bytes);
    }
    bar.finish_and_clear();
    print_notice!("{bytes} bytes");
    Ok(())
}

/// A progress bar on a terminal, otherwise an invisible one.
fn bar(template: &str) -> anyhow::Result<ProgressBar> {
    let target = match std::io::stderr().is_terminal() {
        true => ProgressDrawTarget::stderr(),
        false => ProgressDrawTarget::hidden(),
    };
    let bar = ProgressBar::with_draw_target(None, target);
    bar.set_style(ProgressStyle::with_template(template)?);
    Ok(bar)
}

/// The export's destination. A file gets its name when it is complete.
enum File {
    Stdout,
    Named {
        file: std::io::BufWriter<std::fs::File>,
        unfinished: PathBuf,
        name: PathBuf,
    },
}

impl File {
    fn create(name: Option<&Path>) -> anyhow::Result<Self> {
        let Some(name) = name.filter(|name| *name != Path::new("-")) else {
            return Ok(Self::Stdout);
        };
        let mut unfinished = name.as_os_str().to_owned();
        unfinished.push(".part");
        let unfinished = PathBuf::from(unfinished);
        let file = homeport_engine::create_private_file(&unfinished)
            .with_context(|| format!("creating {}", unfinished.display()))?;
        Ok(Self::Named {
            file: std::io::BufWriter::new(file),
            unfinished,
            name: name.to_owned(),
        })
    }

    fn write_all(&mut self, bytes: &[u8]) -> anyhow::Result<()> {
        match self {
            Self::Stdout => output::write(bytes)?,
            Self::Named {
                file, unfinished, ..
            } => file
                .write_all(bytes)
                .with_context(|| format!("writing {}", unfinished.display()))?,
        }
        Ok(())
    }

    fn finish(self) -> anyhow::Result<ExitCode> {
        match self {
            Self::Stdout => {}
            Self::Named {
                file,
                unfinished,
                name,
            } => {
                let file = file.into_inner().map_err(|error| error.into_error())?;
                file.sync_all()?;
                std::fs::rename(&unfinished, &name).with_context(|| {
                    format!("renaming the finished export to {}", name.display())
                })?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn export_over_an_old_part_is_private() {
        use std::os::unix::fs::PermissionsExt as _;
        let directory = tempfile::tempdir().expect("a directory");
        let name = directory.path().join("readings.csv");
        let part = directory.path().join("readings.csv.part");
        std::fs::write(&part, "old").expect("written");
        let open = std::fs::Permissions::from_mode(0o644);
        std::fs::set_permissions(&part, open).expect("set");
        let file = File::create(Some(&name)).expect("a file");
        file.finish().expect("finished");
        let mode = std::fs::metadata(&name)
            .expect("there")
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn file_gets_its_name_when_complete() {
        let directory = tempfile::tempdir().expect("a directory");
        let name = directory.path().join("readings.csv");
        let mut file = File::create(Some(&name)).expect("a file");
        file.write_all(b"one").expect("written");
        assert!(!name.exists());
        file.finish().expect("finished");
        assert_eq!(std::fs::read(&name).expect("read"), b"one");
        assert_eq!(
            std::fs::read_dir(directory.path()).expect("a list").count(),
            1
        );
    }
}
