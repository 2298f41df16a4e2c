//! The location of the data directory: an ordinary folder, or a small file system of the run that can be filled up or cut
//! off.
//!
//! Mounts are made in a private mount namespace, so they end with the process in any case.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::plan::Fault;

/// Size of the run's file system: enough for a round's data and the server's disk reserve.
const SIZE_MIB: u64 = 2048;
/// Set in the process that runs in the private namespace.
const INSIDE: &str = "HOMEPORT_TORTURE_INSIDE";

#[derive(Debug)]
pub(crate) struct Location {
    kind: Kind,
    folder: PathBuf,
    image: PathBuf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Folder,
    /// A file system in memory.
    Tmpfs,
    /// ext4 in a file, for power cuts.
    Ext4,
}

/// Whether the program exists and works.
pub(crate) fn works(program: &str, arguments: &[&str]) -> bool {
    let mut command = Command::new(program);
    let command = command
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

fn unshare_arguments() -> &'static [&'static str] {
    if works("unshare", &["--mount", "true"]) {
        &["--mount"]
    } else {
        &["--user", "--map-root-user", "--mount"]
    }
}

/// Why this machine cannot inject a fault.
pub(crate) fn unavailable(fault: Fault) -> Option<&'static str> {
    let unshare = unshare_arguments();
    let can_mount = |command: &str| {
        let arguments = [unshare, &["sh", "-c", command]].concat();
        works("unshare", &arguments)
    };
    match fault {
        Fault::Disk if !can_mount("mount -t tmpfs tmpfs /mnt") => Some("tmpfs cannot be mounted"),
        Fault::PowerCut if !works("xfs_io", &["-V"]) => {
            Some("xfs_io is missing: install Debian's package xfsprogs")
        }
        Fault::PowerCut if !can_mount("test $(id -u) = 0 && test -w /dev/loop-control") => {
            Some("loop devices cannot be used")
        }
        Fault::Descriptors if !raise_descriptors() => {
            Some("the limit of descriptors cannot be raised with prlimit")
        }
        _ => None,
    }
}

/// Raises the limit of descriptors: the harness opens more connections than the server may have.
fn raise_descriptors() -> bool {
    let pid = format!("--pid={}", std::process::id());
    works("prlimit", &[&pid, "--nofile=8192:"])
}

/// Runs this test again in a private mount namespace, if it needs one. Returns whether that passed.
pub(crate) fn reenter(test: &str, faults: &[Fault]) -> Option<bool> {
    let mounts = [Fault::Disk, Fault::PowerCut];
    let is_needed = faults.iter().any(|fault| mounts.contains(fault));
    if !is_needed || std::env::var_os(INSIDE).is_some() {
        return None;
    }
    // The same faults, even if more are possible inside the namespace.
    let names: Vec<&str> = faults.iter().map(|fault| fault.name()).collect();
    let program = std::env::current_exe().expect("the path of this program");
    let status = Command::new("unshare")
        .args(unshare_arguments())
        .arg(program)
        .args([test, "--exact", "--nocapture"])
        .env(INSIDE, "1")
        .env("HOMEPORT_TORTURE_FAULTS", names.join(","))
        .status();
    Some(status.is_ok_and(|status| status.success()))
}

impl Location {
    /// Prepares a location under `base` for the faults of the run.
    pub(crate) fn new(base: &Path, faults: &[Fault]) -> Result<Self, String> {
        let kind = if faults.contains(&Fault::PowerCut) {
            Kind::Ext4
        } else if faults.contains(&Fault::Disk) {
            Kind::Tmpfs
        } else {
            Kind::Folder
        };
        let location = Self {
            kind,
            folder: base.join("place"),
            image: base.join("image"),
        };
        std::fs::create_dir_all(&location.folder).map_err(|error| error.to_string())?;
        if kind == Kind::Ext4 {
            run(
                "truncate",
                &["-s", &format!("{SIZE_MIB}M"), text(&location.image)],
            )?;
            run("mkfs.ext4", &["-q", "-F", text(&location.image)])?;
        }
        location.mount()?;
        Ok(location)
    }

    pub(crate) fn data_dir(&self) -> PathBuf {
        self.folder.join("data")
    }

    fn mount(&self) -> Result<(), String> {
        let folder = text(&self.folder);
        match self.kind {
            Kind::Folder => Ok(()),
            Kind::Tmpfs => {
                let size = format!("size={SIZE_MIB}m");
                run("mount", &["-t", "tmpfs", "-o", &size, "tmpfs", folder])
            }
            Kind::Ext4 => run("mount", &["-o", "loop", text(&self.image), folder]),
        }
    }

    /// Fills the disk completely.
    pub(crate) fn fill(&self) -> Result<(), String> {
        // Ever smaller files until nothing fits, and then single bytes.
        let mut size_mib = SIZE_MIB;
        while size_mib > 0 {
            let file = self.folder.join(format!("ballast-{size_mib}"));
            if !works("fallocate", &["-l", &format!("{size_mib}M"), text(&file)]) {
                let _ = std::fs::remove_file(&file);
            }
            size_mib /= 2;
        }
        let rest = std::fs::File::create(self.folder.join("ballast-rest"));
        let written = rest.and_then(|mut file| std::io::copy(&mut std::io::repeat(1), &mut file));
        match written {
            Err(error) if error.kind() == std::io::ErrorKind::StorageFull => Ok(()),
            other => Err(format!("the disk could not be filled: {other:?}")),
        }
    }

    /// Frees the disk again.
    pub(crate) fn empty(&self) -> Result<(), String> {
        let entries = std::fs::read_dir(&self.folder).map_err(|error| error.to_string())?;
        for entry in entries.flatten() {
            if entry.file_name().to_string_lossy().starts_with("ballast") {
                std::fs::remove_file(entry.path()).map_err(|error| error.to_string())?;
            }
        }
        Ok(())
    }

    /// Shuts the file system down, which discards writes that were not synced. End the server before `power_on`.
    pub(crate) fn power_off(&self) -> Result<(), String> {
        run("xfs_io", &["-x", "-c", "shutdown", text(&self.folder)])?;
        match std::fs::write(self.folder.join("after-the-cut"), "x") {
            Ok(()) => Err("the file system still takes writes after its shutdown".to_owned()),
            Err(_) => Ok(()),
        }
    }

    pub(crate) fn power_on(&self) -> Result<(), String> {
        run("umount", &[text(&self.folder)])?;
        self.mount()
    }
}

impl Drop for Location {
    fn drop(&mut self) {
        if self.kind != Kind::Folder {
            let _ = run("umount", &["-l", text(&self.folder)]);
        }
    }
}

fn text(path: &Path) -> &str {
    path.to_str()
        .expect("temporary folders have names in UTF-8")
}

fn run(program: &str, arguments: &[&str]) -> Result<(), String> {
    let output = Command::new(program).args(arguments).output();
    let output = output.map_err(|error| format!("{program}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("{program} {arguments:?}: {said}"))
}
