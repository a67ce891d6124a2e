//! What Sprag says on the terminal. Never a key, a prompt or an answer.

mod line;

use std::fmt;
use std::io::IsTerminal;
use std::sync::LazyLock;

use sprag_core::event::{Ending, Event};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};

use crate::clock::Clock;
use crate::config::Log;
use crate::config::file::{LogCalls, LogFormat};
use crate::show;

/// Asked once: it is a system call, and every call would ask.
static IS_TERMINAL: LazyLock<bool> = LazyLock::new(|| std::io::stderr().is_terminal());

/// The time of day in UTC, for people.
struct TimeOfDay;

/// Sets up logging for the whole process. Logs go to standard error.
///
/// # Errors
/// When the level is not a directive, or logging was set up before.
pub fn set_up(log: &Log) -> anyhow::Result<()> {
    let filter = EnvFilter::try_new(&log.level)?;
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    let result = if is_json(log.format, *IS_TERMINAL) {
        builder.with_timer(SystemTime).json().flatten_event(true).with_current_span(false).try_init()
    } else {
        builder.with_timer(TimeOfDay).with_target(false).with_ansi(*IS_TERMINAL).try_init()
    };
    result.map_err(|error| anyhow::anyhow!("{error}"))
}

/// One line for a call that has ended, if calls get one.
pub(crate) fn call(log: &Log, event: &Event, trace_id: Option<&str>) {
    if let Some(act) = &event.act {
        return tracing::warn!(by = act.by, scope = act.target, reason = act.reason, "{}", show::act(act.what));
    }
    if !shows_calls(log, *IS_TERMINAL) {
        return;
    }
    let is_trouble = matches!(event.ending, Ending::UpstreamError | Ending::UpstreamGone | Ending::TimedOut);
    if !is_json(log.format, *IS_TERMINAL) {
        let line = line::of(event);
        return if is_trouble { tracing::warn!("{line}") } else { tracing::info!("{line}") };
    }
    let run = event.run.as_ref();
    let usage = event.usage.unwrap_or_default();
    tracing::info!(
        agent = %event.agent,
        run = run.map_or("-", |r| r.id.as_str()),
        step = run.map_or(0, |r| r.step),
        provider = event.provider,
        model = event.model.as_deref().unwrap_or("-"),
        status = event.status,
        ending = show::ending(event.ending),
        input_tokens = usage.prompt_tokens(),
        output_tokens = usage.output,
        estimated = usage.estimated,
        cost_nano_usd = event.cost.map(|cost| cost.0),
        unpriced = event.unpriced,
        duration_ms = event.total_ms,
        error = event.error.as_deref(),
        trace_id,
        "call"
    );
}

fn is_json(format: LogFormat, is_terminal: bool) -> bool {
    match format {
        LogFormat::Json => true,
        LogFormat::Pretty => false,
        LogFormat::Auto => !is_terminal,
    }
}

fn shows_calls(log: &Log, is_terminal: bool) -> bool {
    match log.calls {
        LogCalls::On => true,
        LogCalls::Off => false,
        LogCalls::Auto => is_terminal && !is_json(log.format, is_terminal),
    }
}

impl FormatTime for TimeOfDay {
    fn format_time(&self, w: &mut Writer<'_>) -> fmt::Result {
        let now = Clock::Real.now().to_rfc3339();
        w.write_str(now.split_once('T').map_or("", |(_, time)| time))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_shown_where_a_person_watches_unless_told_otherwise() {
        let shown =
            |calls, format, is_terminal| shows_calls(&Log { format, level: "info".to_owned(), calls }, is_terminal);
        assert!(shown(LogCalls::Auto, LogFormat::Auto, true));
        assert!(shown(LogCalls::Auto, LogFormat::Pretty, true));
        assert!(!shown(LogCalls::Auto, LogFormat::Json, true));
        assert!(!shown(LogCalls::Auto, LogFormat::Auto, false));
        assert!(!shown(LogCalls::Auto, LogFormat::Pretty, false));
        for (format, is_terminal) in [(LogFormat::Json, false), (LogFormat::Pretty, true)] {
            assert!(shown(LogCalls::On, format, is_terminal));
            assert!(!shown(LogCalls::Off, format, is_terminal));
        }
    }
}
