//! `homeport simulate`: a fleet of devices that talks to a server as real ones would, loses its
//! connection now and then, and in the end asks for everything back. What the devices are is a
//! `Fleet`; how they live (buffer, batches, retries, accounts) is the same for every fleet.

mod backoff;
mod chargers;
mod client;
mod device;
mod dice;
mod fleet;
mod keys;
mod line;
mod meters;
mod patient;
mod phones;
mod progress;
mod read_back;
mod sensors;
mod settings;
mod tally;
mod vans;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Context as _;
use tokio::task::JoinSet;

pub(crate) use self::settings::SimulateSettings;

use self::client::Client;
use self::device::{Device, Ledger};
use self::fleet::Fleet;
use self::keys::Keys;
use self::progress::Progress;
use self::settings::FleetKind;
use self::tally::{Tally, Verdict};

/// What all devices of a run share.
struct Run {
    fleet: Box<dyn Fleet>,
    client: Client,
    keys: Keys,
    plan: Plan,
    tally: Tally,
}

/// How the devices of a run behave.
#[derive(Debug, Clone)]
struct Plan {
    devices: u32,
    /// Messages that each device makes.
    windows: u32,
    /// Real time between two messages of a device.
    tick: Duration,
    batch: usize,
    /// Of all requests, the share whose answer is lost.
    disconnects: f64,
    seed: u64,
    /// How long to go on trying after the last message, or before the first answer.
    patience: Duration,
    /// Time between two messages of a device, as the device sees it.
    interval: Duration,
    /// The server keeps messages for as long as this, and for the time that a run takes.
    kept_for: Duration,
}

impl Plan {
    /// Whether a message is too young to have expired while the run lasts.
    fn is_kept(&self, window: u32) -> bool {
        let age = self
            .interval
            .saturating_mul(self.windows.saturating_sub(window));
        age <= self.kept_for
    }
}

pub(crate) async fn simulate(settings: SimulateSettings) -> anyhow::Result<ExitCode> {
    let plan = settings.plan()?;
    let now_ms = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .context("the clock of this machine is before 1970")?
        .as_millis();
    let end_ms = i64::try_from(now_ms).context("the clock of this machine is far ahead")?;
    let client = Client::new(&settings.url, settings.connections)?;
    let keys = Keys::obtain(&client, &settings, settings.fleet.system(), &plan).await?;
    let fleet = match make_fleet(&settings, &client, &keys, &plan, end_ms).await {
        Ok(fleet) => fleet,
        Err(error) => {
            keys.give_back(&client).await;
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
    run.keys.give_back(&run.client).await;
    let verdict = outcome?;
    say!("{}", run.tally.summary(&run.plan, &verdict));
    if verdict.is_good() {
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(advice) = run.fleet.advice() {
        say!("{advice}");
    }
    Ok(ExitCode::FAILURE)
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
                "meters need --admin-token: their group, devices and journals have to be made",
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
    let mut ledgers: Vec<Ledger> = Vec::with_capacity(living.len());
    while let Some(ended) = living.join_next().await {
        // The first device that cannot go on ends the run: the others would fail alike.
        ledgers.push(ended.context("a device's task ended early")??);
    }
    progress.stop().await;
    let progress = Progress::start(Arc::clone(run), "reading back");
    let verdict = read_back::all(run, ledgers).await;
    progress.stop().await;
    verdict
}
