//! Reads the master key of a sealed store from a setting, a file, or a command that fetches it from a KMS. No message
//! shows it.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use homeport_engine::MasterKey;

use crate::config::{Encryption, Secret};

/// Limit for a key with white space around it, and for a command's error output.
const TEXT_BYTES_MAX: u64 = 4096;
/// Limit for a command that fetches the key.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(30);
/// Interval between checks whether the command has ended.
const COMMAND_POLL: Duration = Duration::from_millis(10);

/// The ways to provide a key. At most one is set.
pub(crate) struct KeySource<'a> {
    pub(crate) text: Option<&'a Secret>,
    pub(crate) file: Option<&'a Path>,
    pub(crate) command: Option<&'a str>,
}

impl<'a> KeySource<'a> {
    pub(crate) fn of(settings: &'a Encryption) -> Self {
        Self {
            text: settings.master_key.as_ref(),
            file: settings.master_key_file.as_deref(),
            command: settings.master_key_command.as_deref(),
        }
    }

    /// Reads the key, if one is configured.
    pub(crate) fn read(&self) -> anyhow::Result<Option<MasterKey>> {
        let text = match (self.text, self.file, self.command) {
            (None, None, None) => return Ok(None),
            (Some(text), None, None) => text.reveal().to_owned(),
            (None, Some(path), None) => {
                from_file(path).with_context(|| format!("reading {}", path.display()))?
            }
            (None, None, Some(command)) => {
                from_command(command, COMMAND_TIMEOUT).context("fetching the master key")?
            }
            _ => bail!("more than one master key is configured; keep one of key, file and command"),
        };
        Ok(Some(MasterKey::parse(&text)?))
    }
}

/// Reads the configured master key, if there is one.
pub(crate) fn read(settings: &Encryption) -> anyhow::Result<Option<MasterKey>> {
    KeySource::of(settings).read()
}

fn from_file(path: &Path) -> anyhow::Result<String> {
    let file = File::open(path)?;
    refuse_shared(&file)?;
    let mut text = String::new();
    file.take(TEXT_BYTES_MAX + 1).read_to_string(&mut text)?;
    if text.len() as u64 > TEXT_BYTES_MAX {
        bail!("the file is too long for a master key");
    }
    Ok(text)
}

/// Rejects a file that other users of this machine can read.
#[cfg(unix)]
fn refuse_shared(file: &File) -> anyhow::Result<()> {
    use std::os::unix::fs::MetadataExt as _;
    let mode = file.metadata()?.mode();
    if mode & 0o077 != 0 {
        bail!(
            "other users can read this file (mode {:o}); restrict it with chmod 600",
            mode & 0o777
        );
    }
    Ok(())
}

#[cfg(not(unix))]
fn refuse_shared(_: &File) -> anyhow::Result<()> {
    Ok(())
}

/// The standard output of a command.
fn from_command(command: &str, timeout: Duration) -> anyhow::Result<String> {
    let mut child = Command::new("sh")
        .args(["-c", command])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context("starting sh for encryption.master_key_command")?;
    let output = read_aside(child.stdout.take());
    let errors = read_aside(child.stderr.take());
    let deadline = Instant::now() + timeout;
    let status = wait(&mut child, deadline);
    // A background process of the command may still hold the pipe.
    let rest = |receiver: Receiver<Vec<u8>>| {
        let left = deadline.saturating_duration_since(Instant::now());
        receiver.recv_timeout(left.max(COMMAND_POLL))
    };
    let errors = rest(errors).unwrap_or_default();
    let errors = String::from_utf8_lossy(&errors).trim().to_owned();
    let Some(status) = status? else {
        bail!(
            "encryption.master_key_command did not end within {} s; its error output: {errors}",
            timeout.as_secs()
        );
    };
    if !status.success() {
        bail!("encryption.master_key_command failed ({status}); its error output: {errors}");
    }
    let output =
        rest(output).context("encryption.master_key_command ended without closing its output")?;
    if output.len() as u64 > TEXT_BYTES_MAX {
        bail!("encryption.master_key_command printed too much for a master key");
    }
    String::from_utf8(output)
        .ok()
        .context("encryption.master_key_command printed something that is not UTF-8 text")
}

/// The exit status, or `None` if the command had to be killed.
fn wait(child: &mut Child, deadline: Instant) -> anyhow::Result<Option<ExitStatus>> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if Instant::now() >= deadline {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        std::thread::sleep(COMMAND_POLL);
    }
}

/// Reads a pipe in its own thread, up to a limit.
fn read_aside(pipe: Option<impl Read + Send + 'static>) -> Receiver<Vec<u8>> {
    let (sender, receiver) = channel();
    if let Some(pipe) = pipe {
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            // After an error, whatever was read is all there is.
            let _ = pipe.take(TEXT_BYTES_MAX + 1).read_to_end(&mut bytes);
            // The receiver is gone after a timeout.
            let _ = sender.send(bytes);
        });
    }
    receiver
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    const KEY: &str = "5ea1ed015ea1ed025ea1ed035ea1ed045ea1ed055ea1ed065ea1ed075ea1ed08";

    fn key_from(command: &str) -> String {
        let read = from_command(command, Duration::from_secs(20));
        read.map_or_else(|error| format!("{error:#}"), |text| text.trim().to_owned())
    }

    #[test]
    fn command_output_is_the_key() {
        assert_eq!(key_from(&format!("echo {KEY}")), KEY);
        let failed = key_from(&format!("echo {KEY}; echo the vault is closed >&2; exit 3"));
        assert!(failed.contains("the vault is closed"), "{failed}");
        assert!(failed.contains('3') && !failed.contains(KEY), "{failed}");
        let missing = key_from("no-such-program-anywhere");
        assert!(missing.contains("failed"), "{missing}");
    }

    #[test]
    fn endless_command_is_killed() {
        let endless = key_from("yes");
        assert!(
            endless.contains("failed") || endless.contains("too much"),
            "{endless}"
        );
        let silent = from_command(
            "echo waiting >&2; exec sleep 600",
            Duration::from_millis(300),
        );
        let error = format!("{:#}", silent.unwrap_err());
        assert!(
            error.contains("did not end") && error.contains("waiting"),
            "{error}"
        );
    }

    #[test]
    fn shared_key_file_is_rejected() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("master.key");
        std::fs::write(&path, format!("{KEY}\n")).unwrap();
        let source = KeySource {
            text: None,
            file: Some(&path),
            command: None,
        };
        for (mode, taken) in [(0o644, false), (0o640, false), (0o600, true), (0o400, true)] {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            let read = source.read();
            assert_eq!(read.is_ok(), taken, "{mode:o}: {read:?}");
            if let Err(error) = read {
                assert!(format!("{error:#}").contains("chmod 600"), "{error:#}");
            }
        }
    }
}
