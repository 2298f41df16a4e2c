//! `cargo xtask test`: the command that decides whether a change may be merged.

use std::path::{Path, PathBuf};

use crate::steps::Steps;
use crate::{clients, debian, peers, process, tidy, tools};

/// Entry points of the fuzz targets, which nothing else builds.
const FUZZING_FEATURES: &str = "homeport-engine/fuzzing,homeport-server/fuzzing";

/// Environment variable by which tests of the systems choose a store other than the engine.
const STORE_VARIABLE: &str = "HOMEPORT_TEST_STORE";
/// Other stores with their tests. The engine alone keeps changes for a limited time, and moto is so slow that it gets only the
/// first system.
const OTHER_STORES: [(&str, &str); 3] = [
    (
        "wire",
        "package(homeport-systems) & kind(test) - binary(reactions_retention)",
    ),
    (
        "dynoxide",
        "package(homeport-systems) & kind(test) - binary(reactions_retention)",
    ),
    (
        "moto",
        "package(homeport-systems) & (binary(sensors) | binary(api_keys))",
    ),
];

/// Runs the steps from the fastest to the slowest, so that mistakes show early.
pub(crate) fn run(root: &Path, nextest_args: &[String]) -> anyhow::Result<()> {
    let cargo = |args: &[&str]| process::run(process::cargo(root).args(args));
    let mut steps = Steps::new();

    steps.step("tools", || {
        tools::ensure_components(root)?;
        tools::NEXTEST.ensure(root)?;
        tools::DENY.ensure(root)?;
        debian::ensure(debian::PROGRAMS)
    });
    // cargo-deny and tidy read the dependencies of every platform, but a build downloads only this platform's.
    steps.step("fetch", || cargo(&["fetch", "--locked"]));
    steps.step("format", || cargo(&["fmt", "--all", "--", "--check"]));
    steps.step("tidy", || tidy::run(root));
    steps.step("dependencies", || check_dependencies(root));
    steps.step("clippy", || {
        cargo(&[
            "clippy",
            "--workspace",
            "--all-targets",
            "--locked",
            "--features",
            FUZZING_FEATURES,
            "--",
            "-D",
            "warnings",
        ])
    });
    steps.step("documentation tests", || {
        cargo(&["test", "--doc", "--workspace", "--locked"])
    });
    steps.step("examples", || {
        cargo(&["build", "--workspace", "--examples", "--locked"])?;
        cargo(&[
            "run",
            "--quiet",
            "--locked",
            "--package",
            "homeport-engine",
            "--example",
            "sensors",
        ])
    });
    steps.step("clients", || clients::run(root));
    steps.step("console", || clients::run_console(root));
    steps.step("tests", || run_tests(root, nextest_args));

    steps.finish()
}

/// Runs all tests, and those of the systems again on every store that the AWS SDK can reach here.
fn run_tests(root: &Path, nextest_args: &[String]) -> anyhow::Result<()> {
    let dynoxide = peers::ensure_dynoxide(root)?;
    let moto = peers::Moto::start(root)?;
    let nextest = || {
        let mut command = process::cargo(root);
        command
            .env(peers::DYNOXIDE_VARIABLE, &dynoxide)
            .env(peers::MOTO_VARIABLE, &moto.url)
            .args(["nextest", "run", "--workspace", "--locked"]);
        command
    };
    process::run(nextest().args(nextest_args))?;
    // With a filter, only the matching tests run.
    if !nextest_args.is_empty() {
        return Ok(());
    }
    for (store, tests) in OTHER_STORES {
        println!("\n-- the systems on {store}");
        process::run(
            nextest()
                .env(STORE_VARIABLE, store)
                .args(["--filterset", tests]),
        )?;
    }
    Ok(())
}

/// Checks licenses, bans and sources with `deny.toml`. Vulnerabilities are checked only if a database is present, because the
/// tests must pass without a network.
fn check_dependencies(root: &Path) -> anyhow::Result<()> {
    let mut command = process::cargo(root);
    command.args([
        "deny",
        "--offline",
        "--locked",
        "check",
        "licenses",
        "bans",
        "sources",
    ]);
    if advisory_database_exists() {
        command.arg("advisories");
    } else {
        println!(
            "no local advisory database: vulnerabilities are not checked (`cargo deny fetch` gets one)"
        );
    }
    process::run(&mut command)
}

/// Whether cargo-deny has an advisory database in its default place.
fn advisory_database_exists() -> bool {
    cargo_home().is_some_and(|home| contains_directory(&home.join("advisory-dbs")))
}

fn cargo_home() -> Option<PathBuf> {
    let from_variable = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    from_variable.or_else(|| std::env::home_dir().map(|home| home.join(".cargo")))
}

/// Requires a directory: a failed fetch leaves only a lock file.
fn contains_directory(path: &Path) -> bool {
    std::fs::read_dir(path).is_ok_and(|mut entries| {
        entries.any(|entry| entry.is_ok_and(|entry| entry.path().is_dir()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_directory_counts_as_a_database() {
        // Directories of this crate: one with a subdirectory, one with files only, one that does not exist.
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        assert!(contains_directory(root));
        assert!(!contains_directory(&root.join("src/tidy")));
        assert!(!contains_directory(&root.join("no-such-directory")));
    }
}
