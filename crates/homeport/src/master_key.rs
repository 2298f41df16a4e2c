//! Where the master key of a sealed store comes from: a setting, a file, or a command that fetches it
//! from a KMS. No message shows it.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use homeport_engine::MasterKey;

use crate::config::{Encryption, Secret};

/// More than a key with white space around it ever takes, and as much of a command's complaints.
const TEXT_BYTES_MAX: u64 = 4096;
/// How long a command may take to fetch the key.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(30);
/// How often a command is looked at.
const COMMAND_POLL: Duration = Duration::from_millis(10);

/// Ways to give a key, of which at most one is used.
pub(crate) struct Source<'a> {
    pub(crate) text: Option<&'a Secret>,
    pub(crate) file: Option<&'a Path>,
    pub(crate) command: Option<&'a str>,
}

impl<'a> Source<'a> {
    pub(crate) fn of(settings: &'a Encryption) -> Self {
        Self {
            text: settings.master_key.as_ref(),
            file: settings.master_key_file.as_deref(),
            command: settings.master_key_command.as_deref(),
        }
    }

    /// The key, if one is given.
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
            _ => bail!("the master key is given in more than one way"),
        };
        Ok(Some(MasterKey::parse(&text)?))
    }
}

/// The master key that the settings lead to, if any.
pub(crate) fn read(settings: &Encryption) -> anyhow::Result<Option<MasterKey>> {
    Source::of(settings).read()
}

fn from_file(path: &Path) -> anyhow::Result<String> {
    let file = File::open(path)?;
    refuse_shared(&file)?;
    let mut text = String::new();
    file.take(TEXT_BYTES_MAX + 1).read_to_string(&mut text)?;
    if text.len() as u64 > TEXT_BYTES_MAX {
        bail!("it is longer than a master key can be");
    }
    Ok(text)
}

/// Refuses a file that others on this machine can read.
#[cfg(unix)]
fn refuse_shared(file: &File) -> anyhow::Result<()> {
    use std::os::unix::fs::MetadataExt as _;
    let mode = file.metadata()?.mode();
    if mode & 0o077 != 0 {
        bail!(
            "others than its owner may use this file (its mode is {:o}): a master key must have mode 600 or less",
            mode & 0o777
        );
    }
    Ok(())
}

#[cfg(not(unix))]
fn refuse_shared(_: &File) -> anyhow::Result<()> {
    Ok(())
}

/// What a command writes to its standard output.
fn from_command(command: &str, timeout: Duration) -> anyhow::Result<String> {
    let mut child = Command::new("sh")
        .args(["-c", command])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context("starting sh for encryption.master_key_command")?;
    let output = read_aside(child.stdout.take());
    let complaints = read_aside(child.stderr.take());
    let deadline = Instant::now() + timeout;
    let status = wait(&mut child, deadline);
    // A process that the command left behind may still hold the pipe.
    let rest = |receiver: Receiver<Vec<u8>>| {
        let left = deadline.saturating_duration_since(Instant::now());
        receiver.recv_timeout(left.max(COMMAND_POLL))
    };
    let complaints = rest(complaints).unwrap_or_default();
    let complaints = String::from_utf8_lossy(&complaints).trim().to_owned();
    let Some(status) = status? else {
        bail!(
            "encryption.master_key_command did not end within {} s; it said: {complaints}",
            timeout.as_secs()
        );
    };
    if !status.success() {
        bail!("encryption.master_key_command failed ({status}); it said: {complaints}");
    }
    let output = rest(output).context("encryption.master_key_command does not close its output")?;
    if output.len() as u64 > TEXT_BYTES_MAX {
        bail!("encryption.master_key_command wrote more than a master key can be");
    }
    String::from_utf8(output)
        .ok()
        .context("encryption.master_key_command wrote something that is no text")
}

/// How the command ended; nothing if it had to be stopped.
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

/// Reads a pipe in a thread of its own, up to a limit.
fn read_aside(pipe: Option<impl Read + Send + 'static>) -> Receiver<Vec<u8>> {
    let (sender, receiver) = channel();
    if let Some(pipe) = pipe {
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            // What was read before an error is all that there is to say.
            let _ = pipe.take(TEXT_BYTES_MAX + 1).read_to_end(&mut bytes);
            // Nobody waits for it any more when time is up.
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

    fn asked(command: &str) -> String {
        let read = from_command(command, Duration::from_secs(20));
        read.map_or_else(|error| format!("{error:#}"), |text| text.trim().to_owned())
    }

    #[test]
    fn a_command_s_output_is_the_key_and_its_complaints_are_told() {
        assert_eq!(asked(&format!("echo {KEY}")), KEY);
        let failed = asked(&format!("echo {KEY}; echo the vault is closed >&2; exit 3"));
        assert!(failed.contains("the vault is closed"), "{failed}");
        assert!(failed.contains('3') && !failed.contains(KEY), "{failed}");
        let missing = asked("no-such-program-anywhere");
        assert!(missing.contains("failed"), "{missing}");
    }

    #[test]
    fn a_command_that_says_too_much_or_never_ends_is_given_up() {
        let endless = asked("yes");
        assert!(
            endless.contains("failed") || endless.contains("more than"),
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
    fn a_file_that_others_can_read_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("master.key");
        std::fs::write(&path, format!("{KEY}\n")).unwrap();
        let source = Source {
            text: None,
            file: Some(&path),
            command: None,
        };
        for (mode, taken) in [(0o644, false), (0o640, false), (0o600, true), (0o400, true)] {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            let read = source.read();
            assert_eq!(read.is_ok(), taken, "{mode:o}: {read:?}");
            if let Err(error) = read {
                assert!(format!("{error:#}").contains("mode 600"), "{error:#}");
            }
        }
    }
}
