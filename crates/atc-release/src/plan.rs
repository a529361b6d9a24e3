//! What is to be applied, removed and let go: a value computed from what is wanted and what was recorded before.
//!
//! Only the record counts, never labels: an object that somebody else made is in no plan, whatever marks it carries.

use std::collections::{BTreeMap, BTreeSet};

use atc_api::{GroupKind, ResourceRef};

use crate::object::{Object, Stages, canonical, is_foundation, version_of};

/// An object of an earlier revision that is not wanted any more.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PruneItem {
    /// The object.
    pub target: ResourceRef,
    /// API version in which it was recorded last. The cluster may serve another one by now: ask by group and kind.
    pub api_version: String,
}

impl PruneItem {
    /// How the object is named in messages.
    pub fn canonical(&self) -> String {
        canonical(&self.target, version_of(&self.api_version))
    }

    /// Whether it is a Namespace or a CustomResourceDefinition.
    pub fn is_foundation(&self) -> bool {
        is_foundation(&self.target.group_kind.group, &self.target.group_kind.kind)
    }
}

/// Which foundations are deleted when they are not wanted any more. The default is none: they are orphaned, since deleting
/// one deletes everything in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PruneOptions {
    /// Delete CustomResourceDefinitions.
    pub crds: bool,
    /// Delete Namespaces.
    pub namespaces: bool,
}

impl From<atc_api::PruneOptions> for PruneOptions {
    fn from(spec: atc_api::PruneOptions) -> Self {
        Self {
            crds: spec.crds,
            namespaces: spec.namespaces,
        }
    }
}

impl PruneOptions {
    /// Delete both.
    pub const ALL: Self = Self {
        crds: true,
        namespaces: true,
    };

    fn orphans(self, item: &PruneItem) -> bool {
        item.is_foundation()
            && !(if item.target.group_kind.kind == "Namespace" {
                self.namespaces
            } else {
                self.crds
            })
    }
}

/// What is to be done to a cluster, in this order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// To be applied, first stage first.
    pub apply: Stages,
    /// To be deleted, in this order; a stage starts when the one before is gone.
    pub prune: Vec<Vec<PruneItem>>,
    /// To lose our marks and stay: foundations whose removal nobody asked for.
    pub orphan: Vec<PruneItem>,
}

impl Plan {
    /// The same of a release that may delete nothing outside of one namespace: that is let go of.
    #[must_use]
    pub fn confined_to(mut self, namespace: &str) -> Self {
        for stage in &mut self.prune {
            let (kept, rest) = std::mem::take(stage)
                .into_iter()
                .partition(|item| item.target.namespace == namespace);
            *stage = kept;
            self.orphan.extend(Vec::<PruneItem>::from_iter(rest));
        }
        self.prune.retain(|stage| !stage.is_empty());
        self
    }
}

/// Plans the way from what was recorded to what is wanted.
///
/// `previous`: the stages of all revisions whose objects may still live, the latest first; also those whose takeoff did
/// not finish, and those whose prune did not. An object is the same whatever its API version. Records of the existing tool
/// may hold cluster-scoped objects with a namespace: where the wanted objects show that a kind has none, it does not count.
///
/// # Guarantees
/// Nothing that is wanted is pruned or orphaned. An object is in `prune` or `orphan` at most once. Objects go in the
/// reverse order of stages; of several revisions that disagree, an ordinary object's last stage counts and a foundation's
/// first, so that nothing loses its ground too early.
pub fn plan(desired: Stages, previous: &[Stages], options: PruneOptions) -> Plan {
    let wanted: BTreeSet<ResourceRef> = desired.objects().map(Object::reference).collect();
    let unscoped: BTreeSet<GroupKind> = wanted
        .iter()
        .filter(|target| target.namespace.is_empty())
        .map(|target| target.group_kind.clone())
        .collect();
    let mut found: BTreeMap<ResourceRef, (usize, PruneItem)> = BTreeMap::new();
    for stages in previous {
        for (stage, objects) in stages.iter().enumerate() {
            for object in objects {
                let mut target = object.reference();
                if object.is_foundation() || unscoped.contains(&target.group_kind) {
                    target.namespace.clear();
                }
                if wanted.contains(&target) {
                    continue;
                }
                let item = PruneItem {
                    target: target.clone(),
                    api_version: object.api_version().to_owned(),
                };
                let known = found.entry(target).or_insert((stage, item));
                known.0 = if object.is_foundation() {
                    known.0.min(stage)
                } else {
                    known.0.max(stage)
                };
            }
        }
    }
    let mut result = Plan {
        apply: desired,
        ..Plan::default()
    };
    let mut stages: BTreeMap<usize, Vec<PruneItem>> = BTreeMap::new();
    for (stage, item) in found.into_values() {
        if options.orphans(&item) {
            result.orphan.push(item);
        } else {
            stages.entry(stage).or_default().push(item);
        }
    }
    result.prune = stages.into_values().rev().collect();
    result
}

#[cfg(test)]
mod tests;
