//! Cycles of dependencies, classified by the weakest set of edges that closes them.

use std::collections::{HashMap, HashSet, VecDeque};

use crate::history::History;

use super::graph::{Edge, Graph};
use super::{Anomaly, Kind};

/// A step of a cycle: a node, and the edge that leaves it.
type Step = (usize, Edge);
/// Which edges a cycle may contain.
type Takes<'a> = &'a dyn Fn(Edge) -> bool;

/// Anomalies of the first kind that exists, one for each strongly connected component. Cycles are searched only in such
/// components, because searching a long history completely would take hours.
pub(super) fn find(history: &History, graph: &Graph) -> Vec<Anomaly> {
    for is_real_time in [false, true] {
        let time = move |edge: Edge| is_real_time && edge == Edge::RealTime;
        let writes = move |edge: Edge| edge == Edge::Write || time(edge);
        let reads = move |edge: Edge| edge == Edge::Read || writes(edge);
        let any = move |edge: Edge| edge == Edge::AntiDependency || reads(edge);
        let attempts: [(Kind, Edge, Takes<'_>); 4] = [
            (Kind::WriteCycle, Edge::Write, &writes),
            (Kind::CircularInformationFlow, Edge::Read, &reads),
            (Kind::SingleAntiDependency, Edge::AntiDependency, &reads),
            (Kind::AntiDependencyCycle, Edge::AntiDependency, &any),
        ];
        for (kind, first, takes) in attempts {
            let components = graph.components(|edge| edge == first || takes(edge));
            let cycles = components.iter().filter_map(|component| {
                let members: HashSet<usize> = component.iter().copied().collect();
                cycle_from(graph, &members, first, takes)
            });
            let anomalies: Vec<Anomaly> = cycles
                .map(|cycle| Anomaly {
                    kind,
                    is_real_time,
                    description: describe(history, &cycle),
                })
                .collect();
            if !anomalies.is_empty() {
                return anomalies;
            }
        }
    }
    Vec::new()
}

/// A cycle that begins with an edge of kind `first` and returns over edges that `takes` accepts.
fn cycle_from(
    graph: &Graph,
    members: &HashSet<usize>,
    first: Edge,
    takes: Takes<'_>,
) -> Option<Vec<Step>> {
    // Newest first: fewer transactions follow, so an unsuccessful search ends early.
    let mut from: Vec<usize> = members.iter().copied().collect();
    from.sort_unstable_by(|one, other| other.cmp(one));
    from.iter().find_map(|from| {
        let starts = graph.edges[*from].iter();
        let mut starts = starts.filter(|(to, edge)| *edge == first && members.contains(to));
        starts.find_map(|(to, edge)| {
            let mut cycle = vec![(*from, *edge)];
            cycle.extend(path(graph, members, *to, *from, takes)?);
            Some(cycle)
        })
    })
}

/// The shortest path between two nodes, without the last one.
fn path(
    graph: &Graph,
    members: &HashSet<usize>,
    from: usize,
    to: usize,
    takes: Takes<'_>,
) -> Option<Vec<Step>> {
    let mut reached: HashMap<usize, Step> = HashMap::new();
    let mut queue = VecDeque::from([from]);
    while let Some(node) = queue.pop_front() {
        if node == to {
            let mut steps = Vec::new();
            let mut at = to;
            while at != from {
                let step = reached[&at];
                steps.push(step);
                at = step.0;
            }
            steps.reverse();
            return Some(steps);
        }
        for (next, edge) in &graph.edges[node] {
            let is_new = *next != from && !reached.contains_key(next);
            if is_new && members.contains(next) && takes(*edge) {
                reached.insert(*next, (node, *edge));
                queue.push_back(*next);
            }
        }
    }
    None
}

fn describe(history: &History, cycle: &[Step]) -> String {
    let count = history.transactions.len();
    let mut steps: Vec<String> = Vec::new();
    for (node, edge) in cycle {
        // Moments are shown as part of the real-time edges between transactions.
        if *node >= count {
            continue;
        }
        let edge = match edge {
            Edge::Write => "ww",
            Edge::Read => "wr",
            Edge::AntiDependency => "rw",
            Edge::RealTime => "before",
        };
        let transaction = &history.transactions[*node];
        steps.push(format!("T{node} {:?} -{edge}->", transaction.actions));
    }
    let first = cycle.first().map_or(0, |(node, _)| *node);
    format!("{} T{first}", steps.join(" "))
}
