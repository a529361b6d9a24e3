//! The words: what an owner depends on, in which role, and the wake that a change of it leads to.

use atc_api::{GroupKind, ResourceRef};
use std::fmt;

use crate::change::{Change, Seen};

/// A kind as it is watched: its group and kind, and where the API server serves it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Resource {
    /// Group and kind; what a watch is known by. Versions of one kind share it: they are the same objects.
    pub group_kind: GroupKind,
    /// `v1`.
    pub version: String,
    /// `deployments`.
    pub plural: String,
}

impl Resource {
    /// A resource from its parts; the group is empty for core.
    pub fn new(
        group: impl Into<String>,
        version: impl Into<String>,
        kind: impl Into<String>,
        plural: impl Into<String>,
    ) -> Self {
        Self {
            group_kind: GroupKind::new(group, kind),
            version: version.into(),
            plural: plural.into(),
        }
    }
}

/// An object that somebody depends on, with what is needed to watch its kind.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Target {
    /// Which object.
    pub reference: ResourceRef,
    /// The version through which it is read: `v1`.
    pub version: String,
    /// `deployments`.
    pub plural: String,
}

impl Target {
    /// An object of a kind that is served in this version under this plural.
    pub fn new(
        reference: ResourceRef,
        version: impl Into<String>,
        plural: impl Into<String>,
    ) -> Self {
        Self {
            reference,
            version: version.into(),
            plural: plural.into(),
        }
    }

    /// Its kind.
    pub fn resource(&self) -> Resource {
        Resource {
            group_kind: self.reference.group_kind.clone(),
            version: self.version.clone(),
            plural: self.plural.clone(),
        }
    }
}

/// All objects of a kind in a namespace that carry a label, whatever they are called: the EndpointSlices of a Service.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Selection {
    /// Their kind.
    pub resource: Resource,
    /// Their namespace.
    pub namespace: String,
    /// The label's key.
    pub label: String,
    /// The label's value.
    pub value: String,
}

impl fmt::Display for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}/{}[{}={}]",
            self.namespace, self.resource.group_kind, self.label, self.value
        )
    }
}

/// What an owner is woken for. A pending wake only ever grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Effect {
    /// Read the live children and write the status; the flight is not run, nothing is applied.
    StatusOnly,
    /// Run the flight again.
    Evaluate,
}

/// Why an owner depends on an object; decides what a change of it leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// The flight looked it up: any newer version means [`Effect::Evaluate`].
    Input,
    /// The run made it.
    Child {
        /// For changes of spec or metadata, when it is gone or another one; for kinds without `metadata.generation`
        /// for any newer version.
        drift: Option<Effect>,
        /// For other newer versions: the status, mostly.
        status: Option<Effect>,
    },
    /// The readiness of a child rests on it: any newer version means [`Effect::StatusOnly`].
    Support,
}

/// What to do on which change: a [`Role`], or several of them on the same object taken together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Effects {
    drift: Option<Effect>,
    status: Option<Effect>,
    /// The owner made it, whatever else it is to it.
    pub(crate) made: bool,
}

impl Effects {
    pub(crate) fn of(role: Role) -> Self {
        match role {
            Role::Input => Self {
                drift: Some(Effect::Evaluate),
                status: Some(Effect::Evaluate),
                made: false,
            },
            Role::Child { drift, status } => Self {
                drift,
                status,
                made: true,
            },
            Role::Support => Self {
                drift: Some(Effect::StatusOnly),
                status: Some(Effect::StatusOnly),
                made: false,
            },
        }
    }

    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            drift: self.drift.max(other.drift),
            status: self.status.max(other.status),
            made: self.made || other.made,
        }
    }

    pub(crate) fn on(self, change: Change) -> Option<Effect> {
        match change {
            Change::Drift => self.drift,
            Change::Status => self.status,
        }
    }
}

/// One entry of what a run depended on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dependency {
    /// The object.
    pub target: Target,
    /// Why.
    pub role: Role,
    /// In which version the run read it or, if it did not look it up, applied it.
    pub seen: Seen,
}

/// Dependence on a [`Selection`]: any change of any of its objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SelectionDependency {
    /// Which objects.
    pub selection: Selection,
    /// What a change leads to.
    pub effect: Effect,
    /// The resourceVersion of the list that the run read; 0 where it did not.
    pub seen: u64,
}

/// What caused a wake: words for logs and timelines. No decision may rest on it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    /// A change of this object.
    Object(ResourceRef),
    /// A change among these.
    Selection(Selection),
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Object(reference) => reference.fmt(f),
            Self::Selection(selection) => selection.fmt(f),
        }
    }
}

/// An owner is due.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wake<O> {
    /// Who.
    pub owner: O,
    /// For what.
    pub effect: Effect,
    /// Because of what; of several causes the first one with this effect.
    pub cause: Cause,
}
