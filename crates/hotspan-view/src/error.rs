//! What can go wrong, at the start and while answering.

use std::io;

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};

use crate::api::Problem;

/// Why the dashboard could not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ViewError {
    /// Nothing can listen there.
    #[error("cannot listen on 127.0.0.1:{port}: {error}")]
    Listen {
        /// The port asked for; 0 for any.
        port: u16,
        /// Why.
        error: io::Error,
    },
    /// The server ended.
    #[error("the server failed: {0}")]
    Serve(#[from] io::Error),
    /// The system gives no random numbers, and without them the address is no secret.
    #[error("no random numbers for the secret address: {0}")]
    Random(String),
    /// A path that was named is not there.
    #[error("cannot open {path}: {error}")]
    Missing {
        /// The path.
        path: String,
        /// Why.
        error: io::Error,
    },
}

impl ViewError {
    /// What the user can do about it.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Listen { .. } => {
                Some("another program may use that port; leave --port out to take a free one")
            }
            _ => None,
        }
    }
}

/// Why a request was not answered, as the page shows it.
#[derive(Debug, Clone)]
pub(crate) struct Refusal {
    pub(crate) status: StatusCode,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
}

impl Refusal {
    pub(crate) fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), hint: None }
    }

    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, message)
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let problem = Problem { message: self.message, hint: self.hint };
        let body = serde_json::to_vec(&problem).unwrap_or_default();
        (self.status, [(header::CONTENT_TYPE, "application/json")], body).into_response()
    }
}
