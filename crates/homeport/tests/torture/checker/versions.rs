//! Version orders: which transaction appended what, and in which order each list grew. Anomalies that show without a
//! graph.

use std::collections::{HashMap, HashSet};

use crate::history::{Action, History, Key, Outcome, Value};

use super::{Anomaly, Kind};

pub(super) struct Versions {
    /// The transaction that appended a value to a list.
    writers: HashMap<(Key, Value), usize>,
    /// The longest read of each list.
    orders: HashMap<Key, Vec<Value>>,
}

impl Versions {
    pub(super) fn of(history: &History) -> Self {
        let mut writers = HashMap::new();
        let mut orders: HashMap<Key, Vec<Value>> = HashMap::new();
        for (number, transaction) in history.transactions.iter().enumerate() {
            for action in &transaction.actions {
                match action {
                    Action::Append { key, value } => {
                        writers.insert((*key, *value), number);
                    }
                    Action::Read { key, values } => {
                        if transaction.outcome != Outcome::Committed {
                            continue;
                        }
                        let order = orders.entry(*key).or_default();
                        if values.len() > order.len() {
                            order.clone_from(values);
                        }
                    }
                }
            }
        }
        Self { writers, orders }
    }

    pub(super) fn order(&self, key: Key) -> &[Value] {
        self.orders.get(&key).map_or(&[], Vec::as_slice)
    }

    pub(super) fn orders(&self) -> impl Iterator<Item = (Key, &[Value])> {
        self.orders
            .iter()
            .map(|(key, order)| (*key, order.as_slice()))
    }

    pub(super) fn writer(&self, key: Key, value: Value) -> Option<usize> {
        self.writers.get(&(key, value)).copied()
    }

    /// Transactions that happened: committed ones, and unknown ones that a read shows.
    pub(super) fn happened(&self, history: &History) -> Vec<bool> {
        let mut happened: Vec<bool> = history
            .transactions
            .iter()
            .map(|transaction| transaction.outcome == Outcome::Committed)
            .collect();
        for (key, order) in &self.orders {
            for value in order {
                let Some(writer) = self.writer(*key, *value) else {
                    continue;
                };
                if history.transactions[writer].outcome == Outcome::Unknown {
                    happened[writer] = true;
                }
            }
        }
        happened
    }

    /// Anomalies of single reads.
    pub(super) fn anomalies(&self, history: &History) -> Vec<Anomaly> {
        let mut anomalies = Vec::new();
        for (number, transaction) in history.transactions.iter().enumerate() {
            if transaction.outcome != Outcome::Committed {
                continue;
            }
            let mut own = OwnView::default();
            for action in &transaction.actions {
                match action {
                    Action::Append { key, value } => own.append(*key, *value),
                    Action::Read { key, values } => {
                        if !own.agrees(*key, values) {
                            let text = format!(
                                "T{number} reads {values:?} of {key} after its own actions"
                            );
                            anomalies.push(Anomaly::new(Kind::Internal, text));
                        }
                        own.read(*key, values);
                        self.judge_read(history, number, *key, values, &mut anomalies);
                    }
                }
            }
        }
        anomalies
    }

    fn judge_read(
        &self,
        history: &History,
        reader: usize,
        key: Key,
        values: &[Value],
        anomalies: &mut Vec<Anomaly>,
    ) {
        let mut add = |kind, text| anomalies.push(Anomaly::new(kind, text));
        let order = self.order(key);
        if !order.starts_with(values) {
            let text = format!("T{reader} reads {values:?} of {key}, others {order:?}");
            add(Kind::IncompatibleOrder, text);
        }
        let mut seen = HashSet::new();
        for value in values {
            if !seen.insert(*value) {
                let text = format!("T{reader} reads {value} of {key} twice");
                add(Kind::DuplicateValue, text);
            }
            match self.writer(key, *value) {
                None => {
                    let text = format!("T{reader} reads {value} of {key}, which nobody appended");
                    add(Kind::UnknownValue, text);
                }
                Some(writer) if history.transactions[writer].outcome == Outcome::Aborted => {
                    let text =
                        format!("T{reader} reads {value} of {key}, which T{writer} did not commit");
                    add(Kind::AbortedRead, text);
                }
                Some(_) => {}
            }
        }
        let Some(last) = values.last() else { return };
        let Some(writer) = self.writer(key, *last).filter(|writer| *writer != reader) else {
            return;
        };
        let appended = appends_to(history, writer, key);
        if appended.last() != Some(last) {
            let text =
                format!("T{reader} reads {key} up to {last}, but T{writer} appends {appended:?}");
            add(Kind::IntermediateRead, text);
        }
    }
}

/// The values that a transaction appends to a list, in order.
fn appends_to(history: &History, number: usize, wanted: Key) -> Vec<Value> {
    let actions = history.transactions[number].actions.iter();
    actions
        .filter_map(|action| match action {
            Action::Append { key, value } if *key == wanted => Some(*value),
            _ => None,
        })
        .collect()
}

/// What a transaction knows about lists from its earlier actions.
#[derive(Default)]
struct OwnView {
    /// Each list as read, if it was read, and later appends.
    lists: HashMap<Key, (Option<Vec<Value>>, Vec<Value>)>,
}

impl OwnView {
    fn append(&mut self, key: Key, value: Value) {
        self.lists.entry(key).or_default().1.push(value);
    }

    fn read(&mut self, key: Key, values: &[Value]) {
        self.lists.insert(key, (Some(values.to_vec()), Vec::new()));
    }

    fn agrees(&self, key: Key, values: &[Value]) -> bool {
        let Some((read, appended)) = self.lists.get(&key) else {
            return true;
        };
        match read {
            Some(read) => {
                values.len() == read.len() + appended.len()
                    && values.starts_with(read)
                    && values.ends_with(appended)
            }
            None => values.ends_with(appended),
        }
    }
}
