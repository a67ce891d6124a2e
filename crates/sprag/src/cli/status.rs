//! `sprag status`

use std::io::Write;
use std::process::ExitCode;

use anyhow::Result;

use super::client::Asking;
use crate::admin::api::model::Status;
use crate::show;

pub(super) fn status(asking: Asking) -> Result<ExitCode> {
    let answer = asking.get(&["status"], &[])?;
    if asking.json {
        answer.print()?;
        return Ok(ExitCode::SUCCESS);
    }
    let status: Status = answer.read()?;
    let (today, recording) = (&status.today, &status.recording);
    let mut out = std::io::stdout().lock();
    writeln!(out, "Sprag {}, up for {}", status.version, show::seconds(status.uptime_seconds))?;
    writeln!(out, "  proxy      {}", show::plain(&status.proxy))?;
    writeln!(out, "  in flight  {} calls; {} runs in memory", status.in_flight, status.runs_in_memory)?;
    if status.kills > 0 {
        writeln!(out, "  kills      {} in force; `sprag kills` lists them", show::count(status.kills))?;
    }
    if status.detection_failures > 0 {
        let failures = show::count(status.detection_failures);
        writeln!(out, "  detection  failed on {failures} requests, which passed unchecked; see the log")?;
    }
    let dlp = &status.dlp;
    match dlp.uncovered.is_empty() {
        true => writeln!(out, "  dlp        a canary was found on all of {} ways", dlp.surfaces)?,
        false => writeln!(out, "  dlp        NOT covered: {}", show::plain(&dlp.uncovered.join(", ")))?,
    }
    if status.budgets_used_up > 0 {
        let number = show::count(status.budgets_used_up);
        writeln!(out, "  budgets    {number} used up; `sprag budgets` lists them")?;
    }
    if status.lost_calls > 0 {
        let calls = if status.lost_calls == 1 {
            "1 call".to_owned()
        } else {
            format!("{} calls", show::count(status.lost_calls))
        };
        writeln!(out, "  lost       {calls} cut by a crash, charged what was set aside")?;
    }
    match recording.ok {
        true => writeln!(out, "  recording  ok, {} events", show::count(recording.recorded))?,
        false => writeln!(out, "  recording  in trouble: {}", show::plain(&recording.problems.join("; ")))?,
    }
    if recording.money_only + recording.dropped + recording.lost > 0 {
        let (detail, lost) = (recording.money_only + recording.dropped, recording.lost);
        writeln!(out, "             {detail} events without their detail, {lost} lost")?;
    }
    if let Some(state) = &status.shared_state {
        let (redis, since) = (show::plain(&state.redis), show::seconds(state.since_seconds));
        match state.connected {
            true => writeln!(out, "  shared     {redis}, connected for {since}")?,
            false => {
                let error = show::plain(state.last_error.as_deref().unwrap_or("never connected so far"));
                writeln!(out, "  shared     {redis}, AWAY for {since}: {error}")?;
            }
        }
    }
    if let Some(catalog) = status.shared_catalog.as_ref().filter(|catalog| !catalog.connected) {
        let error = show::plain(catalog.last_error.as_deref().unwrap_or("never connected so far"));
        writeln!(out, "             kills, keys and policies are NOT shared with other nodes: {error}")?;
    }
    writeln!(out, "\nToday (UTC)")?;
    writeln!(out, "  calls      {} ({} failed, {} blocked)", show::count(today.requests), today.errors, today.blocked)?;
    writeln!(
        out,
        "  tokens     {} in ({} from cache), {} out",
        show::count(today.input_tokens),
        show::count(today.cached_tokens),
        show::count(today.output_tokens)
    )?;
    writeln!(
        out,
        "  cost       {} ({} calls without a price)",
        show::usd_known(today.cost_usd.0, today.unpriced),
        today.unpriced
    )?;
    Ok(ExitCode::SUCCESS)
}
