//! The tables about readings over HTTP.

use crate::load::server::ServerProcess;
use crate::measure::Measured;
use crate::table;

/// The row that the goals refer to.
const GOAL_ROW: (u64, usize) = (25, 64);
const GOAL_READINGS_PER_SECOND: f64 = 60_000.0;
const GOAL_OF_ENGINE: f64 = 0.5;
const GOAL_RESIDENT_MEGABYTES: f64 = 300.0;

/// One row: the same readings to the server, to the route that only parses, and to the engine.
pub(super) struct IngestRow {
    pub(super) readings: u64,
    pub(super) connections: usize,
    pub(super) ours: Measured,
    /// The server with an encrypted store.
    pub(super) sealed: Measured,
    pub(super) bare: Measured,
    pub(super) engine: Measured,
    /// The load generator's maximum share of one core in a round.
    pub(super) client_cpu_percent: f64,
    /// The server's resident memory after the row.
    pub(super) resident_bytes: u64,
}

impl IngestRow {
    pub(super) fn name(&self) -> String {
        let plural = |count: usize| if count == 1 { "" } else { "s" };
        let readings = usize::try_from(self.readings).unwrap_or(usize::MAX);
        format!(
            "HTTP, {readings} reading{} a request, {} connection{}",
            plural(readings),
            self.connections,
            plural(self.connections)
        )
    }

    fn to_engine(&self) -> f64 {
        self.ours.rate() / self.engine.rate()
    }
}

/// The cost of encryption.
pub(super) fn print_sealed(rows: &[IngestRow], sealed: &ServerProcess) {
    println!();
    println!("### Sealed");
    println!();
    println!(
        "| readings a second | homeport | sealed homeport | sealed/plain | p50 / p99 µs a request: homeport | sealed homeport | spread % of rounds: homeport | sealed homeport |"
    );
    println!("| --- |{}", " --: |".repeat(7));
    for row in rows {
        println!(
            "| {} | {:.0} | {:.0} | {:.2} | {} | {} | {} | {} |",
            row.name(),
            row.ours.rate(),
            row.sealed.rate(),
            row.sealed.rate() / row.ours.rate(),
            table::latency(&row.ours),
            table::latency(&row.sealed),
            table::spread(&row.ours),
            table::spread(&row.sealed),
        );
    }
    println!();
    println!(
        "Resident memory at most: sealed homeport {:.0} MB.",
        table::megabytes(sealed.resident_bytes_max())
    );
}

pub(super) fn print(rows: &[IngestRow], homeport: &ServerProcess, bare: &ServerProcess) {
    println!("## Readings over HTTP");
    println!();
    println!(
        "| readings a second | homeport | bare route | engine | homeport/bare route | homeport/engine | p50 / p99 µs a request: homeport | bare route | engine | spread % of rounds: homeport | bare route | engine | load generator, % of a core | homeport's resident MB |"
    );
    println!("| --- |{}", " --: |".repeat(13));
    for row in rows {
        println!(
            "| {} | {:.0} | {:.0} | {:.0} | {:.2} | {:.2} | {} | {} | {} | {} | {} | {} | {:.0} | {:.0} |",
            row.name(),
            row.ours.rate(),
            row.bare.rate(),
            row.engine.rate(),
            row.ours.rate() / row.bare.rate(),
            row.to_engine(),
            table::latency(&row.ours),
            table::latency(&row.bare),
            table::latency(&row.engine),
            table::spread(&row.ours),
            table::spread(&row.bare),
            table::spread(&row.engine),
            row.client_cpu_percent,
            table::megabytes(row.resident_bytes),
        );
    }
    println!();
    println!(
        "Durability: homeport: {}; bare route: {}; engine: fdatasync of the group, in this process, with requests built before the clock starts and no load generator beside it.",
        homeport.durability, bare.durability
    );
    println!(
        "Resident memory at most: homeport {:.0} MB, bare route {:.0} MB.",
        table::megabytes(homeport.resident_bytes_max()),
        table::megabytes(bare.resident_bytes_max())
    );
    println!();
    table::print_goal_head();
    for row in rows {
        if (row.readings, row.connections) == GOAL_ROW {
            let name = row.name();
            table::at_least(
                &format!("{name}: readings a second, at least 60,000"),
                row.ours.rate(),
                GOAL_READINGS_PER_SECOND,
            );
            table::at_least(
                &format!("{name}: at least half of the engine"),
                row.to_engine(),
                GOAL_OF_ENGINE,
            );
        }
    }
    table::at_most(
        "resident memory under ingest over HTTP, MB",
        table::megabytes(homeport.resident_bytes_max()),
        GOAL_RESIDENT_MEGABYTES,
    );
}
