//! The programs that the tests need beyond the compiler, installed when they are missing.

use std::path::Path;

use crate::process;

/// A cargo sub-command from crates.io.
pub(crate) struct CargoTool {
    subcommand: &'static str,
    package: &'static str,
    /// What gets installed. A version that is already there is used as it is: a contributor's newer one will do.
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

/// Parts of the toolchain that a minimal installation leaves out: the cargo sub-command and rustup's name for it.
const COMPONENTS: [(&str, &str); 2] = [("fmt", "rustfmt"), ("clippy", "clippy")];

impl CargoTool {
    /// Installs the tool unless it is already there.
    ///
    /// It is installed into cargo's own directory, as a person would do it, so that the next run finds it.
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

/// Adds the formatter and the linter where the toolchain came without them.
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
