//! Detects paths that exclude each other in one update or projection.

use std::collections::BTreeMap;

use super::error::{ExpressionProblem, ListedPath};
use super::parser::{Findings, Mistake, Rank};
use super::path::{Path, PathElement};

/// Records the first two overlapping paths (one equals or contains the other) and the first two
/// conflicting paths (they need a map and a list in the same place).
pub(super) fn check<'a>(paths: impl IntoIterator<Item = &'a Path>, findings: &mut Findings) {
    // Grouped by top-level attribute, because only paths into the same attribute can overlap, and
    // legacy updates may have very many paths.
    let mut seen: BTreeMap<&str, Vec<&Path>> = BTreeMap::new();
    for path in paths {
        let neighbours = seen.entry(path.name()).or_default();
        for other in neighbours.iter() {
            let listed = || (ListedPath((*other).clone()), ListedPath(path.clone()));
            match relation(other, path) {
                Relation::Disjoint => continue,
                Relation::Overlap => {
                    let (one, two) = listed();
                    let rank = Rank::Within(0, Mistake::Overlap);
                    findings.note(rank, ExpressionProblem::Overlap { one, two });
                    // An overlap outranks everything else that this check can find.
                    return;
                }
                Relation::Conflict => {
                    let (one, two) = listed();
                    let rank = Rank::Within(0, Mistake::Conflict);
                    findings.note(rank, ExpressionProblem::Conflict { one, two });
                }
            }
        }
        neighbours.push(path);
    }
}

enum Relation {
    Disjoint,
    /// The paths are equal, or one contains the other.
    Overlap,
    /// One path needs a map where the other needs a list.
    Conflict,
}

/// The relation of two paths into the same top-level attribute.
fn relation(one: &Path, two: &Path) -> Relation {
    for pair in one.nested().iter().zip(two.nested()) {
        match pair {
            (PathElement::Name(_), PathElement::Index(_))
            | (PathElement::Index(_), PathElement::Name(_)) => return Relation::Conflict,
            (one, two) if one != two => return Relation::Disjoint,
            _ => {}
        }
    }
    Relation::Overlap
}
