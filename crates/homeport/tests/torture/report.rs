//! The actions and findings of a run, as Markdown for `docs/reliability.md`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

use crate::faults::{FILE_KINDS, damage_names};
use crate::plan::Fault;
use crate::samples::Samples;
use crate::workloads::OperationResult;

#[derive(Debug)]
pub(crate) struct Report {
    seed: u64,
    started: Instant,
    pub(crate) rounds: u64,
    pub(crate) steps: u64,
    pub(crate) verifications: u64,
    /// By workload, in the order of `OperationResult::ALL`.
    operations: BTreeMap<&'static str, [u64; OperationResult::ALL.len()]>,
    faults: BTreeMap<Fault, FaultCount>,
    /// By kind of file and of damage.
    damage: BTreeMap<(&'static str, &'static str), DamageCount>,
    pub(crate) transactions: u64,
    pub(crate) anomalies: u64,
    pub(crate) samples: Samples,
    pub(crate) violation: Option<String>,
}

#[derive(Debug, Default)]
struct FaultCount {
    count: u64,
    recoveries_ms: Vec<u64>,
}

/// How a server behaves on a damaged directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DamageOutcome {
    RefusedAtStart,
    RefusedOnRead,
    ServedWhole,
}

/// Results for a damaged copy.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Judged {
    pub(crate) outcome: DamageOutcome,
    pub(crate) is_found_by_check: bool,
}

#[derive(Debug, Default)]
struct DamageCount {
    refused_at_start: u64,
    refused_on_read: u64,
    served_whole: u64,
    found_by_check: u64,
}

impl DamageCount {
    /// How often the combination was tried.
    fn total(&self) -> u64 {
        self.refused_at_start + self.refused_on_read + self.served_whole
    }
}

impl Report {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            seed,
            started: Instant::now(),
            rounds: 0,
            steps: 0,
            verifications: 0,
            operations: BTreeMap::new(),
            faults: BTreeMap::new(),
            damage: BTreeMap::new(),
            transactions: 0,
            anomalies: 0,
            samples: Samples::default(),
            violation: None,
        }
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    pub(crate) fn add_operations(
        &mut self,
        workload: &'static str,
        ended: OperationResult,
        count: u64,
    ) {
        self.operations.entry(workload).or_default()[ended as usize] += count;
    }

    pub(crate) fn add_fault(&mut self, fault: Fault, recovery: Duration) {
        let count = self.faults.entry(fault).or_default();
        count.count += 1;
        let millis = u64::try_from(recovery.as_millis()).unwrap_or(u64::MAX);
        count.recoveries_ms.push(millis);
    }

    pub(crate) fn add_damage(&mut self, file: &'static str, damage: &'static str, judged: Judged) {
        let count = self.damage.entry((file, damage)).or_default();
        match judged.outcome {
            DamageOutcome::RefusedAtStart => count.refused_at_start += 1,
            DamageOutcome::RefusedOnRead => count.refused_on_read += 1,
            DamageOutcome::ServedWhole => count.served_whole += 1,
        }
        count.found_by_check += u64::from(judged.is_found_by_check);
    }

    /// How often this kind of file was damaged in this way.
    pub(crate) fn damage_count(&self, file: &'static str, damage: &'static str) -> u64 {
        self.damage
            .get(&(file, damage))
            .map_or(0, DamageCount::total)
    }

    /// Combinations of file and damage that were never tried.
    fn untried_damage(&self) -> Vec<String> {
        let of_file = |file: &'static str| damage_names().map(move |damage| (file, damage));
        FILE_KINDS
            .into_iter()
            .flat_map(of_file)
            .filter(|(file, damage)| self.damage_count(file, damage) == 0)
            .map(|(file, damage)| format!("{file} {damage}"))
            .collect()
    }

    pub(crate) fn acknowledged(&self) -> u64 {
        let written = OperationResult::Acknowledged as usize;
        self.operations.values().map(|counts| counts[written]).sum()
    }

    pub(crate) fn markdown(&self) -> String {
        let mut text = String::new();
        let verdict = match &self.violation {
            Some(violation) => format!("**failed**: {violation}"),
            None => "passed".to_owned(),
        };
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "Seed {}, {} s, {} rounds, {} steps, {} verifications: {verdict}.\n",
            self.seed,
            self.elapsed().as_secs(),
            self.rounds,
            self.steps,
            self.verifications
        );
        text.push_str(
            "| workload | acknowledged writes | reads | refused | unknown |\n\
             | --- | ---: | ---: | ---: | ---: |\n",
        );
        for (workload, [acknowledged, reads, refused, unknown]) in &self.operations {
            let _ = writeln!(
                text,
                "| {workload} | {acknowledged} | {reads} | {refused} | {unknown} |"
            );
        }
        text.push_str("\n| fault | count | median recovery | longest recovery |\n| --- | ---: | ---: | ---: |\n");
        for (fault, count) in &self.faults {
            let mut times = count.recoveries_ms.clone();
            times.sort_unstable();
            let median = times.get(times.len() / 2).copied().unwrap_or_default();
            let longest = times.last().copied().unwrap_or_default();
            let (name, count) = (fault.name(), count.count);
            let _ = writeln!(text, "| {name} | {count} | {median} ms | {longest} ms |");
        }
        if !self.damage.is_empty() {
            text.push_str(
                "\n| damaged file | damage | refused at start | refused on read | served whole | found by check |\n\
                 | --- | --- | ---: | ---: | ---: | ---: |\n",
            );
        }
        for ((file, damage), count) in &self.damage {
            let _ = writeln!(
                text,
                "| {file} | {damage} | {} | {} | {} | {} of {} |",
                count.refused_at_start,
                count.refused_on_read,
                count.served_whole,
                count.found_by_check,
                count.total()
            );
        }
        if !self.damage.is_empty() {
            let untried = match self.untried_damage() {
                untried if untried.is_empty() => "none".to_owned(),
                untried => untried.join(", "),
            };
            let _ = writeln!(text, "\nNever tried: {untried}.");
        }
        let _ = writeln!(
            text,
            "\nHistory: {} transactions, {} anomalies. {}",
            self.transactions, self.anomalies, self.samples
        );
        text
    }
}
