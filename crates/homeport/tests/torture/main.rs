//! Torture: writers over HTTP, MQTT and DynamoDB's protocol, while the server is killed, its disk fills up, its descriptors
//! run out, its clock jumps and its files are damaged. After every fault, everything that was acknowledged must be stored.
//!
//! As a test it injects every fault that the machine allows once, which takes about a minute. `cargo xtask torture --minutes
//! 60` runs it longer.

#![cfg(target_os = "linux")]

mod checker;
mod clients;
mod clock;
mod crew;
mod faults;
mod history;
mod location;
mod mqtt;
mod options;
mod plan;
mod report;
mod round;
mod samples;
mod server;
mod target;
mod workloads;

#[path = "../hostile/exchange.rs"]
#[allow(dead_code, reason = "shared with another test")]
mod exchange;

use crate::options::Options;
use crate::report::Report;
use crate::round::Round;

/// Steps of a round in a long run. Each round has its own directory and history, so neither grows with the length of the
/// run.
const ROUND_STEPS: usize = 21;
/// A run with fewer acknowledged writes did not really take place.
const ACKNOWLEDGED_MIN: u64 = 100;

#[test]
fn faults_lose_nothing_and_show_nothing_wrong() {
    let options = Options::from_environment().expect("options");
    for fault in &options.faults {
        if let Some(reason) = options::unavailable(*fault) {
            let name = fault.name();
            panic!("the fault `{name}` cannot be injected: {reason}; leave it out with --faults");
        }
    }
    for (fault, reason) in &options.left_out {
        println!("the fault `{}` is left out: {reason}", fault.name());
    }
    if let Some(has_passed) = location::reenter(TEST, &options.faults) {
        assert!(has_passed, "the run in a mount namespace of its own failed");
        return;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    let mut report = Report::new(options.seed);
    loop {
        if runtime.block_on(play_until_interrupted(&options, &mut report)) {
            panic!("interrupted");
        }
        let is_over = options
            .duration
            .is_none_or(|duration| report.elapsed() >= duration);
        if report.violation.is_some() || is_over {
            break;
        }
    }
    let markdown = report.markdown();
    println!("{markdown}");
    if let Some(file) = &options.report {
        std::fs::write(file, &markdown).expect("the report's file");
    }
    assert_eq!(report.violation, None);
    assert!(
        report.acknowledged() >= ACKNOWLEDGED_MIN,
        "nothing was written"
    );
}

/// The name under which the test runs itself again.
const TEST: &str = "faults_lose_nothing_and_show_nothing_wrong";

/// Plays one round until it ends, or until Ctrl-C or SIGTERM interrupts it. Then its server is stopped and its files are
/// removed. Returns whether it was interrupted.
async fn play_until_interrupted(options: &Options, report: &mut Report) -> bool {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate()).expect("a signal handler");
    tokio::select! {
        () = play(options, report) => false,
        _ = tokio::signal::ctrl_c() => true,
        _ = terminate.recv() => true,
    }
}

/// Plays one round.
async fn play(options: &Options, report: &mut Report) {
    let number = options.first_round + report.rounds;
    let steps = if options.is_short() {
        options.faults.len()
    } else {
        ROUND_STEPS
    };
    let plan = plan::draw(options.seed, number, &options.faults, steps);
    println!("seed {}, round {number}", options.seed);
    let directory = tempfile::Builder::new()
        .prefix("torture-")
        .tempdir()
        .expect("a directory");
    report.rounds += 1;
    let outcome = match Round::new(options, directory.path(), number, report) {
        Ok(mut round) => {
            let outcome = round.run(&plan, options.seed.wrapping_add(number)).await;
            if outcome.is_err() {
                round.keep();
            }
            outcome
        }
        Err(why) => Err(why),
    };
    if let Err(why) = outcome {
        let violation = format!("seed {}, round {number}, {why}", options.seed);
        println!("VIOLATION: {violation}");
        report.violation = Some(violation);
        let _ = directory.keep();
    }
}
