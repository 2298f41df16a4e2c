//! Installs programs that the tests need in addition to the compiler.

use std::path::Path;

use crate::process;

/// A cargo subcommand from crates.io.
pub(crate) struct CargoTool {
    subcommand: &'static str,
    package: &'static str,
    /// The version to install. An installed version is used even if it differs.
    version: &'static str,
}

pub(crate) const NEXTEST: CargoTool = CargoTool {
    subcommand: "nextest",
    package: "cargo-nextest",
    version: "0.9.143",
};

pub(crate) const DENY: CargoTool = CargoTool {
    subcommand: "deny",
    package: "cargo-deny",
    version: "0.20.2",
};

pub(crate) const FUZZ: CargoTool = CargoTool {
    subcommand: "fuzz",
    package: "cargo-fuzz",
    version: "0.13.2",
};

/// Components that a minimal toolchain lacks: the cargo subcommand and its name in rustup.
const COMPONENTS: [(&str, &str); 2] = [("fmt", "rustfmt"), ("clippy", "clippy")];

impl CargoTool {
    /// Installs the tool unless it exists, into cargo's own directory, so that the next run finds it.
    pub(crate) fn ensure(&self, root: &Path) -> anyhow::Result<()> {
        if process::succeeds(process::cargo(root).args([self.subcommand, "--version"])) {
            return Ok(());
        }
        println!("{} is missing: installing it", self.package);
        process::run(process::cargo(root).args([
            "install",
            "--locked",
            "--version",
            self.version,
            self.package,
        ]))
    }
}

/// Adds the formatter and the linter to the toolchain if they are missing.
pub(crate) fn ensure_components(root: &Path) -> anyhow::Result<()> {
    for (subcommand, component) in COMPONENTS {
        if !process::succeeds(process::cargo(root).args([subcommand, "--version"])) {
            println!("{component} is missing: installing it");
            let mut rustup = std::process::Command::new("rustup");
            process::run(
                rustup
                    .current_dir(root)
                    .args(["component", "add", component]),
            )?;
        }
    }
    Ok(())
}
