//! What is measured: nothing in between, nginx, and Sprag with everything on. Both get a core of their own.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::process;

/// Long: it may start under valgrind, on a machine that is busy.
const START_TIMEOUT: Duration = Duration::from_secs(300);

/// A proxy that was started here, and ends with this value.
pub struct Proxy {
    pub name: &'static str,
    pub address: SocketAddr,
    pub folder: PathBuf,
    child: Child,
}

impl Proxy {
    pub fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).unwrap_or(0)
    }

    pub fn pids(&self) -> Vec<i32> {
        process::family(self.pid())
    }

    /// Asks it to end, and waits.
    pub fn stop(&mut self) {
        let _ = kill(Pid::from_raw(self.pid()), Signal::SIGTERM);
        let end = Instant::now() + Duration::from_secs(60);
        while Instant::now() < end {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    pub fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.stop();
    }
}

/// How Sprag is started.
#[derive(Clone, Debug)]
pub struct Sprag<'a> {
    pub program: &'a Path,
    pub mock: SocketAddr,
    pub folder: &'a Path,
    pub seat: Seat,
    /// A program that runs it, such as valgrind.
    pub under: &'a [String],
    /// Configuration besides that of all measurements.
    pub config: &'a str,
}

/// Limits of every kind that nobody reaches; the rest that is to be on, is on by default.
const EVERYTHING_ON: &str = r#"
[budget]
daily_limit = "900000"
monthly_limit = "9000000"
[defaults.budget]
max_run_cost = "90000"
daily_limit = "900000"
[defaults.run_limits]
max_steps = 1000000
timeout_seconds = 1000000
[[defaults.rate_limits]]
limit_keys = ["agent"]
requests = 100000000
window_seconds = 60
"#;

pub fn sprag(how: &Sprag<'_>) -> Result<Proxy> {
    let (proxy, admin) = (free_address()?, free_address()?);
    let config = how.folder.join("sprag.toml");
    let provider = |name: &str| format!("[providers.{name}]\nbase_url = \"http://{}\"\n", how.mock);
    let text = ["openai", "anthropic", "gemini"].map(provider).concat() + EVERYTHING_ON + how.config;
    fs::write(&config, text)?;
    let log = fs::File::create(how.folder.join("sprag.log"))?;
    let mut command = pinned(how.seat, how.under, how.program);
    command.arg("--config").arg(&config).arg("--data").arg(how.folder.join("data"));
    command.args(["--proxy", &proxy.to_string(), "--admin", &admin.to_string()]);
    command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
    let child = command.spawn().with_context(|| format!("{} cannot be started", how.program.display()))?;
    let mut sprag = Proxy { name: "sprag", address: proxy, folder: how.folder.to_owned(), child };
    await_listener(&mut sprag, &how.folder.join("sprag.log"))?;
    Ok(sprag)
}

pub fn nginx(mock: SocketAddr, folder: &Path, seat: Seat) -> Result<Proxy> {
    let (address, at) = (free_address()?, folder.display());
    let config = format!(
        "worker_processes 1;\ndaemon off;\npid {at}/nginx.pid;\nerror_log stderr crit;\nevents {{ worker_connections 8192; }}\n\
         http {{\n  access_log off;\n  client_max_body_size 64m;\n  client_body_temp_path {at}/body;\n  proxy_temp_path {at}/proxy;\n\
         fastcgi_temp_path {at}/fastcgi;\n  uwsgi_temp_path {at}/uwsgi;\n  scgi_temp_path {at}/scgi;\n  keepalive_requests 100000000;\n\
         upstream mock {{ server {mock}; keepalive 256; keepalive_requests 100000000; }}\n  server {{\n    listen {address};\n\
         location / {{\n      proxy_pass http://mock;\n      proxy_http_version 1.1;\n      proxy_set_header Connection \"\";\n\
         proxy_buffering off;\n      proxy_request_buffering off;\n    }}\n  }}\n}}\n"
    );
    let file = folder.join("nginx.conf");
    fs::write(&file, config)?;
    let log = fs::File::create(folder.join("nginx.log"))?;
    let mut command = pinned(seat, &[], Path::new("nginx"));
    command.arg("-c").arg(&file).stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
    let child = command.spawn().context("nginx cannot be started; on Debian: apt-get install nginx")?;
    let mut nginx = Proxy { name: "nginx", address, folder: folder.to_owned(), child };
    await_listener(&mut nginx, &folder.join("nginx.log"))?;
    Ok(nginx)
}

/// A Redis that was started here, with nothing on disk, and ends with this value. It stays on the core of the mock and the load.
pub struct Redis {
    pub address: SocketAddr,
    child: Child,
}

/// None where there is none to start.
pub fn redis(folder: &Path) -> Result<Option<Redis>> {
    let address = free_address()?;
    let mut command = Command::new("redis-server");
    command.args(["--bind", "127.0.0.1", "--port", &address.port().to_string(), "--save", "", "--appendonly", "no"]);
    let log = fs::File::create(folder.join("redis.log"))?;
    command.current_dir(folder).stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
    let child = match command.spawn() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        child => child.context("redis-server cannot be started")?,
    };
    let redis = Redis { address, child };
    let end = Instant::now() + START_TIMEOUT;
    while TcpStream::connect(address).is_err() {
        if Instant::now() > end {
            bail!("redis-server does not listen on {address}");
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(Some(redis))
}

impl Redis {
    /// How much is in it.
    pub fn keys(&self) -> Result<u64> {
        let mut stream = TcpStream::connect(self.address)?;
        stream.write_all(b"DBSIZE\r\n")?;
        let mut said = String::new();
        BufReader::new(stream).read_line(&mut said)?;
        said.trim().trim_start_matches(':').parse().with_context(|| format!("Redis answered {said:?}"))
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Where a proxy runs.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seat {
    pub core: Option<usize>,
    /// Ahead of everybody else's work: for a machine that is not quiet.
    pub is_realtime: bool,
}

/// Puts this process and all its threads ahead of everybody else's work.
pub fn go_realtime() -> Result<()> {
    let pid = std::process::id().to_string();
    let status = Command::new("chrt").args(["--all-tasks", "--rr", "--pid", "1", &pid]).status()?;
    if !status.success() { bail!("chrt cannot give this process real-time priority; that needs root") } else { Ok(()) }
}

fn pinned(seat: Seat, under: &[String], program: &Path) -> Command {
    let mut words: Vec<std::ffi::OsString> = Vec::new();
    // What is started inherits the rig's own priority.
    words.extend(if seat.is_realtime { ["chrt", "--rr", "1"] } else { ["chrt", "--other", "0"] }.map(Into::into));
    let core = seat.core;
    if let Some(core) = core {
        words.extend(["taskset", "-c", &core.to_string()].map(Into::into));
    }
    words.extend(under.iter().map(Into::into));
    words.push(program.into());
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]);
    command
}

/// An address that nobody listens on; below the ports that clients get, so that none of them takes it.
pub fn free_address() -> Result<SocketAddr> {
    for _ in 0..100 {
        let port = fastrand::u16(19_500..29_000);
        if let Ok(listener) = TcpListener::bind(("127.0.0.1", port)) {
            return Ok(listener.local_addr()?);
        }
    }
    bail!("no free port between 19500 and 29000")
}

fn await_listener(proxy: &mut Proxy, log: &Path) -> Result<()> {
    let end = Instant::now() + START_TIMEOUT;
    while Instant::now() < end {
        if TcpStream::connect(proxy.address).is_ok() {
            return Ok(());
        }
        if !proxy.is_running() {
            break;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    let log = fs::read_to_string(log).unwrap_or_default();
    bail!("{} does not listen on {}; it says: {log}", proxy.name, proxy.address)
}
