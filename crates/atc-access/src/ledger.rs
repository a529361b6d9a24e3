//! The ledger: what one run has read, and what it saw of it. Names and versions only, never content.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use atc_api::ResourceRef;
use serde_json::Value;

use crate::reader::Mapping;

/// Objects that one run may read, each counted once. An entry takes 2 KiB at the very most and has cost a call to the
/// API server, so a run that gets here is at fault, and holds 20 MiB.
pub const MAX_READS: usize = 10_000;

/// In which way an object was read; ordered from the weakest reason for waking the reader to the strongest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ReadKind {
    /// Absent, and no matcher covers it: of interest only if the flight creates it itself.
    Candidate,
    /// It belongs to the run's own release.
    Own,
    /// Covered by a matcher: somebody else's, nobody's, or not there yet.
    External,
}

/// What a read saw.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Observed {
    /// No such object.
    Absent,
    /// An object.
    Present {
        /// `metadata.uid`: another one is another object of the same name.
        uid: String,
        /// `metadata.resourceVersion`: a larger number is a later state.
        resource_version: String,
    },
}

impl Observed {
    /// What is seen of this object.
    pub fn of(object: Option<&Value>) -> Self {
        let Some(object) = object else {
            return Self::Absent;
        };
        let text = |key| {
            object["metadata"][key]
                .as_str()
                .unwrap_or_default()
                .to_owned()
        };
        Self::Present {
            uid: text("uid"),
            resource_version: text("resourceVersion"),
        }
    }
}

/// One object that a run has read.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Read {
    /// The object.
    pub target: ResourceRef,
    /// The API version in which it was read.
    pub api_version: String,
    /// Its resource in URLs.
    pub plural: String,
    /// Whether its kind lives in namespaces.
    pub namespaced: bool,
    /// In which way.
    pub kind: ReadKind,
    /// What was seen of it.
    pub observed: Observed,
}

/// What a run has read; cheap to clone, and all clones are the same ledger, so that it can be kept when the run is cut
/// off.
///
/// An object that is read twice is one entry. It keeps the *first* observation, because the run may have used it: if
/// the object had changed by the second look, whoever compares finds it newer and runs the flight once more, which is
/// right. Of the kinds it keeps the strongest.
#[derive(Clone, Debug, Default)]
pub struct ReadLedger(Arc<Mutex<Entries>>);

#[derive(Debug, Default)]
struct Entries {
    reads: Vec<Read>,
    places: HashMap<ResourceRef, usize>,
}

impl ReadLedger {
    /// What was read, in the order of first reads.
    pub fn reads(&self) -> Vec<Read> {
        self.entries().reads.clone()
    }

    /// Whether one more object would be over [`MAX_READS`].
    pub fn is_full_for(&self, target: &ResourceRef) -> bool {
        let entries = self.entries();
        entries.reads.len() >= MAX_READS && !entries.places.contains_key(target)
    }

    /// Notes a read.
    pub fn record(
        &self,
        target: ResourceRef,
        mapping: &Mapping,
        kind: ReadKind,
        observed: Observed,
    ) {
        let entries = &mut *self.entries();
        if let Some(known) = entries
            .places
            .get(&target)
            .and_then(|place| entries.reads.get_mut(*place))
        {
            known.kind = known.kind.max(kind);
            return;
        }
        entries.places.insert(target.clone(), entries.reads.len());
        entries.reads.push(Read {
            target,
            api_version: mapping.api_version(),
            plural: mapping.plural.clone(),
            namespaced: mapping.namespaced,
            kind,
            observed,
        });
    }

    fn entries(&self) -> MutexGuard<'_, Entries> {
        // Nothing panics while it is held, and an entry is complete before it can be seen.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
