//! What can go wrong with the API server, and what it said.

use std::fmt;
use std::time::Duration;

use super::mapping::PathError;
use super::refusal::Refusal;

/// The coarse kind of a [`ClusterError`], for deciding what to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// Other field managers own fields that the apply wants to set (server-side apply without force).
    Conflict,
    /// The object is not the one that was looked at: another uid or resourceVersion.
    Stale,
    /// An object of that name is there already.
    AlreadyExists,
    /// No such object, or no such namespace.
    NotFound,
    /// The API server does not serve that kind.
    NoSuchKind,
    /// The credentials may not do that.
    Forbidden,
    /// The credentials were not accepted.
    Unauthorized,
    /// The object does not fit its schema, or a field of it cannot be changed.
    Invalid,
    /// An admission webhook or policy said no.
    Denied,
    /// The namespace is being deleted.
    Terminating,
    /// The resourceVersion or the continue token is too old.
    Expired,
    /// The request or the answer is larger than allowed.
    TooLarge,
    /// The server asked to come back later, and later than we wait.
    TooManyRequests,
    /// The server cannot be reached or cannot serve now.
    Unavailable,
    /// The call passed its time limit.
    Timeout,
    /// An answer that cannot be understood, or an error of no other kind.
    Unexpected,
}

impl ErrorKind {
    /// Whether the same call may well work a little later without anybody changing anything else.
    pub const fn is_transient(self) -> bool {
        matches!(
            self,
            Self::Stale
                | Self::Terminating
                | Self::Expired
                | Self::TooManyRequests
                | Self::Unavailable
                | Self::Timeout
                | Self::Unexpected
        )
    }
}

/// A call that did not do what it should. Names the object (`namespace/group/version/kind/name`), keeps the server's
/// words, and never holds the content of a Secret.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClusterError {
    /// The API server answered, and the answer is no.
    #[error("cannot {doing} {object}: {refusal}")]
    Refused {
        /// What was tried: `apply`, `read`, …
        doing: &'static str,
        /// The object.
        object: String,
        /// What the server said.
        refusal: Box<Refusal>,
    },
    /// An object that was absent when the caller looked is there now.
    #[error("cannot apply {object}: it was made by somebody else in the meantime")]
    Appeared {
        /// The object.
        object: String,
    },
    /// The kind is not served.
    #[error("no kind \"{kind}\" in \"{api_version}\": the API server does not serve it")]
    NoSuchKind {
        /// Group and version, or the group alone, as it was asked for.
        api_version: String,
        /// The kind.
        kind: String,
    },
    /// Its kind comes with the same output, with a schema that it does not fit.
    #[error("cannot apply {object}: it does not fit the schema that comes with it: {faults}")]
    Misfit {
        /// The object.
        object: String,
        /// Each with the path of its field, `; ` between them.
        faults: String,
    },
    /// No connection, or it broke.
    #[error("cannot {doing} {object}: the API server cannot be reached")]
    Unreachable {
        /// What was tried.
        doing: &'static str,
        /// The object.
        object: String,
        /// What the client said.
        #[source]
        source: Box<kube::Error>,
    },
    /// The time limit of one call passed.
    #[error("cannot {doing} {object}: no answer from the API server within {limit:?}")]
    TimedOut {
        /// What was tried.
        doing: &'static str,
        /// The object.
        object: String,
        /// The limit.
        limit: Duration,
    },
    /// The answer is too large.
    #[error("cannot {doing} {object}: the API server's answer is larger than {limit} bytes")]
    TooLarge {
        /// What was tried.
        doing: &'static str,
        /// The object.
        object: String,
        /// The limit, in bytes.
        limit: usize,
    },
    /// The answer is not what the API promises. What it holds is not repeated here.
    #[error("cannot {doing} {object}: the API server's answer makes no sense: {why}")]
    BadAnswer {
        /// What was tried.
        doing: &'static str,
        /// The object.
        object: String,
        /// What is wrong with it.
        why: String,
    },
    /// A name, namespace, group or version that can be no part of a URL.
    #[error("cannot {doing} {object}: {why}")]
    BadName {
        /// What was tried.
        doing: &'static str,
        /// The object.
        object: String,
        /// Which part, and what is wrong with it.
        why: String,
    },
}

impl ClusterError {
    /// What kind of failure it is.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Refused { refusal, .. } => refusal.kind(),
            Self::Appeared { .. } => ErrorKind::Stale,
            Self::NoSuchKind { .. } => ErrorKind::NoSuchKind,
            Self::Unreachable { source, .. } if matches!(**source, kube::Error::Auth(_)) => {
                ErrorKind::Unauthorized
            }
            Self::Unreachable { .. } => ErrorKind::Unavailable,
            Self::TimedOut { .. } => ErrorKind::Timeout,
            Self::TooLarge { .. } => ErrorKind::TooLarge,
            Self::BadAnswer { .. } => ErrorKind::Unexpected,
            Self::Misfit { .. } | Self::BadName { .. } => ErrorKind::Invalid,
        }
    }

    /// How long the server asked to stay away.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Refused { refusal, .. } => refusal.retry_after(),
            _ => None,
        }
    }

    /// What the server said, when it answered.
    pub fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Refused { refusal, .. } => Some(refusal),
            _ => None,
        }
    }

    pub(super) fn bad_name(
        doing: &'static str,
        object: impl Into<String>,
        error: &PathError,
    ) -> Self {
        Self::BadName {
            doing,
            object: object.into(),
            why: error.to_string(),
        }
    }
}

/// Several failures of one step, in the order of the objects. Printed on one line, `; ` between them.
#[derive(Debug)]
pub struct ClusterErrors(pub Vec<ClusterError>);

impl ClusterErrors {
    /// The kind that decides what to do next: the first one that no waiting heals, else the first.
    pub fn kind(&self) -> ErrorKind {
        let kinds = || self.0.iter().map(ClusterError::kind);
        kinds()
            .find(|kind| !kind.is_transient())
            .or_else(|| kinds().next())
            .unwrap_or(ErrorKind::Unexpected)
    }

    /// The longest time that the server asked to stay away.
    pub fn retry_after(&self) -> Option<Duration> {
        self.0.iter().filter_map(ClusterError::retry_after).max()
    }
}

/// All results, or all failures, in order.
pub fn all<T>(
    results: impl IntoIterator<Item = Result<T, ClusterError>>,
) -> Result<Vec<T>, ClusterErrors> {
    let mut done = Vec::new();
    let mut failed = Vec::new();
    for result in results {
        match result {
            Ok(value) => done.push(value),
            Err(error) => failed.push(error),
        }
    }
    if failed.is_empty() {
        Ok(done)
    } else {
        Err(ClusterErrors(failed))
    }
}

impl fmt::Display for ClusterErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, error) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str("; ")?;
            }
            write!(f, "{error}")?;
            let mut source = std::error::Error::source(error);
            while let Some(cause) = source {
                write!(f, ": {cause}")?;
                source = cause.source();
            }
        }
        Ok(())
    }
}

impl std::error::Error for ClusterErrors {}

impl From<ClusterError> for ClusterErrors {
    fn from(error: ClusterError) -> Self {
        Self(vec![error])
    }
}
