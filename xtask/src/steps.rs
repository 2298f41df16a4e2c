//! Runs named steps in order up to the first failure, and lists their times at the end.

use std::fmt;
use std::time::{Duration, Instant};

/// Runs steps one after another and measures each.
///
/// After a failure all further steps are skipped, so the caller lists the steps without branches.
pub(crate) struct Steps {
    finished: Vec<Finished>,
    failure: Option<anyhow::Error>,
}

struct Finished {
    name: &'static str,
    outcome: Outcome,
}

enum Outcome {
    Passed(Duration),
    Failed(Duration),
    NotRun,
}

impl Steps {
    pub(crate) fn new() -> Steps {
        Steps {
            finished: Vec::new(),
            failure: None,
        }
    }

    pub(crate) fn step(&mut self, name: &'static str, work: impl FnOnce() -> anyhow::Result<()>) {
        let outcome = if self.failure.is_some() {
            Outcome::NotRun
        } else {
            println!("\n== {name}");
            let started = Instant::now();
            let result = work();
            let took = started.elapsed();
            match result {
                Ok(()) => Outcome::Passed(took),
                Err(error) => {
                    self.failure = Some(error.context(format!("step `{name}` failed")));
                    Outcome::Failed(took)
                }
            }
        };
        self.finished.push(Finished { name, outcome });
    }

    /// Prints a line per step, and returns the first failure.
    pub(crate) fn finish(self) -> anyhow::Result<()> {
        println!("\n{self}");
        self.failure.map_or(Ok(()), Err)
    }
}

impl fmt::Display for Steps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Finished { name, outcome } in &self.finished {
            match outcome {
                Outcome::Passed(took) => {
                    writeln!(f, "ok      {:>7.1} s  {name}", took.as_secs_f64())?
                }
                Outcome::Failed(took) => {
                    writeln!(f, "FAILED  {:>7.1} s  {name}", took.as_secs_f64())?
                }
                Outcome::NotRun => writeln!(f, "not run            {name}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use anyhow::anyhow;

    use super::*;

    #[test]
    fn nothing_runs_after_the_first_failure() {
        let later_ran = Cell::new(false);
        let mut steps = Steps::new();
        steps.step("first", || Ok(()));
        steps.step("second", || Err(anyhow!("broken")));
        steps.step("third", || {
            later_ran.set(true);
            Ok(())
        });

        let summary = steps.to_string();
        let lines: Vec<&str> = summary.lines().collect();
        assert!(
            lines[0].starts_with("ok ") && lines[0].ends_with("first"),
            "{summary}"
        );
        assert!(
            lines[1].starts_with("FAILED ") && lines[1].ends_with("second"),
            "{summary}"
        );
        assert!(
            lines[2].starts_with("not run ") && lines[2].ends_with("third"),
            "{summary}"
        );
        assert!(!later_ran.get());

        let error = steps.finish().unwrap_err();
        assert_eq!(format!("{error:#}"), "step `second` failed: broken");
    }

    #[test]
    fn finish_succeeds_if_every_step_did() {
        let mut steps = Steps::new();
        steps.step("only", || Ok(()));
        assert!(steps.finish().is_ok());
    }
}
