//! `sprag events`

use std::process::ExitCode;

use anyhow::Result;

use super::client::Asking;
use super::table::print_events;
use crate::admin::api::model::{EventRecord, Listing};

pub(super) fn events(run: Option<String>, agent: Option<String>, limit: u32, asking: Asking) -> Result<ExitCode> {
    let limit = limit.to_string();
    let params = [("run", run.as_deref()), ("agent", agent.as_deref()), ("limit", Some(limit.as_str()))];
    let answer = asking.get(&["events"], &params)?;
    if asking.json {
        answer.print()?;
    } else {
        print_events(&answer.read::<Listing<EventRecord>>()?.items, true)?;
    }
    Ok(ExitCode::SUCCESS)
}
