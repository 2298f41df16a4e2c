//! `homeport simulate`: runs a fleet and prints the report.

use std::process::ExitCode;

use homeport_simulate::SimulateSettings;

use crate::client::pool::pool;

pub(crate) async fn run(settings: SimulateSettings) -> anyhow::Result<ExitCode> {
    let report = homeport_simulate::simulate(settings, pool).await?;
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
