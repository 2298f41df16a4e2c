//! Damage to files of a stopped server, in copies of its directory: it is refused, or everything is
//! served all the same; and `homeport check` says so and changes nothing.

use std::path::Path;
use std::process::{Command, Output};

use super::damage_files::{Damage, Victim, content, victims};
use crate::clients::Clients;
use crate::crew::Crew;
use crate::dice::Dice;
use crate::report::DamageOutcome;
use crate::round::Round;
use crate::server::NoStart;
use crate::target::Announcer;
use crate::workloads::{Problem, Scope};

/// Copies that are damaged in one step.
const COPIES: usize = 6;
const COPIES_SHORT: usize = 4;

pub(super) async fn inject(
    round: &mut Round<'_>,
    dice: &mut Dice,
    crew: &Crew,
) -> Result<(), String> {
    round.verify(crew).await?;
    {
        let _pause = crew.pause().await;
        if dice.once_in(3) {
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
        copy_folder(&round.place.data_dir(), &copy)?;
        let all = victims(&copy).map_err(|error| error.to_string())?;
        if kinds.is_empty() {
            kinds = all.iter().map(|victim| victim.kind).collect();
            kinds.sort_unstable();
            kinds.dedup();
        }
        let kind = kinds.swap_remove(dice.below(kinds.len()));
        let of_kind: Vec<Victim> = all.into_iter().filter(|it| it.kind == kind).collect();
        let victim = dice.pick(&of_kind).clone();
        let damage = *dice.pick(&Damage::ALL);
        let damaged = damage.apply(&victim.path, dice);
        damaged.map_err(|error| format!("damaging {}: {error}", victim.path.display()))?;
        let name = victim.path.strip_prefix(&copy).unwrap_or(&victim.path);
        let outcome = judge(round, &copy, number).await;
        let outcome =
            outcome.map_err(|why| format!("{} {}: {why}", name.display(), damage.name()))?;
        println!("  {} {}: {outcome:?}", name.display(), damage.name());
        round.report.add_damage(victim.kind, damage.name(), outcome);
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

/// Runs `homeport check` and a server on a damaged copy.
async fn judge(round: &mut Round<'_>, copy: &Path, number: usize) -> Result<DamageOutcome, String> {
    let text = |error: std::io::Error| error.to_string();
    let before = content(copy).map_err(text)?;
    let check = round
        .launch
        .command(&["check"], copy)
        .output()
        .map_err(text)?;
    let is_unchanged = content(copy).map_err(text)? == before;
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
    Ok(outcome)
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
        match workload.verify(&mut clients, Scope::Copy).await {
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
