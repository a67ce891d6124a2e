//! JSON bodies of requests, read strictly: an order with a slip in it must not be half obeyed.

use axum::body::Bytes;
use axum::extract::{FromRequest, Request};
use serde::de::DeserializeOwned;

use crate::admin::problem::Problem;

/// The body of a request; an empty one is an empty object.
pub(in crate::admin) struct Body<T>(pub(in crate::admin) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Body<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Body<T>, Problem> {
        let bytes = Bytes::from_request(request, state).await;
        let bytes = bytes.map_err(|rejection| Problem::bad_request(rejection.body_text()))?;
        let text: &[u8] = if bytes.is_empty() { b"{}" } else { &bytes };
        serde_json::from_slice(text).map(Body).map_err(|error| Problem::bad_request(format!("the body: {error}")))
    }
}
