//! `homeport time`: shows the store's time, and confirms it after the clock was implausibly far ahead.

use std::process::ExitCode;

use anyhow::{Context as _, bail};
use homeport_engine::{Engine, OpenError};
use homeport_server::TimeBody;

use crate::arguments::{TimeCommand, TimePlace};
use crate::http::clock_state;
use crate::server_client::ServerClient;
use crate::{address, backend, begin, maintenance, print};

pub(crate) async fn run(command: TimeCommand) -> anyhow::Result<ExitCode> {
    let time = match &command {
        TimeCommand::Show(place) => ask(place, "GET", "/v1/time").await?,
        TimeCommand::Confirm(place) => ask(place, "POST", "/v1/time/confirm").await?,
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

/// Asks the server that was named or that has the data directory open; otherwise opens the directory.
async fn ask(place: &TimePlace, method: &str, path: &str) -> anyhow::Result<TimeBody> {
    let settings = begin(&place.flags)?;
    if let Some(url) = &place.url {
        let server = ServerClient::new(url, &settings)?;
        return server.ask(method, path, String::new()).await;
    }
    maintenance::must_be_embedded(&settings)?;
    let data_dir = &settings.data.dir;
    backend::must_exist(data_dir)?;
    match Engine::open(data_dir, backend::brief_options(&settings)?) {
        Ok(engine) if method == "GET" => Ok(clock_state(engine.clock_status()).into()),
        Ok(engine) => Ok(clock_state(engine.confirm_time().await?).into()),
        Err(OpenError::Locked(_)) => {
            let Some(url) = address::read(data_dir) else {
                bail!(
                    "the data directory {} is in use by another process, and the server's address is unknown; name it with --url",
                    data_dir.display()
                );
            };
            let server = ServerClient::new(&url, &settings)?;
            server.ask(method, path, String::new()).await
        }
        Err(error) => Err(error).with_context(|| format!("opening {}", data_dir.display())),
    }
}
