//! The clients that people have: boto3 and the AWS command line against a server process (`tests/clients`).

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;

use crate::process;

/// Where the programs of a virtual environment are.
const PROGRAMS: &str = if cfg!(windows) { "Scripts" } else { "bin" };

/// Builds the server and runs the Python tests against it.
pub(crate) fn run(root: &Path) -> anyhow::Result<()> {
    let tests = root.join("tests").join("clients");
    let target = target_directory(root)?;
    let python = ensure_environment(
        &target.join("clients-venv"),
        &tests.join("requirements.txt"),
    )?;
    process::run(process::cargo(root).args(["build", "--locked", "--package", "homeport"]))?;
    let server = target
        .join("debug")
        .join(format!("homeport{}", std::env::consts::EXE_SUFFIX));
    process::run(
        Command::new(python)
            .current_dir(root)
            .args(["-m", "pytest", "--quiet", "-p", "no:cacheprovider"])
            .arg("tests/clients")
            .env("HOMEPORT_BIN", server)
            .env("PYTHONDONTWRITEBYTECODE", "1"),
    )
}

/// The build directory as cargo sees it: a setting of the person who builds may have moved it.
fn target_directory(root: &Path) -> anyhow::Result<PathBuf> {
    let metadata = process::capture(process::cargo(root).args([
        "metadata",
        "--locked",
        "--no-deps",
        "--format-version=1",
    ]))?;
    target_directory_in(&metadata).context("cargo metadata names no target directory")
}

/// The value of `target_directory`, a string that is escaped only on Windows.
fn target_directory_in(metadata: &str) -> Option<PathBuf> {
    let (_, rest) = metadata.split_once("\"target_directory\":\"")?;
    let (directory, _) = rest.split_once('"')?;
    Some(PathBuf::from(directory.replace(r"\\", r"\")))
}

/// Makes the virtual environment unless the one that is there was made from the same requirements; its Python.
fn ensure_environment(environment: &Path, requirements: &Path) -> anyhow::Result<PathBuf> {
    let wanted = std::fs::read_to_string(requirements)
        .with_context(|| format!("cannot read {}", requirements.display()))?;
    let python = environment
        .join(PROGRAMS)
        .join(format!("python{}", std::env::consts::EXE_SUFFIX));
    let stamp = environment.join("requirements.installed");
    if std::fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(python);
    }
    process::run(
        Command::new("python3")
            .args(["-m", "venv", "--clear"])
            .arg(environment),
    )
    .context("the tests of the clients need Python 3 with its venv module")?;
    process::run(
        Command::new(&python)
            .args([
                "-m",
                "pip",
                "install",
                "--quiet",
                "--disable-pip-version-check",
                "--requirement",
            ])
            .arg(requirements),
    )?;
    // IMPORTANT: written last, so that an installation that was cut off is made again.
    std::fs::write(&stamp, wanted).with_context(|| format!("cannot write {}", stamp.display()))?;
    Ok(python)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_target_directory_is_found_in_cargos_metadata() {
        let metadata = r#"{"packages":[],"target_directory":"/some/place","version":1}"#;
        assert_eq!(
            target_directory_in(metadata),
            Some(PathBuf::from("/some/place"))
        );
        assert_eq!(target_directory_in("{}"), None);
    }
}
