//! A body that says nothing: what is wished is in the path and the query.

use axum::body::Bytes;
use axum::extract::{FromRequest, Request};
use serde::Deserialize;

use crate::problem::Problem;

/// None, or an empty object. A field would be read by no code, so it is refused.
pub struct NoFields;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Empty {}

impl<S: Send + Sync> FromRequest<S> for NoFields {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let body = Bytes::from_request(request, state).await;
        let body = body.map_err(|error| Problem::invalid(format!("the body cannot be read: {error}")))?;
        if body.iter().all(u8::is_ascii_whitespace) {
            return Ok(Self);
        }
        match serde_json::from_slice::<Empty>(&body) {
            Ok(_) => Ok(Self),
            Err(error) => {
                let why = "this request takes no body; put its parameters into the query";
                Err(Problem::invalid(format!("{why}: {error}")))
            }
        }
    }
}
