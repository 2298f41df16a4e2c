//! `homeport time`: shows the store's time, and confirms it after the clock was implausibly far ahead.

use std::process::ExitCode;

use anyhow::Context as _;
use homeport_server::TimeBody;

use crate::app::state::clock_state;
use crate::arguments::{TimeAccess, TimeCommand};
use crate::commands::maintenance;
use crate::commands::store_access::StoreAccess;
use crate::{begin, print};

pub(crate) async fn run(command: TimeCommand) -> anyhow::Result<ExitCode> {
    let time = match &command {
        TimeCommand::Show(access) => ask(access, "GET", "/v1/time").await?,
        TimeCommand::Confirm(access) => ask(access, "POST", "/v1/time/confirm").await?,
    };
    print(&show(&time))
}

fn show(time: &TimeBody) -> String {
    let state = if time.is_confirmed {
        "confirmed"
    } else {
        "not confirmed: expired items and old changes are kept; if the clock is right, run `homeport time confirm`"
    };
    format!(
        "clock:       {}\ncommit time: {}\nstate:       {state}\n",
        time.now, time.commit_time
    )
}

/// Requests the time from a server, or reads or confirms it in the store.
async fn ask(access: &TimeAccess, method: &str, path: &str) -> anyhow::Result<TimeBody> {
    let settings = begin(&access.flags)?;
    if access.url.is_none() {
        maintenance::must_be_embedded(&settings)?;
    }
    match StoreAccess::open(&settings, access.url.as_ref()).await? {
        StoreAccess::Server(server) => server.ask(method, path, String::new()).await,
        StoreAccess::Store(backend) => {
            let engine = backend.engine.context("the store is not embedded")?;
            let status = match method {
                "GET" => engine.clock_status(),
                _ => engine.confirm_time().await?,
            };
            Ok(clock_state(status).into())
        }
    }
}
