//! Paths and query parameters, read strictly: a filter with a slip in its name must not list everything.

use axum::extract::{FromRequestParts, Path, Query};
use axum::http::request::Parts;
use serde::de::DeserializeOwned;
use sprag_core::id::{AgentName, RunId};
use sprag_core::limits::PAGE_ROWS;
use sprag_core::money::NanoUsd;
use sprag_core::time::Timestamp;

use crate::admin::problem::Problem;

const DEFAULT_ROWS: u32 = 50;

/// The query of a request.
pub(in crate::admin) struct Params<T>(pub(in crate::admin) T);

/// The names in the path of a request.
pub(in crate::admin) struct Names<T>(pub(in crate::admin) T);

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for Names<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Names<T>, Problem> {
        let read = Path::from_request_parts(parts, state).await;
        read.map(|Path(names)| Names(names)).map_err(|rejection| Problem::bad_request(rejection.body_text()))
    }
}

impl<S: Sync, T: DeserializeOwned> FromRequestParts<S> for Params<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Params<T>, Problem> {
        let read = Query::try_from_uri(&parts.uri);
        read.map(|Query(params)| Params(params))
            .map_err(|rejection| Problem::bad_request(readable(&rejection.body_text())))
    }
}

/// An agent's name from a parameter; an empty one counts as absent.
pub(in crate::admin) fn agent_name(text: Option<&str>) -> Result<Option<AgentName>, Problem> {
    let given = text.filter(|text| !text.is_empty());
    given.map(AgentName::parse).transpose().map_err(|error| Problem::bad_request(error.to_string()))
}

/// A run's id from a parameter; an empty one counts as absent.
pub(in crate::admin) fn run_id(text: Option<&str>) -> Result<Option<RunId>, Problem> {
    let given = text.filter(|text| !text.is_empty());
    given.map(RunId::parse).transpose().map_err(|error| Problem::bad_request(error.to_string()))
}

pub(super) fn rows(limit: Option<u32>) -> Result<u32, Problem> {
    match limit.unwrap_or(DEFAULT_ROWS) {
        rows @ 1..=PAGE_ROWS => Ok(rows),
        _ => Err(Problem::bad_request(format!("`limit` is a number from 1 to {PAGE_ROWS}"))),
    }
}

/// A moment such as `2026-05-01T12:00:00Z`.
pub(in crate::admin) fn moment(name: &str, text: Option<&str>) -> Result<Option<Timestamp>, Problem> {
    let Some(text) = text else { return Ok(None) };
    match text.parse::<jiff::Timestamp>() {
        Ok(moment) => Ok(Some(Timestamp(moment.as_millisecond()))),
        Err(_) => Err(Problem::bad_request(format!("`{name}` is a moment of RFC 3339 such as 2026-05-01T12:00:00Z"))),
    }
}

/// Dollars such as `0.25`; an empty text counts as absent.
pub(in crate::admin) fn amount(name: &str, text: Option<&str>) -> Result<Option<NanoUsd>, Problem> {
    let Some(text) = text.map(str::trim).filter(|text| !text.is_empty()) else { return Ok(None) };
    match NanoUsd::parse_usd(text.strip_prefix('$').unwrap_or(text)) {
        Ok(amount) if amount >= NanoUsd::ZERO => Ok(Some(amount)),
        _ => Err(Problem::bad_request(format!("`{name}` is an amount of dollars such as 0.25"))),
    }
}

/// What the parser says, without its preamble.
fn readable(said: &str) -> String {
    said.strip_prefix("Failed to deserialize query string: ").unwrap_or(said).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_one_row_to_the_most_there_may_be() {
        assert_eq!(rows(None).unwrap(), DEFAULT_ROWS);
        assert_eq!(rows(Some(PAGE_ROWS)).unwrap(), PAGE_ROWS);
        assert!(rows(Some(0)).is_err() && rows(Some(PAGE_ROWS + 1)).is_err());
    }

    #[test]
    fn moments_are_read_in_any_zone() {
        assert_eq!(moment("since", Some("2023-11-14T23:13:20+01:00")).unwrap(), Some(Timestamp(1_700_000_000_000)));
        assert_eq!(moment("since", None).unwrap(), None);
        assert!(moment("since", Some("yesterday")).is_err());
    }
}
