//! How the watches fare: for readiness checks and metrics.

use std::time::Duration;

use crate::dependency::Resource;

/// Why a watch does not get on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FaultKind {
    /// HTTP 410: what it asked for is too old; a new list repairs it.
    Expired,
    /// HTTP 404: the API server does not know the kind.
    NoSuchKind,
    /// HTTP 403: list or watch is not allowed to these credentials.
    Forbidden,
    /// HTTP 401: the credentials were refused.
    Unauthorized,
    /// HTTP 405 or 406, or lists without a version: the kind can't be watched.
    NotWatchable,
    /// No connection, no answer in time, or nothing more came over a connection.
    Unreachable,
    /// The API server failed in another way.
    Server,
    /// The answer could not be read.
    Unreadable,
}

/// What went wrong last.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Fault {
    /// For decisions.
    pub kind: FaultKind,
    /// For people: one line, at most 512 characters.
    pub message: String,
}

/// What a watch is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WatchState {
    /// Reading the list with which it begins.
    Listing,
    /// Waiting for changes.
    Watching,
    /// The API server does not know the kind; it is asked again about every 30 s. Nothing is wrong.
    Gone,
    /// Waiting for the next attempt after a [`Fault`].
    Failing,
}

/// One watch.
#[derive(Clone, Debug)]
pub struct WatchHealth {
    /// What is watched.
    pub resource: Resource,
    /// What it is doing.
    pub state: WatchState,
    /// Whether a list has been complete since the kind was last unknown or forbidden.
    pub synced: bool,
    /// Time since the API server last gave a clear answer, or since the start if it never has. A sound watch that has
    /// nothing to tell is renewed, and so heard of, at least every 50 s. That the kind is not known, can't be watched or
    /// is forbidden is a clear answer too: such a watch is not [well](Self::is_well), but not silent.
    pub silence: Duration,
    /// Failures in a row.
    pub failures: u32,
    /// The last fault, while it lasts.
    pub fault: Option<Fault>,
    /// Objects of this kind that somebody depends on.
    pub tracked: usize,
}

impl WatchHealth {
    /// Whether its tables can be trusted: synced, and heard of within `bound`. A kind that the API server does not
    /// know is well.
    pub fn is_well(&self, bound: Duration) -> bool {
        (self.synced || self.state == WatchState::Gone) && self.silence <= bound
    }
}
