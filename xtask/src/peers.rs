//! Other implementations of DynamoDB, for tests and benchmarks.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::Context;

use crate::{clients, process, target};

/// Environment variable with the path of dynoxide.
pub(crate) const DYNOXIDE_VARIABLE: &str = "HOMEPORT_DYNOXIDE";

/// Environment variable with the URL of moto.
pub(crate) const MOTO_VARIABLE: &str = "HOMEPORT_MOTO";

const DYNOXIDE_PACKAGE: &str = "dynoxide-rs";
const DYNOXIDE_VERSION: &str = "3.2.0";

/// The dynoxide program, built unless it exists, in the one version that we compare with.
///
/// It is in the build directory, because nothing else uses it, and another version must not replace it.
pub(crate) fn ensure_dynoxide(root: &Path) -> anyhow::Result<PathBuf> {
    let directory = target::directory(root)?
        .join("tools")
        .join(format!("dynoxide-{DYNOXIDE_VERSION}"));
    let program = directory
        .join("bin")
        .join(format!("dynoxide{}", std::env::consts::EXE_SUFFIX));
    if !program.exists() {
        println!("dynoxide is missing: installing it");
        process::run(
            process::cargo(root)
                .args([
                    "install",
                    "--locked",
                    "--quiet",
                    "--version",
                    DYNOXIDE_VERSION,
                    DYNOXIDE_PACKAGE,
                    "--root",
                ])
                .arg(&directory),
        )?;
    }
    Ok(program)
}

/// A moto process, which ends when this is dropped. All tests share it, because it takes seconds to start; each test has its
/// own region.
pub(crate) struct Moto {
    pub(crate) url: String,
    process: Child,
}

impl Moto {
    /// Starts moto on a free port, after installing it if it is missing.
    pub(crate) fn start(root: &Path) -> anyhow::Result<Moto> {
        let mut process = Command::new(clients::ensure_python(root)?)
            .current_dir(root)
            .arg("tests/clients/serve_moto.py")
            // Tests use regions that AWS does not have.
            .env("MOTO_ALLOW_NONEXISTENT_REGION", "true")
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .context("cannot start moto")?;
        let stderr = process
            .stderr
            .take()
            .context("its standard error is piped")?;
        let mut moto = Moto {
            url: String::new(),
            process,
        };
        let mut lines = BufReader::new(stderr).lines();
        let mut said = String::new();
        for line in lines.by_ref() {
            let line = line.context("cannot read the output of moto")?;
            if let Some(url) = served_at(&line) {
                url.clone_into(&mut moto.url);
                break;
            }
            said = format!("{said}\n{line}");
        }
        if moto.url.is_empty() {
            anyhow::bail!("moto ended before it was ready:{said}");
        }
        // Read continuously: moto logs every request, and would block on a full pipe.
        std::thread::spawn(move || lines.for_each(drop));
        println!("moto is served at {}", moto.url);
        Ok(moto)
    }
}

impl Drop for Moto {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The URL in moto's line about its address.
fn served_at(line: &str) -> Option<&str> {
    let (_, url) = line.split_once("Running on ")?;
    url.split_whitespace().next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_of_moto_is_found_in_its_output() {
        let line = " * Running on http://127.0.0.1:34931";
        assert_eq!(served_at(line), Some("http://127.0.0.1:34931"));
        assert_eq!(served_at("WARNING: This is a development server."), None);
    }
}
