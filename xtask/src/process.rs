//! Starts other programs, always from the repository's root, and prints each command first.

use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, bail};

/// The cargo that started xtask, so that a toolchain chosen on the command line (`cargo +nightly xtask`) stays chosen.
pub(crate) fn cargo(root: &Path) -> Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    let mut command = Command::new(program);
    command.current_dir(root);
    // Cargo's variables about xtask itself. Build scripts that read them, such as ring's, would run again whenever builds by
    // xtask and by hand alternate, and rebuild everything that depends on them.
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(is_of_our_package) {
            command.env_remove(name);
        }
    }
    command
}

fn is_of_our_package(variable: &str) -> bool {
    variable.starts_with("CARGO_PKG_") || variable.starts_with("CARGO_MANIFEST_")
}

/// Prints and runs the command with inherited output. Fails if it fails.
pub(crate) fn run(command: &mut Command) -> anyhow::Result<()> {
    let shown = show(command);
    println!("$ {shown}");
    let status = command
        .status()
        .with_context(|| format!("cannot start `{shown}`"))?;
    if !status.success() {
        bail!("`{shown}` ended with {status}");
    }
    Ok(())
}

/// The command's standard output.
pub(crate) fn capture(command: &mut Command) -> anyhow::Result<String> {
    let shown = show(command);
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("cannot start `{shown}`"))?;
    if !output.status.success() {
        bail!("`{shown}` ended with {}", output.status);
    }
    String::from_utf8(output.stdout).with_context(|| format!("`{shown}` printed invalid UTF-8"))
}

/// Whether the command starts and succeeds. Discards its output.
pub(crate) fn succeeds(command: &mut Command) -> bool {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// The command as typed: the program without its directory, then the arguments.
fn show(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let name = program.file_name().unwrap_or(program.as_os_str());
    std::iter::once(name)
        .chain(command.get_args())
        .map(|part| part.to_string_lossy())
        .collect::<Vec<_>>()
        .join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failing_command_is_named_in_the_error() {
        let error = run(cargo(Path::new(".")).arg("--no-such-option")).unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("`cargo --no-such-option` ended with"),
            "{error}"
        );
    }

    #[test]
    fn missing_program_does_not_succeed() {
        assert!(!succeeds(&mut Command::new("homeport-no-such-program")));
    }
}
