//! JSON bodies of requests, read strictly: an order with a slip in it must not be half obeyed.

use axum::body::Bytes;
use axum::extract::{FromRequest, Request};
use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::admin::problem::Problem;

/// The body of a request; an empty one is an empty object.
pub(in crate::admin) struct Body<T>(pub(in crate::admin) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Body<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Body<T>, Problem> {
        let bytes = Bytes::from_request(request, state).await;
        let bytes = bytes.map_err(|rejection| Problem::new(rejection.status(), rejection.body_text()))?;
        let text: &[u8] = if bytes.is_empty() { b"{}" } else { &bytes };
        let read = serde_json::from_slice(text).and_then(|raw: &RawValue| read_object(raw));
        read.map(Body).map_err(|error| Problem::bad_request(format!("the body: {error}")))
    }
}

/// A part of a body that is an object or nothing. A list would otherwise do, as its values in their order.
pub(super) fn object<'de, D: Deserializer<'de>, T: DeserializeOwned>(deserializer: D) -> Result<Option<T>, D::Error> {
    let raw = Box::<RawValue>::deserialize(deserializer)?;
    if raw.get() == "null" { Ok(None) } else { read_object(&raw).map(Some).map_err(D::Error::custom) }
}

fn read_object<T: DeserializeOwned>(raw: &RawValue) -> Result<T, serde_json::Error> {
    if !raw.get().starts_with('{') {
        return Err(serde_json::Error::custom("expected an object: `{…}`"));
    }
    serde_json::from_str(raw.get())
}
