//! What watches tell the tracker.

use std::fmt::Debug;
use std::hash::Hash;

use atc_api::GroupKind;

use super::{KindState, Tracker, is_running};
use crate::change::{Change, Fingerprint, Latest, Seen, number};
use crate::dependency::{Cause, Resource, Wake};
use crate::object::ObjectKey;
use crate::wire::{Metadata, Object};

impl<O: Clone + Eq + Hash + Debug> Tracker<O> {
    /// The first page of a list has come, at this version. Returns the number by which the rest of this list is known:
    /// a list decides about those objects that were registered before its first page came, since they were there when
    /// every page was looked through. What is registered later is read later than the list's snapshot was taken, and
    /// the watch that follows shows everything since that.
    pub(crate) fn list_begins(&mut self, kind: &GroupKind, version: &str) -> u64 {
        self.passed(kind, version);
        self.kinds.get_mut(kind).map_or(0, |kind| {
            kind.listing += 1;
            kind.gone = false;
            kind.listing
        })
    }

    /// An object of a list.
    pub(crate) fn listed(
        &mut self,
        kind: &GroupKind,
        listing: u64,
        object: &Object,
    ) -> Vec<Wake<O>> {
        if let Some(state) = self.kinds.get_mut(kind)
            && state.listing == listing
            && let Some(known) = state.objects.get_mut(&ObjectKey::new(&object.metadata))
        {
            known.on_list(listing);
        }
        self.changed(kind, object)
    }

    /// A list is complete, at this version: of what was registered before it and is not on it there is none.
    pub(crate) fn list_ends(
        &mut self,
        kind: &GroupKind,
        listing: u64,
        version: &str,
    ) -> Vec<Wake<O>> {
        self.passed(kind, version);
        let mut wakes = Vec::new();
        let Some(state) = self
            .kinds
            .get_mut(kind)
            .filter(|kind| kind.listing == listing)
        else {
            return wakes;
        };
        let at = number(version);
        let running = |owner: &O| is_running(&self.owners, owner);
        for (key, object) in &mut state.objects {
            if object.since < listing && object.listed < listing && object.not_listed(at) {
                object.test_all(|| key.reference(kind), running, &mut wakes);
            }
        }
        state
            .selections
            .all_changed(&state.resource, at, running, &mut wakes);
        wakes
    }

    /// The watch showed an object.
    pub(crate) fn changed(&mut self, kind: &GroupKind, object: &Object) -> Vec<Wake<O>> {
        self.observe(kind, &object.metadata, false)
    }

    /// The watch showed the end of an object.
    pub(crate) fn deleted(&mut self, kind: &GroupKind, object: &Object) -> Vec<Wake<O>> {
        self.observe(kind, &object.metadata, true)
    }

    fn observe(&mut self, kind: &GroupKind, metadata: &Metadata, deleted: bool) -> Vec<Wake<O>> {
        self.passed(kind, &metadata.resource_version);
        let mut wakes = Vec::new();
        let Some(state) = self.kinds.get_mut(kind) else {
            return wakes;
        };
        let running = |owner: &O| is_running(&self.owners, owner);
        state
            .selections
            .observe(&state.resource, metadata, running, &mut wakes);
        let key = ObjectKey::new(metadata);
        if let Some(object) = state.objects.get_mut(&key) {
            let moved = if deleted {
                object.deleted(metadata)
            } else {
                object.advance(Latest::Present(Fingerprint::of_metadata(metadata)))
            };
            if moved {
                object.test_all(|| key.reference(kind), running, &mut wakes);
            }
        }
        wakes
    }

    /// The watch has come to this version, whether or not it had anything to show.
    pub(crate) fn passed(&mut self, kind: &GroupKind, version: &str) {
        if let (Some(kind), Some(version)) = (self.kinds.get_mut(kind), number(version)) {
            kind.position = kind.position.max(version);
        }
    }

    /// The API server does not know the kind (any more): nothing of it is there. Wakes those who saw something, once.
    /// When the kind comes back, a list finds what is there then.
    pub(crate) fn kind_gone(&mut self, kind: &GroupKind) -> Vec<Wake<O>> {
        let mut wakes = Vec::new();
        let Some(state) = self.kinds.get_mut(kind).filter(|kind| !kind.gone) else {
            return wakes;
        };
        state.gone = true;
        let running = |owner: &O| is_running(&self.owners, owner);
        for (key, object) in &mut state.objects {
            object.kind_gone();
            for (owner, entry) in object
                .owners
                .iter_mut()
                .filter(|(owner, _)| !running(owner))
            {
                if !matches!(entry.base, Seen::Present(_)) {
                    continue;
                }
                entry.base = Seen::Absent;
                if let Some(effect) = entry.effects.on(Change::Drift) {
                    let cause = Cause::Object(key.reference(kind));
                    wakes.push(Wake {
                        owner: owner.clone(),
                        effect,
                        cause,
                    });
                }
            }
        }
        state
            .selections
            .all_changed(&state.resource, None, running, &mut wakes);
        for owner in self.owners.values_mut().filter(|owner| owner.running) {
            owner.vanished.push(kind.clone());
        }
        wakes
    }

    /// Kinds that nobody depends on any more, each with a number that moves whenever somebody comes to.
    pub(crate) fn idle_kinds(&self) -> Vec<(GroupKind, u64)> {
        self.kinds
            .iter()
            .filter(|(_, kind)| kind.is_idle())
            .map(|(name, kind)| (name.clone(), kind.uses))
            .collect()
    }

    /// Forgets a kind, unless somebody depends on it. Returns whether it is forgotten.
    pub(crate) fn drop_idle(&mut self, kind: &GroupKind) -> bool {
        let idle = self.kinds.get(kind).is_none_or(KindState::is_idle);
        if idle {
            self.kinds.remove(kind);
        }
        idle
    }

    /// How to watch this kind; `None` if nobody depends on it.
    pub(crate) fn resource(&self, kind: &GroupKind) -> Option<&Resource> {
        self.kinds.get(kind).map(|kind| &kind.resource)
    }
}
