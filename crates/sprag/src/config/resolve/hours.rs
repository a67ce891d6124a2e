//! `hours`: windows of the week and whose clocks they mean.

use sprag_core::policy::{Hours, HoursWindow, Zone};

use super::{place, told};
use crate::config::file::{self, AgentHours};
use crate::config::problem::Problem;

/// The hours of agents that have none of their own.
pub(super) fn defaults(written: &file::Hours, key: &str, problems: &mut Vec<Problem>) -> Hours {
    let file::Hours { allowed, time_zone, mode } = written.clone();
    let whole = AgentHours { allowed: Some(allowed), time_zone: Some(time_zone), mode: Some(mode) };
    over(&Hours::default(), &whole, key, problems)
}

/// Hours with what is written for an agent; `key` is where that stands.
pub(super) fn over(base: &Hours, written: &AgentHours, key: &str, problems: &mut Vec<Problem>) -> Hours {
    let mut hours = base.clone();
    if let Some(mode) = written.mode {
        hours.mode = mode.into();
    }
    if let Some(name) = &written.time_zone {
        hours.zone = zone(&place(key, "time_zone"), name, problems);
    }
    if let Some(allowed) = &written.allowed {
        let key = place(key, "allowed");
        hours.windows = windows(&key, allowed, problems).into();
        problems.extend(hours.problem().map(|problem| told(&key, &problem)));
    }
    hours
}

/// A time zone by its name.
pub(super) fn zone(key: &str, name: &str, problems: &mut Vec<Problem>) -> Zone {
    Zone::named(name.trim()).unwrap_or_else(|error| {
        problems.push(told(key, &error));
        Zone::default()
    })
}

fn windows(key: &str, written: &[String], problems: &mut Vec<Problem>) -> Vec<HoursWindow> {
    let mut windows = Vec::with_capacity(written.len());
    for (index, text) in written.iter().enumerate() {
        match text.parse() {
            Ok(window) => windows.push(window),
            Err(error) => problems.push(told(format!("{key}[{index}]"), &error)),
        }
    }
    windows
}
