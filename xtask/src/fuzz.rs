//! `cargo xtask fuzz`: runs each fuzz target for a given time, on the stable compiler.

use std::path::Path;

use anyhow::bail;
use clap::Args;

use crate::{process, tools};

const SEEDS: &str = "fuzz/seeds";

#[derive(Args)]
pub(crate) struct Fuzz {
    /// Seconds per target
    #[arg(long, default_value_t = 60)]
    seconds: u32,
    /// Run only this target
    target: Option<String>,
}

impl Fuzz {
    pub(crate) fn run(&self, root: &Path) -> anyhow::Result<()> {
        tools::FUZZ.ensure(root)?;
        let all = targets(root)?;
        let chosen: Vec<&String> = match &self.target {
            Some(target) => all.iter().filter(|name| *name == target).collect(),
            None => all.iter().collect(),
        };
        if chosen.is_empty() {
            bail!("unknown fuzz target; choose from {}", all.join(", "));
        }
        for target in chosen {
            self.run_target(root, target)?;
        }
        Ok(())
    }

    fn run_target(&self, root: &Path, target: &str) -> anyhow::Result<()> {
        // The corpus grows with every run; the seeds are committed.
        let corpus = format!("fuzz/corpus/{target}");
        std::fs::create_dir_all(root.join(&corpus))?;
        // libFuzzer ends a target without unwinding, so files of the last run are removed here.
        let temporary = root.join("fuzz/target/temporary");
        if temporary.exists() {
            std::fs::remove_dir_all(&temporary)?;
        }
        std::fs::create_dir_all(&temporary)?;
        process::run(
            process::cargo(root)
                // Coverage instrumentation is unstable, but works on the stable compiler with RUSTC_BOOTSTRAP.
                .env("RUSTC_BOOTSTRAP", "1")
                .env("TMPDIR", &temporary)
                // Without sanitizers: the code is safe Rust, and builds take half the time.
                .args(["fuzz", "run", "--sanitizer", "none", target, &corpus])
                .arg(format!("{SEEDS}/{target}"))
                .args(["--", &format!("-max_total_time={}", self.seconds)]),
        )?;
        Ok(std::fs::remove_dir_all(&temporary)?)
    }
}

/// The names of all targets, from their files.
fn targets(root: &Path) -> anyhow::Result<Vec<String>> {
    names(&root.join("fuzz/fuzz_targets"))
}

/// The names of a folder's entries without extensions, sorted.
fn names(folder: &Path) -> anyhow::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_stem().and_then(|name| name.to_str());
        names.extend(name.map(str::to_owned));
    }
    names.sort();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_target_is_built_and_has_small_seeds() {
        const SEED_BYTES_MAX: u64 = 8192;
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let manifest = std::fs::read_to_string(root.join("fuzz/Cargo.toml")).unwrap();
        let targets = targets(&root).unwrap();
        assert!(!targets.is_empty());
        // libFuzzer rejects a missing folder of seeds.
        assert_eq!(names(&root.join(SEEDS)).unwrap(), targets);
        for target in &targets {
            assert!(
                manifest.contains(&format!("name = \"{target}\"")),
                "{target}"
            );
            let seeds = std::fs::read_dir(root.join(SEEDS).join(target)).unwrap();
            let sizes: Vec<u64> = seeds
                .map(|seed| seed.unwrap().metadata().unwrap().len())
                .collect();
            assert!(!sizes.is_empty(), "{target} has no seeds");
            assert!(
                sizes.iter().all(|size| *size <= SEED_BYTES_MAX),
                "{target} has a seed of more than {SEED_BYTES_MAX} bytes"
            );
        }
    }
}
