//! The tables about MQTT.

use super::publisher::WINDOW;
use crate::load::server::ServerProcess;
use crate::measure::Measured;
use crate::table;

/// Number of connections from which the goal applies.
const GOAL_CONNECTIONS_MIN: usize = 16;
const GOAL_OF_MOSQUITTO: f64 = 0.5;

/// One row: the same messages to both brokers.
pub(super) struct MqttRow {
    pub(super) connections: usize,
    pub(super) ours: Measured,
    pub(super) mosquitto: Measured,
    /// The load generator's maximum share of one core in a round.
    pub(super) client_cpu_percent: f64,
    /// The server's resident memory after the row.
    pub(super) resident_bytes: u64,
}

impl MqttRow {
    pub(super) fn name(&self) -> String {
        let plural = if self.connections == 1 { "" } else { "s" };
        format!(
            "MQTT, QoS 1 through a rule, {} connection{plural}",
            self.connections
        )
    }

    fn to_mosquitto(&self) -> f64 {
        self.ours.rate() / self.mosquitto.rate()
    }
}

pub(super) fn print(rows: &[MqttRow], homeport: &ServerProcess, mosquitto: &ServerProcess) {
    println!("## MQTT");
    println!();
    println!("Each connection has {WINDOW} messages of about 250 bytes in flight.");
    println!();
    println!(
        "| messages a second | homeport | Mosquitto | homeport/Mosquitto | p50 / p99 µs: homeport | Mosquitto | spread % of rounds: homeport | Mosquitto | load generator, % of a core | homeport's resident MB |"
    );
    println!("| --- |{}", " --: |".repeat(9));
    for row in rows {
        println!(
            "| {} | {:.0} | {:.0} | {:.2} | {} | {} | {} | {} | {:.0} | {:.0} |",
            row.name(),
            row.ours.rate(),
            row.mosquitto.rate(),
            row.to_mosquitto(),
            table::latency(&row.ours),
            table::latency(&row.mosquitto),
            table::spread(&row.ours),
            table::spread(&row.mosquitto),
            row.client_cpu_percent,
            table::megabytes(row.resident_bytes),
        );
    }
    println!();
    println!(
        "Durability: homeport: {}; Mosquitto: {}.",
        homeport.durability, mosquitto.durability
    );
    println!();
    table::print_goal_head();
    for row in rows {
        if row.connections >= GOAL_CONNECTIONS_MIN {
            table::at_least(
                &format!("{}: at least half of Mosquitto", row.name()),
                row.to_mosquitto(),
                GOAL_OF_MOSQUITTO,
            );
        }
    }
}
