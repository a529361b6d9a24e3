//! What can go wrong with one instance, and what follows from it.

use std::time::Duration;

use atc_access::Read;
use atc_api::{Account, ResourceRef};
use atc_artifact::{ArtifactError, PolicyError};
use atc_flight::FlightError;
use atc_readiness::BookError;
use atc_release::cluster::{ClusterError, EstablishError, RevisionError, WaitError};
use atc_release::decorate::DecorateError;
use atc_release::desired::DesiredError;
use atc_release::drift::DriftError;
use atc_release::history::HistoryError;

use crate::disposition::Disposition;

/// The result of a step that may fail.
pub type Result<T, E = EngineError> = std::result::Result<T, E>;

/// Why an evaluation, a takeoff or a mayday failed. Variants are steps.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// wasmtime could not be set up.
    #[error("can't set up the WebAssembly runtime")]
    Runtime {
        /// Why.
        #[source]
        source: Box<FlightError>,
    },
    /// A location could not be read as one.
    #[error("\"{text}\" is no location of a module: {why}")]
    Location {
        /// As given, without credentials.
        text: String,
        /// What is wrong.
        why: String,
    },
    /// The module could not be fetched or is not what was meant.
    #[error("can't get module \"{url}\"")]
    Fetch {
        /// Where from.
        url: String,
        /// Why.
        #[source]
        source: Box<ArtifactError>,
    },
    /// The module may not run here.
    #[error("can't use module \"{url}\"")]
    Policy {
        /// Where from.
        url: String,
        /// Why.
        #[source]
        source: Box<PolicyError>,
    },
    /// The bytes are no module that can run here.
    #[error("can't load module \"{url}\"")]
    Compile {
        /// Where from.
        url: String,
        /// Why.
        #[source]
        source: Box<FlightError>,
    },
    /// The run was ended: a trap, a bound, a broken ABI.
    #[error("the flight failed")]
    Flight {
        /// Why.
        #[source]
        source: Box<FlightError>,
        /// What it had looked up by then.
        reads: Vec<Read>,
    },
    /// The flight exited with a code that is not 0.
    #[error("the flight failed with exit_code({code}): {}", if stderr.is_empty() { "it wrote nothing to stderr" } else { stderr })]
    Exit {
        /// The code.
        code: i32,
        /// The tail of its stderr.
        stderr: String,
    },
    /// Resources of a program's own can't be written as JSON.
    #[error("can't read these resources")]
    Resources {
        /// Why.
        #[source]
        source: serde_json::Error,
    },
    /// What the flight printed could not be read as resources.
    #[error("can't read the flight's output")]
    Output {
        /// Why.
        #[source]
        source: Box<DesiredError>,
    },
    /// The account that the release acts as is not there.
    #[error(
        "service account \"{0}\" does not exist: make it, or name another one in spec.serviceAccountName"
    )]
    NoAccount(Account),
    /// The resources may not be made in this way.
    #[error("can't make these resources")]
    Decorate {
        /// Why.
        #[source]
        source: Box<DecorateError>,
    },
    /// The record can't hold it, or does not allow it.
    #[error("can't record release \"{release}\"")]
    History {
        /// Its name.
        release: String,
        /// Why.
        #[source]
        source: Box<HistoryError>,
    },
    /// The record can't be read or written.
    #[error("can't read or write the record of release \"{release}\"")]
    Record {
        /// Its name.
        release: String,
        /// Why.
        #[source]
        source: Box<RevisionError>,
    },
    /// A call to the API server failed.
    #[error("the cluster refused")]
    Cluster {
        /// Why.
        #[source]
        source: Box<ClusterError>,
    },
    /// A difference can't be shown.
    #[error("can't show what differs")]
    Diff {
        /// Why.
        #[source]
        source: DriftError,
    },
    /// Objects were refused.
    #[error("{}", refused(step, failures))]
    Refused {
        /// `dry run`, `apply`, `ownership`, `prune`.
        step: &'static str,
        /// One line an object.
        failures: Vec<String>,
    },
    /// What is removed is not gone yet. What it waits for goes on.
    #[error("prune: {0}")]
    Going(String),
    /// A kind that the output defines is not served.
    #[error("a kind of this output can't be used")]
    Served {
        /// Why.
        #[source]
        source: Box<EstablishError>,
    },
    /// A stage did not get ready in time, or something in it failed for good.
    #[error("stage {stage} of {stages} is not ready")]
    Stage {
        /// From 1.
        stage: usize,
        /// How many there are.
        stages: usize,
        /// Objects and reasons.
        #[source]
        source: Box<WaitError>,
    },
    /// The rules of readiness that the cluster has do not fit.
    #[error("can't load the rules of readiness")]
    Readiness {
        /// Which, and why.
        #[source]
        source: BookError,
    },
    /// Somebody else works on the release.
    #[error(
        "release \"{release}\" in namespace \"{namespace}\" is held by {} since {since}, and was not let go within {waited:?}",
        if who.is_empty() { "another process" } else { who }
    )]
    Held {
        /// The release.
        release: String,
        /// Its namespace.
        namespace: String,
        /// Who, as the holder says.
        who: String,
        /// Since when, as the holder says.
        since: String,
        /// How long it was waited for.
        waited: Duration,
    },
    /// Somebody ended our claim on the release.
    #[error("the claim on release \"{release}\" was ended by somebody else: stopped where it was")]
    Lost {
        /// The release.
        release: String,
    },
    /// Our claim on the release ran out.
    #[error(
        "the claim on release \"{release}\" could not be renewed for {lease:?}: stopped where it was"
    )]
    Unrenewed {
        /// The release.
        release: String,
        /// How long a claim counts.
        lease: Duration,
    },
    /// The run of a flight was ended, since its instance is another by now, or goes.
    #[error("the flight was ended: its instance was changed or deleted meanwhile")]
    Recalled,
    /// It was told to stop.
    #[error("interrupted")]
    Stopped,
    /// There is no such release.
    #[error("there is no release \"{release}\" in namespace \"{namespace}\"")]
    NoRelease {
        /// The release.
        release: String,
        /// The namespace.
        namespace: String,
    },
    /// There is no such revision.
    #[error("release \"{release}\" has no revision {revision}: it has {} to {revisions}", 1.min(*revisions))]
    NoRevision {
        /// The release.
        release: String,
        /// What was asked for.
        revision: usize,
        /// How many there are.
        revisions: usize,
    },
    /// The revision is the active one, and nothing was interrupted since.
    #[error("revision {revision} of release \"{release}\" is the active one already")]
    AlreadyActive {
        /// The release.
        release: String,
        /// What was asked for.
        revision: usize,
    },
    /// An instance would wait for what it hangs from, and that for it.
    #[error("the output has {0}, which owns this instance: each would wait for the other for ever")]
    Cycle(ResourceRef),
    /// A custom resource lacks what every stored object has.
    #[error("the object has no {0}")]
    Incomplete(&'static str),
}

fn refused(step: &str, failures: &[String]) -> String {
    match failures {
        [one] => format!("{step}: {one}"),
        many => format!(
            "{step}: {} objects were refused: {}",
            many.len(),
            many.join("; ")
        ),
    }
}

/// What an error means for what comes next, apart from its words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// It may pass.
    Retry,
    /// Only a change of the input mends it.
    Terminal,
}

impl EngineError {
    pub(crate) fn cluster(source: ClusterError) -> Self {
        Self::Cluster {
            source: Box::new(source),
        }
    }

    pub(crate) fn record(release: &str, source: RevisionError) -> Self {
        Self::Record {
            release: release.to_owned(),
            source: Box::new(source),
        }
    }

    /// What had been looked up by the time the run broke.
    pub fn reads(&self) -> &[Read] {
        match self {
            Self::Flight { reads, .. } => reads,
            _ => &[],
        }
    }

    /// What this error means for what comes next.
    ///
    /// Nearly all may pass: a flight may fail for what it looks up, a server for its load. What is written into the
    /// object itself does not.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Location { .. } | Self::Incomplete(_) => ErrorKind::Terminal,
            Self::Policy { source, .. } if !source.may_pass() => ErrorKind::Terminal,
            _ => ErrorKind::Retry,
        }
    }

    /// When to come back after this error.
    pub fn disposition(&self) -> Disposition {
        match self.kind() {
            ErrorKind::Retry => Disposition::Retry,
            ErrorKind::Terminal => Disposition::Terminal,
        }
    }

    /// The error and its causes, and what a flight that was ended had written to stderr.
    pub fn chain(&self) -> String {
        let text = chain(self);
        match self {
            Self::Flight { source, .. } if !source.stderr().trim().is_empty() => {
                format!("{text}; it wrote to stderr: {}", source.stderr().trim())
            }
            _ => text,
        }
    }
}

/// An error and its causes, joined by `: `, in one line. What a cause says is not said again by its parent.
pub fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut parts = Vec::new();
    let mut next = Some(error);
    while let Some(error) = next {
        // Kube would add the whole answer as Rust prints it.
        if let Some(kube::Error::Api(status)) = error.downcast_ref() {
            parts.push(status.message.clone());
            break;
        }
        next = error.source();
        let text = error.to_string();
        let cause = next.map(ToString::to_string).unwrap_or_default();
        let own = text.strip_suffix(&cause).unwrap_or(&text);
        let own = own.trim_end().trim_end_matches(':').trim_end();
        if !own.is_empty() {
            parts.push(own.to_owned());
        }
    }
    parts.join(": ")
}

#[cfg(test)]
mod tests {
    use kube::core::Status;

    use super::*;

    #[derive(Debug, thiserror::Error)]
    enum Sample {
        #[error("cannot ask")]
        Plain(#[source] Box<Sample>),
        #[error("cannot ask: {0}")]
        Repeats(#[source] Box<Sample>),
        #[error(transparent)]
        Thin(Box<Sample>),
        #[error("no")]
        Last,
        #[error("it answered: {0}")]
        Kube(#[source] kube::Error),
    }

    #[test]
    fn each_cause_is_said_once() {
        use Sample::{Kube, Last, Plain, Repeats, Thin};
        let answer = || kube::Error::Api(Status::failure("not you", "Forbidden").boxed());
        for (error, expect) in [
            (Last, "no"),
            (Plain(Last.into()), "cannot ask: no"),
            (Repeats(Last.into()), "cannot ask: no"),
            (Thin(Plain(Last.into()).into()), "cannot ask: no"),
            (
                Repeats(Repeats(Last.into()).into()),
                "cannot ask: cannot ask: no",
            ),
            (Kube(answer()), "it answered: not you"),
            (
                Plain(Kube(answer()).into()),
                "cannot ask: it answered: not you",
            ),
        ] {
            assert_eq!(chain(&error), expect, "{error:?}");
        }
    }
}
