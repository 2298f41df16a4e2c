//! Checks a history of list transactions for strict serializability, as Elle does
//! (Kingsbury and Alvaro, "Elle: Inferring Isolation Anomalies from Experimental Observations").
//!
//! Reads of a list give the order of its versions, and versions give dependencies between transactions. A cycle of
//! dependencies is an anomaly. There is no I/O here.

mod cycles;
mod graph;
#[cfg(test)]
mod tests;
mod versions;

use std::fmt;

use crate::history::History;

use self::graph::Graph;
use self::versions::Versions;

/// Maximum number of anomalies to report.
const ANOMALIES_MAX: usize = 20;

/// Kinds of anomalies, named as Adya and Elle name them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A list holds one value twice.
    DuplicateValue,
    /// A read shows a value that nobody appended.
    UnknownValue,
    /// Two reads of a list disagree about its order.
    IncompatibleOrder,
    /// A transaction does not see its own actions.
    Internal,
    /// G1a: a read shows a value of an aborted transaction.
    AbortedRead,
    /// G1b: a read shows a version from the middle of a transaction.
    IntermediateRead,
    /// G0: a cycle of writes.
    WriteCycle,
    /// G1c: a cycle of writes and reads.
    CircularInformationFlow,
    /// G-single: a cycle with one anti-dependency, such as a lost update or a torn read.
    SingleAntiDependency,
    /// G2: a cycle with several anti-dependencies, such as write skew.
    AntiDependencyCycle,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Anomaly {
    pub(crate) kind: Kind,
    /// Whether the cycle needs real-time order: serializable, but stale.
    pub(crate) is_real_time: bool,
    pub(crate) description: String,
}

impl Anomaly {
    fn new(kind: Kind, description: String) -> Self {
        Self {
            kind,
            is_real_time: false,
            description,
        }
    }
}

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::DuplicateValue => "duplicate value",
            Self::UnknownValue => "unknown value",
            Self::IncompatibleOrder => "incompatible order",
            Self::Internal => "internal",
            Self::AbortedRead => "G1a",
            Self::IntermediateRead => "G1b",
            Self::WriteCycle => "G0",
            Self::CircularInformationFlow => "G1c",
            Self::SingleAntiDependency => "G-single",
            Self::AntiDependencyCycle => "G2",
        }
    }
}

impl fmt::Display for Anomaly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let real_time = if self.is_real_time { "-realtime" } else { "" };
        write!(f, "{}{real_time}: {}", self.kind.name(), self.description)
    }
}

/// The anomalies of a history; empty if it is strictly serializable.
pub(crate) fn check(history: &History) -> Vec<Anomaly> {
    let versions = Versions::of(history);
    let mut anomalies = versions.anomalies(history);
    let graph = Graph::of(history, &versions);
    anomalies.extend(cycles::find(history, &graph));
    anomalies.truncate(ANOMALIES_MAX);
    anomalies
}
