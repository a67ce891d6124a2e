//! `sprag demo`: Sprag as it is, a scripted provider, and a cast of simulated agents.
//!
//! Only the models and the tools of the agents are made up. Requests go through the proxy as any client's do, stops are
//! the detectors' own, and the dashboard shows what is on record. Everything lives in a folder that goes when the demo ends.

mod agent;
mod call;
mod narrator;
mod provider;
mod scene;

use std::io::{IsTerminal, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use self::agent::{Stage, play};
use self::narrator::Narrator;
use self::scene::Role;
use crate::app::App;
use crate::clock::{Clock, Ids};
use crate::config::{Flags, Loaded, ProviderFlag, Settings, Sources, load};
use crate::server::Server;

/// How the demo is to be played.
#[derive(Clone, Debug, clap::Args)]
pub struct Wish {
    /// Address of the proxy [default: 127.0.0.1:7070, or a free port where that is taken]
    #[arg(long, value_name = "ADDR")]
    proxy: Option<SocketAddr>,
    /// Address of the dashboard [default: 127.0.0.1:7071, or a free port where that is taken]
    #[arg(long, value_name = "ADDR")]
    admin: Option<SocketAddr>,
    /// Print the dashboard's link, and do not open it
    #[arg(long)]
    no_open: bool,
    /// How many times faster than life
    #[arg(long, value_name = "N", default_value_t = 1.0, value_parser = speed)]
    speed: f64,
}

/// Divides every wait of the play.
#[derive(Clone, Copy, Debug)]
struct Pace(f64);

/// What the cast has to say to the narrator, at most so much at once.
const TOLD: usize = 64;
/// The configuration of the demo; a real one.
const CONFIGURATION: &str = include_str!("demo.toml");
const PROXY_PORT: u16 = 7070;
const ADMIN_PORT: u16 = 7071;

impl Pace {
    async fn wait(self, time: Duration) {
        tokio::time::sleep(time.div_f64(self.0)).await;
    }
}

/// The settings of a demo in `dir`, whose provider listens at `provider`.
///
/// # Errors
/// When the folder cannot be written.
pub async fn settings(wish: &Wish, dir: &Path, provider: SocketAddr) -> Result<Settings> {
    let file = dir.join("sprag.toml");
    std::fs::write(&file, CONFIGURATION).with_context(|| format!("writing {}", file.display()))?;
    let openai = ProviderFlag { name: "openai".to_owned(), base_url: format!("http://{provider}"), dialect: None };
    let flags = Flags {
        config: Some(file),
        proxy: Some(free_or(wish.proxy, PROXY_PORT).await.to_string()),
        admin: Some(free_or(wish.admin, ADMIN_PORT).await.to_string()),
        data: Some(dir.join("data")),
        providers: vec![openai],
    };
    // The user's own variables and files have no part in it.
    let Loaded { settings, .. } = load(&Sources { flags, ..Sources::default() })?;
    Ok(settings)
}

/// Plays until `shutdown`, and leaves nothing behind.
///
/// # Errors
/// When a port is taken, or the folder of the demo cannot be written.
pub async fn demo(
    wish: &Wish,
    settings: Settings,
    provider: TcpListener,
    out: &mut (impl Write + Send),
    shutdown: CancellationToken,
) -> Result<()> {
    let pace = Pace(wish.speed);
    let (tell, mut told) = mpsc::channel(TOLD);
    let app = App::new(settings, Clock::Real, Ids::Random)?;
    let server = Server::bind(app.clone()).await?;
    let (proxy, admin, link) = (server.proxy_addr()?, server.admin_addr()?, server.login_link()?);
    let is_opened = !wish.no_open && open_page(&link);
    let mut narrator = Narrator::begin(out, admin, app.data_dir(), &link, is_opened)?;
    let mut cast = JoinSet::new();
    cast.spawn(provider::serve(provider, pace, tell.clone()));
    let stage = Stage::new(proxy, pace, tell);
    for role in Role::ALL {
        cast.spawn(play(role, stage.clone()));
    }
    drop(stage);
    let serving = tokio::spawn(server.run(shutdown.clone()));
    loop {
        tokio::select! {
            () = shutdown.cancelled() => break,
            Some(news) = told.recv() => narrator.tell(&news)?,
        }
    }
    cast.shutdown().await;
    serving.await??;
    narrator.end(&app)
}

/// A port of the demo's provider.
///
/// # Errors
/// When the system has none.
pub async fn provider_port() -> Result<TcpListener> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.context("opening a port for the scripted provider")
}

/// The address asked for, or the usual one where it is free, or any that is.
async fn free_or(asked: Option<SocketAddr>, port: u16) -> SocketAddr {
    if let Some(asked) = asked {
        return asked;
    }
    let usual = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    match TcpListener::bind(usual).await {
        Ok(_) => usual,
        Err(_) => SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
    }
}

/// Opens the page where a person sits in front of a screen.
fn open_page(link: &str) -> bool {
    let has_screen = cfg!(target_os = "macos")
        || ["DISPLAY", "WAYLAND_DISPLAY"]
            .iter()
            .any(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()));
    std::io::stdout().is_terminal() && has_screen && open::that_detached(link).is_ok()
}

fn speed(text: &str) -> Result<f64, String> {
    let speed: f64 = text.parse().map_err(|_| "expected a number such as 2 or 0.5".to_owned())?;
    if (0.1..=100.0).contains(&speed) { Ok(speed) } else { Err("expected a number from 0.1 to 100".to_owned()) }
}
