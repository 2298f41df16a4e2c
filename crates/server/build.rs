//! Embeds the files of `console/dist` in the binary, so that running the console needs neither Node nor files.

use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// The committed output of Vite.
const DIST: &str = "../../console/dist";
/// The page that loads all other files.
const INDEX: &str = "index.html";

fn main() -> io::Result<()> {
    let root = PathBuf::from(variable("CARGO_MANIFEST_DIR")?).join(DIST);
    println!("cargo::rerun-if-changed={DIST}");
    if !root.join(INDEX).is_file() {
        let reason = format!(
            "{} has no {INDEX}; run npm run build in console",
            root.display()
        );
        return Err(io::Error::other(reason));
    }
    let mut files = Vec::new();
    collect(&root, &mut files)?;
    files.sort();
    let mut code = String::from("const ASSETS: &[Asset] = &[\n");
    for file in &files {
        let path = file.strip_prefix(&root).map_err(io::Error::other)?;
        let path = path.to_string_lossy().replace('\\', "/");
        let mut hasher = DefaultHasher::new();
        fs::read(file)?.hash(&mut hasher);
        writeln!(
            code,
            // Relative, because a checkout can be moved together with its build.
            "    Asset {{ path: {path:?}, etag: \"\\\"{:016x}\\\"\", bytes: include_bytes!(concat!(env!(\"CARGO_MANIFEST_DIR\"), {:?})) }},",
            hasher.finish(),
            format!("/{DIST}/{path}")
        )
        .map_err(io::Error::other)?;
    }
    code.push_str("];\n");
    fs::write(PathBuf::from(variable("OUT_DIR")?).join("assets.rs"), code)
}

fn variable(name: &str) -> io::Result<String> {
    env::var(name).map_err(io::Error::other)
}

fn collect(directory: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}
