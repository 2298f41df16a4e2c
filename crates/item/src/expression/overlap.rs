//! Paths that cannot stand side by side in one update or projection.

use super::error::{ListedPath, Problem};
use super::parser::{Findings, Mistake, Rank};
use super::path::{Path, PathElement};

/// Notes the first two paths of which one leads to or through the other, and the first two that
/// ask for a map and a list in the same place.
pub(super) fn check<'a>(paths: impl IntoIterator<Item = &'a Path>, findings: &mut Findings) {
    let mut seen: Vec<&Path> = Vec::new();
    for path in paths {
        for other in &seen {
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
        seen.push(path);
    }
}

enum Relation {
    Apart,
    /// The same place, or one inside the other.
    Overlap,
    /// One takes for a map what the other takes for a list.
    Conflict,
}

fn relate(one: &Path, two: &Path) -> Relation {
    if one.name() != two.name() {
        return Relation::Apart;
    }
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
