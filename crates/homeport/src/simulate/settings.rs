//! The command line of `homeport simulate`.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use clap::{Args, ValueEnum};

use super::Plan;

/// A device's simulated time may not span more: what is older may be gone before it is read back.
const SPAN_DAYS_MAX: u64 = 60;
const MESSAGES_PER_DEVICE_DEFAULT: u32 = 60;
const MESSAGES_PER_DEVICE_MAX: u32 = 10_000_000;
const SECS_PER_DAY: u64 = 24 * 60 * 60;
/// What is as close as this to expiring may do so while the run lasts.
const EXPIRY_MARGIN_DAYS: u32 = 1;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FleetKind {
    /// Greenhouse sensors that send averages over HTTP
    Sensors,
    /// Chargers for cars that report what happens to them, and whose days are counted
    Chargers,
    /// Meters that write records one by one; making them takes an admin token
    Meters,
    /// Phones that register with the tokens of their users and get notifications. Start the server with
    /// --push-expo-url pointing to the stand-in of Expo's service that is served here. Every message that
    /// the server accepted must reach the stand-in, and more than once only if the server's own trace says
    /// that an answer was lost; what happens behind Expo cannot be checked, nor can receipts, which come
    /// later
    Phones,
    /// Vans that keep a connection over MQTT and publish telemetry with QoS 1. Every message that was
    /// acknowledged must be there; one that had to be published again may be there again. Ten thousand
    /// of them need as many open files (ulimit -n), here and at the server
    Vans,
}

impl FleetKind {
    /// The name of the system that the keys of its devices are for.
    pub(super) fn system(self) -> &'static str {
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
pub(crate) struct SimulateSettings {
    /// The devices to simulate
    #[arg(long, default_value = "sensors")]
    pub(super) fleet: FleetKind,

    /// Where the server is: http:// or https://, with the certificates that this machine trusts
    #[arg(
        long,
        env = "HOMEPORT_URL",
        default_value = "http://127.0.0.1:8080",
        value_name = "URL"
    )]
    pub(super) url: String,

    /// The token of operators: keys are made with it for the run and revoked afterwards
    #[arg(
        long,
        env = "HOMEPORT_ADMIN_TOKEN",
        hide_env_values = true,
        value_name = "TOKEN"
    )]
    pub(super) admin_token: Option<String>,

    /// The API key that all devices use, instead of an admin token
    #[arg(
        long,
        env = "HOMEPORT_API_KEY",
        hide_env_values = true,
        value_name = "KEY"
    )]
    pub(super) api_key: Option<String>,

    /// How many devices there are
    #[arg(long, visible_alias = "devices", default_value_t = 100, value_name = "COUNT",
          value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    sensors: u32,

    /// How many readings each device sends (60 unless a duration is given)
    #[arg(long, value_name = "COUNT", conflicts_with = "duration",
          value_parser = clap::value_parser!(u32).range(1..=i64::from(MESSAGES_PER_DEVICE_MAX)))]
    readings_per_sensor: Option<u32>,

    /// How long the devices make readings, in real time, as 90s or 10m
    #[arg(long, value_name = "TIME", value_parser = time)]
    duration: Option<Duration>,

    /// The time between two readings of a device, as the device sees it
    #[arg(long, default_value = "5m", value_name = "TIME", value_parser = time)]
    interval: Duration,

    /// How much faster than real time the devices live
    #[arg(long, default_value_t = 300.0, value_name = "FACTOR", value_parser = factor)]
    speed_up: f64,

    /// The readings that a device collects before it sends them
    #[arg(long, default_value_t = 10, value_name = "COUNT",
          value_parser = clap::value_parser!(u16).range(1..=100))]
    batch: u16,

    /// Requests, and attempts of vans to connect, that are under way at one time
    #[arg(long, default_value_t = 64, value_name = "COUNT",
          value_parser = clap::value_parser!(u16).range(1..=4096))]
    pub(super) connections: u16,

    /// The same seed makes the same devices with the same values
    #[arg(long, default_value_t = 1, value_name = "NUMBER")]
    seed: u64,

    /// The share of requests whose answer the device does not get to see, from 0 to 0.9
    #[arg(long, default_value_t = 0.02, value_name = "SHARE", value_parser = share)]
    disconnects: f64,

    /// Phones: the secret that the server checks tokens of app users with, by default the one in the file
    /// user-jwt-secret of its data directory
    #[arg(
        long,
        env = "HOMEPORT_USER_JWT_SECRET",
        hide_env_values = true,
        value_name = "SECRET"
    )]
    pub(super) user_jwt_secret: Option<String>,

    /// Phones: where the stand-in of Expo's push service is served
    #[arg(long, default_value = "127.0.0.1:8090", value_name = "ADDRESS")]
    pub(super) expo_listen: SocketAddr,

    /// Vans: where the server speaks MQTT
    #[arg(long, default_value = "127.0.0.1:1883", value_name = "HOST:PORT")]
    pub(super) mqtt: String,

    /// For how many days the server keeps readings: none that is younger may have expired
    #[arg(long, default_value_t = 90, value_name = "DAYS",
          value_parser = clap::value_parser!(u32).range(1..=36_500))]
    retention_days: u32,

    /// How long to go on trying when the server does not answer
    #[arg(long, default_value = "2m", value_name = "TIME", value_parser = time)]
    patience: Duration,
}

impl SimulateSettings {
    pub(super) fn plan(&self) -> anyhow::Result<Plan> {
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
                            "that would be {count} readings of each device: shorten the duration"
                        )
                    })?
            }
        };
        ensure!(
            windows > 0,
            "the duration is too short for one reading of {tick:?}"
        );
        let span_secs = self.interval.as_secs_f64() * f64::from(windows);
        ensure!(
            span_secs <= (SPAN_DAYS_MAX * SECS_PER_DAY) as f64,
            "the readings would span more than {SPAN_DAYS_MAX} days, and the oldest might expire \
             before they are read back: send fewer, or shorten the interval"
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

    pub(super) fn interval_ms(&self) -> anyhow::Result<i64> {
        i64::try_from(self.interval.as_millis())
            .ok()
            .filter(|millis| *millis > 0)
            .context("the interval must be a millisecond or more")
    }
}

fn time(text: &str) -> Result<Duration, String> {
    text.parse::<jiff::SignedDuration>()
        .ok()
        .and_then(|time| Duration::try_from(time).ok())
        .ok_or_else(|| "expected a time as 500ms, 90s, 10m or 2h".to_owned())
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
    fn a_duration_says_how_many_readings_there_are() {
        let plan = parse(&["--duration", "10m", "--interval", "5m", "--speed-up", "300"]);
        let plan = plan.expect("a plan");
        assert_eq!((plan.windows, plan.tick), (600, Duration::from_secs(1)));
        assert_eq!(parse(&[]).expect("a plan").windows, 60);
    }

    #[test]
    fn what_is_about_to_expire_is_not_kept_and_the_rest_is() {
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
    fn what_cannot_be_is_refused() {
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
