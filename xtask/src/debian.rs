//! Installs programs from Debian packages.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::process;

/// Programs that tests run, each with its package.
pub(crate) const PROGRAMS: &[(&str, &str)] = &[
    ("chromium", "chromium"),
    ("faketime", "faketime"),
    ("mosquitto", "mosquitto"),
    ("mosquitto_pub", "mosquitto-clients"),
    ("mosquitto_sub", "mosquitto-clients"),
    ("xfs_io", "xfsprogs"),
];

/// Programs that the torture test runs.
pub(crate) const TORTURE_PROGRAMS: &[(&str, &str)] =
    &[("faketime", "faketime"), ("xfs_io", "xfsprogs")];

/// Installs missing programs as root on Debian; elsewhere the error names what to install.
pub(crate) fn ensure(programs: &[(&str, &str)]) -> anyhow::Result<()> {
    let missing = programs.iter().copied();
    let missing = missing.filter(|(program, _)| !is_there(program));
    let (programs, mut packages): (Vec<&str>, Vec<&str>) = missing.unzip();
    if programs.is_empty() {
        return Ok(());
    }
    packages.dedup();
    let (programs, names) = (programs.join(", "), packages.join(" "));
    if !is_root() || !is_there("apt-get") {
        anyhow::bail!(
            "{programs} are missing: install Debian's packages {names}, or what your system calls them"
        );
    }
    println!("{programs} are missing: installing {names}");
    process::run(Command::new("apt-get").args(["update", "--quiet"]))?;
    process::run(
        Command::new("apt-get")
            .env("DEBIAN_FRONTEND", "noninteractive")
            .args(["install", "--yes", "--quiet", "--no-install-recommends"])
            .args(packages),
    )
}

/// Whether a program can be run by its name.
fn is_there(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        // Debian installs servers outside of an ordinary user's path.
        .chain([PathBuf::from("/usr/sbin")])
        .any(|directory| is_file(&directory.join(program)))
}

fn is_file(path: &Path) -> bool {
    path.is_file()
        || path
            .with_extension(std::env::consts::EXE_EXTENSION)
            .is_file()
}

fn is_root() -> bool {
    let asked = Command::new("id").arg("-u").stderr(Stdio::null()).output();
    asked.is_ok_and(|answer| answer.stdout.trim_ascii() == b"0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_by_name() {
        assert!(is_there("cargo"));
        assert!(!is_there("a-program-that-nobody-has"));
    }
}
