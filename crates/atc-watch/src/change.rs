//! Is what the watch shows newer than what a run saw, and what kind of change is it.
//!
//! The rule: `latest` is **newer** than `seen` when its resourceVersion is larger as a number, whether the object is
//! the same one changed, another one under the same name (other uid), or gone since. Resource versions of one kind can
//! be compared as numbers (Kubernetes says so since 1.35; etcd's always could). What is older or equal is a lagging
//! event and no change. Versions that are no numbers are compared for inequality.

use std::hash::{DefaultHasher, Hash, Hasher};

use serde::Deserialize;
use serde_json::Value;

use crate::wire::Metadata;

/// What is remembered of an object: enough to tell whether, and in which part, it changed. About 150 bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fingerprint {
    /// `metadata.uid`: deleted and created again is another object.
    pub uid: String,
    /// `metadata.resourceVersion`.
    pub resource_version: String,
    /// `metadata.generation`, for kinds that have it: moves with the spec, not with the status.
    pub generation: Option<i64>,
    /// Hash of labels, annotations (but for the Deployment controller's own), ownerReferences and finalizers. Good for comparing within one process and build;
    /// not to be stored. 0 means "not known" (see [`Fingerprint::bare`]).
    pub meta_hash: u64,
    /// Whether a deletionTimestamp is set.
    pub deleting: bool,
}

impl Fingerprint {
    /// The fingerprint of a whole object, or of its metadata, as the API server answered.
    ///
    /// Both give the same: `{"metadata": …}` is all that is looked at. What is missing or of a wrong type is taken as
    /// absent.
    pub fn of(object: &Value) -> Self {
        let metadata = object.get("metadata").map(Metadata::deserialize);
        Self::of_metadata(&metadata.and_then(Result::ok).unwrap_or_default())
    }

    /// Of a look-up that kept no more than uid and resourceVersion. Such a fingerprint can say *that* something
    /// changed, not in which part: the next change counts as drift.
    pub fn bare(uid: impl Into<String>, resource_version: impl Into<String>) -> Self {
        Self {
            uid: uid.into(),
            resource_version: resource_version.into(),
            generation: None,
            meta_hash: 0,
            deleting: false,
        }
    }

    pub(crate) fn of_metadata(metadata: &Metadata) -> Self {
        let mut hasher = DefaultHasher::new();
        metadata.labels.digest.hash(&mut hasher);
        metadata.annotations.hash(&mut hasher);
        metadata.owner_references.hash(&mut hasher);
        metadata.finalizers.hash(&mut hasher);
        Self {
            uid: metadata.uid.clone(),
            resource_version: metadata.resource_version.clone(),
            generation: metadata.generation,
            meta_hash: hasher.finish().max(1),
            deleting: metadata.deletion_timestamp,
        }
    }

    /// Whether nobody interfered since `expected` was taken (from the answer to one's own apply).
    ///
    /// For kinds with a generation: same uid, generation and metadata, so that a status change is no interference. For
    /// others: same uid and resourceVersion.
    pub fn undisturbed(&self, expected: &Self) -> bool {
        if self.uid != expected.uid {
            return false;
        }
        if self.resource_version == expected.resource_version {
            return true;
        }
        self.same_but_status(expected)
    }

    /// Kinds with a generation, and nothing but the status (or managedFields) can have moved.
    fn same_but_status(&self, other: &Self) -> bool {
        self.uid == other.uid
            && self.generation.is_some()
            && self.generation == other.generation
            && self.meta_hash == other.meta_hash
            && self.deleting == other.deleting
    }

    /// Same object in the same version.
    pub(crate) fn same_version(&self, other: &Self) -> bool {
        self.uid == other.uid && self.resource_version == other.resource_version
    }

    pub(crate) fn is_bare(&self) -> bool {
        self.meta_hash == 0
    }
}

/// The newest that is known of an object: what the watch has shown, or a run's own read or apply where that is newer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Latest {
    /// Nothing yet: the first list of its kind is not complete, or nothing happened to the object since somebody
    /// showed interest in it.
    #[default]
    Unknown,
    /// There is no such object.
    Absent {
        /// The resourceVersion at which that was known; 0 where it is not.
        at: u64,
    },
    /// There is.
    Present(Fingerprint),
}

impl Latest {
    /// The uid of the object that is there.
    pub(crate) fn uid(&self) -> Option<&str> {
        match self {
            Self::Present(fingerprint) => Some(&fingerprint.uid),
            Self::Unknown | Self::Absent { .. } => None,
        }
    }
}

/// What a run read or applied.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Seen {
    /// The run depends on it, but did not get to read it.
    #[default]
    Unseen,
    /// It was not there.
    Absent,
    /// It was there, in this version.
    Present(Fingerprint),
}

impl Seen {
    /// The resourceVersion as a number.
    pub(crate) fn version(&self) -> Option<u64> {
        match self {
            Self::Present(fingerprint) => number(&fingerprint.resource_version),
            Self::Unseen | Self::Absent => None,
        }
    }
}

/// Which part of an object changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Change {
    /// Nothing that a generation or the metadata would show: the status, mostly.
    Status,
    /// Spec or metadata, presence, identity; for kinds without a generation anything.
    Drift,
}

/// The change between what was seen and what is latest, or nothing if latest is not newer.
pub fn change(seen: &Seen, latest: &Latest) -> Option<Change> {
    match (seen, latest) {
        (_, Latest::Unknown) | (Seen::Unseen | Seen::Absent, Latest::Absent { .. }) => None,
        (Seen::Unseen | Seen::Absent, Latest::Present(_)) => Some(Change::Drift),
        (Seen::Present(seen), Latest::Absent { at }) => number(&seen.resource_version)
            .is_none_or(|seen| *at > seen)
            .then_some(Change::Drift),
        (Seen::Present(seen), Latest::Present(latest)) => {
            let newer = if seen.uid == latest.uid {
                newer(&latest.resource_version, &seen.resource_version)
            } else {
                newer_or_unordered(&latest.resource_version, &seen.resource_version)
            };
            newer.then(|| {
                if latest.same_but_status(seen) {
                    Change::Status
                } else {
                    Change::Drift
                }
            })
        }
    }
}

/// Whether version `a` comes after version `b`: as numbers, or else merely another one.
pub(crate) fn newer(a: &str, b: &str) -> bool {
    match (number(a), number(b)) {
        (Some(a), Some(b)) => a > b,
        _ => a != b,
    }
}

/// The same for two different objects: where there is no order, another object is a change.
pub(crate) fn newer_or_unordered(a: &str, b: &str) -> bool {
    match (number(a), number(b)) {
        (Some(a), Some(b)) => a > b,
        _ => true,
    }
}

/// A resourceVersion as a number.
pub(crate) fn number(version: &str) -> Option<u64> {
    version.parse().ok()
}

#[cfg(test)]
mod tests;
