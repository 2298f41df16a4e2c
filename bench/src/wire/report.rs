//! The tables about DynamoDB's protocol.

use super::Operation;
use crate::load::server::ServerProcess;
use crate::measure::Measured;
use crate::table;

/// Goals apply to many connections, not to a single one.
const GOAL_CONNECTIONS_MIN: usize = 16;

/// One row: the same requests to every server, Homeport first.
pub(crate) struct WireRow {
    pub(crate) operation: Operation,
    pub(crate) connections: usize,
    pub(crate) measured: Vec<Measured>,
    /// The load generator's maximum share of one core in a round, by server.
    pub(crate) client_cpu_percent: Vec<f64>,
}

impl WireRow {
    pub(crate) fn name(&self) -> String {
        let plural = if self.connections == 1 { "" } else { "s" };
        format!(
            "{}, {} connection{plural}",
            self.operation.name(),
            self.connections
        )
    }

    fn ratio(&self, other: usize) -> f64 {
        self.measured[0].rate() / self.measured[other].rate()
    }
}

pub(crate) fn print(rows: &[WireRow], servers: &[&ServerProcess], absent: &[&str]) {
    println!("## DynamoDB's protocol");
    println!();
    print_servers(servers, absent);
    println!();
    print_rows(rows, servers);
    println!();
    print_goals(rows, servers);
}

fn print_servers(servers: &[&ServerProcess], absent: &[&str]) {
    println!("| server | a write is answered after | resident MB at the end | at most |");
    println!("| --- | --- | --: | --: |");
    for server in servers {
        println!(
            "| {} | {} | {:.0} | {:.0} |",
            server.name,
            server.durability,
            table::megabytes(server.resident_bytes()),
            table::megabytes(server.resident_bytes_max())
        );
    }
    for line in absent {
        println!();
        println!("{line}");
    }
}

fn print_rows(rows: &[WireRow], servers: &[&ServerProcess]) {
    let mut head = vec!["requests a second".to_owned()];
    head.extend(servers.iter().map(|server| server.name.to_owned()));
    for server in &servers[1..] {
        head.push(format!("{}/{}", servers[0].name, server.name));
    }
    for server in servers {
        head.push(format!("p50 / p99 µs: {}", server.name));
    }
    for server in servers {
        head.push(format!("spread % of rounds: {}", server.name));
    }
    head.push("load generator, % of a core".to_owned());
    println!("| {} |", head.join(" | "));
    println!("| --- |{}", " --: |".repeat(head.len() - 1));
    for row in rows {
        let mut cells = vec![row.name()];
        cells.extend(row.measured.iter().map(|one| format!("{:.0}", one.rate())));
        cells.extend((1..servers.len()).map(|other| format!("{:.2}", row.ratio(other))));
        cells.extend(row.measured.iter().map(table::latency));
        cells.extend(row.measured.iter().map(table::spread));
        let cpu: Vec<String> = row
            .client_cpu_percent
            .iter()
            .map(|percent| format!("{percent:.0}"))
            .collect();
        cells.push(cpu.join(" / "));
        println!("| {} |", cells.join(" | "));
    }
}

fn print_goals(rows: &[WireRow], servers: &[&ServerProcess]) {
    let Some(dynoxide) = servers.iter().position(|server| server.name == "dynoxide") else {
        return;
    };
    table::print_goal_head();
    for row in rows {
        if row.connections >= GOAL_CONNECTIONS_MIN {
            let goal = row.operation.goal();
            let name = format!("{}: at least {goal:.0} × dynoxide", row.name());
            table::at_least(&name, row.ratio(dynoxide), goal);
        }
    }
}
