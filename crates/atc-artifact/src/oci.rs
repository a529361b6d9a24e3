//! Speaks with registries: the distribution API as far as modules need it, over our own HTTP client, whose bounds and
//! rules for redirects hold here too.

use std::sync::Arc;

use reqwest::header::HeaderMap;
use serde::Deserialize;

use crate::credentials::Credentials;
use crate::error::ArtifactError;
use crate::http::{Answer, Http, read_body};
use crate::lenient;
use crate::reference::OciLocation;
use crate::retry::Failure;

mod challenge;
mod manifest;
mod pull;
mod push;
mod scheme;
mod session;
mod signatures;
mod token;

pub use challenge::Challenge;
pub use manifest::{Blob, Manifest, ManifestError};
pub(crate) use pull::{Pulled, check_blob};
pub use push::{PUSH_TIMEOUT, Pushed, Pusher};
pub use signatures::{
    CosignLayer, CosignSignature, MAX_SIGNATURES, cosign_layers, cosign_referrers,
};

use scheme::Schemes;
use token::Tokens;

/// Largest manifest that is read: 4 MiB, what the distribution specification asks registries to take. Ours have 500
/// bytes.
pub const MAX_MANIFEST: u64 = 4 << 20;
/// How much of a registry's complaint is read: 8 KiB.
const MAX_COMPLAINT: u64 = 8 << 10;
/// How much of it is repeated: 300 letters.
const MAX_WORDS: usize = 300;

/// All registries, and what was learned of them.
pub(crate) struct Registries {
    http: Arc<Http>,
    credentials: Credentials,
    tokens: Tokens,
    schemes: Schemes,
}

impl Registries {
    pub(crate) fn new(http: Arc<Http>, credentials: Credentials) -> Self {
        Self {
            http,
            credentials,
            tokens: Tokens::default(),
            schemes: Schemes::default(),
        }
    }
}

/// The error that an answer is.
async fn refusal(at: &OciLocation, answer: Answer, more: &str) -> Failure {
    let status = answer.response.status().as_u16();
    let headers: HeaderMap = answer.response.headers().clone();
    let said = read_body(answer.response, &answer.url, MAX_COMPLAINT).await;
    let said = said.map(|body| complaint(&body)).unwrap_or_default();
    let words = [said.as_str(), more];
    let words: Vec<&str> = words
        .into_iter()
        .filter(|words| !words.is_empty())
        .collect();
    let error = ArtifactError::Registry {
        location: at.to_string(),
        status,
        message: words.join("; "),
    };
    Failure::answered(error, &headers)
}

fn unusable(at: &OciLocation, reason: &str) -> ArtifactError {
    ArtifactError::Artifact {
        location: at.to_string(),
        reason: one_line(reason),
    }
}

/// What a registry says of an error, in one line.
fn complaint(body: &[u8]) -> String {
    #[derive(Deserialize)]
    struct Body {
        #[serde(deserialize_with = "lenient::or_default")]
        errors: Vec<One>,
    }
    #[derive(Deserialize)]
    struct One {
        #[serde(default, deserialize_with = "lenient::or_default")]
        code: String,
        #[serde(default, deserialize_with = "lenient::or_default")]
        message: String,
    }
    if let Ok(body) = serde_json::from_slice::<Body>(body) {
        let words = body
            .errors
            .iter()
            .map(|one| match (one.code.as_str(), one.message.as_str()) {
                (code, "") => code.to_owned(),
                ("", message) => message.to_owned(),
                (code, message) => format!("{code}: {message}"),
            });
        return one_line(&words.collect::<Vec<_>>().join(", "));
    }
    // Web pages of proxies are of no use to anybody.
    match std::str::from_utf8(body) {
        Ok(text) if !text.trim_start().starts_with(['<', '{']) => one_line(text),
        _ => String::new(),
    }
}

/// Without what would break a line or a terminal, and not too long.
fn one_line(text: &str) -> String {
    let clean = text
        .trim()
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c });
    clean.take(MAX_WORDS).collect()
}

#[cfg(test)]
mod tests;
