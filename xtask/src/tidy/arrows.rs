//! The allowed dependencies between our crates, and the owners of foreign crates.
//!
//! Development dependencies are not restricted: a test may use any crate.

use std::path::Path;

use anyhow::{Context, bail};

/// Every crate under `crates/` with the crates of ours that it may use. Arrows point down only. Add a line for a new crate.
const ALLOWED: [(&str, &[&str]); 12] = [
    ("homeport-item", &[]),
    ("homeport-store", &["homeport-item"]),
    ("homeport-engine", &["homeport-item", "homeport-store"]),
    ("homeport-remote", &["homeport-item", "homeport-store"]),
    ("homeport-partiql", &["homeport-item"]),
    ("homeport-listen", &[]),
    (
        "homeport-wire",
        &[
            "homeport-item",
            "homeport-engine",
            "homeport-partiql",
            "homeport-store",
            "homeport-listen",
        ],
    ),
    ("homeport-rules", &["homeport-item"]),
    (
        "homeport-systems",
        &["homeport-item", "homeport-store", "homeport-rules"],
    ),
    (
        "homeport-server",
        &[
            "homeport-systems",
            "homeport-listen",
            "homeport-store",
            "homeport-item",
            "homeport-engine",
        ],
    ),
    ("homeport-simulate", &["homeport-store", "homeport-systems"]),
    (
        "homeport",
        &[
            "homeport-item",
            "homeport-store",
            "homeport-engine",
            "homeport-remote",
            "homeport-wire",
            "homeport-rules",
            "homeport-systems",
            "homeport-server",
            "homeport-simulate",
        ],
    ),
];

/// A foreign crate with one owner; no other crate may name its types.
struct Owned {
    matches: fn(&str) -> bool,
    owner: &'static str,
}

const OWNED: [Owned; 2] = [
    Owned {
        matches: |name| ["fjall", "lsm-tree", "sfa"].contains(&name),
        owner: "homeport-engine",
    },
    Owned {
        matches: |name| name.starts_with("aws-"),
        owner: "homeport-remote",
    },
];

/// A member of the workspace with its direct dependencies, except development dependencies.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Package {
    name: String,
    /// Whether it is under `crates/`, in contrast to development programs.
    is_product: bool,
    dependencies: Vec<String>,
}

/// Parses the output of `cargo tree --workspace --depth=1 --prefix=depth`: a member's line begins with 0 and ends with its
/// directory, and each of its dependencies follows on a line that begins with 1.
pub(super) fn parse_tree(tree: &str, root: &Path) -> anyhow::Result<Vec<Package>> {
    let product_directory = format!("({}", root.join("crates").join("").display());
    let mut packages: Vec<Package> = Vec::new();
    for line in tree.lines() {
        if line.is_empty() || line.starts_with('[') {
            // An empty line between members, or the heading `[build-dependencies]`.
            continue;
        }
        let name_at = |depth: char| {
            line.strip_prefix(depth)
                .and_then(|rest| rest.split_whitespace().next())
        };
        if let Some(name) = name_at('0') {
            packages.push(Package {
                name: name.to_owned(),
                is_product: line.contains(&product_directory),
                dependencies: Vec::new(),
            });
        } else if let Some(name) = name_at('1') {
            packages
                .last_mut()
                .with_context(|| format!("cargo tree: a dependency before any package: {line:?}"))?
                .dependencies
                .push(name.to_owned());
        } else {
            bail!("cargo tree: unexpected line: {line:?}");
        }
    }
    Ok(packages)
}

/// Forbidden dependencies. Development programs (benchmarks, fuzzing, xtask) are not restricted.
pub(super) fn check(packages: &[Package]) -> Vec<String> {
    packages
        .iter()
        .filter(|package| package.is_product)
        .flat_map(check_package)
        .collect()
}

fn check_package(package: &Package) -> Vec<String> {
    let name = &package.name;
    let Some((_, allowed)) = ALLOWED.iter().find(|(known, _)| known == name) else {
        return vec![format!(
            "{name}: not in the table of crates (xtask/src/tidy/arrows.rs)"
        )];
    };

    let mut findings = Vec::new();
    for dependency in &package.dependencies {
        let is_ours = dependency == "homeport" || dependency.starts_with("homeport-");
        if is_ours && !allowed.contains(&dependency.as_str()) {
            findings.push(format!("{name}: must not depend on {dependency}"));
        }
        for owned in &OWNED {
            if (owned.matches)(dependency) && owned.owner != name {
                findings.push(format!(
                    "{name}: must not depend on {dependency}, only {} may",
                    owned.owner
                ));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn product(name: &str, dependencies: &[&str]) -> Package {
        Package {
            name: name.to_owned(),
            is_product: true,
            dependencies: dependencies.iter().map(|name| (*name).to_owned()).collect(),
        }
    }

    #[track_caller]
    fn assert_findings(package: Package, expected: &[&str]) {
        assert_eq!(check(&[package]), expected);
    }

    #[test]
    fn allowed_arrows_and_foreign_crates_pass() {
        assert_findings(product("homeport-item", &["serde", "base64"]), &[]);
        assert_findings(
            product(
                "homeport-engine",
                &["fjall", "homeport-item", "homeport-store"],
            ),
            &[],
        );
        assert_findings(
            product("homeport-remote", &["aws-sdk-dynamodb", "homeport-store"]),
            &[],
        );
    }

    #[test]
    fn upward_arrow_is_found() {
        assert_findings(
            product("homeport-store", &["homeport-item", "homeport-engine"]),
            &["homeport-store: must not depend on homeport-engine"],
        );
        assert_findings(
            product("homeport-server", &["homeport"]),
            &["homeport-server: must not depend on homeport"],
        );
    }

    #[test]
    fn only_the_owner_may_use_an_owned_crate() {
        assert_findings(
            product("homeport-wire", &["fjall"]),
            &["homeport-wire: must not depend on fjall, only homeport-engine may"],
        );
        assert_findings(
            product("homeport", &["aws-sdk-sns"]),
            &["homeport: must not depend on aws-sdk-sns, only homeport-remote may"],
        );
    }

    #[test]
    fn unknown_crate_is_found() {
        assert_findings(
            product("homeport-common", &[]),
            &["homeport-common: not in the table of crates (xtask/src/tidy/arrows.rs)"],
        );
    }

    #[test]
    fn development_programs_are_not_restricted() {
        let bench = Package {
            is_product: false,
            ..product("homeport-bench", &["fjall", "homeport-engine"])
        };
        assert_findings(bench, &[]);
    }

    #[test]
    fn table_has_no_cycle() {
        // Each crate uses only crates above it in the table.
        for (index, (name, allowed)) in ALLOWED.iter().enumerate() {
            for dependency in *allowed {
                let place = ALLOWED.iter().position(|(known, _)| known == dependency);
                assert!(
                    place.is_some_and(|place| place < index),
                    "{name} → {dependency}"
                );
            }
        }
    }

    #[test]
    fn cargo_tree_is_parsed_by_package() {
        let tree = "\
0homeport-engine v0.1.0 (/repo/crates/engine)
1fjall v3.1.13
1homeport-item v0.1.0 (/repo/crates/item)
[build-dependencies]
1cc v1.2.0

0homeport-item v0.1.0 (/repo/crates/item)
1serde_derive v1.0.0 (proc-macro)

0xtask v0.1.0 (/repo/xtask)
1anyhow v1.0.0 (*)
";
        let xtask = Package {
            is_product: false,
            ..product("xtask", &["anyhow"])
        };
        assert_eq!(
            parse_tree(tree, Path::new("/repo")).unwrap(),
            [
                product("homeport-engine", &["fjall", "homeport-item", "cc"]),
                product("homeport-item", &["serde_derive"]),
                xtask,
            ]
        );
    }

    #[test]
    fn unexpected_output_of_cargo_tree_is_an_error() {
        assert!(parse_tree("homeport-item v0.1.0\n", Path::new("/repo")).is_err());
        assert!(parse_tree("1serde v1.0.0\n", Path::new("/repo")).is_err());
    }
}
