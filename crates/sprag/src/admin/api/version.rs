//! Versions of what is set for an agent, as entity tags: whoever changes it can say what the change is based on.
//!
//! The tag is of what a `PATCH` changes, the `override`, and not of the whole answer: an agent that calls does not
//! overtake a person who edits.

use axum::Json;
use axum::extract::FromRequestParts;
use axum::http::header::{ETAG, IF_MATCH};
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};

use super::model::AgentDetail;
use crate::acts::{Based, version_of};
use crate::admin::problem::Problem;

/// An agent, answered with the version of what is set for it.
pub(in crate::admin) struct Versioned(pub(in crate::admin) AgentDetail);

/// What a change is based on, by the header `If-Match`.
pub(in crate::admin) struct IfMatch(pub(in crate::admin) Based);

impl IntoResponse for Versioned {
    fn into_response(self) -> Response {
        let tag = HeaderValue::from_str(&format!("\"{}\"", version_of(&self.0.set)));
        let mut response = Json(self.0).into_response();
        if let Ok(tag) = tag {
            response.headers_mut().insert(ETAG, tag);
        }
        response
    }
}

impl<S: Sync> FromRequestParts<S> for IfMatch {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<IfMatch, Problem> {
        let mut tags = Vec::new();
        for line in parts.headers.get_all(IF_MATCH) {
            let line = line.to_str().map_err(|_| unreadable())?;
            tags.extend(line.split(',').map(str::trim).filter(|tag| !tag.is_empty()));
        }
        based_on(&tags).map(IfMatch)
    }
}

/// What tags ask for. A star is met by whatever there is; a weak tag by nothing, as RFC 9110 has it.
fn based_on(tags: &[&str]) -> Result<Based, Problem> {
    if tags.is_empty() || tags == ["*"] {
        return Ok(Based::OnAnything);
    }
    let version = |tag: &&str| {
        let strong = tag.strip_prefix("W/").unwrap_or(tag);
        let version = strong.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
        // What a weak tag says is kept with its mark, so that it is the version of nothing.
        version.map(|version| if strong == *tag { version.to_owned() } else { format!("W/{version}") })
    };
    tags.iter().map(version).collect::<Option<_>>().map(Based::On).ok_or_else(unreadable)
}

/// The change is based on something that no longer holds.
pub(super) fn overtaken() -> Problem {
    let detail = "what is set for this agent has changed since the version in `If-Match`; read it again, and send \
                  the change with the new `ETag`";
    Problem::new(StatusCode::PRECONDITION_FAILED, detail)
}

fn unreadable() -> Problem {
    Problem::bad_request("`If-Match` is what `ETag` was: a text in double quotes; several with commas in between, or *")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_read_as_they_were_given_out() {
        let on = |versions: &[&str]| Based::On(versions.iter().map(|version| (*version).to_owned()).collect());
        for (tags, expected) in [
            (&[][..], Some(Based::OnAnything)),
            (&["*"], Some(Based::OnAnything)),
            (&["\"a\""], Some(on(&["a"]))),
            (&["\"a\"", "\"b\""], Some(on(&["a", "b"]))),
            (&["W/\"a\""], Some(on(&["W/a"]))),
            (&["a"], None),
            (&["\"a\"", "*"], None),
            (&["\""], None),
        ] {
            assert_eq!(based_on(tags).ok(), expected, "{tags:?}");
        }
    }
}
