//! What a user could try next.

use std::error::Error;
use std::fmt;

use atc_engine::EngineError;
use atc_engine::release::cluster::{ClusterError, ErrorKind, LockError, RevisionError, WaitError};

/// An error that knows what may help.
#[derive(Debug)]
pub(crate) struct Hinted {
    message: String,
    hint: String,
    source: Option<Box<dyn Error + Send + Sync>>,
}

impl Hinted {
    pub(crate) fn new(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            hint: hint.into(),
            source: None,
        }
    }

    /// With its cause.
    pub(crate) fn because(mut self, source: impl Error + Send + Sync + 'static) -> Self {
        self.source = Some(Box::new(source));
        self
    }
}

impl fmt::Display for Hinted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for Hinted {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&**self.source.as_ref()?)
    }
}

/// The hints for an error, each once.
pub(super) fn hints(error: &anyhow::Error) -> Vec<String> {
    let mut hints: Vec<String> = Vec::new();
    for cause in error.chain() {
        if let Some(cause) = cause.downcast_ref::<Hinted>() {
            hints.push(cause.hint.clone());
        } else if is_held(cause) {
            hints.push(HELD.to_owned());
        } else if let Some(cause) = cluster_error(cause) {
            hints.extend(of_cluster(cause).map(str::to_owned));
        } else if let Some(EngineError::Refused { step, failures, .. }) =
            cause.downcast_ref::<EngineError>()
        {
            hints.extend(
                failures
                    .iter()
                    .filter_map(|failure| of_refusal(step, failure))
                    .map(str::to_owned),
            );
        }
    }
    let mut seen = std::collections::HashSet::new();
    hints.retain(|hint| seen.insert(hint.clone()));
    hints
}

/// What may help where somebody else is at the release.
const HELD: &str = "wait until it has ended; if it hangs, or its machine is gone, `yoke unlatch RELEASE` frees the release";
/// What may help where a namespace is missing.
const CREATE_NAMESPACE: &str = "`yoke takeoff -create-namespace` creates the namespace of the release; others can stand in \
                                an earlier stage";

fn is_held(cause: &(dyn Error + 'static)) -> bool {
    let engine = cause.downcast_ref::<EngineError>();
    let lock = cause.downcast_ref::<LockError>();
    matches!(engine, Some(EngineError::Held { .. })) || matches!(lock, Some(LockError::Held { .. }))
}

/// What the cluster said, in whatever it was handed up to us.
fn cluster_error<'a>(cause: &'a (dyn Error + 'static)) -> Option<&'a ClusterError> {
    if let Some(error) = cause.downcast_ref::<ClusterError>() {
        return Some(error);
    }
    if let Some(error) = cause.downcast_ref::<Box<ClusterError>>() {
        return Some(error);
    }
    if let Some(LockError::Cluster(error)) = cause.downcast_ref::<LockError>() {
        return Some(error);
    }
    let record = cause
        .downcast_ref::<RevisionError>()
        .or_else(|| Some(cause.downcast_ref::<Box<RevisionError>>()?));
    match (record, cause.downcast_ref::<WaitError>()) {
        (Some(RevisionError::Cluster(error)), _) | (_, Some(WaitError::Cluster(error))) => {
            Some(error)
        }
        _ => None,
    }
}

fn of_cluster(error: &ClusterError) -> Option<&'static str> {
    let refusal = error.refusal();
    match refusal.and_then(|refusal| refusal.missing_namespace()) {
        Some(_) => Some(CREATE_NAMESPACE),
        None => of_kind(error.kind()),
    }
}

fn of_kind(kind: ErrorKind) -> Option<&'static str> {
    Some(match kind {
        ErrorKind::Unavailable | ErrorKind::Timeout => {
            "-kubeconfig and -kube-context choose the cluster, -debug shows its address"
        }
        ErrorKind::Unauthorized => {
            "the credentials of the kubeconfig's user are missing or have run out"
        }
        ErrorKind::Conflict => "`yoke takeoff -force-conflicts` takes fields that others manage",
        _ => return None,
    })
}

/// Several refusals reach us as words only.
fn of_refusal(step: &str, failure: &str) -> Option<&'static str> {
    if step == "ownership" && failure.contains("own") {
        return Some("`yoke takeoff -force-ownership` takes resources that belong to others");
    }
    if failure.contains("conflict") {
        return of_kind(ErrorKind::Conflict);
    }
    if failure.contains("namespaces \"") && failure.contains("not found") {
        return Some(CREATE_NAMESPACE);
    }
    None
}
