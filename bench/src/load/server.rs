//! The servers under load. Each is a separate process that ends with the benchmark.

use std::io::{BufRead as _, BufReader};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};

use crate::process;
use crate::workload::MASTER_KEY;

/// Set by `cargo xtask bench`.
const DYNOXIDE_VARIABLE: &str = "HOMEPORT_DYNOXIDE";
/// The folder of DynamoDB Local, which must be downloaded beforehand.
const DYNAMODB_LOCAL_VARIABLE: &str = "HOMEPORT_DYNAMODB_LOCAL";
/// The path of Debian's package.
const MOSQUITTO: &str = "/usr/sbin/mosquitto";
const START_MAX: Duration = Duration::from_secs(60);
/// A rate limit that no benchmark reaches.
const RATE_PER_SECOND: &str = "1000000";

pub(crate) const ADMIN_TOKEN: &str = "the benchmark's operator";

/// A running server. Dropping it ends the process.
pub(crate) struct ServerProcess {
    pub(crate) name: &'static str,
    /// The durability that a response to a write promises.
    pub(crate) durability: &'static str,
    /// Its address for the kind of requests that it was started for.
    pub(crate) address: SocketAddr,
    child: Child,
}

/// The ports of Homeport.
pub(crate) struct Homeport {
    pub(crate) dynamodb: ServerProcess,
    pub(crate) mqtt: SocketAddr,
    pub(crate) http: SocketAddr,
}

impl ServerProcess {
    pub(crate) fn resident_bytes(&self) -> u64 {
        process::memory_bytes(&self.id(), "VmRSS")
    }

    pub(crate) fn resident_bytes_max(&self) -> u64 {
        process::memory_bytes(&self.id(), "VmHWM")
    }

    /// Waits until the server's background work is done, so that the next server is not slowed down.
    pub(crate) fn settle(&self) {
        const QUIET: Duration = Duration::from_millis(50);
        const WAIT_MAX: Duration = Duration::from_secs(10);
        let started = Instant::now();
        while started.elapsed() < WAIT_MAX {
            let before = process::cpu_time(&self.id());
            std::thread::sleep(QUIET);
            let used = process::cpu_time(&self.id()).saturating_sub(before);
            if used <= Duration::from_millis(10) {
                return;
            }
        }
    }

    pub(crate) fn id(&self) -> String {
        self.child.id().to_string()
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// `homeport serve` of the same build, with its default durability.
pub(crate) fn start_homeport(data_dir: &Path) -> anyhow::Result<Homeport> {
    start_homeport_with(data_dir, None)
}

/// The same with an encrypted store.
pub(crate) fn start_sealed_homeport(data_dir: &Path) -> anyhow::Result<Homeport> {
    start_homeport_with(data_dir, Some(MASTER_KEY))
}

fn start_homeport_with(data_dir: &Path, master_key: Option<&str>) -> anyhow::Result<Homeport> {
    let program = beside_this_program("homeport")?;
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("HOMEPORT_") {
            command.env_remove(name);
        }
    }
    command
        .arg("serve")
        .arg("--data-dir")
        .arg(data_dir)
        .args(["--durability", "sync"])
        .args(["--http-listen", "127.0.0.1:0"])
        .args(["--dynamodb-listen", "127.0.0.1:0"])
        .args(["--mqtt-listen", "127.0.0.1:0"])
        .args(["--rate-per-second", RATE_PER_SECOND])
        .env("HOMEPORT_ADMIN_TOKEN", ADMIN_TOKEN);
    if let Some(key) = master_key {
        command.env("HOMEPORT_MASTER_KEY", key);
    }
    let words = [
        "DynamoDB's protocol on http://",
        "MQTT on mqtt://",
        "listening on http://",
    ];
    let (child, [dynamodb, mqtt, http]) = start_and_read(command, words)?;
    Ok(Homeport {
        dynamodb: ServerProcess {
            name: "homeport",
            durability: "fdatasync before each answer, one for all requests that wait together",
            address: dynamodb,
            child,
        },
        mqtt,
        http,
    })
}

/// This program, serving the route that only parses.
pub(crate) fn start_bare_route() -> anyhow::Result<ServerProcess> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["--role", "bare-route"]);
    let (child, [address]) = start_and_read(command, ["listening on http://"])?;
    Ok(ServerProcess {
        name: "bare route",
        durability: "stores nothing",
        address,
        child,
    })
}

/// dynoxide with its data in a file, if it is available.
pub(crate) fn start_dynoxide(directory: &Path) -> anyhow::Result<Option<ServerProcess>> {
    let Some(program) = std::env::var_os(DYNOXIDE_VARIABLE) else {
        return Ok(None);
    };
    let port = free_port()?;
    let mut command = Command::new(program);
    command
        .args(["serve", "--log", "quiet", "--port", &port.to_string()])
        .arg("--db-path")
        .arg(directory.join("dynoxide.db"));
    // It sets the journal mode and leaves `synchronous` at SQLite's default, FULL; a trace of its system calls showed 50
    // calls of fsync for 50 calls of PutItem.
    let durability = "SQLite, WAL, synchronous=FULL: fsync before each answer, one for each write";
    start_on_port("dynoxide", durability, command, port).map(Some)
}

/// DynamoDB Local with its data in a file, if it is available.
pub(crate) fn start_dynamodb_local(directory: &Path) -> anyhow::Result<Option<ServerProcess>> {
    let Some(home) = std::env::var_os(DYNAMODB_LOCAL_VARIABLE).map(PathBuf::from) else {
        return Ok(None);
    };
    let jar = home.join("DynamoDBLocal.jar");
    let data = directory.join("dynamodb-local");
    std::fs::create_dir_all(&data)?;
    let has_java = Command::new("java")
        .arg("-version")
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    if !jar.exists() || !has_java {
        return Ok(None);
    }
    let port = free_port()?;
    let libraries = home.join("DynamoDBLocal_lib");
    let mut command = Command::new("java");
    command
        .arg(format!("-Djava.library.path={}", libraries.display()))
        .arg("-jar")
        .arg(jar)
        .args(["-sharedDb", "-port", &port.to_string(), "-dbPath"])
        .arg(data)
        .current_dir(home);
    let durability = "SQLite file; what it syncs is not documented";
    start_on_port("DynamoDB Local", durability, command, port).map(Some)
}

/// Mosquitto without persistence, if it is available.
pub(crate) fn start_mosquitto(directory: &Path) -> anyhow::Result<Option<ServerProcess>> {
    let program = Path::new(MOSQUITTO);
    if !program.exists() {
        return Ok(None);
    }
    let port = free_port()?;
    let settings = directory.join("mosquitto.conf");
    let text = format!("listener {port} 127.0.0.1\nallow_anonymous true\npersistence false\n");
    std::fs::write(&settings, text)?;
    let mut command = Command::new(program);
    command.arg("-c").arg(settings);
    start_on_port("Mosquitto", "stores nothing", command, port).map(Some)
}

/// The path of a program that was built together with this one.
fn beside_this_program(name: &str) -> anyhow::Result<PathBuf> {
    let mut path = std::env::current_exe()?;
    path.set_file_name(format!("{name}{}", std::env::consts::EXE_SUFFIX));
    if !path.exists() {
        bail!("{name} is not built; run `cargo xtask bench`");
    }
    Ok(path)
}

/// Starts a program that prints its addresses, and reads the addresses after the given texts.
fn start_and_read<const N: usize>(
    mut command: Command,
    words: [&str; N],
) -> anyhow::Result<(Child, [SocketAddr; N])> {
    let mut child = command
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start {command:?}"))?;
    let output = child.stdout.take().context("a child without output")?;
    let mut lines = BufReader::new(output).lines();
    let mut addresses = Vec::with_capacity(N);
    for word in words {
        let address = loop {
            let line = lines
                .next()
                .context("a server ended before it listened")??;
            if let Some((_, address)) = line.split_once(word) {
                break address.trim().parse()?;
            }
        };
        addresses.push(address);
    }
    // Later output must not fill the pipe.
    std::thread::spawn(move || lines.for_each(drop));
    let addresses = addresses.try_into().ok().context("an address is missing")?;
    Ok((child, addresses))
}

/// Starts a program that listens on a given port, and waits until it does.
fn start_on_port(
    name: &'static str,
    durability: &'static str,
    mut command: Command,
    port: u16,
) -> anyhow::Result<ServerProcess> {
    let child = command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .with_context(|| format!("cannot start {name}"))?;
    let mut server = ServerProcess {
        name,
        durability,
        address: SocketAddr::from(([127, 0, 0, 1], port)),
        child,
    };
    let started = Instant::now();
    while TcpStream::connect(server.address).is_err() {
        if let Some(status) = server.child.try_wait()? {
            bail!("{name} ended with {status} before it listened");
        }
        if started.elapsed() > START_MAX {
            bail!("{name} does not listen");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(server)
}

fn free_port() -> anyhow::Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}
