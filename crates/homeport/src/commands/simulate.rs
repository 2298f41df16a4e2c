//! `homeport simulate`: runs a fleet and prints the report.

use std::process::ExitCode;

use homeport_simulate::SimulateSettings;
use hyper::Uri;

use crate::client::pool::{Pool, Trust, pool};

fn connect(server: &Uri, idle_max: usize) -> anyhow::Result<Pool> {
    pool(server, idle_max, Trust::Roots)
}

pub(crate) async fn run(settings: SimulateSettings) -> anyhow::Result<ExitCode> {
    let report = homeport_simulate::simulate(settings, connect).await?;
    print_line!("{}", report.summary);
    if let Some(advice) = &report.advice {
        print_line!("{advice}");
    }
    Ok(if report.is_good {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
