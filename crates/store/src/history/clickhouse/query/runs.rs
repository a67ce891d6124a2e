//! Runs in pages, the most recently active first.
//!
//! What nodes have counted of a run is ordered by run and not by time, so a listing is made in two steps. First come candidates: runs with
//! the latest moment at which they can have been active, from `run_hours` an hour back, then a day and a half, then from
//! everything; or, where a listing is narrowed by what only the runs themselves tell, from `node_runs`. Then these runs are
//! read whole and looked at again. Nothing is shown before it is certain that nothing else belongs in front of it.

use serde::Deserialize;
use sprag_core::id::{AgentName, RunId};
use sprag_core::limits::{LISTED_CANDIDATES, PAGE_ROWS};

use super::question::Question;
use super::{Reader, bad_cursor, page_rows};
use crate::error::StoreError;
use crate::history::query::{Page, RunFilter, RunRow, RunStatus};
use crate::history::rows::word;

const HOUR_MS: i64 = 3_600_000;

/// How many hours from its beginning a listing looks, one after the other; none is everything.
const WINDOWS_HOURS: [Option<i64>; 3] = [Some(1), Some(36), None];

/// Runs that are read whole at once: the largest page, one more, and those of the same moment.
const READ_AT_ONCE: usize = 2 * PAGE_ROWS as usize;

/// Many runs begin with so many characters or fewer: `task-1`.
const FEW_CHARACTERS: usize = 6;

/// The place of a run in a listing. Of one moment the greater id comes first.
type Place = (i64, RunId, AgentName);

/// A run that may belong in the page.
#[derive(Deserialize)]
struct Candidate {
    whose: AgentName,
    run_hash: u64,
    /// It was not active later than this.
    bound: i64,
    /// Where the window begins.
    first_hour: i64,
}

impl Reader {
    pub(in crate::history) fn runs(
        &self,
        filter: &RunFilter,
        cursor: Option<&str>,
        limit: u32,
    ) -> Result<Page<RunRow>, StoreError> {
        let size = page_rows(limit);
        let after = cursor.map(parse_place).transpose()?;
        let mut rows = Vec::new();
        for window in windows(filter) {
            rows = self.runs_within(filter, *window, after.as_ref(), size + 1)?;
            if rows.len() > size {
                break;
            }
        }
        let has_more = rows.len() > size;
        rows.truncate(size);
        let next = rows.last().filter(|_| has_more).map(|run| format!("{}.{}/{}", run.last_at.0, run.agent, run.id));
        Ok(Page { items: rows, next })
    }

    /// At most so many runs that were last active in a window, in their order.
    fn runs_within(
        &self,
        filter: &RunFilter,
        window: Option<i64>,
        after: Option<&Place>,
        most: usize,
    ) -> Result<Vec<RunRow>, StoreError> {
        let mut looked_at = most;
        loop {
            let candidates: Vec<Candidate> = {
                let (sql, question) = candidates_sql(filter, window, after, looked_at);
                self.ask(&sql, &question)?
            };
            let Some(last) = candidates.last() else { return Ok(Vec::new()) };
            let is_all = candidates.len() < looked_at;
            if is_all && window.is_some() && candidates.len() < most {
                // A longer window is looked at in any case: these are read there.
                return Ok(Vec::new());
            }
            // A run that was active earlier than it seemed may belong behind one that is no candidate.
            let window_from = last.first_hour.saturating_mul(HOUR_MS);
            let certain_from = if is_all { window_from } else { window_from.max(last.bound) };
            let mut rows = self.rows_of(&candidates)?;
            rows.retain(|run| {
                let is_next = after.is_none_or(|after| place(run) < *after);
                is_next && run.last_at.0 >= certain_from && is_wanted(filter, run)
            });
            rows.sort_by_cached_key(|run| std::cmp::Reverse(place(run)));
            if rows.len() >= most || is_all {
                rows.truncate(most);
                return Ok(rows);
            }
            if looked_at >= LISTED_CANDIDATES {
                return Err(too_many());
            }
            looked_at = looked_at.saturating_mul(4).min(LISTED_CANDIDATES);
        }
    }

    fn rows_of(&self, candidates: &[Candidate]) -> Result<Vec<RunRow>, StoreError> {
        let mut rows = Vec::with_capacity(candidates.len());
        for some in candidates.chunks(READ_AT_ONCE) {
            let mut question = Question::default();
            question.only(
                "(agent, run_hash) IN (SELECT arrayJoin(arrayZip(JSONExtract({agents:String}, 'Array(String)'),
                    JSONExtract({hashes:String}, 'Array(UInt64)'))))",
            );
            question.set_list("agents", &some.iter().map(|one| one.whose.as_str()).collect::<Vec<_>>());
            question.set_list("hashes", &some.iter().map(|one| one.run_hash).collect::<Vec<_>>());
            rows.extend(self.run_rows(&question, "")?);
        }
        Ok(rows)
    }
}

/// Where runs themselves are looked at, an hour of them costs as much as a day. A single run is found by an index, and the few
/// that begin with more than some characters in one walk over ids.
fn windows(filter: &RunFilter) -> &'static [Option<i64>] {
    let is_of_few = filter.id_prefix.as_ref().is_some_and(|prefix| prefix.chars().count() > FEW_CHARACTERS);
    if is_told_by_hours(filter) {
        &WINDOWS_HOURS
    } else if filter.id.is_some() || is_of_few {
        &WINDOWS_HOURS[2..]
    } else {
        &WINDOWS_HOURS[1..]
    }
}

/// Where candidates come from. A run that was last active in the window is among them; one that was not may be, too.
fn candidates_sql(filter: &RunFilter, window: Option<i64>, after: Option<&Place>, most: usize) -> (String, Question) {
    let mut question = Question::default();
    question.and_maybe("agent = {agent:String}", "agent", filter.agent.as_ref());
    if let Some(status) = filter.status {
        // Of most runs nobody has said anything.
        let condition = if status == RunStatus::Running { "NOT IN" } else { "IN" };
        let compare = if status == RunStatus::Running { "<>" } else { "=" };
        question.set("status", word(&status));
        question.only(format!(
            "run_hash {condition} (SELECT run_hash FROM run_acts GROUP BY agent, run_hash, run_id
                HAVING argMax(status, (at, id)) {compare} {{status:String}})"
        ));
    }
    let mut having = vec!["bound <= {latest:Int64}"];
    let latest =
        after.map(|place| place.0).into_iter().chain(filter.until.map(|until| until.0.saturating_sub(1))).min();
    question.set("latest", latest.unwrap_or(i64::MAX));
    if let Some(since) = filter.since {
        question.set("since", since.0);
        having.push("bound >= {since:Int64}");
    }
    let first_hour = first_hour(window, latest, &mut question);
    let hours = hours_condition(filter, &first_hour, &mut question);
    let source = if is_told_by_hours(filter) {
        question.only(hours);
        // Where there are only acts, the run may have been active before: then it is found again in a longer window.
        "max(counted.last_at) AS called, if(called > -9223372036854775808, called, min(counted.act_at)) AS bound
         FROM run_hours AS counted"
    } else {
        if window.is_some() || filter.since.is_some() {
            question.only(format!("run_hash IN (SELECT run_hash FROM run_hours WHERE {hours})"));
        }
        question.and_maybe("run_id = {id:String}", "id", filter.id.as_ref());
        let prefix = filter.id_prefix.as_ref().filter(|prefix| !prefix.is_empty());
        question.and_maybe("startsWith(run_id, {prefix:String})", "prefix", prefix);
        narrow_by_sums(filter, window, &mut question, &mut having);
        "maxIf(counted.last_at, counted.steps > 0) AS called,
         if(max(counted.steps) > 0, called, min(counted.last_at)) AS bound FROM node_runs AS counted"
    };
    // By the hash alone: that of another agent's run is not the same in practice, and numbers are grouped much faster.
    let sql = format!(
        "SELECT run_hash, any(counted.agent) AS whose, {first_hour} AS first_hour, {source} {} GROUP BY run_hash HAVING {}
         ORDER BY bound DESC LIMIT {most} WITH TIES",
        question.filter(),
        having.join(" AND ")
    );
    (sql, question)
}

/// What a run costs, and of which model it is, is only told by all rows of it. Over everything there is a cheap look at
/// single rows first: what is asked for there was not found in a window, and is rare.
fn narrow_by_sums(filter: &RunFilter, window: Option<i64>, question: &mut Question, having: &mut Vec<&'static str>) {
    if let Some(model) = &filter.model {
        question.set("model", model);
        match window {
            Some(_) => having.push("countIf(counted.model = {model:String}) > 0"),
            None => question.only("run_hash IN (SELECT run_hash FROM node_runs WHERE model = {model:String})"),
        }
    }
    if let Some(cost) = filter.min_cost {
        question.set("cost", cost.0);
        // Rows that a newer one replaces count too, and rounding is on the safe side.
        having.push("sum(toFloat64(counted.cost_nano)) >= toFloat64({cost:Int64}) * 0.999999");
        if window.is_none() {
            // What costs so much on all nodes costs a fair part of it on one of them.
            question.only(
                "run_hash IN (SELECT run_hash FROM node_runs WHERE toFloat64(cost_nano) * (SELECT count() + 1 FROM nodes)
                    >= toFloat64({cost:Int64}) * 0.999999)",
            );
        }
    }
}

/// The hour in which a window begins.
fn first_hour(window: Option<i64>, latest: Option<i64>, question: &mut Question) -> String {
    match (window, latest) {
        (Some(window), None) => format!("(SELECT max(hour) FROM run_hours) - {window}"),
        (Some(window), Some(latest)) => {
            question.set("first_hour", latest.div_euclid(HOUR_MS).saturating_sub(window));
            "{first_hour:Int64}".to_owned()
        }
        (None, _) => "toInt64(-9223372036854775808)".to_owned(),
    }
}

/// The hours of a window, or those since which runs are asked for.
fn hours_condition(filter: &RunFilter, first_hour: &str, question: &mut Question) -> String {
    let Some(since) = filter.since else { return format!("hour >= {first_hour}") };
    question.set("since_hour", since.0.div_euclid(HOUR_MS));
    format!("hour >= greatest({first_hour}, {{since_hour:Int64}})")
}

/// Nothing is asked that only the runs themselves tell.
fn is_told_by_hours(filter: &RunFilter) -> bool {
    let has_prefix = filter.id_prefix.as_ref().is_some_and(|prefix| !prefix.is_empty());
    filter.id.is_none() && !has_prefix && filter.model.is_none() && filter.min_cost.is_none()
}

fn is_wanted(filter: &RunFilter, run: &RunRow) -> bool {
    filter.agent.as_ref().is_none_or(|agent| run.agent == *agent)
        && filter.id.as_ref().is_none_or(|id| run.id == *id)
        && filter.id_prefix.as_ref().is_none_or(|prefix| run.id.as_str().starts_with(prefix.as_str()))
        && filter.status.is_none_or(|status| run.status == status)
        && filter.model.as_ref().is_none_or(|model| run.model.as_ref() == Some(model))
        && filter.min_cost.is_none_or(|cost| run.cost >= cost)
        && filter.since.is_none_or(|since| run.last_at >= since)
        && filter.until.is_none_or(|until| run.last_at < until)
}

fn place(run: &RunRow) -> Place {
    (run.last_at.0, run.id.clone(), run.agent.clone())
}

fn parse_place(text: &str) -> Result<Place, StoreError> {
    let parts = text.split_once('.').and_then(|(at, run)| {
        let (agent, id) = run.split_once('/')?;
        Some((at.parse().ok()?, RunId::parse(id).ok()?, AgentName::parse(agent).ok()?))
    });
    parts.ok_or_else(|| bad_cursor(text))
}

fn too_many() -> StoreError {
    StoreError::Database {
        action: "list these runs",
        message: "too many runs come near to what is asked for; name an agent or a time".to_owned(),
        may_pass: false,
    }
}
