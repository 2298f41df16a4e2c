//! Damages files of a stopped server in copies of its directory. A server must reject the copy or serve everything, and
//! `homeport check` must report the damage without changing anything. Kinds of files and of damage take turns.

use std::path::Path;
use std::process::{Command, Output};

use super::damage_files::{Damage, Victim, content, victims};
use crate::clients::Clients;
use crate::crew::Crew;
use crate::report::{DamageOutcome, Judged, Report};
use crate::round::Round;
use crate::server::NoStart;
use crate::target::Announcer;
use crate::workloads::{Problem, Scope};
use homeport_simulate::SeededRandom;

/// Copies to damage in one step.
const COPIES: usize = 6;
const COPIES_SHORT: usize = 4;
/// Attempts to read a copy, because reads may fail for a moment on a busy machine.
const READ_ATTEMPTS: usize = 3;

pub(super) async fn inject(
    round: &mut Round<'_>,
    random: &mut SeededRandom,
    crew: &Crew,
) -> Result<(), String> {
    round.verify(crew).await?;
    {
        let _pause = crew.pause().await;
        if random.once_in(3) {
            round.terminate()?;
        } else {
            round.kill()?;
        }
    }
    let copies = if round.options.is_short() {
        COPIES_SHORT
    } else {
        COPIES
    };
    let mut kinds: Vec<&str> = Vec::new();
    for number in 0..copies {
        let copy = round.directory.join(format!("copy-{number}"));
        copy_folder(&round.location.data_dir(), &copy)?;
        let all = victims(&copy).map_err(|error| error.to_string())?;
        if kinds.is_empty() {
            kinds = all.iter().map(|victim| victim.kind).collect();
            kinds.sort_unstable();
            kinds.dedup();
        }
        let (kind, damage) = next_damage(round.report, &kinds, random);
        kinds.retain(|other| *other != kind);
        let of_kind: Vec<Victim> = all.into_iter().filter(|it| it.kind == kind).collect();
        let victim = random.pick(&of_kind).clone();

        let damaged = damage.apply(&victim.path, random);
        damaged.map_err(|error| format!("damaging {}: {error}", victim.path.display()))?;
        let name = victim.path.strip_prefix(&copy).unwrap_or(&victim.path);
        let judged = judge(round, &copy, &victim, number).await;
        let judged =
            judged.map_err(|why| format!("{} {}: {why}", name.display(), damage.name()))?;
        println!("  {} {}: {judged:?}", name.display(), damage.name());
        round.report.add_damage(victim.kind, damage.name(), judged);
        std::fs::remove_dir_all(&copy).map_err(|error| error.to_string())?;
    }
    Ok(())
}

fn copy_folder(from: &Path, to: &Path) -> Result<(), String> {
    let copied = Command::new("cp")
        .args(["-a", "--sparse=always", "--"])
        .arg(from)
        .arg(to)
        .status();
    match copied {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("cp: {status}")),
        Err(error) => Err(format!("cp: {error}")),
    }
}

/// The combination that was tried least often.
fn next_damage(
    report: &Report,
    kinds: &[&'static str],
    random: &mut SeededRandom,
) -> (&'static str, Damage) {
    let of_kind = |kind: &&'static str| Damage::ALL.map(|damage| (*kind, damage));
    let mut all: Vec<(&str, Damage)> = kinds.iter().flat_map(of_kind).collect();
    let times = |(kind, damage): &(&'static str, Damage)| report.damage_count(kind, damage.name());
    let fewest = all.iter().map(times).min();
    all.retain(|combination| Some(times(combination)) == fewest);
    *random.pick(&all)
}

/// Runs `homeport check` and a server on a damaged copy.
async fn judge(
    round: &mut Round<'_>,
    copy: &Path,
    victim: &Victim,
    number: usize,
) -> Result<Judged, String> {
    let text = |error: std::io::Error| error.to_string();
    let before = content(copy).map_err(text)?;
    let check = round
        .launch
        .command(&["check"], copy)
        .output()
        .map_err(text)?;
    let is_unchanged = content(copy).map_err(text)? == before;
    if check.status.success() && victim.is_checked_whole() && is_used(round, copy, victim)? {
        return Err(format!(
            "homeport check needs the file and misses its damage: {}",
            show(&check)
        ));
    }
    let outcome = serve(round, copy, number).await?;
    if !is_unchanged {
        return Err(format!("homeport check changes files; {}", show(&check)));
    }
    if outcome != DamageOutcome::ServedWhole && check.status.success() {
        return Err(format!(
            "{outcome:?}, but homeport check passes: {}",
            show(&check)
        ));
    }
    if !check.status.success() && show(&check).contains("panicked") {
        return Err(format!("homeport check panics: {}", show(&check)));
    }
    Ok(Judged {
        outcome,
        is_found_by_check: !check.status.success(),
    })
}

/// Whether `homeport check` fails without the file. A killed server leaves unreferenced files.
fn is_used(round: &Round<'_>, copy: &Path, victim: &Victim) -> Result<bool, String> {
    if !victim.path.exists() {
        return Ok(false);
    }
    let text = |error: std::io::Error| error.to_string();
    let aside = round.directory.join("set-aside");
    std::fs::copy(&victim.path, &aside).map_err(text)?;
    std::fs::remove_file(&victim.path).map_err(text)?;
    let check = round.launch.command(&["check"], copy).output();
    std::fs::copy(&aside, &victim.path).map_err(text)?;
    Ok(!check.map_err(text)?.status.success())
}

async fn serve(round: &mut Round<'_>, copy: &Path, number: usize) -> Result<DamageOutcome, String> {
    let server = match round.launch.start(copy, &format!("copy-{number}")) {
        Ok(server) => server,
        Err(NoStart::Refused(_)) => return Ok(DamageOutcome::RefusedAtStart),
        Err(NoStart::Broken(why)) => {
            return Err(format!("the server neither runs nor refuses: {why}"));
        }
    };
    let (_announcer, target) = Announcer::new(Some(server.addresses));
    let mut clients = Clients::new(target);
    let mut outcome = DamageOutcome::ServedWhole;
    for workload in &round.workloads.all {
        let mut verified = workload.verify(&mut clients, Scope::Copy).await;
        for _ in 1..READ_ATTEMPTS {
            if matches!(verified, Err(Problem::Unreadable(_))) {
                verified = workload.verify(&mut clients, Scope::Copy).await;
            }
        }
        match verified {
            Ok(()) => {}
            Err(Problem::Violation(why)) => return Err(format!("served with less: {why}")),
            Err(Problem::Unreadable(why)) => {
                println!("    {}: {why}", workload.name());
                outcome = DamageOutcome::RefusedOnRead;
            }
        }
    }
    if let Some(panic) = server.panics().first() {
        return Err(format!("the server panicked: {panic}"));
    }
    server.kill();
    Ok(outcome)
}

fn show(output: &Output) -> String {
    let (said, errors) = (&output.stdout, &output.stderr);
    format!(
        "{}{}",
        String::from_utf8_lossy(said),
        String::from_utf8_lossy(errors)
    )
}
