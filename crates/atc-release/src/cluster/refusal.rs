//! ● The API server's refusal (`Status`), read into words for users, without the content of Secrets.

use std::fmt;
use std::time::Duration;

use serde::Deserialize;

use super::error::ErrorKind;

/// Longest text kept of one message, in characters: an "is invalid" can quote a whole pod template.
const MAX_MESSAGE: usize = 2048;
/// Longest text kept of one cause; its head names the field's value, its tail the reason.
const MAX_CAUSE: usize = 400;
/// Most causes that are told apart.
const MAX_CAUSES: usize = 16;

/// A field that another manager owns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldConflict {
    /// `data.k`.
    pub field: String,
    /// The other field manager.
    pub manager: String,
}

/// One reason of an "is invalid".
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    /// `spec.template`; may be empty.
    pub field: String,
    /// In the server's words; for Secrets only the machine-readable reason.
    pub message: String,
}

/// What the API server said with a status of 400 and more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    kind: ErrorKind,
    code: u16,
    message: String,
    causes: Vec<Cause>,
    conflicts: Vec<FieldConflict>,
    retry_after: Option<Duration>,
    about: About,
}

/// What a 404 is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct About {
    /// The plural, or the kind, as the server names it.
    kind: String,
    name: String,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    kind: String,
    message: String,
    reason: String,
    details: Option<Details>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Details {
    name: String,
    kind: String,
    causes: Option<Vec<StatusCause>>,
    retry_after_seconds: Option<u32>,
}

#[derive(Deserialize, Default, Clone)]
#[serde(default)]
struct StatusCause {
    reason: String,
    message: String,
    field: String,
}

impl Refusal {
    /// Reads an answer with status `code`. `secret` says that the object is a Secret; `header` is the `Retry-After`
    /// header in seconds.
    pub(super) fn read(code: u16, body: &[u8], header: Option<Duration>, secret: bool) -> Self {
        let status: Status = serde_json::from_slice(body).unwrap_or_default();
        let plain = status.kind != "Status";
        let message = if plain {
            String::from_utf8_lossy(&body[..body.len().min(MAX_MESSAGE)])
                .trim()
                .to_owned()
        } else {
            status.message
        };
        let details = status.details.unwrap_or_default();
        let causes = details.causes.unwrap_or_default();
        let kind = classify(code, &status.reason, &message, &details.name, &causes);
        let retry_after = header.or_else(|| {
            details
                .retry_after_seconds
                .filter(|s| *s > 0)
                .map(|s| Duration::from_secs(u64::from(s)))
        });
        let conflicts = causes
            .iter()
            .filter_map(field_conflict)
            .take(MAX_CAUSES)
            .collect();
        let quotes = secret && may_quote(kind);
        Self {
            kind,
            code,
            message: if quotes {
                without_content(code, &status.reason, &message)
            } else {
                shorten(&message, MAX_MESSAGE)
            },
            causes: causes
                .iter()
                .take(MAX_CAUSES)
                .map(|cause| read_cause(cause, quotes))
                .collect(),
            conflicts,
            retry_after,
            about: About {
                kind: details.kind,
                name: details.name,
            },
        }
    }

    /// What kind of refusal it is.
    pub const fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The HTTP status.
    pub const fn code(&self) -> u16 {
        self.code
    }

    /// The server's message, shortened; for a Secret that was found invalid only what cannot quote it.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The reasons of an "is invalid", at most 16.
    pub fn causes(&self) -> &[Cause] {
        &self.causes
    }

    /// The fields that other managers own, at most 16.
    pub fn conflicts(&self) -> &[FieldConflict] {
        &self.conflicts
    }

    /// How long the server asked to stay away.
    pub const fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }

    /// The namespace that does not exist, when that is why the object cannot be.
    pub fn missing_namespace(&self) -> Option<&str> {
        (self.kind == ErrorKind::NotFound && self.about.kind == "namespaces")
            .then_some(self.about.name.as_str())
    }

    /// Whether a field was changed that cannot be changed on an existing object.
    pub fn is_immutable(&self) -> bool {
        self.kind == ErrorKind::Invalid
            && (self.causes.iter().any(|c| says_immutable(&c.message))
                || says_immutable(&self.message))
    }

    /// What helps where a field cannot be changed, if anything does.
    fn way_out(&self) -> &'static str {
        let kind = self.about.kind.to_ascii_lowercase();
        if kind.starts_with("customresourcedefinition") {
            " (it cannot be changed on an existing definition; deleting that would delete all resources of its kind)"
        } else {
            " (it cannot be changed on an existing object: delete the object first, or give the new one another name)"
        }
    }

    /// Whether the server could not call a webhook: its failure, not a verdict on the object.
    pub(super) fn is_webhook_failure(&self) -> bool {
        self.code == 500 && self.message.contains("failed calling webhook")
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.conflicts.is_empty() {
            f.write_str("conflict: ")?;
            return list(
                f,
                self.conflicts
                    .iter()
                    .map(|c| format!("field {} is managed by \"{}\"", c.field, c.manager)),
            );
        }
        let named = self
            .causes
            .iter()
            .any(|c| !c.field.is_empty() || !c.message.is_empty());
        if self.kind == ErrorKind::Invalid && named {
            f.write_str("invalid: ")?;
            list(f, self.causes.iter().map(Cause::to_string))?;
            if self.is_immutable() {
                f.write_str(self.way_out())?;
            }
            return Ok(());
        }
        let word = match self.kind {
            ErrorKind::Forbidden => "forbidden: ",
            ErrorKind::Unauthorized => "unauthorized: ",
            ErrorKind::Invalid => "invalid: ",
            ErrorKind::TooManyRequests => "too many requests: ",
            _ => "",
        };
        f.write_str(word)?;
        if self.message.is_empty() {
            write!(f, "status {}", self.code)
        } else {
            f.write_str(&self.message)
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.field.is_empty() {
            f.write_str(&self.message)
        } else {
            write!(f, "{}: {}", self.field, self.message)
        }
    }
}

fn list(f: &mut fmt::Formatter<'_>, items: impl Iterator<Item = String>) -> fmt::Result {
    for (index, item) in items.enumerate() {
        if index > 0 {
            f.write_str(", ")?;
        }
        f.write_str(&item)?;
    }
    Ok(())
}

/// What the API server says of a URL of a group that it serves and a resource that it does not.
const NO_RESOURCE: &str = "could not find the requested resource";

fn classify(
    code: u16,
    reason: &str,
    message: &str,
    name: &str,
    causes: &[StatusCause],
) -> ErrorKind {
    if causes
        .iter()
        .any(|cause| cause.reason == "NamespaceTerminating")
    {
        return ErrorKind::Terminating;
    }
    if (400..=403).contains(&code) && message.contains(" denied the request")
        || message.contains("denied request: ")
    {
        return ErrorKind::Denied;
    }
    match code {
        401 => ErrorKind::Unauthorized,
        403 => ErrorKind::Forbidden,
        // An unknown URL has no object to name: that is how an unserved kind looks, as a page or as a Status.
        404 if name.is_empty() && (reason != "NotFound" || message.contains(NO_RESOURCE)) => {
            ErrorKind::NoSuchKind
        }
        404 => ErrorKind::NotFound,
        409 if reason == "AlreadyExists" => ErrorKind::AlreadyExists,
        409 if causes
            .iter()
            .any(|cause| cause.reason == "FieldManagerConflict") =>
        {
            ErrorKind::Conflict
        }
        409 => ErrorKind::Stale,
        410 => ErrorKind::Expired,
        413 => ErrorKind::TooLarge,
        // A uid that was sent as a precondition, and is another object's.
        422 if causes.iter().any(|cause| cause.field == "metadata.uid") => ErrorKind::Stale,
        400 | 422 => ErrorKind::Invalid,
        429 => ErrorKind::TooManyRequests,
        500 if message.contains("failed calling webhook") => ErrorKind::Unavailable,
        500 if message.contains("request is too large") || message.contains("larger than max") => {
            ErrorKind::TooLarge
        }
        500 if is_bad_patch(message) => ErrorKind::Invalid,
        502..=504 => ErrorKind::Unavailable,
        _ => ErrorKind::Unexpected,
    }
}

/// Whether a 500 is really about what was sent: that is how server-side apply answers fields which the schema does not
/// have, values of the wrong type, and bad base64.
fn is_bad_patch(message: &str) -> bool {
    let signs = [
        "failed to create typed patch",
        "failed to convert",
        "cannot unmarshal",
        "illegal base64",
        "unable to decode",
        "unable to convert",
    ];
    signs.iter().any(|sign| message.contains(sign))
}

/// Whether a message of this kind can hold parts of the object that was sent.
const fn may_quote(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::Invalid | ErrorKind::Denied | ErrorKind::Unexpected | ErrorKind::TooLarge
    )
}

/// What may be said of a refused Secret: the reason's name and, for a webhook, which one.
fn without_content(code: u16, reason: &str, message: &str) -> String {
    let webhook = message
        .strip_prefix("admission webhook \"")
        .and_then(|rest| rest.split_once('"'))
        .map(|(name, _)| name);
    match webhook {
        Some(name) => format!(
            "admission webhook \"{}\" denied the request (its words are left out, since they may quote the Secret)",
            shorten(name, 253)
        ),
        None => format!(
            "{} (status {code}; the server's words are left out, since they may quote the Secret)",
            if reason.is_empty() { "refused" } else { reason }
        ),
    }
}

fn read_cause(cause: &StatusCause, secret: bool) -> Cause {
    let field = if secret {
        field_without_content(&cause.field)
    } else {
        shorten(&cause.field, MAX_CAUSE)
    };
    let message = if secret {
        if says_immutable(&cause.message) {
            "field is immutable".to_owned()
        } else {
            cause.reason.clone()
        }
    } else {
        shorten(&cause.message, MAX_CAUSE)
    };
    Cause { field, message }
}

/// A path of a Secret's field names keys, never values; anything longer or stranger than a path is dropped.
fn field_without_content(field: &str) -> String {
    let path = |c: char| {
        c.is_ascii_alphanumeric() || matches!(c, '.' | '[' | ']' | '_' | '-' | '/' | '<' | '>')
    };
    if field.len() <= 300 && field.chars().all(path) {
        field.to_owned()
    } else {
        "<field>".to_owned()
    }
}

fn says_immutable(message: &str) -> bool {
    message.contains("field is immutable")
        || message.contains("is immutable")
        || message.contains("may not be changed")
        || message.contains("updates to ") && message.contains("are forbidden")
}

/// The conflict in a cause such as `conflict with "kubectl-edit" using v1` about `.data.k`.
fn field_conflict(cause: &StatusCause) -> Option<FieldConflict> {
    if cause.reason != "FieldManagerConflict" {
        return None;
    }
    let manager = cause
        .message
        .split_once('"')
        .and_then(|(_, rest)| rest.split_once('"'))
        .map_or(cause.message.as_str(), |(name, _)| name);
    let field = cause.field.strip_prefix('.').unwrap_or(&cause.field);
    Some(FieldConflict {
        field: shorten(field, MAX_CAUSE),
        manager: shorten(manager, 128),
    })
}

/// The text, its middle left out when it has more than `max` characters.
fn shorten(text: &str, max: usize) -> String {
    let count = text.chars().count();
    let one_line = |t: String| {
        if t.contains(['\n', '\r']) {
            t.split_whitespace().collect::<Vec<_>>().join(" ")
        } else {
            t
        }
    };
    if count <= max {
        return one_line(text.to_owned());
    }
    let head: String = text.chars().take(max / 2).collect();
    let tail: String = text.chars().skip(count - max / 2).collect();
    one_line(format!("{head} … {tail}"))
}

#[cfg(test)]
mod tests;
