//! `homeport export`: what devices stored, as a file, straight from a store or through the server that
//! has it open.

use std::io::{IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use homeport_engine::{Engine, OpenError};
use homeport_store::{Clock, SystemClock};
use homeport_systems::chargers::Chargers;
use homeport_systems::export::{CsvText, DeviceExport, Export, Format};
use homeport_systems::fleet::{self, Fleet};
use homeport_systems::push::Push;
use homeport_systems::records::{self, Records};
use homeport_systems::sensors::{self, Sensors};
use homeport_systems::time::EpochMillis;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::arguments::ExportArguments;
use crate::backend::{self, Backend};
use crate::config::{Settings, StoreKind};
use crate::server_client::ServerClient;
use crate::{address, begin, console, http, output};

const DEVICES_BAR: &str = "[{elapsed_precise}] {bar:40} {pos}/{len} devices {msg}";
const BYTES_BAR: &str = "[{elapsed_precise}] {spinner} {bytes} ({bytes_per_sec})";

pub(crate) async fn run(asked: ExportArguments) -> anyhow::Result<ExitCode> {
    let settings = begin(&asked.flags)?;
    let wanted = DeviceExport {
        system: asked.system,
        device: asked.device.clone(),
        from: moment("--from", asked.from.as_deref())?.unwrap_or(EpochMillis(0)),
        to: moment("--to", asked.to.as_deref())?.unwrap_or(EpochMillis(i64::MAX)),
    };
    let format = match asked.raw {
        true => asked.format.raw(),
        false => asked.format,
    };
    let mut file = File::create(asked.output.as_deref())?;
    if let Some(url) = &asked.url {
        let server = ServerClient::new(url, &settings)?;
        download(&server, &wanted, format, &mut file).await?;
        return file.finish();
    }
    if settings.store.kind == StoreKind::Dynamodb {
        let backend = Backend::open(&settings).await?;
        return from_store(backend, &settings, wanted, format, file).await;
    }
    let data_dir = &settings.data.dir;
    backend::must_exist(data_dir)?;
    match Engine::open(data_dir, backend::brief_options(&settings)?) {
        Ok(engine) => {
            let backend = Backend::embedded(engine);
            from_store(backend, &settings, wanted, format, file).await
        }
        Err(OpenError::Locked(_)) => {
            let Some(url) = address::read(data_dir) else {
                bail!(
                    "the data directory {} is in use by another process, which did not say where it listens: name the server with --url",
                    data_dir.display()
                );
            };
            note!("{} is being served: asking {url}", data_dir.display());
            let server = ServerClient::new(&url, &settings)?;
            download(&server, &wanted, format, &mut file).await?;
            file.finish()
        }
        Err(error) => Err(error).with_context(|| format!("opening {}", data_dir.display())),
    }
}

fn moment(flag: &str, text: Option<&str>) -> anyhow::Result<Option<EpochMillis>> {
    let Some(text) = text else {
        return Ok(None);
    };
    if let Ok(millis) = text.parse() {
        return Ok(Some(EpochMillis(millis)));
    }
    let timestamp: jiff::Timestamp = text.parse().with_context(|| {
        format!("{flag} must be milliseconds since 1970 or a time as 2024-01-15T10:30:00Z")
    })?;
    Ok(Some(EpochMillis(timestamp.as_millisecond())))
}

async fn from_store(
    backend: Backend,
    settings: &Settings,
    wanted: DeviceExport,
    format: Format,
    mut file: File,
) -> anyhow::Result<ExitCode> {
    let written = write(&backend, settings, wanted, format, &mut file).await;
    backend.close().await?;
    written?;
    file.finish()
}

async fn write(
    backend: &Backend,
    settings: &Settings,
    wanted: DeviceExport,
    format: Format,
    file: &mut File,
) -> anyhow::Result<()> {
    let names = http::table_names(settings);
    let tables = homeport_systems::schema::tables(&names);
    backend.store.ensure_tables(&tables).await?;
    let store = &backend.store;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let records = records::Settings {
        table: names.records.clone(),
        ..records::Settings::default()
    };
    let push = http::push_settings(settings)?;
    let parts = fleet::Parts {
        store: Arc::clone(store),
        clock: Arc::clone(&clock),
        sensors: Sensors::new(
            Arc::clone(store),
            Arc::clone(&clock),
            sensors::Settings::default(),
        ),
        chargers: Chargers::new(Arc::clone(store), Arc::clone(&clock)),
        records: Records::new(Arc::clone(store), Arc::clone(&clock), records),
        push: Push::new(Arc::clone(store), clock, push),
        names,
    };
    let fleet = Fleet::new(parts, console::expectations(settings)?);
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
    note!(
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
        path.push_str(&escaped(device));
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
    note!("{bytes} bytes");
    Ok(())
}

/// A value of a query, with everything escaped that could mean something there.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                out.push(char::from(byte));
            }
            byte => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

/// On a terminal; elsewhere nothing is drawn.
fn bar(template: &str) -> anyhow::Result<ProgressBar> {
    let target = match std::io::stderr().is_terminal() {
        true => ProgressDrawTarget::stderr(),
        false => ProgressDrawTarget::hidden(),
    };
    let bar = ProgressBar::with_draw_target(None, target);
    bar.set_style(ProgressStyle::with_template(template)?);
    Ok(bar)
}

/// Where the export goes. A file gets its name when it is whole.
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
            .with_context(|| format!("making {}", unfinished.display()))?;
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
                std::fs::rename(&unfinished, &name)
                    .with_context(|| format!("naming {}", name.display()))?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_escaped_in_addresses() {
        assert_eq!(escaped("AA:BB"), "AA%3ABB");
        assert_eq!(escaped("group/device&x=ü"), "group%2Fdevice%26x%3D%C3%BC");
    }

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
    fn a_file_has_its_name_only_when_it_is_whole() {
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
