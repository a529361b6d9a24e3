//! The objects of a release in their order.

use std::collections::{BTreeSet, HashMap};

use atc_api::ResourceRef;
use serde::{Deserialize, Serialize};

use super::Object;

/// The objects of a release, in the order in which they are made: stage by stage, all objects of a stage at once.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Stages(Vec<Vec<Object>>);

impl Stages {
    /// These stages; empty ones vanish.
    pub fn new(stages: Vec<Vec<Object>>) -> Self {
        Self(
            stages
                .into_iter()
                .filter(|stage| !stage.is_empty())
                .collect(),
        )
    }

    /// The stages, first to be applied first.
    pub fn iter(&self) -> std::slice::Iter<'_, Vec<Object>> {
        self.0.iter()
    }

    /// All objects, stage by stage.
    pub fn objects(&self) -> impl Iterator<Item = &Object> {
        self.0.iter().flatten()
    }

    /// All objects, stage by stage, to be changed.
    pub fn objects_mut(&mut self) -> impl Iterator<Item = &mut Object> {
        self.0.iter_mut().flatten()
    }

    /// Number of stages.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is no object.
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(Vec::is_empty)
    }

    /// Number of objects in all stages.
    pub fn count(&self) -> usize {
        self.0.iter().map(Vec::len).sum()
    }

    /// Takes out every object that is `target`, in whatever API version it is given; stages that are then empty vanish.
    ///
    /// An object that says no namespace counts as of the target's namespace, and for a target without namespace the
    /// object's does not count: flights print their parent as it suits them.
    pub fn take(&mut self, target: &ResourceRef) -> Vec<Object> {
        let is_target = |object: &Object| {
            object.name() == target.name
                && object.group_kind() == target.group_kind
                && (target.namespace.is_empty()
                    || object
                        .namespace()
                        .is_none_or(|namespace| namespace == target.namespace))
        };
        let mut taken = Vec::new();
        for stage in &mut self.0 {
            let (hit, rest) = std::mem::take(stage).into_iter().partition(is_target);
            taken.extend(Vec::<Object>::from_iter(hit));
            *stage = rest;
        }
        self.0.retain(|stage| !stage.is_empty());
        taken
    }

    /// Drops every object that stands there before, equal in all; stages that are then empty vanish.
    ///
    /// # Errors
    /// The canonical names of those that stand there before as something else.
    pub(crate) fn each_once(self) -> Result<Self, BTreeSet<String>> {
        let mut firsts = Vec::new();
        let mut differing = BTreeSet::new();
        {
            let mut seen: HashMap<ResourceRef, &Object> = HashMap::new();
            for object in self.objects() {
                let first = *seen.entry(object.reference()).or_insert(object);
                firsts.push(std::ptr::eq(first, object));
                if first != object {
                    differing.insert(object.canonical());
                }
            }
        }
        if !differing.is_empty() {
            return Err(differing);
        }
        let mut firsts = firsts.into_iter();
        let stages = self.0.into_iter().map(|stage| {
            let first = |_: &Object| firsts.next() == Some(true);
            stage.into_iter().filter(first).collect()
        });
        Ok(Self::new(stages.collect()))
    }

    /// Whether both hold the same objects in the same stages; the order within a stage has no meaning, nor has that of keys.
    pub fn same_as(&self, other: &Self) -> bool {
        fn sorted(stage: &[Object]) -> Vec<&Object> {
            let mut stage: Vec<&Object> = stage.iter().collect();
            stage
                .sort_by_cached_key(|object| (object.reference(), object.api_version().to_owned()));
            stage
        }
        self.0.len() == other.0.len()
            && self
                .0
                .iter()
                .zip(&other.0)
                .all(|(one, two)| sorted(one) == sorted(two))
    }

    /// The `(apiVersion, kind)` pairs of all objects, each once, sorted: what to ask the cluster's discovery about.
    pub fn kinds(&self) -> Vec<(String, String)> {
        let kinds = self
            .objects()
            .map(|object| (object.api_version().to_owned(), object.kind().to_owned()));
        kinds.collect::<BTreeSet<_>>().into_iter().collect()
    }
}

impl From<Stages> for Vec<Vec<Object>> {
    fn from(stages: Stages) -> Self {
        stages.0
    }
}

impl IntoIterator for Stages {
    type Item = Vec<Object>;
    type IntoIter = std::vec::IntoIter<Vec<Object>>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'a> IntoIterator for &'a Stages {
    type Item = &'a Vec<Object>;
    type IntoIter = std::slice::Iter<'a, Vec<Object>>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}
