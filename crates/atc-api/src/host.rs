//! The guest ABI's state numbers and the port through which a running flight looks things up.
//!
//! `atc-flight` links the two host imports to whatever implements [`HostCluster`]; `atc-access` implements it over a
//! guard that decides what may be read. Neither knows the other.

use std::future::Future;
use std::pin::Pin;

/// A boxed future that may move between threads: what an async method of a port returns.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// What a host function writes through the guest's state pointer (a little-endian `u32`).
///
/// The numbers are those of the existing tool's ABI and never change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum State {
    /// It worked; the returned buffer is the answer.
    Ok = 0,
    /// Cluster access is off for this run.
    FeatureNotGranted = 1,
    /// Anything without a number of its own, an unknown kind for example.
    Error = 2,
    /// There is no such object.
    NotFound = 3,
    /// The host's own credentials were refused.
    Unauthenticated = 4,
    /// The API server refused, or the object is neither the release's own nor covered by a matcher.
    Forbidden = 5,
}

impl State {
    /// The number the guest sees.
    pub const fn number(self) -> u32 {
        self as u32
    }
}

/// A host function's refusal: the state and the text that the guest gets instead of an answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct HostFailure {
    /// What is written through the state pointer. Never [`State::Ok`].
    pub state: State,
    /// What the returned buffer holds, in words for the flight's author.
    pub message: String,
}

impl HostFailure {
    /// A failure with this state and text.
    pub fn new(state: State, message: impl Into<String>) -> Self {
        Self {
            state,
            message: message.into(),
        }
    }
}

/// The arguments of `k8s_lookup`, as the guest gave them; an absent one is the empty string.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct LookupRequest {
    /// `metadata.name` of the wanted object.
    pub name: String,
    /// Its namespace; empty means the default one for namespaced kinds.
    pub namespace: String,
    /// Its kind, `Deployment` for example.
    pub kind: String,
    /// `apps/v1`, or `v1` for core kinds.
    pub api_version: String,
}

/// The arguments of `k8s_rest_mapping`, as the guest gave them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct RestMappingRequest {
    /// `apps` or `apps/v1`; empty (or `v1`) for core.
    pub api_version: String,
    /// `Deployment` for example.
    pub kind: String,
}

/// What a flight can ask of the cluster. One value serves one run.
pub trait HostCluster: Send + Sync {
    /// The JSON of an object.
    fn lookup(&self, request: LookupRequest) -> BoxFuture<'_, Result<Vec<u8>, HostFailure>>;

    /// JSON with the keys `Group`, `Version`, `Kind`, `Resource` (strings) and `Namespaced` (boolean).
    fn rest_mapping(
        &self,
        request: RestMappingRequest,
    ) -> BoxFuture<'_, Result<Vec<u8>, HostFailure>>;
}
