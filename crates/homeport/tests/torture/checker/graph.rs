//! The graph of dependencies between transactions, and its strongly connected components.

use std::collections::HashMap;

use crate::history::{Action, History, Key, Outcome};

use super::versions::Versions;

/// Why one transaction comes before another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Edge {
    /// ww: the second appends right after the first.
    Write,
    /// wr: the second reads what the first appended.
    Read,
    /// rw: the first reads the version that the second appends to.
    AntiDependency,
    /// The first had ended before the second began.
    RealTime,
}

/// Nodes are transactions by number, followed by moments, one for each end of a transaction. Moments form a chain, so that
/// real-time order needs few edges.
pub(super) struct Graph {
    pub(super) edges: Vec<Vec<(usize, Edge)>>,
}

impl Graph {
    pub(super) fn of(history: &History, versions: &Versions) -> Self {
        let count = history.transactions.len();
        let mut graph = Self {
            edges: vec![Vec::new(); count],
        };
        let happened = versions.happened(history);
        graph.add_writes(versions, &happened);
        let unseen = unseen_appends(history, versions, &happened);
        for (number, transaction) in history.transactions.iter().enumerate() {
            if !happened[number] {
                continue;
            }
            let mut own: HashMap<Key, usize> = HashMap::new();
            for action in &transaction.actions {
                match action {
                    Action::Append { key, .. } => *own.entry(*key).or_default() += 1,
                    Action::Read { key, values } => {
                        // Nobody knows what an unknown transaction has read.
                        if transaction.outcome != Outcome::Committed
                            || !versions.order(*key).starts_with(values)
                        {
                            continue;
                        }
                        let own = own.get(key).copied().unwrap_or_default();
                        let version = values.len().saturating_sub(own);
                        graph.add_read(versions, &happened, &unseen, number, *key, version);
                    }
                }
            }
        }
        graph.add_real_time(history, &happened);
        graph
    }

    fn add(&mut self, from: usize, to: usize, edge: Edge) {
        if from != to && !self.edges[from].contains(&(to, edge)) {
            self.edges[from].push((to, edge));
        }
    }

    fn add_writes(&mut self, versions: &Versions, happened: &[bool]) {
        for (key, order) in versions.orders() {
            let writers = order.iter().map(|value| versions.writer(key, *value));
            let writers: Vec<Option<usize>> = writers.collect();
            for pair in writers.windows(2) {
                if let [Some(first), Some(second)] = pair
                    && happened[*first]
                    && happened[*second]
                {
                    self.add(*first, *second, Edge::Write);
                }
            }
        }
    }

    /// Adds a read of the version with this many values.
    fn add_read(
        &mut self,
        versions: &Versions,
        happened: &[bool],
        unseen: &HashMap<Key, Vec<usize>>,
        reader: usize,
        key: Key,
        version: usize,
    ) {
        let order = versions.order(key);
        let writer_at = |at: usize| {
            let writer = versions.writer(key, *order.get(at)?)?;
            happened[writer].then_some(writer)
        };
        if let Some(writer) = version.checked_sub(1).and_then(writer_at) {
            self.add(writer, reader, Edge::Read);
        }
        match writer_at(version) {
            Some(next) => self.add(reader, next, Edge::AntiDependency),
            // Appends that happened but were never read come after the longest version.
            None if version >= order.len() => {
                for writer in unseen.get(&key).into_iter().flatten() {
                    self.add(reader, *writer, Edge::AntiDependency);
                }
            }
            None => {}
        }
    }

    fn add_real_time(&mut self, history: &History, happened: &[bool]) {
        let transactions = &history.transactions;
        let mut ended: Vec<usize> = (0..transactions.len())
            .filter(|number| transactions[*number].outcome == Outcome::Committed)
            .collect();
        ended.sort_by_key(|number| transactions[*number].completed_ns);
        let first_moment = self.edges.len();
        self.edges.resize(first_moment + ended.len(), Vec::new());
        for (at, number) in ended.iter().enumerate() {
            self.edges[*number].push((first_moment + at, Edge::RealTime));
            if at > 0 {
                self.edges[first_moment + at - 1].push((first_moment + at, Edge::RealTime));
            }
        }
        let times: Vec<u64> = ended
            .iter()
            .map(|number| transactions[*number].completed_ns)
            .collect();
        for (number, transaction) in transactions.iter().enumerate() {
            let before = times.partition_point(|at| *at < transaction.invoked_ns);
            if happened[number] && before > 0 {
                self.edges[first_moment + before - 1].push((number, Edge::RealTime));
            }
        }
    }

    /// Strongly connected components of more than one node over accepted edges (Tarjan, without recursion).
    pub(super) fn components(&self, takes: impl Fn(Edge) -> bool) -> Vec<Vec<usize>> {
        const NEW: usize = usize::MAX;
        let count = self.edges.len();
        let (mut index, mut low) = (vec![NEW; count], vec![0; count]);
        let (mut on_stack, mut stack) = (vec![false; count], Vec::new());
        let (mut next, mut components) = (0, Vec::new());
        for root in 0..count {
            if index[root] != NEW {
                continue;
            }
            let mut calls = vec![(root, 0_usize)];
            while let Some((node, at)) = calls.pop() {
                if at == 0 {
                    index[node] = next;
                    low[node] = next;
                    next += 1;
                    stack.push(node);
                    on_stack[node] = true;
                }
                if let Some((to, edge)) = self.edges[node].get(at).copied() {
                    calls.push((node, at + 1));
                    if !takes(edge) {
                        continue;
                    }
                    if index[to] == NEW {
                        calls.push((to, 0));
                    } else if on_stack[to] {
                        low[node] = low[node].min(index[to]);
                    }
                    continue;
                }
                if low[node] == index[node] {
                    let from = stack.iter().rposition(|other| *other == node).unwrap_or(0);
                    let component = stack.split_off(from);
                    for member in &component {
                        on_stack[*member] = false;
                    }
                    if component.len() > 1 {
                        components.push(component);
                    }
                }
                if let Some((parent, _)) = calls.last() {
                    low[*parent] = low[*parent].min(low[node]);
                }
            }
        }
        components
    }
}

/// Transactions that happened, by lists to which they appended values that were never read.
fn unseen_appends(
    history: &History,
    versions: &Versions,
    happened: &[bool],
) -> HashMap<Key, Vec<usize>> {
    let mut unseen: HashMap<Key, Vec<usize>> = HashMap::new();
    for (number, transaction) in history.transactions.iter().enumerate() {
        if !happened[number] {
            continue;
        }
        for action in &transaction.actions {
            if let Action::Append { key, value } = action
                && !versions.order(*key).contains(value)
            {
                unseen.entry(*key).or_default().push(number);
            }
        }
    }
    unseen
}
