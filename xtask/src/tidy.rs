//! `cargo xtask tidy`: the project's own rules.
//!
//! Each rule checks plain data (a file's text, a list of dependencies) and returns its findings. Only this file reads the disk
//! and starts cargo.

mod arrows;
mod pins;
mod sources;

use std::path::Path;

use anyhow::{Context, bail};

use crate::process;

/// Directories without sources, or with generated files.
const SKIPPED_DIRECTORIES: [&str; 4] = ["target", "data", "node_modules", "dist"];

/// Extensions of source files: Rust for the server, TypeScript and Svelte for the console.
const SOURCE_EXTENSIONS: [&str; 3] = ["rs", "ts", "svelte"];

pub(crate) fn run(root: &Path) -> anyhow::Result<()> {
    let mut findings = Vec::new();

    let mut file_count = 0_usize;
    visit_sources(root, Path::new(""), &mut |path, text| {
        file_count += 1;
        findings.extend(sources::check(path, text));
    })?;

    // Cargo resolves renamed, optional and platform-specific dependencies; the manifests' text does not.
    let tree = process::capture(process::cargo(root).args([
        "tree",
        "--workspace",
        "--locked",
        "--all-features",
        "--target=all",
        "--edges=normal,build",
        "--depth=1",
        "--prefix=depth",
        "--charset=ascii",
    ]))?;
    let packages = arrows::parse_tree(&tree, root)?;
    findings.extend(arrows::check(&packages));

    let manifest = std::fs::read_to_string(root.join("Cargo.toml"))?;
    findings.extend(pins::check(&manifest));

    for finding in &findings {
        eprintln!("{finding}");
    }
    if !findings.is_empty() {
        bail!("tidy found {} problem(s)", findings.len());
    }
    println!("tidy: {file_count} files, {} packages", packages.len());
    Ok(())
}

/// Calls `visit` with the path from the root (with `/`) and the text of every source file, sorted by name.
fn visit_sources(
    root: &Path,
    directory: &Path,
    visit: &mut impl FnMut(&str, &str),
) -> anyhow::Result<()> {
    let absolute = root.join(directory);
    let mut entries = std::fs::read_dir(&absolute)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .with_context(|| format!("cannot list {}", absolute.display()))?;
    entries.sort_by_key(std::fs::DirEntry::file_name);

    for entry in entries {
        let file_name = entry.file_name();
        let name = file_name
            .to_str()
            .with_context(|| format!("a file's name is not UTF-8: {}", entry.path().display()))?;
        let path = directory.join(name);
        let file_type = entry
            .file_type()
            .with_context(|| format!("cannot read the metadata of {}", path.display()))?;
        if file_type.is_dir() {
            if !name.starts_with('.') && !SKIPPED_DIRECTORIES.contains(&name) {
                visit_sources(root, &path, visit)?;
            }
        } else if path
            .extension()
            .and_then(|extension| extension.to_str())
            .is_some_and(|extension| SOURCE_EXTENSIONS.contains(&extension))
        {
            let text = std::fs::read_to_string(entry.path())
                .with_context(|| format!("cannot read {}", path.display()))?;
            visit(&path.to_string_lossy().replace('\\', "/"), &text);
        }
    }
    Ok(())
}
