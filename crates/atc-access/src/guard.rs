//! The guard: in which order a look-up is decided, read and recorded. The order is the security rule.

use atc_api::{LookupRequest, ResourceRef, RestMappingRequest, State};
use serde_json::Value;

use crate::arguments::{self, ArgumentError};
use crate::ledger::{MAX_READS, Observed, ReadKind, ReadLedger};
use crate::matcher;
use crate::owner::Owner;
use crate::policy::{Access, AccessPolicy, Denial, Live};
use crate::reader::{ClusterReader, Mapping, ReadFailure};

/// Where a namespaced object is looked for when the guest names no namespace. It is the existing tool's choice, and not
/// the release's namespace.
pub const DEFAULT_NAMESPACE: &str = "default";

/// Why a look-up gives no object. Nothing of an object's content is in it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GuardError {
    /// The run has no access to the cluster.
    #[error(
        "access to the cluster is not granted to this flight; -cluster-access, or clusterAccess: true, grants it"
    )]
    NotGranted,
    /// An argument that cannot be right.
    #[error("the look-up cannot be made")]
    Argument(#[source] ArgumentError),
    /// The kind, or the object, could not be read.
    #[error("the look-up failed")]
    Read(#[source] ReadFailure),
    /// There is no such object.
    #[error("{0} is not found")]
    Absent(ResourceRef),
    /// Not the release's own, and no matcher covers it.
    #[error(
        "forbidden: {} is outside of this release's ownership, and no resource access matcher covers it; \"{}\" would, in -resource-access or resourceAccessMatchers",
        .0, matcher::naming(.0)
    )]
    Foreign(ResourceRef),
    /// Nothing that this release may read, whatever its matchers say.
    #[error(
        "forbidden: {0} is not for this release to read: a Flight reads in its own namespace only, and nothing that gives rights"
    )]
    Beyond(ResourceRef),
    /// The API gave another object than the one that was asked for.
    #[error("the API server answered with another object than {0}")]
    Mixed(ResourceRef),
    /// The run has read too many different objects.
    #[error("this run has read {MAX_READS} different objects, more are not allowed")]
    TooMany,
}

impl GuardError {
    /// The number for the guest.
    pub fn state(&self) -> State {
        match self {
            Self::NotGranted => State::FeatureNotGranted,
            Self::Absent(_) => State::NotFound,
            Self::Foreign(_) | Self::Beyond(_) => State::Forbidden,
            Self::Read(failure) if failure.state != State::Ok => failure.state,
            Self::Read(_) | Self::Argument(_) | Self::Mixed(_) | Self::TooMany => State::Error,
        }
    }
}

/// Reads for one run what that run may read.
///
/// The order of every look-up:
/// 1. the policy is asked before anything else; without access nothing is read, not even where the kind is;
/// 2. the arguments are checked, the kind is resolved; from here on the object is named as the API names it, and one that
///    no matcher could make readable is not read;
/// 3. interest is registered, then the object is read: a change after the read cannot go unseen;
/// 4. the policy decides by the owner that the object says it has;
/// 5. what is granted or missing is recorded; only then the guest gets its answer.
pub struct Guard<R> {
    reader: R,
    policy: AccessPolicy,
    ledger: ReadLedger,
}

impl<R: ClusterReader> Guard<R> {
    /// A guard for one run, with an empty ledger.
    pub fn new(reader: R, policy: AccessPolicy) -> Self {
        Self {
            reader,
            policy,
            ledger: ReadLedger::default(),
        }
    }

    /// What the run has read so far; the handle stays good when the guard is gone.
    pub fn ledger(&self) -> ReadLedger {
        self.ledger.clone()
    }

    /// One object, as the API server gave it.
    pub async fn lookup(&self, request: &LookupRequest) -> Result<Value, GuardError> {
        let asked = asked(request);
        if let Access::Denied(denial) = self.policy.decide(&asked, Live::Unread) {
            return Err(denied(denial, asked));
        }
        check(request)?;
        let mapping = self
            .reader
            .resolve(&request.api_version, &request.kind)
            .await
            .map_err(unresolved)?;
        let target = target(request, &mapping);
        if !self.policy.reaches(&target) {
            return Err(GuardError::Beyond(target));
        }
        if self.ledger.is_full_for(&target) {
            return Err(GuardError::TooMany);
        }
        self.reader.interest(&target, &mapping);
        let object = self.get(&mapping, &target).await?;
        self.settle(target, &mapping, object)
    }

    /// Where a kind is in the API.
    pub async fn rest_mapping(&self, request: &RestMappingRequest) -> Result<Mapping, GuardError> {
        if !self.policy.enabled {
            return Err(GuardError::NotGranted);
        }
        arguments::kind(&request.kind).map_err(GuardError::Argument)?;
        arguments::api_version(&request.api_version).map_err(GuardError::Argument)?;
        self.reader
            .resolve(&request.api_version, &request.kind)
            .await
            .map_err(unresolved)
    }

    /// The object, if there is one; an answer about another object is none.
    async fn get(
        &self,
        mapping: &Mapping,
        target: &ResourceRef,
    ) -> Result<Option<Value>, GuardError> {
        let object = match self
            .reader
            .get(mapping, &target.namespace, &target.name)
            .await
        {
            Ok(object) => object,
            Err(failure) if failure.state == State::NotFound => None,
            Err(failure) => return Err(GuardError::Read(failure)),
        };
        match object {
            Some(object) if !is_about(&object, target) => Err(GuardError::Mixed(target.clone())),
            object => Ok(object),
        }
    }

    /// Decides by the owner, records, answers.
    fn settle(
        &self,
        target: ResourceRef,
        mapping: &Mapping,
        object: Option<Value>,
    ) -> Result<Value, GuardError> {
        let owner = object.as_ref().and_then(Owner::of);
        let live = if object.is_some() {
            Live::Present(owner.as_ref())
        } else {
            Live::Absent
        };
        match (self.policy.decide(&target, live), object) {
            (Access::Granted(kind), Some(object)) => {
                self.record(&target, mapping, kind, Some(&object));
                Ok(object)
            }
            (Access::Missing(kind), None) => {
                self.record(&target, mapping, kind, None);
                Err(GuardError::Absent(target))
            }
            (Access::Denied(denial), _) => Err(denied(denial, target)),
            // No decision about something else than what was read is an answer.
            (Access::Undecided | Access::Granted(_) | Access::Missing(_), _) => {
                Err(GuardError::Foreign(target))
            }
        }
    }

    fn record(
        &self,
        target: &ResourceRef,
        mapping: &Mapping,
        kind: ReadKind,
        object: Option<&Value>,
    ) {
        self.ledger
            .record(target.clone(), mapping, kind, Observed::of(object));
    }
}

/// The object as the guest names it.
fn asked(request: &LookupRequest) -> ResourceRef {
    let group_kind = atc_api::GroupKind::of(&request.api_version, &request.kind);
    ResourceRef {
        namespace: request.namespace.clone(),
        group_kind,
        name: request.name.clone(),
    }
}

/// The object as the API names it.
fn target(request: &LookupRequest, mapping: &Mapping) -> ResourceRef {
    let namespace = match (mapping.namespaced, request.namespace.as_str()) {
        (false, _) => "",
        (true, "") => DEFAULT_NAMESPACE,
        (true, namespace) => namespace,
    };
    ResourceRef::new(namespace, &mapping.group, &mapping.kind, &request.name)
}

fn check(request: &LookupRequest) -> Result<(), GuardError> {
    arguments::name(&request.name)
        .and_then(|()| arguments::namespace(&request.namespace))
        .and_then(|()| arguments::kind(&request.kind))
        .and_then(|()| arguments::api_version(&request.api_version))
        .map_err(GuardError::Argument)
}

/// A kind that cannot be found is an error; "not found" is for objects, and a flight takes it for one that is absent.
fn unresolved(failure: ReadFailure) -> GuardError {
    let state = if failure.state == State::NotFound {
        State::Error
    } else {
        failure.state
    };
    GuardError::Read(ReadFailure { state, ..failure })
}

/// Whether the object bears the name, and the namespace, that was asked for.
fn is_about(object: &Value, target: &ResourceRef) -> bool {
    let text = |key| object["metadata"][key].as_str().unwrap_or_default();
    text("name") == target.name && text("namespace") == target.namespace
}

fn denied(denial: Denial, target: ResourceRef) -> GuardError {
    match denial {
        Denial::NotGranted => GuardError::NotGranted,
        Denial::Foreign => GuardError::Foreign(target),
    }
}

#[cfg(test)]
pub(crate) mod tests;
