//! The faults. Each returns when its cause is gone, and fails if it did not take effect. Some leave the server stopped.

mod damage;
mod damage_files;

pub(crate) use damage_files::{FILE_KINDS, damage_names};

use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use jiff::Timestamp;
use tokio::net::TcpStream;

use crate::clients::{Caller, Clients, Reply};
use crate::crew::Crew;
use crate::plan::{Fault, Step};
use crate::round::Round;
use crate::samples;
use crate::server::{DESCRIPTORS, Launch};
use homeport_simulate::SeededRandom;

/// Shifts of the clock in days, and whether the server restarts meanwhile. Backward shifts are shorter than the seven days
/// after which a disconnected session expires, and than telemetry's retention of 30 days: no data written under the
/// shifted clock may expire when the clock returns.
const JUMPS: [(i64, bool); 5] = [
    (400, false),
    (-5, false),
    (40, false),
    (400, true),
    (-5, true),
];
const DAY_SECS: i64 = 86_400;
/// Limit for the server to notice a fault.
const NOTICE_MAX: Duration = Duration::from_secs(30);
/// How long idle connections are opened: shorter than the server's idle timeout.
const CONNECT_MAX: Duration = Duration::from_secs(4);
const POLL_EVERY: Duration = Duration::from_millis(20);
/// Connections that replace those that the server has closed.
const CONNECTIONS_MORE: usize = 64;
/// Limit of open connections of the harness, which may have 8192 descriptors.
const CONNECTIONS_MAX: usize = 4096;

pub(crate) async fn inject(round: &mut Round<'_>, step: &Step, crew: &Crew) -> Result<(), String> {
    let mut random = SeededRandom::new([step.seed]);
    match step.fault {
        Fault::Kill => round.kill(),
        Fault::Terminate => {
            round.terminate()?;
            check_is_clean(&round.launch, &round.location.data_dir())
        }
        Fault::PowerCut => {
            // IMPORTANT: nothing is acknowledged after the cut. A sync during the shutdown may return success, which nobody would
            // see after a real power cut.
            if let Some(server) = round.server() {
                server.freeze()?;
            }
            let off = round.location.power_off();
            round.kill()?;
            off?;
            round.location.power_on()
        }
        Fault::Disk => fill_disk(round, &mut random).await,
        Fault::Descriptors => exhaust_descriptors(round, &mut random).await,
        Fault::Clock => jump(round, &mut random).await,
        Fault::Damage => damage::inject(round, &mut random, crew).await,
    }
}

/// Requires that `homeport check` reports no problem.
pub(crate) fn check_is_clean(launch: &Launch, data_dir: &Path) -> Result<(), String> {
    let output = launch.command(&["check"], data_dir).output();
    let output = output.map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!(
        "homeport check reports damage in an undamaged directory: {}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    ))
}

/// Fills the disk, lets the writers fail, sometimes restarts the server, and frees the disk.
async fn fill_disk(round: &mut Round<'_>, random: &mut SeededRandom) -> Result<(), String> {
    round.location.fill()?;
    wait_until_unready(round).await?;
    round.wait(hold(random)).await?;
    match random.below(3) {
        0 => {
            round.kill()?;
            // A server must start on a full disk too.
            round.start()?;
            wait_until_unready(round).await?;
            round.wait(hold(random)).await?;
        }
        1 => round.kill()?,
        _ => {}
    }
    round.location.empty()
}

/// Waits until the server reports that it cannot serve all requests.
async fn wait_until_unready(round: &Round<'_>) -> Result<(), String> {
    let mut clients = Clients::new(round.target());
    let deadline = Instant::now() + NOTICE_MAX;
    loop {
        let reply = clients.http(Caller::Operator, "GET", "/readyz", None).await;
        match reply {
            Reply::Unknown(answer) if answer.starts_with("503") => return Ok(()),
            other if Instant::now() > deadline => {
                return Err(format!("/readyz does not report the full disk: {other:?}"));
            }
            _ => tokio::time::sleep(POLL_EVERY).await,
        }
    }
}

/// Opens more idle connections than the server has descriptors, and closes them.
async fn exhaust_descriptors(
    round: &mut Round<'_>,
    random: &mut SeededRandom,
) -> Result<(), String> {
    let Some(server) = round.server() else {
        return Err("no server runs".to_owned());
    };
    let (addresses, process) = (server.addresses, server.id());
    let mut ports = vec![addresses.http, addresses.dynamodb, addresses.mqtt];
    let first = ports.swap_remove(random.below(ports.len()));
    let mut open = connections(first, DESCRIPTORS).await;
    for port in ports {
        open.extend(connections(port, DESCRIPTORS / 8).await);
    }
    let deadline = Instant::now() + NOTICE_MAX;
    // The server reserves about half of its descriptors for the store and for itself.
    while samples::descriptors(process) < DESCRIPTORS / 2 {
        if Instant::now() > deadline {
            let (count, used) = (open.len(), samples::descriptors(process));
            return Err(format!("{count} connections take only {used} descriptors"));
        }
        tokio::time::sleep(POLL_EVERY).await;
        // On a busy machine the server closes the first idle connections before the last are open.
        open.extend(connections(first, CONNECTIONS_MORE).await);
        let surplus = open.len().saturating_sub(CONNECTIONS_MAX);
        open.drain(..surplus);
    }
    round.wait(hold(random)).await?;
    drop(open);
    Ok(())
}

/// Opens as many connections as the server accepts in time: a port with a full backlog accepts more a moment later.
async fn connections(address: SocketAddr, count: usize) -> Vec<TcpStream> {
    let deadline = Instant::now() + CONNECT_MAX;
    let mut open = Vec::with_capacity(count);
    while open.len() < count && Instant::now() < deadline {
        let connecting = TcpStream::connect(address);
        let connected = tokio::time::timeout(Duration::from_millis(100), connecting).await;
        open.extend(connected.ok().and_then(Result::ok));
    }
    open
}

/// Shifts the clock, lets the writers run, and shifts it back.
async fn jump(round: &mut Round<'_>, random: &mut SeededRandom) -> Result<(), String> {
    let (days, restarts) = *random.pick(&JUMPS);
    let restart = if restarts { ", with a restart" } else { "" };
    println!("  clock {days:+} days{restart}");
    set_clock(round, days).await?;
    round.wait(hold(random)).await?;
    if restarts {
        round.kill()?;
        round.start()?;
        round.wait(hold(random)).await?;
    }
    set_clock(round, 0).await
}

/// Shifts the server's clock, and checks that the server uses it.
async fn set_clock(round: &Round<'_>, days: i64) -> Result<(), String> {
    let clock = round.clock.as_ref().ok_or("the clock cannot be set")?;
    clock.set(days)?;
    let mut clients = Clients::new(round.target());
    let deadline = Instant::now() + NOTICE_MAX;
    loop {
        match clock_error_secs(&mut clients).await {
            Ok(error_secs) if (error_secs - days * DAY_SECS).abs() < DAY_SECS / 24 => return Ok(()),
            seen if Instant::now() > deadline => {
                return Err(format!(
                    "the server's clock is not {days:+} days off, but by seconds: {seen:?}"
                ));
            }
            _ => tokio::time::sleep(POLL_EVERY).await,
        }
    }
}

/// How far the server's clock is ahead.
async fn clock_error_secs(clients: &mut Clients) -> Result<i64, String> {
    let answer = clients
        .http(Caller::Operator, "GET", "/v1/time", None)
        .await;
    let answer = answer.done()?;
    let shown = answer["now"].as_str().unwrap_or_default();
    let shown: Timestamp = shown.parse().map_err(|_| format!("no time in {answer}"))?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now_secs = now.map_or(0, |now| i64::try_from(now.as_secs()).unwrap_or_default());
    Ok(shown.as_second() - now_secs)
}

fn hold(random: &mut SeededRandom) -> Duration {
    Duration::from_millis(500 + random.next_u64() % 1500)
}
