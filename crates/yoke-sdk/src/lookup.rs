//! Asks the host for objects of the cluster.

use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::abi::{self, Answer, State};

/// A type that stands for one kind of resource, so that it can be looked up without naming the kind.
///
/// ```
/// use yoke_sdk::Resource;
///
/// #[derive(serde::Deserialize)]
/// struct Secret {
///     data: std::collections::BTreeMap<String, String>,
/// }
///
/// impl Resource for Secret {
///     const API_VERSION: &'static str = "v1";
///     const KIND: &'static str = "Secret";
/// }
/// ```
pub trait Resource: DeserializeOwned {
    /// `apps/v1` for example, or `v1` for core kinds.
    const API_VERSION: &'static str;
    /// `Deployment` for example.
    const KIND: &'static str;
}

/// How the API server serves a kind.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Mapping {
    /// The group, empty for core.
    pub group: String,
    /// The version, `v1` for example.
    pub version: String,
    /// The kind.
    pub kind: String,
    /// The plural that stands in URLs, `deployments` for example.
    pub resource: String,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
}

/// Why a look-up gave nothing. That an object does not exist is no error.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LookupError {
    /// Whoever runs this flight has not allowed look-ups (`clusterAccess`, `-cluster-access`).
    #[error("{0}")]
    FeatureNotGranted(String),
    /// The object belongs to somebody else and no matcher allows it, or the API server refused.
    #[error("{0}")]
    Forbidden(String),
    /// The host's own credentials were refused.
    #[error("{0}")]
    Unauthenticated(String),
    /// Anything else, for example a kind that the cluster does not know.
    #[error("{0}")]
    Other(String),
    /// The answer does not fit the type.
    #[error("cannot read {kind} \"{name}\" as wanted")]
    Unreadable {
        /// The kind that was asked for.
        kind: String,
        /// The name, with the namespace in front if one was given.
        name: String,
        /// What does not fit, and where.
        #[source]
        source: serde_json::Error,
    },
    /// This program does not run inside a flight host.
    #[error("not inside a flight host: there is nobody to ask")]
    OutsideHost,
}

/// The object of this type with this name, or `None` if it does not exist.
///
/// Where it is allowed, the flight runs again when the object changes, appears or goes. An empty namespace means `default`
/// for kinds that live in namespaces; it is no way to say "mine" (see [`crate::namespace`]).
///
/// # Errors
/// See [`LookupError`]; that the object does not exist is none.
pub fn lookup<T: Resource>(namespace: &str, name: &str) -> Result<Option<T>, LookupError> {
    lookup_as(T::API_VERSION, T::KIND, namespace, name)
}

/// As [`lookup`], for a kind that is named by words: with [`crate::Value`] as type for anything at all, or with types of
/// another crate, which cannot be a [`Resource`].
///
/// # Errors
/// As [`lookup`].
pub fn lookup_as<T: DeserializeOwned>(
    api_version: &str,
    kind: &str,
    namespace: &str,
    name: &str,
) -> Result<Option<T>, LookupError> {
    let full = if namespace.is_empty() {
        name.to_owned()
    } else {
        format!("{namespace}/{name}")
    };
    read(
        &abi::lookup(name, namespace, kind, api_version),
        kind,
        &full,
    )
}

/// How the API server serves a kind. Takes `apps` or `apps/v1`, and nothing for core kinds.
///
/// # Errors
/// As [`lookup`]; an unknown kind is [`LookupError::Other`].
pub fn rest_mapping(api_version: &str, kind: &str) -> Result<Mapping, LookupError> {
    let answer = abi::rest_mapping(api_version, kind);
    let unknown = || LookupError::Other(in_words(&answer));
    read(&answer, kind, api_version)?.ok_or_else(unknown)
}

fn read<T: DeserializeOwned>(
    answer: &Answer,
    kind: &str,
    name: &str,
) -> Result<Option<T>, LookupError> {
    let words = || in_words(answer);
    match State::from(answer.state) {
        State::Ok => serde_json::from_slice(&answer.body)
            .map(Some)
            .map_err(|source| LookupError::Unreadable {
                kind: kind.to_owned(),
                name: name.to_owned(),
                source,
            }),
        State::NotFound => Ok(None),
        State::FeatureNotGranted => Err(LookupError::FeatureNotGranted(words())),
        State::Unauthenticated => Err(LookupError::Unauthenticated(words())),
        State::Forbidden => Err(LookupError::Forbidden(words())),
        State::Error => Err(LookupError::Other(words())),
        State::OutsideHost => Err(LookupError::OutsideHost),
    }
}

fn in_words(answer: &Answer) -> String {
    String::from_utf8_lossy(&answer.body).into_owned()
}

#[cfg(test)]
mod tests;
