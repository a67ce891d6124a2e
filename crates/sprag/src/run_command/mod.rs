//! `sprag run`: one command, guarded while it runs. No server, no configuration.
//!
//! A proxy on a free port of this machine lives as long as the command, whose environment points the SDKs at it (`variables`,
//! `programs`). The command is one run, and the conversations that it holds are its parts: limits count over all of them,
//! loops are judged in each (`prepare`). State is the process's own; what happens is handed over to whoever has the data
//! directory, now or later (`home`), and what is killed there is killed here (`follow`). When the run is killed the command is ended with all that it started (`supervise`,
//! `processes`), and in the end it is told what there was (`tally`, `report`). A status is shown where it disturbs nobody
//! (`status`).
//!
//! What is not here: any judgement. That is the gateway's, as in `sprag serve`.

mod asked;
mod follow;
mod home;
mod prepare;
mod processes;
mod programs;
mod report;
mod signals;
mod status;
mod supervise;
mod tally;
mod terminal;
mod variables;

use std::fs::File;
use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result};
use serde_json::json;
use sprag_core::event::{Act, ActKind, Event, EventKind, RunOrigin, RunRecord};
use sprag_core::policy::KillScope;
use sprag_store::RunKey;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

pub use self::asked::Asked;
use self::home::Home;
pub(crate) use self::home::are_at_work;
use self::prepare::{Prepared, prepare};
use self::programs::Program;
use self::report::Report;
use self::status::Status;
use self::supervise::{Orders, supervise};
use self::tally::Tally;
use crate::app::App;
use crate::clock::{Clock, Ids};
use crate::config::{Environment, Flags, Loaded, Sources, load};
use crate::core_file;
use crate::gateway;
use crate::serve::listen;
use crate::server::limits;

/// Sprag stopped the command.
const STOPPED: u8 = 3;
/// The command is there and cannot be started.
const NOT_EXECUTABLE: u8 = 126;
/// There is no such command.
const NOT_FOUND: u8 = 127;
/// The words on the command line make no sense.
const MISUSED: u8 = 2;

/// Runs the command. The exit code is the command's own, 128 and the number of the signal that ended it, or 3 if Sprag did.
pub(crate) fn run(asked: Asked) -> Result<ExitCode> {
    let sources = Sources::process(Flags {
        config: asked.config.clone(),
        data: asked.data.clone(),
        providers: asked.providers.clone(),
        ..Flags::default()
    });
    let Loaded { settings, warnings, .. } = load(&sources)?;
    let prepared = prepare(&asked, settings, &sources.environment, Ids::Random.command())?;
    if asked.print_env {
        return print_environment(&asked, &prepared, &sources.environment);
    }
    if asked.command.is_empty() {
        say("there is no command to run; write it behind `--`, as in: sprag run --budget 1.00 -- python agent.py");
        return Ok(ExitCode::from(MISUSED));
    }
    if !asked.quiet {
        warnings.iter().map(ToString::to_string).chain(prepared.warnings.clone()).for_each(|warning| say(&warning));
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let code = runtime.block_on(Box::pin(guard(&asked, prepared, &sources.environment)));
    // Nothing that still runs has anything to say.
    runtime.shutdown_background();
    code
}

/// The whole life of the command.
async fn guard(asked: &Asked, prepared: Prepared, environment: &Environment) -> Result<ExitCode> {
    let began = Instant::now();
    let Prepared { mut settings, main, agent, command, kept, .. } = prepared;
    let home = Home::make(&main.data_dir, &command)?;
    settings.data_dir = home.path().to_owned();
    let app = App::new(settings, Clock::Real, Ids::Random)?;
    home.look_at_main(&app);
    app.await_link().await;
    let linked = tokio::spawn(app.clone().follow_link());
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, asked.port));
    let listener = TcpListener::bind(address).await.with_context(|| {
        format!("cannot listen on {address}; choose another port with --port, or leave it out for a free one")
    })?;
    let mut variables = variables::of(listener.local_addr()?, &agent, &kept, environment);
    variables.set.push(("SPRAG_RUN", command.to_string()));
    let program = Program::of(&asked.command, &variables, environment);
    if !asked.quiet {
        program.notes.iter().for_each(|note| say(note));
    }

    let run = RunKey { agent: agent.clone(), id: command.clone() };
    let tally = Arc::new(Tally::new(command.clone(), home.handover()?));
    let heard = tally.clone();
    app.live.listen(Box::new(move |event| heard.take(event)));
    record(&app, &run, ActKind::StartCommand, &program.name());

    let shutdown = CancellationToken::new();
    let serving = app.clone();
    let connections = app.metrics.proxy_connections.clone();
    let proxy =
        listen(listener, limits(&app.settings.load()), connections, shutdown.clone(), move |peer, mut request| {
            // A kill may name the address.
            request.extensions_mut().insert(peer);
            gateway::handle(serving.clone(), request)
        });
    let proxy = tokio::spawn(proxy);
    let traced = CancellationToken::new();
    let exporting = tokio::spawn(app.clone().export_traces(traced.clone()));
    let raised = CancellationToken::new();
    let raising = tokio::spawn(app.clone().raise_alerts(raised.clone()));
    let delivering = tokio::spawn(app.clone().deliver_alerts());
    let following = follow::follow_forever(app.clone(), Arc::from(main.data_dir.as_path()), run.clone(), tally.clone());
    let following = tokio::spawn(following);

    let status = Status::show(asked.status, asked.budget, tally.clone());
    // Where there is a terminal the command shares our group, so that keys, job control and the shell's pipes work as without
    // Sprag, also for one that reads from a pipe and asks on the terminal; otherwise it leads a group of its own, and all
    // of it can be signalled at once.
    let has_own_group = File::open("/dev/tty").is_err();
    let caught = signals::catch(has_own_group)?;
    let started = match program.start(has_own_group) {
        Ok(started) => started,
        Err(error) => {
            status.end().await;
            record(&app, &run, ActKind::EndCommand, &program.name());
            tally.close();
            home.leave(&main);
            return Ok(cannot_start(&program.name(), &error));
        }
    };
    core_file::hide();
    let orders = Orders { run: &run, timeout: asked.timeout, grace: asked.grace };
    let ended = supervise(&app, started, caught, &tally, orders).await?;
    status.end().await;
    following.abort();
    let _ = following.await;

    // One that is killed itself stays so; one that ended because a part of it was killed is over.
    if app.catalog.snapshot().kills.of_run(&run.agent, &run.id).is_none() {
        record(&app, &run, ActKind::EndCommand, &program.name());
    }
    shutdown.cancel();
    let _ = proxy.await;
    app.settling.close();
    app.settling.wait().await;
    linked.abort();
    traced.cancel();
    let _ = exporting.await;
    raised.cancel();
    let _ = raising.await;
    home.deliver_alerts(&app).await;
    delivering.abort();
    let _ = delivering.await;
    tally.close();

    let mut report = Report::new(&program, &run, &tally, &ended, began.elapsed());
    report.kept = kept;
    report.shown_at(app.dashboard_url(), main.data_dir.display().to_string());
    drop(app);
    report.record = home.leave(&main);
    // The command has ended as it has, whatever becomes of the report.
    if let Err(error) = report.tell(asked) {
        say(&format!("{error:#}"));
    }
    Ok(ended.exit_code())
}

/// Puts on record that the command began or ended. Its arguments may hold a prompt, so they are not.
fn record(app: &App, run: &RunKey, what: ActKind, program: &str) {
    let now = app.clock.now();
    let scope = KillScope::Run { agent: run.agent.clone(), run: run.id.clone() };
    let act = Act {
        what,
        by: "sprag run".to_owned(),
        target: scope.to_string(),
        reason: String::new(),
        proof: None,
        expires_at: None,
        detail: Some(json!({ "program": program })),
    };
    let record = RunRecord { id: run.id.clone(), step: 0, parent: None, origin: RunOrigin::Declared };
    let id = app.ids.request(now);
    app.record(&Event::of_act(id, now, EventKind::Admin, run.agent.clone(), Some(record), act));
}

/// Prints what the command would be given, as a shell reads it.
fn print_environment(asked: &Asked, prepared: &Prepared, environment: &Environment) -> Result<ExitCode> {
    let proxy = match asked.port {
        0 => "127.0.0.1:PORT".to_owned(),
        port => format!("127.0.0.1:{port}"),
    };
    let variables = variables::at(&proxy, &prepared.agent, &prepared.kept, environment);
    let mut out = std::io::stdout().lock();
    if asked.port == 0 {
        writeln!(out, "# PORT is a free port, chosen when the command starts; --port N sets it")?;
    }
    for (name, value) in &variables.set {
        writeln!(out, "export {name}={}", programs::quoted(value))?;
    }
    if !asked.command.is_empty() {
        let program = Program::of(&asked.command, &variables, environment);
        writeln!(out, "# the command: {}", program.shown())?;
        for note in &program.notes {
            writeln!(out, "# {note}")?;
        }
    }
    for kept in &prepared.kept {
        writeln!(out, "# {kept}")?;
    }
    Ok(ExitCode::SUCCESS)
}

fn cannot_start(program: &str, error: &std::io::Error) -> ExitCode {
    let (code, what) = match error.kind() {
        std::io::ErrorKind::NotFound => {
            (NOT_FOUND, "there is no such command; is it installed, and is its folder in PATH?".to_owned())
        }
        std::io::ErrorKind::PermissionDenied => {
            (NOT_EXECUTABLE, "it may not be executed; `chmod +x` makes a script executable".to_owned())
        }
        _ => (NOT_EXECUTABLE, format!("it cannot be started: {error}")),
    };
    say(&format!("{program}: {what}"));
    ExitCode::from(code)
}

/// A line of Sprag's own on the command's terminal.
fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "sprag: {line}");
}
