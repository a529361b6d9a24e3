//! What a guest may ask for at all: names that can be part of a URL of the API and nothing else.
//!
//! The API server decodes a path before it routes, so a name with a slash in it would be another resource than the one
//! that was decided about. Such texts are refused before anything is looked at.

use std::fmt;

/// Longest name of an object, in bytes; Kubernetes' own bound.
pub const MAX_NAME: usize = 253;
/// Longest namespace, in bytes; Kubernetes' own bound.
pub const MAX_NAMESPACE: usize = 63;
/// Longest kind, in bytes; Kubernetes' own bound.
pub const MAX_KIND: usize = 63;
/// Longest API version, in bytes: a group, a slash and a version.
pub const MAX_API_VERSION: usize = 253 + 1 + 63;

/// An argument of a host function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Argument {
    /// `metadata.name`.
    Name,
    /// Its namespace.
    Namespace,
    /// The kind.
    Kind,
    /// A group or an API version.
    ApiVersion,
}

impl fmt::Display for Argument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Name => "name",
            Self::Namespace => "namespace",
            Self::Kind => "kind",
            Self::ApiVersion => "apiVersion",
        })
    }
}

/// Why an argument cannot be right. Its text is quoted only where it is short enough.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ArgumentError {
    /// It must not be empty.
    #[error("the {0} is empty")]
    Empty(Argument),
    /// It is longer than Kubernetes allows.
    #[error("the {argument} has {length} bytes, {limit} is the most")]
    TooLong {
        /// Which.
        argument: Argument,
        /// Its length in bytes.
        length: usize,
        /// The most.
        limit: usize,
    },
    /// It holds characters, or has a form, that no such name can have.
    #[error("{text:?} is no {argument}")]
    Malformed {
        /// Which.
        argument: Argument,
        /// What the guest gave.
        text: String,
    },
}

/// Checks a name: a path segment, as Kubernetes itself demands of the laxest kinds.
pub fn name(text: &str) -> Result<(), ArgumentError> {
    check(Argument::Name, text, MAX_NAME, is_segment)
}

/// Checks a namespace; the empty one is in order.
pub fn namespace(text: &str) -> Result<(), ArgumentError> {
    if text.is_empty() {
        return Ok(());
    }
    check(Argument::Namespace, text, MAX_NAMESPACE, is_segment)
}

/// Checks a kind.
pub fn kind(text: &str) -> Result<(), ArgumentError> {
    let word = |text: &str| text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    check(Argument::Kind, text, MAX_KIND, word)
}

/// Checks a group or an API version: `apps`, `apps/v1`, `v1`; the empty one is in order.
pub fn api_version(text: &str) -> Result<(), ArgumentError> {
    if text.is_empty() {
        return Ok(());
    }
    let word = |part: &str| {
        is_segment(part)
            && part
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.'))
    };
    let form = |text: &str| text.split('/').count() <= 2 && text.split('/').all(word);
    check(Argument::ApiVersion, text, MAX_API_VERSION, form)
}

fn is_segment(text: &str) -> bool {
    let bad = |c: char| matches!(c, '/' | '%') || c.is_control();
    !text.is_empty() && text != "." && text != ".." && !text.contains(bad)
}

fn check(
    argument: Argument,
    text: &str,
    limit: usize,
    form: impl FnOnce(&str) -> bool,
) -> Result<(), ArgumentError> {
    if text.is_empty() {
        return Err(ArgumentError::Empty(argument));
    }
    if text.len() > limit {
        return Err(ArgumentError::TooLong {
            argument,
            length: text.len(),
            limit,
        });
    }
    if form(text) {
        Ok(())
    } else {
        Err(ArgumentError::Malformed {
            argument,
            text: text.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests;
