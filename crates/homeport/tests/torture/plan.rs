//! The order of faults, drawn from the seed before a round begins.

use homeport_simulate::SeededRandom;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Fault {
    /// kill -9.
    Kill,
    /// SIGTERM, which must end the server cleanly.
    Terminate,
    /// The file system stops, and writes that were not synced are lost.
    PowerCut,
    /// The disk fills up, and is freed later.
    Disk,
    /// More idle connections than the server has descriptors.
    Descriptors,
    /// The wall clock jumps far ahead or back, and returns.
    Clock,
    /// Files of a stopped server's directory are cut, removed or changed, in copies.
    Damage,
}

impl Fault {
    pub(crate) const ALL: [Self; 7] = [
        Self::Kill,
        Self::Terminate,
        Self::PowerCut,
        Self::Disk,
        Self::Descriptors,
        Self::Clock,
        Self::Damage,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Kill => "kill",
            Self::Terminate => "term",
            Self::PowerCut => "power",
            Self::Disk => "disk",
            Self::Descriptors => "descriptors",
            Self::Clock => "clock",
            Self::Damage => "damage",
        }
    }
}

/// One fault, after writers have run undisturbed for a while.
#[derive(Debug, Clone)]
pub(crate) struct Step {
    pub(crate) fault: Fault,
    pub(crate) run_ms: u64,
    /// Seed of the fault's details.
    pub(crate) seed: u64,
}

/// Draws a round's steps. Every fault occurs about equally often.
pub(crate) fn draw(seed: u64, round: u64, faults: &[Fault], steps: usize) -> Vec<Step> {
    let mut random = SeededRandom::new([seed, round]);
    let mut bag: Vec<Fault> = Vec::new();
    let mut drawn = Vec::with_capacity(steps);
    while drawn.len() < steps && !faults.is_empty() {
        if bag.is_empty() {
            bag = faults.to_vec();
        }
        let fault = bag.swap_remove(random.below(bag.len()));
        drawn.push(Step {
            fault,
            run_ms: 200 + random.next_u64() % 1800,
            seed: random.next_u64(),
        });
    }
    drawn
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seed_repeats_the_plan() {
        let plan = |seed| format!("{:?}", draw(seed, 1, &Fault::ALL, 30));
        assert_eq!(plan(1), plan(1));
        assert_ne!(plan(1), plan(2));
    }

    #[test]
    fn every_fault_occurs() {
        let steps = draw(3, 0, &Fault::ALL, Fault::ALL.len());
        for fault in Fault::ALL {
            assert!(steps.iter().any(|step| step.fault == fault), "{fault:?}");
        }
    }
}
