//! One call to the API server: the in-flight limit, the time limit, the size limit, retries.

use std::time::{Duration, Instant};

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, RETRY_AFTER, WARNING};
use http::{HeaderMap, Method, Request};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde_json::Value;

use super::impersonation;
use super::mapping::{Mapping, PathError};
use super::refusal::Refusal;
use super::retry::{self, Failure};
use super::{Cluster, ClusterError, ErrorKind};

/// Largest answer that is read, in bytes. One object is at most about 3 MiB (etcd's limit, as JSON), a page of a list
/// holds at most [`super::read::PAGE`] of them; in practice lists are far smaller.
const MAX_ANSWER: usize = 64 << 20;
/// Most warnings kept of one answer, and the longest text of one, in bytes.
const MAX_WARNINGS: (usize, usize) = (16, 512);

/// What the answer should look like: the whole object.
pub(super) const JSON: &str = "application/json";
/// … or its metadata alone.
pub(super) const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
/// … or a list of metadata.
pub(super) const METADATA_LIST: &str =
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
/// A server-side apply; JSON is YAML too.
pub(super) const APPLY: &str = "application/apply-patch+yaml";
/// A JSON patch.
pub(super) const JSON_PATCH: &str = "application/json-patch+json";
/// A merge patch.
pub(super) const MERGE_PATCH: &str = "application/merge-patch+json";

/// One call, ready to be sent any number of times.
pub(super) struct Call {
    /// `apply`, `read`, …: for messages.
    pub(super) doing: &'static str,
    /// The object or collection: for messages.
    pub(super) object: String,
    /// Whether it is about Secrets.
    pub(super) secret: bool,
    pub(super) method: Method,
    /// Path and query.
    pub(super) url: String,
    pub(super) accept: &'static str,
    pub(super) content_type: Option<&'static str>,
    pub(super) body: Bytes,
}

/// A successful answer.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) warnings: Vec<String>,
    body: Bytes,
}

/// Why one try failed: the error, and whether another try may help.
struct Miss {
    error: ClusterError,
    failure: Failure,
}

impl Call {
    /// A call about one object of a kind.
    pub(super) fn object(
        doing: &'static str,
        method: Method,
        mapping: &Mapping,
        namespace: &str,
        name: &str,
        subresource: &str,
    ) -> Result<Self, ClusterError> {
        let object = mapping.named(namespace, name);
        let path = mapping.object(namespace, name);
        Self::at(
            doing,
            method,
            object,
            mapping.is_secret(),
            path.map(|path| path + subresource),
        )
    }

    /// A call about a collection.
    pub(super) fn collection(
        doing: &'static str,
        method: Method,
        mapping: &Mapping,
        namespace: Option<&str>,
    ) -> Result<Self, ClusterError> {
        let place = namespace.filter(|_| mapping.namespaced).unwrap_or("*");
        let object = mapping.named(place, "*");
        Self::at(
            doing,
            method,
            object,
            mapping.is_secret(),
            mapping.collection(namespace),
        )
    }

    /// A call to any path.
    pub(super) fn at(
        doing: &'static str,
        method: Method,
        object: String,
        secret: bool,
        path: Result<String, PathError>,
    ) -> Result<Self, ClusterError> {
        let url = path.map_err(|error| ClusterError::bad_name(doing, object.clone(), &error))?;
        Ok(Self {
            doing,
            object,
            secret,
            method,
            url,
            accept: JSON,
            content_type: None,
            body: Bytes::new(),
        })
    }

    /// With a query (`a=b&c=d`, already encoded).
    pub(super) fn query(mut self, query: &str) -> Self {
        if !query.is_empty() {
            self.url.push('?');
            self.url.push_str(query);
        }
        self
    }

    /// With a body.
    pub(super) fn body(mut self, content_type: &'static str, body: &Value) -> Self {
        self.content_type = Some(content_type);
        // A `Value` always serialises.
        self.body = Bytes::from(body.to_string());
        self
    }

    /// With another wish for the answer's form.
    pub(super) fn accept(mut self, accept: &'static str) -> Self {
        self.accept = accept;
        self
    }

    /// The error for an answer that makes no sense.
    pub(super) fn nonsense(&self, why: impl Into<String>) -> ClusterError {
        ClusterError::BadAnswer {
            doing: self.doing,
            object: self.object.clone(),
            why: why.into(),
        }
    }
}

impl Answer {
    /// The answer as JSON.
    pub(super) fn json(&self, call: &Call) -> Result<Value, ClusterError> {
        // The parser's message holds a position, never the text.
        serde_json::from_slice(&self.body)
            .map_err(|error| call.nonsense(format!("no JSON: {error}")))
    }
}

impl Cluster {
    /// Makes the call, again where that may help.
    pub(super) async fn call(&self, call: &Call) -> Result<Answer, ClusterError> {
        let started = Instant::now();
        let mut retries = 0;
        loop {
            let miss = match self.attempt(call).await {
                Ok(answer) => return Ok(answer),
                Err(miss) => miss,
            };
            let patience = self.inner.options.patience;
            let Some(wait) = retry::delay(
                miss.failure,
                retries,
                started.elapsed(),
                patience,
                rand::random(),
            ) else {
                return Err(miss.error);
            };
            retries += 1;
            tracing::debug!(object = call.object, doing = call.doing, retries, ?wait, error = %miss.error, "call failed, trying again");
            tokio::time::sleep(wait).await;
        }
    }

    /// What a call is about, and whom it is made as, for messages.
    fn named(&self, call: &Call) -> String {
        match self.account() {
            Some(account) => format!("{} as service account \"{account}\"", call.object),
            None => call.object.clone(),
        }
    }

    /// One try, within the in-flight limit and the time limit.
    async fn attempt(&self, call: &Call) -> Result<Answer, Miss> {
        // The semaphore is never closed; if it were, the call would go on without a limit rather than fail.
        let _permit = self.permits().acquire().await.ok();
        let limit = self.inner.options.call_timeout;
        match tokio::time::timeout(limit, self.send(call)).await {
            Ok(result) => result,
            Err(_) => Err(Miss {
                error: ClusterError::TimedOut {
                    doing: call.doing,
                    object: self.named(call),
                    limit,
                },
                failure: Failure::TimedOut,
            }),
        }
    }

    async fn send(&self, call: &Call) -> Result<Answer, Miss> {
        let fatal = |why: String| Miss {
            error: call.nonsense(why),
            failure: Failure::Final,
        };
        let mut request = Request::builder()
            .method(call.method.clone())
            .uri(&call.url)
            .header(ACCEPT, call.accept);
        if let Some(account) = self.account() {
            request = request.header(impersonation::USER, account.user());
        }
        if let Some(content_type) = call.content_type {
            request = request.header(CONTENT_TYPE, content_type);
        }
        let request = request
            .body(kube::client::Body::from(call.body.clone()))
            .map_err(|error| fatal(format!("no such request can be sent: {error}")))?;
        let response = self
            .inner
            .client
            .send(request)
            .await
            .map_err(|error| unreachable_server(call, error))?;
        let (parts, body) = response.into_parts();
        let body = match Limited::new(body, MAX_ANSWER).collect().await {
            Ok(collected) => collected.to_bytes(),
            Err(error) if error.is::<LengthLimitError>() => {
                let error = ClusterError::TooLarge {
                    doing: call.doing,
                    object: call.object.clone(),
                    limit: MAX_ANSWER,
                };
                return Err(Miss {
                    error,
                    failure: Failure::Final,
                });
            }
            Err(error) => return Err(unreachable_server(call, kube::Error::Service(error))),
        };
        let status = parts.status.as_u16();
        if parts.status.is_success() {
            return Ok(Answer {
                status,
                warnings: warnings(&parts.headers),
                body,
            });
        }
        let refusal = Refusal::read(status, &body, retry_after(&parts.headers), call.secret);
        let failure = match refusal.kind() {
            ErrorKind::TooManyRequests => Failure::Busy(refusal.retry_after()),
            ErrorKind::Unavailable
                if status == 503 || status == 504 || refusal.is_webhook_failure() =>
            {
                Failure::Busy(refusal.retry_after())
            }
            _ => Failure::Final,
        };
        let error = ClusterError::Refused {
            doing: call.doing,
            object: self.named(call),
            refusal: Box::new(refusal),
        };
        Err(Miss { error, failure })
    }
}

/// A failure on the way: worth another try unless our own credentials could not be had.
fn unreachable_server(call: &Call, source: kube::Error) -> Miss {
    let failure = if matches!(source, kube::Error::Auth(_)) {
        Failure::Final
    } else {
        Failure::Connection
    };
    let error = ClusterError::Unreachable {
        doing: call.doing,
        object: call.object.clone(),
        source: Box::new(source),
    };
    Miss { error, failure }
}

/// The `Retry-After` header in seconds; the API server never sends a date.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    headers
        .get(RETRY_AFTER)?
        .to_str()
        .ok()?
        .trim()
        .parse()
        .ok()
        .map(Duration::from_secs)
}

/// The texts of `Warning: 299 - "text"` headers.
fn warnings(headers: &HeaderMap) -> Vec<String> {
    let text = |value: &http::HeaderValue| {
        let value = value.to_str().ok()?;
        let quoted = value
            .split_once('"')
            .and_then(|(_, rest)| rest.rsplit_once('"'))
            .map_or(value, |(text, _)| text);
        Some(quoted.chars().take(MAX_WARNINGS.1).collect())
    };
    headers
        .get_all(WARNING)
        .iter()
        .filter_map(text)
        .take(MAX_WARNINGS.0)
        .collect()
}
