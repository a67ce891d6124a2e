//! `sprag runs`

use std::io::Write;
use std::process::ExitCode;

use anyhow::{Result, bail};

use super::client::Asking;
use super::table::{print_events, print_runs, word};
use crate::admin::api::model::{Listing, RunDetail, RunSummary};
use crate::show;

pub(super) fn runs(id: Option<String>, agent: Option<String>, limit: u32, asking: Asking) -> Result<ExitCode> {
    match id {
        Some(id) => show_one(&id, agent.as_deref(), &asking)?,
        None => list(agent.as_deref(), limit, &asking)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn list(agent: Option<&str>, limit: u32, asking: &Asking) -> Result<()> {
    let limit = limit.to_string();
    let answer = asking.get(&["runs"], &[("agent", agent), ("limit", Some(&limit))])?;
    if asking.json { answer.print() } else { print_runs(&answer.read::<Listing<RunSummary>>()?.items) }
}

/// Ids belong to their agents, so the agent is looked up unless it is named.
pub(super) fn owner(id: &str, agent: Option<&str>, asking: &Asking) -> Result<String> {
    let found: Listing<RunSummary> = asking.get(&["runs"], &[("id", Some(id)), ("agent", agent)])?.read()?;
    match found.items.as_slice() {
        [] => bail!(
            "there is no run `{}` on record; `sprag runs` lists them. A run whose first call is still under way is \
             found when its agent is named: --agent NAME",
            show::plain(id)
        ),
        [run] => Ok(run.agent.clone()),
        several => {
            let agents: Vec<_> = several.iter().map(|run| run.agent.as_str()).collect();
            bail!("several agents have a run of this id; choose with --agent: {}", agents.join(", "));
        }
    }
}

fn show_one(id: &str, agent: Option<&str>, asking: &Asking) -> Result<()> {
    let agent = owner(id, agent, asking)?;
    let answer = asking.get(&["runs", &agent, id], &[("limit", Some("500"))])?;
    if asking.json { answer.print() } else { print_detail(&answer.read()?) }
}

fn print_detail(detail: &RunDetail) -> Result<()> {
    let run = &detail.run;
    let mut out = std::io::stdout().lock();
    writeln!(out, "Run {} of {}", show::plain(&run.id), run.agent)?;
    writeln!(
        out,
        "  status  {}, {} steps ({} failed, {} blocked)",
        word(&run.status),
        run.steps,
        run.errors,
        run.blocked
    )?;
    if let Some(stopped) = &run.stopped {
        writeln!(out, "  stopped {} by {} at {}", show::plain(&stopped.reason), show::plain(&stopped.by), stopped.at)?;
        if let Some(above) = &stopped.through {
            writeln!(out, "          with run {}, which it is a part of", show::plain(above))?;
        }
        if let Some(summary) = stopped.proof.as_ref().and_then(|proof| proof["summary"].as_str()) {
            writeln!(out, "  proof   {}", show::plain(summary))?;
        }
    }
    if let Some(would) = &detail.would_have_stopped {
        writeln!(
            out,
            "  shadow  would have been stopped at step {} by {} ({}), saving {} in {} steps",
            would.step,
            would.detector.as_str(),
            show::plain(&would.loop_type),
            show::usd(would.saved_usd.0),
            would.saved_steps
        )?;
        writeln!(out, "          {}", show::plain(&would.proof.summary))?;
    }
    writeln!(
        out,
        "  tokens  {} in ({} from cache), {} out",
        show::count(run.input_tokens),
        show::count(run.cached_tokens),
        show::count(run.output_tokens)
    )?;
    writeln!(
        out,
        "  cost    {} ({} steps without a price)",
        show::usd_known(run.cost_usd.0, run.unpriced_steps),
        run.unpriced_steps
    )?;
    if !detail.children.is_empty() {
        writeln!(
            out,
            "  tree    {} in {} steps, with all its parts",
            show::usd(detail.tree_cost_usd.0),
            detail.tree_steps
        )?;
    }
    writeln!(out, "  time    {} to {}\n", run.first_at, run.last_at)?;
    drop(out);
    print_events(&detail.steps.items, false)?;
    let mut out = std::io::stdout().lock();
    if detail.steps.next.is_some() {
        writeln!(out, "… and more steps")?;
    }
    if !detail.children.is_empty() {
        writeln!(out, "\nRuns that are a part of it")?;
        drop(out);
        print_runs(&detail.children)?;
    }
    Ok(())
}
