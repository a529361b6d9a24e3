//! Tokens: got from the service that a registry names, kept for as long as they hold.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use reqwest::header::{CONTENT_TYPE, HeaderValue};
use reqwest::{Method, StatusCode};
use serde::Deserialize;
use serde_json::Value;
use tokio::time::Instant;
use url::Url;

use super::{refusal, unusable};
use crate::credentials::Credential;
use crate::error::ArtifactError;
use crate::http::{Http, Request, Upload, read_body};
use crate::memory::lock;
use crate::reference::OciLocation;
use crate::retry::Failure;
use crate::verify::sha256_hex;

/// How long a token holds whose service does not say so: 1 min, as the specification has it.
const DEFAULT_LIFE: Duration = Duration::from_mins(1);
/// The longest that a token is kept: 1 h.
const MAX_LIFE: Duration = Duration::from_hours(1);
/// The largest answer of a token service: 1 MiB; the longest tokens seen have some 10 KiB.
const MAX_ANSWER: u64 = 1 << 20;
/// How many tokens are kept before all are dropped: 1024.
const MAX_TOKENS: usize = 1024;
/// Who we are to a token service.
const CLIENT: &str = "atc-artifact";

/// Tokens by what they were got for and with.
#[derive(Default)]
pub(super) struct Tokens(Mutex<HashMap<String, (HeaderValue, Instant)>>);

/// What a token is wanted for.
pub(super) struct Wanted<'a> {
    pub(super) realm: &'a str,
    pub(super) service: Option<&'a str>,
    pub(super) scope: &'a str,
    pub(super) credential: Option<&'a Credential>,
    /// Whether the service may speak plain http: where the registry does so too.
    pub(super) plain: bool,
}

#[derive(Deserialize)]
struct Answer {
    token: Option<String>,
    access_token: Option<String>,
    /// Seconds; some services write them as a text or a fraction.
    expires_in: Option<Value>,
}

impl Wanted<'_> {
    /// What a token is kept by. The credential is in it, so that nobody gets what was got with another's.
    fn key(&self) -> String {
        let credential = match self.credential {
            None => String::new(),
            Some(Credential::Password { user, password }) => format!("p\0{user}\0{password}"),
            Some(Credential::Identity(token)) => format!("i\0{token}"),
            Some(Credential::Token(token)) => format!("t\0{token}"),
        };
        let service = self.service.unwrap_or_default();
        let all = format!("{}\0{service}\0{}\0{credential}", self.realm, self.scope);
        sha256_hex(all.as_bytes())
    }

    fn request(&self, at: &OciLocation) -> Result<Request, ArtifactError> {
        let mut url = Url::parse(self.realm)
            .map_err(|_| unusable(at, "the address of its token service is no URL"))?;
        if url.scheme() != "https" && !(self.plain && url.scheme() == "http") {
            return Err(unusable(
                at,
                "its token service does not speak https, as the registry itself does",
            ));
        }
        let service = self.service.map(|service| ("service", service));
        let common = service.into_iter().chain([("scope", self.scope)]);
        let mut request = Request {
            insecure: at.is_insecure(),
            ..Request::get(url.clone())
        };
        match self.credential {
            Some(Credential::Identity(token)) => {
                let form: String = url::form_urlencoded::Serializer::new(String::new())
                    .extend_pairs([
                        ("grant_type", "refresh_token"),
                        ("client_id", CLIENT),
                        ("refresh_token", token),
                    ])
                    .extend_pairs(common)
                    .finish();
                request.method = Method::POST;
                request.headers.insert(
                    CONTENT_TYPE,
                    HeaderValue::from_static("application/x-www-form-urlencoded"),
                );
                request.body = Some(Upload::new(Bytes::from(form), None));
            }
            credential => {
                url.query_pairs_mut()
                    .extend_pairs(common)
                    .append_pair("client_id", CLIENT);
                request.url = url;
                request.authorization = credential.map(|one| basic(at, one)).transpose()?;
            }
        }
        Ok(request)
    }
}

impl Tokens {
    /// A token that was got before and should still hold.
    pub(super) fn kept(&self, wanted: &Wanted<'_>) -> Option<HeaderValue> {
        let all = lock(&self.0);
        let (token, until) = all.get(&wanted.key())?;
        (Instant::now() < *until).then(|| token.clone())
    }

    /// Gets a new one.
    pub(super) async fn get(
        &self,
        http: &Http,
        at: &OciLocation,
        wanted: &Wanted<'_>,
    ) -> Result<HeaderValue, Failure> {
        let mut answer = http.send(&wanted.request(at)?).await?;
        let status = answer.response.status();
        if let Some(Credential::Identity(token)) = wanted.credential
            && [StatusCode::NOT_FOUND, StatusCode::METHOD_NOT_ALLOWED].contains(&status)
        {
            // A service that does not know the way of OAuth2 may take it as a password.
            let credential = Credential::Password {
                user: String::new(),
                password: token.clone(),
            };
            let other = Wanted {
                credential: Some(&credential),
                ..*wanted
            };
            answer = http.send(&other.request(at)?).await?;
        }
        if !answer.response.status().is_success() {
            let more = if wanted.credential.is_some() {
                "its token service refuses the credentials"
            } else {
                "its token service gives no token without credentials"
            };
            return Err(refusal(at, answer, more).await);
        }
        let body = read_body(answer.response, &answer.url, MAX_ANSWER).await?;
        let no_token = || unusable(at, "the answer of its token service holds no token");
        let answer: Answer = serde_json::from_slice(&body).map_err(|_| no_token())?;
        let some = |token: Option<String>| token.filter(|token| !token.is_empty());
        let token = some(answer.token)
            .or_else(|| some(answer.access_token))
            .ok_or_else(no_token)?;
        let token = bearer(&token).ok_or_else(no_token)?;
        // A little less, so that it holds when it arrives.
        let told = answer.expires_in.as_ref().and_then(seconds);
        let life = told.unwrap_or(DEFAULT_LIFE).min(MAX_LIFE).mul_f64(0.8);
        let mut all = lock(&self.0);
        if all.len() >= MAX_TOKENS {
            all.clear();
        }
        all.insert(wanted.key(), (token.clone(), Instant::now() + life));
        Ok(token)
    }
}

/// How long a token holds; nothing if that is no time.
fn seconds(told: &Value) -> Option<Duration> {
    let seconds = match told {
        Value::String(text) => text.trim().parse().ok()?,
        other => other.as_f64()?,
    };
    if seconds > MAX_LIFE.as_secs_f64() {
        return Some(MAX_LIFE);
    }
    Duration::try_from_secs_f64(seconds).ok()
}

/// User and password as a header.
pub(super) fn basic(
    at: &OciLocation,
    credential: &Credential,
) -> Result<HeaderValue, ArtifactError> {
    let Credential::Password { user, password } = credential else {
        return Err(unusable(
            at,
            "it asks for a user and a password, and there is only a token",
        ));
    };
    let mut value = HeaderValue::try_from(format!(
        "Basic {}",
        STANDARD.encode(format!("{user}:{password}"))
    ))
    .map_err(|_| unusable(at, "the credentials for it fit in no header"))?;
    value.set_sensitive(true);
    Ok(value)
}

/// A token as a header.
pub(super) fn bearer(token: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::try_from(format!("Bearer {token}")).ok()?;
    value.set_sensitive(true);
    Some(value)
}
