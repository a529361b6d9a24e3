//! Makes objects of a release out of what a flight printed: marks, target namespace, owner references.

use std::collections::{BTreeMap, BTreeSet};

use atc_api::{GroupKind, ResourceRef, names};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;

use crate::object::{Object, Stages};
use crate::ownership::Owner;

/// What the cluster knows of kinds: a snapshot of its discovery.
pub trait Scopes {
    /// Whether objects of a kind live in namespaces; `None` if there is no such kind.
    fn namespaced(&self, api_version: &str, kind: &str) -> Option<bool>;
}

impl<F: Fn(&str, &str) -> Option<bool>> Scopes for F {
    fn namespaced(&self, api_version: &str, kind: &str) -> Option<bool> {
        self(api_version, kind)
    }
}

/// Whose the objects become.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Decoration {
    /// The release's name as users see it, without a prefix.
    pub release: String,
    /// Its target namespace: that of every namespaced object that says none.
    pub namespace: String,
    /// Value of the managed-by label, over the flight's own: one of `atc_api::names::MANAGED_BY_*`.
    pub managed_by: String,
    /// The Airway's instance, for releases that have one.
    pub instance_ref: Option<ResourceRef>,
    /// Who owns the objects, so that they go when it goes.
    pub owner: Option<OwnerReference>,
    /// The owner's namespace; `None` for a cluster-scoped owner.
    pub owner_namespace: Option<String>,
    /// Whether objects may lie outside the target namespace.
    pub cross_namespace: bool,
    /// Whether only namespaced objects may be made, and none that gives rights: whoever wrote what is run has no rights
    /// of the cluster's own.
    pub confined: bool,
    /// Objects that whoever works on the release keeps for himself, and that no release may hold.
    pub reserved: Vec<ResourceRef>,
}

impl Decoration {
    /// The release as the owner of what it makes.
    pub fn identity(&self) -> Owner {
        let flight = self.owner.as_ref().filter(|owner| {
            owner.api_version.split_once('/').map(|(group, _)| group) == Some(names::GROUP)
                && matches!(&*owner.kind, "Flight" | "ClusterFlight")
        });
        Owner::new(&self.namespace, &self.release).of_flight(flight.map(|owner| &*owner.uid))
    }
}

/// Why objects can't become those of the release. Each message names all objects that are wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecorateError {
    /// Neither the cluster nor a CustomResourceDefinition of the same output knows the kind.
    #[error("no such kind: {}", some(.0, str::to_owned))]
    NoSuchKind(Vec<String>),
    /// Objects outside the target namespace.
    #[error(
        "the release may not write to multiple namespaces: its namespace is \"{namespace}\", but {} {} outside it",
        listed(.objects), if .objects.len() == 1 { "lies" } else { "lie" }
    )]
    CrossNamespace {
        /// The target namespace.
        namespace: String,
        /// Canonical names of the objects.
        objects: Vec<String>,
    },
    /// Objects that a release with the rights of its namespace only may not make.
    #[error(
        "a Flight makes objects of its own namespace only, and none that gives rights; name a service account with the rights in spec.serviceAccountName, or use a ClusterFlight or an Airway, for {}",
        listed(.0)
    )]
    Confined(Vec<String>),
    /// Secrets that releases are recorded in.
    #[error(
        "{} {} for the record of a release, which is not written by what a flight prints; choose another name",
        listed(.0), if .0.len() == 1 { "is" } else { "are" }
    )]
    Record(Vec<String>),
    /// Objects of the atc's own.
    #[error(
        "{} {} for the atc itself, which is not written by what a flight prints; leave it out, or choose another name",
        listed(.0), if .0.len() == 1 { "is" } else { "are" }
    )]
    Reserved(Vec<String>),
    /// The same object twice, and not the same in both, now that both have a namespace.
    #[error("the same object occurs twice, and differs: {}", listed(.0))]
    Duplicate(Vec<String>),
}

/// The groups of Roles and RoleBindings.
const RBAC: [&str; 2] = ["rbac.authorization.k8s.io", "authorization.openshift.io"];

/// Type of a Secret that gets the token of the service account that an annotation of it names.
const TOKEN: &str = "kubernetes.io/service-account-token";

/// The annotations that name it.
const TOKEN_OF: [&str; 2] = [
    "kubernetes.io/service-account.name",
    "kubernetes.io/service-account.uid",
];

/// At most this many objects are named in one message.
const MAX_LISTED: usize = 20;

fn listed(items: &[String]) -> String {
    some(items, |item| format!("\"{item}\""))
}

fn some(items: &[String], shown: impl Fn(&str) -> String) -> String {
    let first = items.iter().take(MAX_LISTED).map(|item| shown(item));
    let more = items
        .len()
        .checked_sub(MAX_LISTED + 1)
        .map(|more| format!("{} more", more + 1));
    first.chain(more).collect::<Vec<_>>().join(", ")
}

/// Makes the objects those of a release.
///
/// # Errors
/// All offenders of the first rule that is broken.
pub fn decorate(
    stages: Stages,
    decoration: &Decoration,
    scopes: &dyn Scopes,
) -> Result<Stages, DecorateError> {
    let mut stages = stages;
    let from_output = kinds_of_crds(&stages);
    let mut unknown = BTreeSet::new();
    let mut outside = Vec::new();
    let mut beyond = Vec::new();
    let mut records = Vec::new();
    let mut reserved = Vec::new();
    for object in stages.objects_mut() {
        object.strip_server_fields();
        let scope = if object.is_foundation() {
            Some(false)
        } else {
            scopes
                .namespaced(object.api_version(), object.kind())
                .or_else(|| scope_of(object, &from_output))
        };
        let Some(namespaced) = scope else {
            unknown.insert(unserved(object, &from_output));
            continue;
        };
        settle_namespace(object, namespaced, decoration);
        if is_record(object) {
            records.push(object.canonical());
        }
        if decoration.reserved.contains(&object.reference()) {
            reserved.push(object.canonical());
        }
        if decoration.confined && (!namespaced || gives_rights(object)) {
            beyond.push(object.canonical());
        }
        if namespaced
            && !decoration.cross_namespace
            && object.namespace() != Some(&decoration.namespace)
        {
            outside.push(object.canonical());
        }
        if decoration.confined && object.is_flight() {
            object.name_no_account();
        }
        mark(object, decoration);
        own(object, decoration);
    }
    if !unknown.is_empty() {
        return Err(DecorateError::NoSuchKind(Vec::from_iter(unknown)));
    }
    if !outside.is_empty() {
        return Err(DecorateError::CrossNamespace {
            namespace: decoration.namespace.clone(),
            objects: outside,
        });
    }
    if !records.is_empty() {
        return Err(DecorateError::Record(records));
    }
    if !reserved.is_empty() {
        return Err(DecorateError::Reserved(reserved));
    }
    if !beyond.is_empty() {
        return Err(DecorateError::Confined(beyond));
    }
    // Of two that are equal, now that both have a namespace and our marks, one is enough.
    let once = stages.each_once();
    once.map_err(|twice| DecorateError::Duplicate(Vec::from_iter(twice)))
}

/// Kinds that the CustomResourceDefinitions of an output make: whether they are namespaced, and the served versions.
type MadeKinds = BTreeMap<GroupKind, (bool, BTreeSet<String>)>;

fn kinds_of_crds(stages: &Stages) -> MadeKinds {
    let crds = stages
        .objects()
        .filter(|object| object.is_foundation() && object.kind() == "CustomResourceDefinition");
    let kind = |crd: &Object| {
        let spec = &crd.value()["spec"];
        let group_kind = GroupKind::new(spec["group"].as_str()?, spec["names"]["kind"].as_str()?);
        let served = spec["versions"]
            .as_array()?
            .iter()
            .filter(|version| version["served"] == true);
        let versions = served
            .filter_map(|version| version["name"].as_str().map(str::to_owned))
            .collect();
        Some((group_kind, (spec["scope"] == "Namespaced", versions)))
    };
    crds.filter_map(kind).collect()
}

fn scope_of(object: &Object, made: &MadeKinds) -> Option<bool> {
    let (namespaced, versions) = made.get(&object.group_kind())?;
    versions.contains(object.version()).then_some(*namespaced)
}

/// An object whose kind or version nobody serves.
fn unserved(object: &Object, made: &MadeKinds) -> String {
    let (kind, version, object_name) = (object.kind(), object.api_version(), object.canonical());
    let Some((_, versions)) = made.get(&object.group_kind()) else {
        return format!("{kind} of {version} ({object_name})");
    };
    let served: Vec<&str> = versions.iter().map(String::as_str).collect();
    let served = if served.is_empty() {
        "none".to_owned()
    } else {
        served.join(", ")
    };
    format!("{kind} of {version} ({object_name}; versions served by its definition: {served})")
}

/// Whether an object is, or would be taken for, the record of a release, its lock or its intent.
fn is_record(object: &Object) -> bool {
    let group = object.group_kind();
    if !(group.group.is_empty() && group.kind == "Secret") {
        return false;
    }
    let name = object.name();
    let rest = name
        .strip_prefix("yoke.")
        .or_else(|| name.strip_prefix("yoke-intent."))
        .or_else(|| name.strip_prefix("yoke-beat."));
    let labels = &object.metadata()["labels"];
    rest.is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_hexdigit()))
        || [names::LABEL_KIND, names::LABEL_OUR_KIND]
            .into_iter()
            .any(|label| !labels[label].is_null())
}

/// Whether an object gives whoever prints it rights that it may not have: by a Role, by a Secret that the cluster puts the
/// token of a service account into, which its own release may read, or by an override or a Flight that acts as a service
/// account, whose check at admission does not see who had it printed.
fn gives_rights(object: &Object) -> bool {
    let annotations = &object.metadata()["annotations"];
    let GroupKind { group, kind } = object.group_kind();
    RBAC.contains(&&*group)
        || (group.is_empty() && kind == "Secret" && is_token(object))
        || (group == names::GROUP && object.names_account())
        || [
            names::ANNOTATION_OVERRIDE_FLIGHT,
            names::ANNOTATION_OVERRIDE_MODE,
        ]
        .into_iter()
        .any(|name| !annotations[name].is_null())
}

/// Whether a Secret is one that the cluster puts the token of a service account into. Its type stays what it is, so one that
/// exists is told which account by its annotations alone.
fn is_token(secret: &Object) -> bool {
    let annotations = &secret.metadata()["annotations"];
    secret.value()["type"] == TOKEN
        || TOKEN_OF
            .into_iter()
            .any(|name| !annotations[name].is_null())
}

/// A namespaced object gets the target namespace unless it says another; a cluster-scoped one loses whatever it says, so
/// that it is the same object in the record and in the cluster.
fn settle_namespace(object: &mut Object, namespaced: bool, decoration: &Decoration) {
    if !namespaced {
        object.set_namespace(None);
    } else if object.namespace().is_none() {
        object.set_namespace(Some(&decoration.namespace));
    }
}

/// Sets the marks of this release over whatever marks the flight printed, those of a looked-up object for example.
fn mark(object: &mut Object, decoration: &Decoration) {
    object.set_label(names::LABEL_MANAGED_BY, &decoration.managed_by);
    object.remove_label(names::LABEL_OLD_RELEASE);
    object.remove_label(names::LABEL_OLD_NAMESPACE);
    object.set_annotation(names::ANNOTATION_RELEASE, &decoration.release);
    object.set_annotation(names::ANNOTATION_NAMESPACE, &decoration.namespace);
    match &decoration.instance_ref {
        Some(instance) => {
            object.set_annotation(names::ANNOTATION_INSTANCE_REF, &instance.to_string());
        }
        None => object.remove_annotation(names::ANNOTATION_INSTANCE_REF),
    }
}

/// A namespaced owner owns only objects of its own namespace: the garbage collector takes any other reference for one to
/// an object that is gone, and deletes.
fn own(object: &mut Object, decoration: &Decoration) {
    // A reference that a flight printed along with an object that it looked up would make it another release's.
    object.drop_flights_of_others(decoration.owner.as_ref().map(|owner| &*owner.uid));
    object.remove_annotation(names::ANNOTATION_FLIGHT);
    let Some(owner) = &decoration.owner else {
        return;
    };
    if decoration.owner_namespace.is_none()
        || object.namespace() == decoration.owner_namespace.as_deref()
    {
        object.set_owner(owner);
    } else if let Some(flight) = decoration.identity().flight {
        object.set_annotation(names::ANNOTATION_FLIGHT, &flight);
    }
}

#[cfg(test)]
mod tests;
