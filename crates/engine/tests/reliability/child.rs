//! The child process that other tests kill, starve of resources, or cut the power of.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use homeport_engine::{Condition, Durability, Engine, Options};
use homeport_store::{Get, Store, StoreError, TransactError};

use crate::verify::Kept;
use crate::{verify, workload};

const ROLE: &str = "HOMEPORT_CHILD";
const DIRECTORY: &str = "HOMEPORT_CHILD_DIRECTORY";
const ACKNOWLEDGED: &str = "HOMEPORT_CHILD_ACKNOWLEDGED";
const WRITERS: &str = "HOMEPORT_CHILD_WRITERS";
const TRANSACTIONS: &str = "HOMEPORT_CHILD_TRANSACTIONS";
const RELAXED: &str = "HOMEPORT_CHILD_RELAXED";
const KEPT: &str = "HOMEPORT_CHILD_KEPT";

/// The timeout of every wait.
const PATIENCE: Duration = Duration::from_secs(30);

/// The task of a child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// Several concurrent writers, until each has made its transactions.
    Write,
    /// One writer that checks what callers see after a failed write.
    MeetFault,
    /// One writer that removes the cause after a failed write and waits until writes work again.
    OutliveFault,
    /// Uses up all file descriptors, so that flushing fails, and then waits until writes work again.
    StarveDescriptors,
    /// Reads everything in every way and reports whether it noticed damage.
    ReadAll,
    /// Holds the directory open until it is killed.
    Hold,
    /// Changes the master key.
    Rotate,
}

/// A child to start.
pub(crate) struct Plan {
    command: Command,
    acknowledged: PathBuf,
}

impl Plan {
    /// A child that works on `directory` and appends each acknowledged number to `acknowledged`.
    pub(crate) fn new(role: Role, directory: &Path, acknowledged: &Path) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args(["--exact", "child::acts_as_the_child_of_another_test"])
            .args(["--nocapture", "--test-threads", "1"])
            .env(ROLE, format!("{role:?}"))
            .env(DIRECTORY, directory)
            .env(ACKNOWLEDGED, acknowledged)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        Self {
            command,
            acknowledged: acknowledged.to_owned(),
        }
    }

    /// The number of writers, and of transactions per writer; `None` for no limit.
    pub(crate) fn writers(mut self, writers: u64, transactions: Option<u64>) -> Self {
        self.command.env(WRITERS, writers.to_string());
        self.command.env(
            TRANSACTIONS,
            transactions
                .unwrap_or(workload::NUMBERS_PER_WRITER)
                .to_string(),
        );
        self
    }

    /// Limits the number of files that the child may have open.
    pub(crate) fn descriptors(mut self, limit: u32) -> Self {
        let mut command = Command::new("sh");
        command
            .args(["-c", &format!("ulimit -n {limit} && exec \"$0\" \"$@\"")])
            .arg(self.command.get_program())
            .args(self.command.get_args());
        for (name, value) in self.command.get_envs() {
            command.env(name, value.unwrap_or_default());
        }
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        self.command = command;
        self
    }

    pub(crate) fn relaxed(mut self) -> Self {
        self.command.env(RELAXED, "1");
        self
    }

    pub(crate) fn kept(mut self, kept: Kept) -> Self {
        self.command.env(KEPT, format!("{kept:?}"));
        self
    }

    pub(crate) fn env(mut self, name: &str, value: impl AsRef<std::ffi::OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// Runs the child until it ends.
    pub(crate) fn run(mut self) -> Output {
        let mut child = self.command.spawn().unwrap();
        let read = |pipe: Option<Box<dyn Read + Send>>| {
            let mut pipe = pipe.unwrap();
            std::thread::spawn(move || {
                let mut bytes = Vec::new();
                pipe.read_to_end(&mut bytes).unwrap();
                bytes
            })
        };
        let stdout = read(child.stdout.take().map(|pipe| Box::new(pipe) as _));
        let stderr = read(child.stderr.take().map(|pipe| Box::new(pipe) as _));
        let started = Instant::now();
        let status = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break status;
            }
            if started.elapsed() > PATIENCE {
                child.kill().unwrap();
                panic!("the child hangs: {:?}", self.command.get_envs());
            }
            std::thread::sleep(Duration::from_millis(1));
        };
        Output {
            status,
            stdout: stdout.join().unwrap(),
            stderr: stderr.join().unwrap(),
        }
    }

    /// Starts the child and returns.
    pub(crate) fn start(mut self) -> Running {
        // Nobody reads these pipes while it runs, so they must not fill up.
        self.command.stdout(Stdio::null()).stderr(Stdio::inherit());
        Running {
            child: self.command.spawn().unwrap(),
            acknowledged: self.acknowledged,
        }
    }
}

/// A running child; it is killed when this is dropped.
pub(crate) struct Running {
    child: std::process::Child,
    acknowledged: PathBuf,
}

impl Running {
    /// Waits until the child has got acknowledgements of `count` transactions.
    pub(crate) fn wait_for_acknowledged(&mut self, count: usize) {
        wait_until(|| {
            if let Some(status) = self.child.try_wait().unwrap() {
                panic!("the child ended by itself: {status}");
            }
            read_acknowledged(&self.acknowledged).len() >= count
        });
    }

    /// Kills the process immediately, like the kernel when memory runs out.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits for a state; panics on timeout.
pub(crate) fn wait_until(mut reached: impl FnMut() -> bool) {
    let started = Instant::now();
    while !reached() {
        assert!(started.elapsed() < PATIENCE, "timed out");
        std::thread::sleep(Duration::from_micros(200));
    }
}

/// The numbers that children have appended so far.
pub(crate) fn read_acknowledged(path: &Path) -> Vec<u64> {
    let bytes = std::fs::read(path).unwrap_or_default();
    bytes
        .chunks_exact(8)
        .map(|chunk| u64::from_be_bytes(chunk.try_into().unwrap()))
        .collect()
}

/// Not a test by itself: the other tests start this binary again with only this test, and pass its task in
/// the environment.
#[test]
fn acts_as_the_child_of_another_test() {
    let Ok(role) = std::env::var(ROLE) else {
        return;
    };
    let directory = PathBuf::from(std::env::var(DIRECTORY).unwrap());
    let acknowledged = std::env::var(ACKNOWLEDGED).unwrap();
    let acknowledged = OpenOptions::new()
        .create(true)
        .append(true)
        .open(acknowledged)
        .unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    match role.as_str() {
        "Write" => runtime.block_on(write(&directory, acknowledged)),
        "MeetFault" => runtime.block_on(meet_fault(&directory, acknowledged)),
        "OutliveFault" => runtime.block_on(outlive_fault(&directory, acknowledged)),
        "StarveDescriptors" => runtime.block_on(starve_descriptors(&directory, acknowledged)),
        "ReadAll" => runtime.block_on(async {
            let read = match Engine::open(&directory, verify::options()) {
                Ok(engine) => verify::read_all(&engine).await.is_ok(),
                Err(_) => false,
            };
            println!("outcome: {}", if read { "whole" } else { "noticed" });
        }),
        "Hold" => hold(&directory, acknowledged),
        "Rotate" => {
            let from = kept().master_key().unwrap();
            let to = kept().rotated().master_key().unwrap();
            let done = homeport_engine::change_master_key(&directory, &from, &to);
            println!(
                "outcome: {}",
                if done.is_ok() { "changed" } else { "failed" }
            );
        }
        "Check" => {
            let path = PathBuf::from(std::env::var(ACKNOWLEDGED).unwrap());
            verify::check_directory(&directory, kept(), &read_acknowledged(&path));
            println!("OK");
        }
        other => panic!("no such role: {other}"),
    }
}

fn kept() -> Kept {
    match std::env::var(KEPT).as_deref() {
        Ok("Sealed") => Kept::Sealed,
        Ok("SealedAnew") => Kept::SealedAnew,
        _ => Kept::Plain,
    }
}

fn options() -> Options {
    let durability = if std::env::var_os(RELAXED).is_some() {
        Durability::Relaxed
    } else {
        Durability::Sync
    };
    Options {
        durability,
        workers: 2,
        // Any group size: this increases the work in progress when the process ends.
        background_write_min_bytes: 0,
        master_key: kept().master_key(),
        ..Options::default()
    }
}

fn number_from_env(name: &str, otherwise: u64) -> u64 {
    crate::dice::from_env(name).unwrap_or(otherwise)
}

/// Appends in one write, so that a number is present completely or not at all.
fn acknowledge(mut to: &File, number: u64) {
    to.write_all(&number.to_be_bytes()).unwrap();
}

async fn write(directory: &Path, acknowledged: File) {
    let engine = Engine::open(directory, options()).unwrap();
    engine.ensure_tables(&workload::tables()).await.unwrap();
    let transactions = number_from_env(TRANSACTIONS, 50);
    let acknowledged = std::sync::Arc::new(acknowledged);
    let writers: Vec<_> = (1..=number_from_env(WRITERS, 2))
        .map(|writer| {
            let engine = engine.clone();
            let acknowledged = std::sync::Arc::clone(&acknowledged);
            tokio::spawn(async move {
                let first = workload::newest_mark(&engine, writer).await + 1;
                for number in first..first + transactions {
                    workload::write(&engine, number).await.unwrap();
                    acknowledge(&acknowledged, number);
                    if writer == 1 && number % 64 == 40 {
                        // Table files are created and deleted while others write.
                        engine.compact().await.unwrap();
                    }
                }
            })
        })
        .collect();
    for writer in writers {
        writer.await.unwrap();
    }
}

/// Writes until something fails, and prints what a caller saw then.
async fn meet_fault(directory: &Path, acknowledged: File) {
    let engine = match Engine::open(directory, options()) {
        Ok(engine) => engine,
        Err(error) => {
            println!("outcome: not opened: {error}");
            return;
        }
    };
    if let Err(error) = engine.ensure_tables(&workload::tables()).await {
        println!("outcome: no tables: {error}");
        return;
    }
    let first = workload::newest_mark(&engine, 1).await + 1;
    let end = first + number_from_env(TRANSACTIONS, 20);
    let mut last = None;
    for start in (first..end).step_by(3) {
        // Several at once: callers that wait behind a failed write must get the same error.
        let calls: Vec<_> = (start..end.min(start + 3))
            .map(|number| {
                let engine = engine.clone();
                tokio::spawn(async move { (number, workload::write(&engine, number).await) })
            })
            .collect();
        let mut failed = false;
        for call in calls {
            match call.await.unwrap() {
                (number, Ok(())) => {
                    acknowledge(&acknowledged, number);
                    last = Some(number);
                }
                (_, Err(error)) => {
                    assert_refused(&error);
                    failed = true;
                }
            }
        }
        if failed {
            // A store whose disk works again may already have reopened itself.
            match workload::write(&engine, end).await {
                Ok(()) => acknowledge(&acknowledged, end),
                Err(error) => assert_refused(&error),
            }
            if let Some(number) = last {
                until_read(&engine, number).await;
            }
            println!("outcome: refused");
            return;
        }
        if start == first + 9
            && let Err(error) = engine.compact().await
        {
            println!("compaction failed: {error}");
        }
    }
    println!("outcome: finished");
}

/// Waits until an acknowledged write can be read: reads only fail while the store reopens itself.
async fn until_read(engine: &Engine, number: u64) {
    let key = homeport_item::Item::new()
        .with("slot", workload::slot_name(1, workload::slot_of(number)))
        .with("number", number);
    let started = Instant::now();
    loop {
        match engine.get(Get::new(workload::MARKS, key.clone())).await {
            Ok(found) => {
                assert!(found.is_some(), "acknowledged {number} is missing");
                return;
            }
            Err(error) => assert!(started.elapsed() < PATIENCE, "reads fail: {error}"),
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Waits until writes are acknowledged again, and then checks all acknowledged writes.
async fn until_recovered(engine: &Engine, acknowledged: &File, mut number: u64, last: Option<u64>) {
    let started = Instant::now();
    while let Err(error) = workload::write(engine, number).await {
        let TransactError::Store(StoreError::Unavailable(_)) = error else {
            panic!("a write failed for another reason: {error:?}");
        };
        assert!(started.elapsed() < PATIENCE, "writes are refused: {error}");
        tokio::time::sleep(Duration::from_millis(10)).await;
        number += 1;
    }
    acknowledge(acknowledged, number);
    assert_eq!(engine.condition(), Condition::Ready);
    assert_eq!(engine.metrics().reopened, 1);
    for number in last.into_iter().chain([number]) {
        until_read(engine, number).await;
    }
    println!("outcome: recovered");
}

async fn outlive_fault(directory: &Path, acknowledged: File) {
    let cause_is_gone = || std::fs::write(std::env::var("DISK_UNTIL").unwrap(), b"").unwrap();
    let engine = match Engine::open(directory, options()) {
        Ok(engine) => engine,
        Err(error) => {
            println!("outcome: not opened: {error}");
            return;
        }
    };
    if let Err(error) = engine.ensure_tables(&workload::tables()).await {
        println!("outcome: no tables: {error}");
        return;
    }
    let first = workload::newest_mark(&engine, 1).await + 1;
    let mut last = None;
    for number in first..first + number_from_env(TRANSACTIONS, 20) {
        match workload::write(&engine, number).await {
            Ok(()) => {
                acknowledge(&acknowledged, number);
                last = Some(number);
            }
            Err(error) => {
                assert_refused(&error);
                assert_ne!(engine.condition(), Condition::Ready);
                if let Some(number) = last {
                    until_read(&engine, number).await;
                }
                cause_is_gone();
                return until_recovered(&engine, &acknowledged, number + 1, last).await;
            }
        }
    }
    println!("outcome: finished");
}

async fn starve_descriptors(directory: &Path, acknowledged: File) {
    let engine = Engine::open(directory, options()).unwrap();
    engine.ensure_tables(&workload::tables()).await.unwrap();
    let first = workload::newest_mark(&engine, 1).await + 1;
    let last = first + 9;
    for number in first..=last {
        workload::write(&engine, number).await.unwrap();
        acknowledge(&acknowledged, number);
    }
    let mut hoard = Vec::new();
    while let Ok(file) = File::open("/dev/null") {
        hoard.push(file);
    }
    let compacted = engine.compact().await;
    assert!(compacted.is_err(), "flushed without a free descriptor");
    assert_refused(&workload::write(&engine, last + 1).await.unwrap_err());
    until_read(&engine, last).await;
    drop(hoard);
    until_recovered(&engine, &acknowledged, last + 2, Some(last)).await;
}

fn assert_refused(error: &TransactError) {
    let TransactError::Store(StoreError::Unavailable(text)) = error else {
        panic!("a failed write must say that the store is unavailable: {error:?}");
    };
    assert!(text.contains("refused"), "unclear to the caller: {text}");
}

fn hold(directory: &Path, acknowledged: File) {
    let engine = Engine::open(directory, options()).unwrap();
    acknowledge(&acknowledged, 1);
    loop {
        std::thread::park();
        // Waking up early is allowed; the engine stays open.
        let _ = engine.table_names();
    }
}
