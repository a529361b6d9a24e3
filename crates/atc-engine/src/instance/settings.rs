//! How instances are evaluated, and what each is to its flight.

use std::any::TypeId;
use std::time::Duration;

use atc_access::Matchers;
use atc_api::Account;
use atc_api::airway::AirwayMode;
use atc_api::settings::DEFAULT_HISTORY_CAP;
use atc_flight::Bounds;
use atc_release::cluster::Mapping;
use atc_release::plan::PruneOptions;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::Resource;
use kube::core::ClusterResourceScope;

/// How the instances of one kind are evaluated.
#[derive(Clone, Debug)]
pub struct InstanceSettings {
    /// The stored version of the kind.
    pub mapping: Mapping,
    /// What owns each instance, an Airway for example.
    pub owner: Option<OwnerReference>,
    /// What the object is to its flight.
    pub subject: Subject,
    /// Whether the flight may look things up at all.
    pub cluster_access: bool,
    /// What it may look up besides its own.
    pub matchers: Matchers,
    /// Bounds of a run.
    pub bounds: Bounds,
    /// What changes of children and of what was looked up do.
    pub mode: AirwayMode,
    /// Evaluate again every so often.
    pub drift_interval: Option<Duration>,
    /// Whether whoever wrote the object sets these bounds himself.
    pub limited: bool,
    /// Revisions to keep; `None` keeps all.
    pub history_cap: Option<usize>,
    /// What else is deleted, not only let go of.
    pub prune: PruneOptions,
}

impl InstanceSettings {
    /// The instances of this kind as an Airway that says nothing has them: mode `standard`, no look-ups, the usual bounds and
    /// history cap, and the whole object as input.
    pub fn of<K>() -> Self
    where
        K: Resource<DynamicType = (), Scope: 'static>,
    {
        let cluster_scoped = TypeId::of::<K::Scope>() == TypeId::of::<ClusterResourceScope>();
        Self {
            mapping: Mapping {
                group: K::group(&()).into_owned(),
                version: K::version(&()).into_owned(),
                kind: K::kind(&()).into_owned(),
                plural: K::plural(&()).into_owned(),
                namespaced: !cluster_scoped,
            },
            owner: None,
            subject: Subject::Instance {
                object_path: Vec::new(),
            },
            cluster_access: false,
            matchers: Matchers::default(),
            bounds: Bounds::default(),
            mode: AirwayMode::default(),
            drift_interval: None,
            limited: false,
            history_cap: Some(DEFAULT_HISTORY_CAP),
            prune: PruneOptions::default(),
        }
    }
}

/// What an object is to its flight, and how its release is named.
#[derive(Clone, Debug)]
pub enum Subject {
    /// An instance of a kind that the flight serves: its input. Its release is `<group>.<Kind>[.<namespace>].<name>`.
    Instance {
        /// Path inside the object of what becomes the flight's input; empty for the whole object.
        object_path: Vec<String>,
    },
    /// A Flight or ClusterFlight: it holds the input. Its release bears its name and is recorded under
    /// `<namespace>/<Kind.group>:<name>`; its status has the inventory.
    Flight {
        /// The flight's input.
        input: Vec<u8>,
        /// Its arguments after `argv[0]`.
        args: Vec<String>,
        /// What it may do in the cluster.
        authority: Authority,
    },
}

/// What the release of a Flight may do in the cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Authority {
    /// Make and read namespaced objects of its own namespace, and none that gives rights. The default.
    #[default]
    Confined,
    /// What a service account may: all is looked up, applied and removed as that.
    Account(Account),
    /// What we may ourselves.
    Ours,
}

impl Subject {
    pub(super) fn is_flight(&self) -> bool {
        matches!(self, Self::Flight { .. })
    }

    pub(super) fn is_confined(&self) -> bool {
        let confined = Authority::Confined;
        matches!(self, Self::Flight { authority, .. } if *authority == confined)
    }

    /// The account that its release acts as.
    pub(super) fn account(&self) -> Option<&Account> {
        match self {
            Self::Flight {
                authority: Authority::Account(account),
                ..
            } => Some(account),
            _ => None,
        }
    }
}
