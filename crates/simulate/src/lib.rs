//! `homeport simulate`: a fleet of devices sends messages to a server, loses connections now and then, and finally
//! reads everything back. A `Fleet` defines the messages of one kind of device; buffering, batching and retrying are the
//! same for all fleets.

mod connection;
mod device;
pub mod expo_stand_in;
mod fleets;
mod keys;
mod progress;
mod random;
mod read_back;
mod settings;
mod stderr;
mod tally;

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Context as _;
use tokio::task::JoinSet;

pub use self::connection::{ConnectHttp, HttpPool};
pub use self::random::SeededRandom;
pub use self::settings::SimulateSettings;

use self::connection::Client;
use self::device::{Device, DeviceRecord};
use self::fleets::{Fleet, chargers, meters, phones, sensors, vans};
use self::keys::Keys;
use self::progress::Progress;
use self::settings::FleetKind;
use self::tally::{Tally, Verdict};

/// The result of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// The counts, and a verdict in the last line.
    pub summary: String,
    /// A hint about the likely cause of a failure.
    pub advice: Option<String>,
    pub is_good: bool,
}

/// State shared by all devices of a run.
struct Run {
    fleet: Box<dyn Fleet>,
    client: Client,
    keys: Keys,
    plan: Plan,
    tally: Tally,
}

/// The behavior of a run's devices.
#[derive(Debug, Clone)]
struct Plan {
    devices: u32,
    /// Number of messages of each device.
    windows: u32,
    /// Real time between two messages of a device.
    tick: Duration,
    batch: usize,
    /// Share of requests whose response is lost.
    disconnects: f64,
    seed: u64,
    /// How long to retry after the last message, or before the first response.
    patience: Duration,
    /// Simulated time between two messages of a device.
    interval: Duration,
    /// Retention on the server, less a margin for the time that a run takes.
    kept_for: Duration,
}

impl Plan {
    /// Whether a message is too young to expire during the run.
    fn is_kept(&self, window: u32) -> bool {
        let age = self
            .interval
            .saturating_mul(self.windows.saturating_sub(window));
        age <= self.kept_for
    }
}

/// Runs a fleet against a server, over connections that `connect` makes.
///
/// # Errors
/// If the settings contradict each other, or the server rejects a request permanently.
pub async fn simulate(settings: SimulateSettings, connect: ConnectHttp) -> anyhow::Result<Report> {
    let plan = settings.plan()?;
    let now_ms = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .context("this machine's clock is set before 1970; correct it")?
        .as_millis();
    let end_ms = i64::try_from(now_ms)
        .context("this machine's clock is set too far in the future; correct it")?;
    let client = Client::new(&settings.url, settings.connections, connect)?;
    let keys = Keys::obtain(&client, &settings, settings.fleet.system(), &plan).await?;
    let fleet = match make_fleet(&settings, &client, &keys, &plan, end_ms).await {
        Ok(fleet) => fleet,
        Err(error) => {
            keys.revoke(&client).await;
            return Err(error);
        }
    };
    let run = Arc::new(Run {
        fleet,
        client,
        keys,
        plan,
        tally: Tally::default(),
    });
    let outcome = deliver_and_read_back(&run).await;
    run.keys.revoke(&run.client).await;
    let verdict = outcome?;
    let is_good = verdict.is_good();
    Ok(Report {
        summary: run.tally.summary(&run.plan, &verdict).to_string(),
        advice: run.fleet.advice().filter(|_| !is_good),
        is_good,
    })
}

async fn make_fleet(
    settings: &SimulateSettings,
    client: &Client,
    keys: &Keys,
    plan: &Plan,
    end_ms: i64,
) -> anyhow::Result<Box<dyn Fleet>> {
    let (seed, windows, interval_ms) = (plan.seed, plan.windows, settings.interval_ms()?);
    Ok(match settings.fleet {
        FleetKind::Sensors => Box::new(sensors::Sensors::new(seed, windows, interval_ms, end_ms)),
        FleetKind::Chargers => {
            Box::new(chargers::Chargers::new(seed, windows, interval_ms, end_ms))
        }
        FleetKind::Meters => {
            let operator = keys.operator();
            let operator = operator.context(
                "meters need --admin-token, to create their group, devices and journals",
            )?;
            let meters = meters::Meters::prepare(client, operator, plan, interval_ms, end_ms);
            Box::new(meters.await?)
        }
        FleetKind::Vans => Box::new(vans::Vans::new(seed, end_ms, settings.mqtt.clone())),
        FleetKind::Phones => Box::new(phones::Phones::prepare(settings, plan, end_ms).await?),
    })
}

async fn deliver_and_read_back(run: &Arc<Run>) -> anyhow::Result<Verdict> {
    let progress = Progress::start(Arc::clone(run), "delivering");
    let mut living = JoinSet::new();
    for number in 0..run.plan.devices {
        let device = Device::new(Arc::clone(run), number);
        living.spawn(device.live());
    }
    let mut records: Vec<DeviceRecord> = Vec::with_capacity(living.len());
    while let Some(ended) = living.join_next().await {
        // One device that cannot continue ends the run: the others would fail for the same reason.
        records.push(ended.context("the task of a device failed")??);
    }
    progress.stop().await;
    let progress = Progress::start(Arc::clone(run), "reading back");
    let verdict = read_back::read_back(run, records).await;
    progress.stop().await;
    verdict
}
