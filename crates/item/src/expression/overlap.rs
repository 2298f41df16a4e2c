//! Paths that cannot stand side by side in one update or projection.

use std::collections::BTreeMap;

use super::error::{ListedPath, Problem};
use super::parser::{Findings, Mistake, Rank};
use super::path::{Path, PathElement};

/// Notes the first two paths of which one leads to or through the other, and the first two that
/// ask for a map and a list in the same place.
pub(super) fn check<'a>(paths: impl IntoIterator<Item = &'a Path>, findings: &mut Findings) {
    // By top-level attribute: only paths into the same one can touch, and updates from before expressions may have very many.
    let mut seen: BTreeMap<&str, Vec<&Path>> = BTreeMap::new();
    for path in paths {
        let neighbours = seen.entry(path.name()).or_default();
        for other in neighbours.iter() {
            let listed = || (ListedPath((*other).clone()), ListedPath(path.clone()));
            match relate(other, path) {
                Relation::Apart => continue,
                Relation::Overlap => {
                    let (one, two) = listed();
                    let rank = Rank::Within(0, Mistake::Overlap);
                    findings.note(rank, Problem::Overlap { one, two });
                    // Nothing that this check could still find comes before an overlap.
                    return;
                }
                Relation::Conflict => {
                    let (one, two) = listed();
                    let rank = Rank::Within(0, Mistake::Conflict);
                    findings.note(rank, Problem::Conflict { one, two });
                }
            }
        }
        neighbours.push(path);
    }
}

enum Relation {
    Apart,
    /// The same place, or one inside the other.
    Overlap,
    /// One takes for a map what the other takes for a list.
    Conflict,
}

/// How two paths into one top-level attribute stand to each other.
fn relate(one: &Path, two: &Path) -> Relation {
    for pair in one.nested().iter().zip(two.nested()) {
        match pair {
            (PathElement::Name(_), PathElement::Index(_))
            | (PathElement::Index(_), PathElement::Name(_)) => return Relation::Conflict,
            (one, two) if one != two => return Relation::Apart,
            _ => {}
        }
    }
    Relation::Overlap
}
