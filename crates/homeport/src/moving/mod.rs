//! `homeport move`: all tables from the embedded store to Amazon DynamoDB, or back. Both are asked over
//! DynamoDB's protocol, so that one way is the other one turned round.

mod embedded;
mod progress;

use std::path::PathBuf;
use std::process::ExitCode;

use homeport_remote::{Move, MoveError, MoveEvent, MoveOptions, MovePlace, MoveTables, Verified};

use self::embedded::{Embedded, Role};
use self::progress::Progress;
use crate::arguments::{Destination, MoveArguments};
use crate::config::{Settings, shown};
use crate::{backend, http};

/// What the notes of a move call the embedded store, wherever it is reached.
const EMBEDDED: &str = "the embedded store";

pub(crate) async fn run(asked: MoveArguments) -> anyhow::Result<ExitCode> {
    let settings = crate::begin(&asked.flags)?;
    let role = match (asked.to, asked.finish) {
        (Destination::Embedded, _) => Role::Target,
        (Destination::Dynamodb, false) => Role::Source,
        (Destination::Dynamodb, true) => Role::SourceAtRest,
    };
    let embedded = Embedded::reach(&settings, role).await?;
    let outcome = run_with(&asked, &settings, &embedded).await;
    embedded.close().await?;
    outcome
}

async fn run_with(
    asked: &MoveArguments,
    settings: &Settings,
    embedded: &Embedded,
) -> anyhow::Result<ExitCode> {
    let dynamodb = backend::open_remote(&settings.store).await?;
    let here = MovePlace {
        remote: embedded.connect().await?,
        name: EMBEDDED.to_owned(),
    };
    let there = MovePlace {
        name: dynamodb.place().to_owned(),
        remote: dynamodb,
    };
    let (source, target) = match asked.to {
        Destination::Dynamodb => (here, there),
        Destination::Embedded => (there, here),
    };
    say!("from {} to {}", shown(&source.name), shown(&target.name));
    let progress = Progress::new();
    let observer = Box::new(move |event: &MoveEvent<'_>| progress.show(event));
    let notes = notes(settings, asked.to);
    let options = MoveOptions {
        tables: tables(asked, settings),
        replace: asked.replace,
    };
    let mut moving = Move::open(source, target, &notes, options, observer)?;
    if asked.abandon {
        moving.abandon().await?;
        say!("given up: the move is forgotten; what was copied is still at the target");
        return Ok(ExitCode::SUCCESS);
    }
    let outcome = if asked.finish {
        moving.finish().await
    } else {
        moving.run().await
    };
    let compared = outcome.map_err(explained)?;
    if asked.finish || compared.is_empty() {
        print_end(asked.to);
    } else {
        print_next(asked.to, &compared);
    }
    Ok(ExitCode::SUCCESS)
}

/// Which tables are moved. The embedded store is Homeport's own; an account of AWS has others' tables too.
fn tables(asked: &MoveArguments, settings: &Settings) -> MoveTables {
    if !asked.tables.is_empty() {
        return MoveTables::Named(asked.tables.clone());
    }
    match asked.to {
        Destination::Dynamodb => MoveTables::All,
        Destination::Embedded => {
            let tables = homeport_systems::schema::tables(&http::table_names(settings));
            MoveTables::Known(tables.into_iter().map(|table| table.name).collect())
        }
    }
}

/// Where the notes of a move are kept: in the data directory, which both directions have.
fn notes(settings: &Settings, to: Destination) -> PathBuf {
    settings.data.dir.join(match to {
        Destination::Dynamodb => "move-to-dynamodb.json",
        Destination::Embedded => "move-to-embedded.json",
    })
}

/// Adds what can be done about it.
fn explained(error: MoveError) -> anyhow::Error {
    let hint = match &error {
        MoveError::Foreign(_) => {
            "--replace deletes those items; without it, delete the tables or name another place"
        }
        MoveError::Different(..) => {
            "something else writes to the target's tables; stop it, abandon this move with --abandon and start again with --replace"
        }
        MoveError::Store { .. } | MoveError::NotLevel(_) | MoveError::Outrun(_) => {
            "the same command goes on from here"
        }
        _ => return error.into(),
    };
    anyhow::anyhow!("{:#}; {hint}", anyhow::Error::from(error))
}

fn print_next(to: Destination, compared: &[Verified]) {
    let in_motion: usize = compared.iter().map(|table| table.in_motion).sum();
    if in_motion == 0 {
        say!("level: all {} tables are equal", compared.len());
    } else {
        say!(
            "level: all {} tables are equal, but for {in_motion} items that are being written",
            compared.len()
        );
    }
    let (stop, kind) = switch(to);
    say!("To switch:");
    say!("1. {stop}");
    say!("2. homeport move --to {kind} --finish   (with the same settings)");
    say!("3. set store.kind = \"{kind}\" and start the server");
    say!("Until then run this command again at least once a day: streams keep 24 hours.");
}

fn print_end(to: Destination) {
    let (_, kind) = switch(to);
    say!("finished: both stores are equal, and nothing was written meanwhile");
    say!("Now set store.kind = \"{kind}\" (or HOMEPORT_STORE, or --store) and start the server.");
    say!("The source's items are as they were. Keep it until you are sure.");
}

/// What has to be stopped before a move can be finished, and the kind of store that it leads to.
fn switch(to: Destination) -> (&'static str, &'static str) {
    match to {
        Destination::Dynamodb => (
            "stop the server; devices try again until it is back",
            "dynamodb",
        ),
        Destination::Embedded => (
            "stop every server and program that writes to these tables of Amazon DynamoDB",
            "embedded",
        ),
    }
}
