//! Runs the Python tests against a server process: clients (`tests/clients`) and the console in a browser.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;

use crate::{process, target};

/// The directory of programs in a virtual environment.
const PROGRAMS: &str = if cfg!(windows) { "Scripts" } else { "bin" };

/// Builds the server and runs the Python tests against it.
pub(crate) fn run(root: &Path) -> anyhow::Result<()> {
    run_pytest(root, "tests/clients")
}

/// Tests the embedded console in a browser (`tests/console`).
pub(crate) fn run_console(root: &Path) -> anyhow::Result<()> {
    run_pytest(root, "tests/console")
}

fn run_pytest(root: &Path, tests: &str) -> anyhow::Result<()> {
    let build = target::directory(root)?;
    let python = ensure_python(root)?;
    // The build of the Rust tests, which includes the server: building the server alone would compile most dependencies
    // again, with fewer features.
    process::run(process::cargo(root).args([
        "test",
        "--no-run",
        "--workspace",
        "--locked",
        "--quiet",
    ]))?;
    let server = build
        .join("debug")
        .join(format!("homeport{}", std::env::consts::EXE_SUFFIX));
    process::run(
        Command::new(python)
            .current_dir(root)
            .args(["-m", "pytest", "--quiet", "-p", "no:cacheprovider"])
            .arg(tests)
            .env("HOMEPORT_BIN", server)
            .env("PYTHONDONTWRITEBYTECODE", "1"),
    )
}

/// A Python with the packages of `tests/clients/requirements.txt`.
pub(crate) fn ensure_python(root: &Path) -> anyhow::Result<PathBuf> {
    let requirements = root.join("tests").join("clients").join("requirements.txt");
    ensure_environment(
        &target::directory(root)?.join("clients-venv"),
        &requirements,
    )
}

/// Creates the virtual environment unless it exists with the same requirements. Returns its Python.
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
    .context("the client tests need Python 3 with its venv module")?;
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
    // IMPORTANT: written last, so that an interrupted installation starts over.
    std::fs::write(&stamp, wanted).with_context(|| format!("cannot write {}", stamp.display()))?;
    Ok(python)
}
