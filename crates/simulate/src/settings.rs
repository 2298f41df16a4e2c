//! The command line of `homeport simulate`.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use clap::{Args, ValueEnum};

use crate::Plan;

/// Limit for a device's simulated time: older messages might expire before they are read back.
const SPAN_DAYS_MAX: u64 = 60;
const MESSAGES_PER_DEVICE_DEFAULT: u32 = 60;
const MESSAGES_PER_DEVICE_MAX: u32 = 10_000_000;
const SECS_PER_DAY: u64 = 24 * 60 * 60;
/// Messages this close to expiring may do so during the run.
const EXPIRY_MARGIN_DAYS: u32 = 1;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FleetKind {
    /// Greenhouse sensors that send averages over HTTP
    Sensors,
    /// Electric-car chargers that report events and have daily statistics
    Chargers,
    /// Meters that write single records; creating them needs an admin token
    Meters,
    /// Phones that register with the tokens of their users and receive push notifications through a stand-in of Expo's
    /// push service, which this command serves: start the server with --push-expo-url set to its address. Every
    /// notification that the server accepts must reach the stand-in, and more than once only if the server's trace shows
    /// a lost response. Delivery beyond Expo and receipts are not checked
    Phones,
    /// Vans that keep an MQTT connection and publish telemetry with QoS 1. Every acknowledged message must be stored;
    /// messages that were published again may be stored again. Ten thousand vans need as many open files (ulimit -n),
    /// on this machine and on the server
    Vans,
}

impl FleetKind {
    /// The system that the devices' API keys are for.
    pub(crate) fn system(self) -> &'static str {
        match self {
            Self::Sensors => "sensors",
            Self::Chargers => "chargers",
            Self::Meters => "records",
            Self::Phones => "push",
            Self::Vans => "telemetry",
        }
    }
}

#[derive(Debug, Args)]
pub struct SimulateSettings {
    /// Kind of devices to simulate
    #[arg(long, default_value = "sensors")]
    pub(crate) fleet: FleetKind,

    /// Server URL, http:// or https://; TLS uses this machine's root certificates
    #[arg(
        long,
        env = "HOMEPORT_URL",
        default_value = "http://127.0.0.1:8080",
        value_name = "URL"
    )]
    pub(crate) url: String,

    /// Admin token; creates API keys for the run and revokes them afterwards
    #[arg(
        long,
        env = "HOMEPORT_ADMIN_TOKEN",
        hide_env_values = true,
        value_name = "TOKEN"
    )]
    pub(crate) admin_token: Option<String>,

    /// API key for all devices, instead of an admin token
    #[arg(
        long,
        env = "HOMEPORT_API_KEY",
        hide_env_values = true,
        value_name = "KEY"
    )]
    pub(crate) api_key: Option<String>,

    /// Number of devices
    #[arg(long, visible_alias = "devices", default_value_t = 100, value_name = "COUNT",
          value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    sensors: u32,

    /// Readings that each device sends (default 60, unless --duration is given)
    #[arg(long, value_name = "COUNT", conflicts_with = "duration",
          value_parser = clap::value_parser!(u32).range(1..=i64::from(MESSAGES_PER_DEVICE_MAX)))]
    readings_per_sensor: Option<u32>,

    /// How long devices send readings, in real time, such as 90s or 10m
    #[arg(long, value_name = "TIME", value_parser = time)]
    duration: Option<Duration>,

    /// Time between two readings of a device, in simulated time
    #[arg(long, default_value = "5m", value_name = "TIME", value_parser = time)]
    interval: Duration,

    /// How much faster simulated time passes than real time
    #[arg(long, default_value_t = 300.0, value_name = "FACTOR", value_parser = factor)]
    speed_up: f64,

    /// Readings that a device collects before it sends them
    #[arg(long, default_value_t = 10, value_name = "COUNT",
          value_parser = clap::value_parser!(u16).range(1..=100))]
    batch: u16,

    /// Maximum number of concurrent requests, and of concurrent MQTT connects of vans
    #[arg(long, default_value_t = 64, value_name = "COUNT",
          value_parser = clap::value_parser!(u16).range(1..=4096))]
    pub(crate) connections: u16,

    /// Seed of all random values; the same seed gives the same devices and readings
    #[arg(long, default_value_t = 1, value_name = "NUMBER")]
    seed: u64,

    /// Share of requests whose response is lost on purpose, from 0 to 0.9
    #[arg(long, default_value_t = 0.02, value_name = "SHARE", value_parser = share)]
    disconnects: f64,

    /// Phones: the secret that signs the tokens of app users; by default the server keeps it in the file user-jwt-secret
    /// of its data directory
    #[arg(
        long,
        env = "HOMEPORT_USER_JWT_SECRET",
        hide_env_values = true,
        value_name = "SECRET"
    )]
    pub(crate) user_jwt_secret: Option<String>,

    /// Phones: address on which to serve the stand-in of Expo's push service
    #[arg(long, default_value = "127.0.0.1:8090", value_name = "ADDRESS")]
    pub(crate) expo_listen: SocketAddr,

    /// Vans: address of the server's MQTT port
    #[arg(long, default_value = "127.0.0.1:1883", value_name = "HOST:PORT")]
    pub(crate) mqtt: String,

    /// The server's retention of readings, in days; younger readings must not expire
    #[arg(long, default_value_t = 90, value_name = "DAYS",
          value_parser = clap::value_parser!(u32).range(1..=36_500))]
    retention_days: u32,

    /// How long to retry while the server does not answer
    #[arg(long, default_value = "2m", value_name = "TIME", value_parser = time)]
    patience: Duration,
}

impl SimulateSettings {
    pub(crate) fn plan(&self) -> anyhow::Result<Plan> {
        let tick = self.interval.div_f64(self.speed_up);
        let windows = match (self.readings_per_sensor, self.duration) {
            (Some(count), _) => count,
            (None, None) => MESSAGES_PER_DEVICE_DEFAULT,
            (None, Some(duration)) => {
                let count = duration.as_nanos() / tick.as_nanos().max(1);
                u32::try_from(count)
                    .ok()
                    .filter(|count| *count <= MESSAGES_PER_DEVICE_MAX)
                    .with_context(|| {
                        format!(
                            "--duration gives {count} readings per device, more than {MESSAGES_PER_DEVICE_MAX}; shorten it"
                        )
                    })?
            }
        };
        ensure!(
            windows > 0,
            "--duration is shorter than the time between two readings, {tick:?}; raise it"
        );
        let span_secs = self.interval.as_secs_f64() * f64::from(windows);
        ensure!(
            span_secs <= (SPAN_DAYS_MAX * SECS_PER_DAY) as f64,
            "the readings span more than {SPAN_DAYS_MAX} days, so the oldest might expire before they \
             are read back; send fewer readings or shorten --interval"
        );
        let kept_days = self.retention_days.saturating_sub(EXPIRY_MARGIN_DAYS);
        Ok(Plan {
            devices: self.sensors,
            windows,
            tick,
            batch: usize::from(self.batch),
            disconnects: self.disconnects,
            seed: self.seed,
            patience: self.patience,
            interval: self.interval,
            kept_for: Duration::from_secs(u64::from(kept_days) * SECS_PER_DAY),
        })
    }

    pub(crate) fn interval_ms(&self) -> anyhow::Result<i64> {
        i64::try_from(self.interval.as_millis())
            .ok()
            .filter(|millis| *millis > 0)
            .context("--interval must be at least 1ms")
    }
}

fn time(text: &str) -> Result<Duration, String> {
    text.parse::<jiff::SignedDuration>()
        .ok()
        .and_then(|time| Duration::try_from(time).ok())
        .ok_or_else(|| "expected a duration such as 500ms, 90s, 10m or 2h".to_owned())
}

fn factor(text: &str) -> Result<f64, String> {
    number(text, 0.001, 1e9)
}

fn share(text: &str) -> Result<f64, String> {
    number(text, 0.0, 0.9)
}

fn number(text: &str, min: f64, max: f64) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|number| (min..=max).contains(number))
        .ok_or_else(|| format!("expected a number from {min} to {max}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser as _;

    #[derive(Debug, clap::Parser)]
    struct Line {
        #[command(flatten)]
        settings: SimulateSettings,
    }

    fn parse(arguments: &[&str]) -> Result<Plan, String> {
        let line = Line::try_parse_from(std::iter::once(&"simulate").chain(arguments))
            .map_err(|error| error.to_string())?;
        line.settings.plan().map_err(|error| error.to_string())
    }

    #[test]
    fn duration_determines_the_number_of_readings() {
        let plan = parse(&["--duration", "10m", "--interval", "5m", "--speed-up", "300"]);
        let plan = plan.expect("a plan");
        assert_eq!((plan.windows, plan.tick), (600, Duration::from_secs(1)));
        assert_eq!(parse(&[]).expect("a plan").windows, 60);
    }

    #[test]
    fn messages_near_expiry_are_not_expected_back() {
        let plan = parse(&["--readings-per-sensor", "72", "--interval", "1h"]);
        let plan = plan.expect("a plan");
        assert!((0..72).all(|window| plan.is_kept(window)));
        let more = ["--retention-days", "2"];
        let plan = parse(
            &[
                &["--readings-per-sensor", "72", "--interval", "1h"][..],
                &more,
            ]
            .concat(),
        );
        let plan = plan.expect("a plan");
        assert!(plan.is_kept(71) && plan.is_kept(48) && !plan.is_kept(47));
    }

    #[test]
    fn invalid_settings_are_rejected() {
        for arguments in [
            &["--duration", "10m", "--readings-per-sensor", "1"][..],
            &["--duration", "1ms"],
            &["--duration", "10h", "--speed-up", "1000000000"],
            &["--readings-per-sensor", "100000"],
            &["--interval", "soon"],
            &["--interval=-5m"],
            &["--batch", "101"],
            &["--sensors", "0"],
            &["--disconnects", "1"],
            &["--speed-up", "NaN"],
            &["--retention-days", "0"],
        ] {
            assert!(parse(arguments).is_err(), "{arguments:?}");
        }
    }
}
