//! `homeport move`: moves all tables from the embedded store to Amazon DynamoDB, or back. It speaks DynamoDB's protocol to
//! both, so both directions are the same.

mod embedded;
mod progress;

use std::path::PathBuf;
use std::process::ExitCode;

use homeport_remote::{
    Move, MoveEndpoint, MoveError, MoveEvent, MoveOptions, MoveTables, TableComparison,
};

use self::embedded::{Embedded, Role};
use self::progress::Progress;
use crate::app::state;
use crate::arguments::{Destination, MoveArguments};
use crate::config::{Settings, shown};
use crate::storage::backend;

/// Name of the embedded store in the state of a move, however it is reached.
const EMBEDDED: &str = "the embedded store";

pub(crate) async fn run(arguments: MoveArguments) -> anyhow::Result<ExitCode> {
    let settings = crate::begin(&arguments.flags)?;
    let role = match (arguments.to, arguments.finish) {
        (Destination::Embedded, _) => Role::Target,
        (Destination::Dynamodb, false) => Role::Source,
        (Destination::Dynamodb, true) => Role::SourceAtRest,
    };
    let embedded = Embedded::reach(&settings, role).await?;
    let outcome = run_with(&arguments, &settings, &embedded).await;
    embedded.close().await?;
    outcome
}

async fn run_with(
    arguments: &MoveArguments,
    settings: &Settings,
    embedded: &Embedded,
) -> anyhow::Result<ExitCode> {
    let dynamodb = backend::open_remote(&settings.store).await?;
    let here = MoveEndpoint {
        remote: embedded.connect().await?,
        name: EMBEDDED.to_owned(),
    };
    let there = MoveEndpoint {
        name: dynamodb.endpoint().to_owned(),
        remote: dynamodb,
    };
    let (source, target) = match arguments.to {
        Destination::Dynamodb => (here, there),
        Destination::Embedded => (there, here),
    };
    print_line!("from {} to {}", shown(&source.name), shown(&target.name));
    let progress = Progress::new();
    let observer = Box::new(move |event: &MoveEvent<'_>| progress.show(event));
    let notes = notes(settings, arguments.to);
    let options = MoveOptions {
        tables: tables(arguments, settings),
        replace: arguments.replace,
    };
    let mut moving = Move::open(source, target, &notes, options, observer)?;
    if arguments.abandon {
        moving.abandon().await?;
        print_line!("abandoned: the move's state is deleted; copied items remain at the target");
        return Ok(ExitCode::SUCCESS);
    }
    let outcome = if arguments.finish {
        moving.finish().await
    } else {
        moving.run().await
    };
    let compared = outcome.map_err(explained)?;
    if arguments.finish || compared.is_empty() {
        print_end(arguments.to);
    } else {
        print_next(arguments.to, &compared);
    }
    Ok(ExitCode::SUCCESS)
}

/// The tables to move. The embedded store has only Homeport's tables, an AWS account may have others.
fn tables(arguments: &MoveArguments, settings: &Settings) -> MoveTables {
    if !arguments.tables.is_empty() {
        return MoveTables::Named(arguments.tables.clone());
    }
    match arguments.to {
        Destination::Dynamodb => MoveTables::All,
        Destination::Embedded => {
            let tables = homeport_systems::schema::tables(&state::table_names(settings));
            MoveTables::Known(tables.into_iter().map(|table| table.name).collect())
        }
    }
}

/// Path of a move's state, in the data directory.
fn notes(settings: &Settings, to: Destination) -> PathBuf {
    settings.data.dir.join(match to {
        Destination::Dynamodb => "move-to-dynamodb.json",
        Destination::Embedded => "move-to-embedded.json",
    })
}

/// Adds what to do next.
fn explained(error: MoveError) -> anyhow::Error {
    let hint = match &error {
        MoveError::Foreign(_) => {
            "delete those items with --replace, or delete the tables, or choose another target"
        }
        MoveError::Different(..) => {
            "another program writes to the target's tables; stop it, abandon this move with --abandon, and start again with --replace"
        }
        MoveError::Store { .. } | MoveError::NotLevel(_) | MoveError::Outrun(_) => {
            "run the same command again to resume"
        }
        _ => return error.into(),
    };
    anyhow::anyhow!("{:#}; {hint}", anyhow::Error::from(error))
}

fn print_next(to: Destination, compared: &[TableComparison]) {
    let in_motion: usize = compared.iter().map(|table| table.in_motion).sum();
    if in_motion == 0 {
        print_line!("in sync: all {} tables are equal", compared.len());
    } else {
        print_line!(
            "in sync: all {} tables are equal, except {in_motion} items that are being written",
            compared.len()
        );
    }
    let (stop, kind) = switch(to);
    print_line!("To switch:");
    print_line!("1. {stop}");
    print_line!("2. homeport move --to {kind} --finish   (with the same settings)");
    print_line!("3. set store.kind = \"{kind}\" and start the server");
    print_line!(
        "Until then, run this command at least once a day: streams keep changes for 24 hours."
    );
}

fn print_end(to: Destination) {
    let (_, kind) = switch(to);
    print_line!("finished: both stores are equal, and nothing was written in the meantime");
    print_line!(
        "Now set store.kind = \"{kind}\" (or HOMEPORT_STORE, or --store) and start the server."
    );
    print_line!("The source is unchanged. Keep it until you have verified the target.");
}

/// What must stop before a move can finish, and the target's `store.kind`.
fn switch(to: Destination) -> (&'static str, &'static str) {
    match to {
        Destination::Dynamodb => (
            "stop the server; devices retry until it is back",
            "dynamodb",
        ),
        Destination::Embedded => (
            "stop every server and program that writes to these tables of Amazon DynamoDB",
            "embedded",
        ),
    }
}
