//! The clients that people have, against a server process (`tests/clients`), and the console in a browser.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;

use crate::{process, target};

/// Where the programs of a virtual environment are.
const PROGRAMS: &str = if cfg!(windows) { "Scripts" } else { "bin" };

/// Builds the server and runs the Python tests against it.
pub(crate) fn run(root: &Path) -> anyhow::Result<()> {
    run_pytest(root, "tests/clients")
}

/// The console, which the server has embedded, in a browser (`tests/console`).
pub(crate) fn run_console(root: &Path) -> anyhow::Result<()> {
    run_pytest(root, "tests/console")
}

fn run_pytest(root: &Path, tests: &str) -> anyhow::Result<()> {
    let build = target::directory(root)?;
    let python = ensure_python(root)?;
    // The build of the Rust tests, which includes the server: a build of the server alone would compile most
    // dependencies a second time, with fewer features.
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

/// The Python that has what `tests/clients/requirements.txt` lists.
pub(crate) fn ensure_python(root: &Path) -> anyhow::Result<PathBuf> {
    let requirements = root.join("tests").join("clients").join("requirements.txt");
    ensure_environment(
        &target::directory(root)?.join("clients-venv"),
        &requirements,
    )
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
