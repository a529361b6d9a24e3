//! Who depends on what, in which version each has seen it, and who is due. Plain data: no client, no clock.
//!
//! Two tables. `latest[ref]` is the newest that is known of an object: what the watch of its kind has shown, or a
//! run's own read or apply where that is newer. `seen[owner][ref]` is what the owner's last stored run read or applied.
//! An owner is due where latest is [newer](crate::change) than seen; that is tested when latest changes and when seen is
//! stored, so nothing falls between a read and the watch. The order that makes it whole is the caller's:
//!
//! 1. [`begin`](Tracker::begin) a run of an owner. What is known by now is handed to the run. Until its end no test
//!    of this owner is made.
//! 2. [`interest`](Tracker::interest) for each object **before** it is read or applied.
//! 3. [`commit`](Tracker::commit) with everything the run depended on, or [`fail`](Tracker::fail). All is tested once.
//!
//! Of objects that nobody depends on nothing is kept. A change costs time in proportion to the owners of its object.

use std::collections::{HashMap, HashSet};
use std::fmt::Debug;
use std::hash::Hash;

use atc_api::{GroupKind, ResourceRef};

use crate::change::{Change, Latest, Seen};
use crate::dependency::{
    Cause, Dependency, Effect, Effects, Resource, Role, Selection, SelectionDependency, Target,
    Wake,
};
use crate::object::{ObjectKey, ObjectState};
use crate::selection::Selections;

mod feed;

/// Everything a run depended on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dependencies {
    /// Single objects. The same one may occur in several roles: the stronger effects count, and what was looked up
    /// ([`Role::Input`]) is seen as it was read, not as it was applied later.
    pub objects: Vec<Dependency>,
    /// Sets of objects.
    pub selections: Vec<SelectionDependency>,
}

impl From<Vec<Dependency>> for Dependencies {
    fn from(objects: Vec<Dependency>) -> Self {
        Self {
            objects,
            selections: Vec::new(),
        }
    }
}

impl Dependencies {
    /// The kinds that occur, each once.
    pub(crate) fn kinds(&self) -> HashSet<GroupKind> {
        let objects = self
            .objects
            .iter()
            .map(|dependency| &dependency.target.reference.group_kind);
        let selections = self
            .selections
            .iter()
            .map(|dependency| &dependency.selection.resource.group_kind);
        objects.chain(selections).cloned().collect()
    }
}

/// The tables. `O` names an owner: whoever is woken.
#[derive(Debug)]
pub struct Tracker<O> {
    kinds: HashMap<GroupKind, KindState<O>>,
    owners: HashMap<O, OwnerState>,
}

#[derive(Debug)]
struct KindState<O> {
    /// How to watch it, as it was last named.
    resource: Resource,
    objects: HashMap<ObjectKey, ObjectState<O>>,
    selections: Selections<O>,
    /// How many lists have shown their first page. A list decides about what was registered before that.
    listing: u64,
    /// The newest version that went by, of whichever object.
    position: u64,
    /// The API server does not know the kind.
    gone: bool,
    /// How often something was added.
    uses: u64,
}

#[derive(Debug, Default)]
struct OwnerState {
    running: bool,
    objects: HashSet<ResourceRef>,
    selections: HashSet<Selection>,
    /// Registered in the current run.
    interests: HashSet<ResourceRef>,
    /// Kinds that vanished during the current run.
    vanished: Vec<GroupKind>,
}

impl<O> Default for Tracker<O> {
    fn default() -> Self {
        Self {
            kinds: HashMap::new(),
            owners: HashMap::new(),
        }
    }
}

impl<O: Clone + Eq + Hash + Debug> Tracker<O> {
    /// A tracker of nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// A run of this owner begins: until [`commit`](Self::commit) or [`fail`](Self::fail) it is not tested and not
    /// woken. Everything known by now is handed to the run and wakes nobody again.
    pub fn begin(&mut self, owner: &O) {
        let state = self.owners.entry(owner.clone()).or_default();
        state.running = true;
        state.interests.clear();
        state.vanished.clear();
        for reference in &state.objects {
            if let Some(object) = object_mut(&mut self.kinds, reference) {
                object.hand_over(owner);
            }
        }
        for selection in &state.selections {
            if let Some(kind) = self.kinds.get_mut(&selection.resource.group_kind) {
                kind.selections.hand_over(owner, selection);
            }
        }
    }

    /// The run is about to read (or apply) this object. To be called before that is done.
    pub fn interest(&mut self, owner: &O, target: &Target) {
        let state = self.owners.entry(owner.clone()).or_default();
        let first = state.interests.insert(target.reference.clone());
        state.objects.insert(target.reference.clone());
        let object = register(&mut self.kinds, target);
        if first || !object.owners.contains_key(owner) {
            object.hand_over(owner);
        }
    }

    /// The run is about to list these objects. To be called before that is done.
    pub fn interest_in(&mut self, owner: &O, selection: &Selection) {
        self.owners
            .entry(owner.clone())
            .or_default()
            .selections
            .insert(selection.clone());
        kind_mut(&mut self.kinds, &selection.resource)
            .selections
            .hand_over(owner, selection);
    }

    /// The run ended well: what it depended on replaces what the owner depended on before, and is tested once.
    ///
    /// What the run saw is also news for everybody else, where it is newer than what the watch has shown so far.
    pub fn commit(&mut self, owner: &O, dependencies: impl Into<Dependencies>) -> Vec<Wake<O>> {
        let Dependencies {
            objects,
            selections,
        } = dependencies.into();
        let mut state = self.owners.remove(owner).unwrap_or_default();
        let known = std::mem::take(&mut state.objects);
        let known_selections = std::mem::take(&mut state.selections);
        state.running = true;
        self.owners.insert(owner.clone(), state);

        let merged = merge(objects);
        for reference in known
            .iter()
            .filter(|reference| !merged.contains_key(reference))
        {
            self.release(owner, reference);
        }
        for selection in &known_selections {
            if !selections.iter().any(|kept| kept.selection == *selection) {
                self.release_selection(owner, selection);
            }
        }

        let mut wakes = Vec::new();
        let mut due = Due::default();
        for (reference, merged) in &merged {
            if let Some(effect) = self.store(
                owner,
                reference,
                merged,
                !known.contains(reference),
                &mut wakes,
            ) {
                due.add(effect, Cause::Object(reference.clone()));
            }
        }
        for SelectionDependency {
            selection,
            effect,
            seen,
        } in &selections
        {
            kind_mut(&mut self.kinds, &selection.resource)
                .selections
                .store(owner, selection, *effect, *seen);
        }
        if let Some(state) = self.owners.get_mut(owner) {
            state.objects = merged.into_keys().collect();
            state.selections = selections
                .into_iter()
                .map(|dependency| dependency.selection)
                .collect();
        }
        self.end(owner, due, &mut wakes);
        wakes
    }

    /// The run failed: the owner keeps what it depended on before, and what the run showed interest in is added, so
    /// that the creation of what was missing still wakes it. Whatever the run did read may be given.
    ///
    /// Only what changed since the beginning of the run makes the owner due: trying again is up to the caller.
    pub fn fail(&mut self, owner: &O, reads: impl Into<Dependencies>) -> Vec<Wake<O>> {
        let Dependencies {
            objects,
            selections,
        } = reads.into();
        let mut wakes = Vec::new();
        self.owners.entry(owner.clone()).or_default().running = true;
        let mut due = Due::default();
        for (reference, mut merged) in merge(objects) {
            let known =
                object_mut(&mut self.kinds, &reference).and_then(|object| object.owners.get(owner));
            if let Some(entry) = known {
                merged.effects = merged.effects.and(entry.effects);
            }
            let new = known.is_none();
            if let Some(effect) = self.store(owner, &reference, &merged, new, &mut wakes) {
                due.add(effect, Cause::Object(reference.clone()));
            }
            if let Some(state) = self.owners.get_mut(owner) {
                state.objects.insert(reference);
            }
        }
        for SelectionDependency {
            selection,
            effect,
            seen,
        } in selections
        {
            kind_mut(&mut self.kinds, &selection.resource)
                .selections
                .store(owner, &selection, effect, seen);
            if let Some(state) = self.owners.get_mut(owner) {
                state.selections.insert(selection);
            }
        }
        self.end(owner, due, &mut wakes);
        wakes
    }

    /// Live objects were read outside of a run (for the status only): moves what the owner has seen of those that it
    /// depends on, and nothing else. A change since then makes it due.
    pub fn refresh(
        &mut self,
        owner: &O,
        reads: impl IntoIterator<Item = (ResourceRef, Seen)>,
    ) -> Vec<Wake<O>> {
        let mut wakes = Vec::new();
        let Some(running) = self.owners.get(owner).map(|state| state.running) else {
            return wakes;
        };
        let mut due = Due::default();
        for (reference, seen) in reads {
            let Some(object) = object_mut(&mut self.kinds, &reference) else {
                continue;
            };
            let Some(entry) = object.owners.get_mut(owner) else {
                continue;
            };
            entry.base = seen.clone();
            self.adopt(owner, &reference, &seen, &mut wakes);
            if running {
                continue;
            }
            if let Some(effect) =
                object_mut(&mut self.kinds, &reference).and_then(|object| object.test(owner))
            {
                due.add(effect, Cause::Object(reference));
            }
        }
        due.push(owner, &mut wakes);
        wakes
    }

    /// The owner is gone: everything it depended on is released.
    pub fn forget(&mut self, owner: &O) {
        let Some(state) = self.owners.remove(owner) else {
            return;
        };
        for reference in &state.objects {
            self.release(owner, reference);
        }
        for selection in &state.selections {
            self.release_selection(owner, selection);
        }
    }

    /// The newest resourceVersion of any change among these objects; 0 where none was shown.
    pub fn latest_in(&self, selection: &Selection) -> u64 {
        self.kinds
            .get(&selection.resource.group_kind)
            .map_or(0, |kind| kind.selections.latest(selection))
    }

    /// The newest that is known of an object. Kept only for objects that somebody depends on.
    pub fn latest(&self, reference: &ResourceRef) -> Latest {
        self.kinds
            .get(&reference.group_kind)
            .and_then(|kind| kind.objects.get(&ObjectKey::of(reference)))
            .map(|object| object.latest.clone())
            .unwrap_or_default()
    }

    /// Whether an owner has made this object: it depends on it as on a child.
    pub fn is_made(&self, reference: &ResourceRef) -> bool {
        self.kinds
            .get(&reference.group_kind)
            .and_then(|kind| kind.objects.get(&ObjectKey::of(reference)))
            .is_some_and(|object| object.owners.values().any(|entry| entry.effects.made))
    }

    /// The kinds that somebody depends on, and so must be watched.
    pub fn kinds(&self) -> Vec<Resource> {
        self.kinds
            .values()
            .filter(|kind| !kind.is_idle())
            .map(|kind| kind.resource.clone())
            .collect()
    }

    /// How many objects of a kind somebody depends on.
    pub fn tracked(&self, kind: &GroupKind) -> usize {
        self.kinds.get(kind).map_or(0, |kind| kind.objects.len())
    }

    /// Sets what the owner has seen, and tells everybody else. Returns an effect only where a change may have been
    /// missed; the ordinary test comes at the end of the run.
    fn store(
        &mut self,
        owner: &O,
        reference: &ResourceRef,
        merged: &Merged,
        new: bool,
        wakes: &mut Vec<Wake<O>>,
    ) -> Option<Effect> {
        let object = register(&mut self.kinds, &merged.target);
        let entry = object.entry(owner);
        entry.effects = merged.effects;
        if merged.seen != Seen::Unseen {
            entry.base = merged.seen.clone();
        }
        for seen in &merged.all {
            self.adopt(owner, reference, seen, wakes);
        }
        let kind = self.kinds.get(&reference.group_kind)?;
        // Registered only now, while the watch had already gone further than what the run saw: an event of this object
        // may have been dropped as nobody's.
        let missed = new
            && kind.listing > 0
            && merged
                .seen
                .version()
                .is_none_or(|seen| kind.position > seen);
        missed.then(|| merged.effects.on(Change::Drift)).flatten()
    }

    /// What a run saw is news for everybody else; but what it saw of a kind that is gone was before that.
    fn adopt(&mut self, owner: &O, reference: &ResourceRef, seen: &Seen, wakes: &mut Vec<Wake<O>>) {
        let gone = self
            .kinds
            .get(&reference.group_kind)
            .is_some_and(|kind| kind.gone);
        if let Some(object) = object_mut(&mut self.kinds, reference)
            && !(gone && matches!(seen, Seen::Present(_)))
            && object.adopt(owner, seen)
        {
            let running = |other: &O| other == owner || is_running(&self.owners, other);
            object.test_all(|| reference.clone(), running, wakes);
        }
    }

    /// The end of a run: everything is tested once.
    fn end(&mut self, owner: &O, mut due: Due, wakes: &mut Vec<Wake<O>>) {
        let Some(state) = self.owners.get_mut(owner) else {
            return;
        };
        state.running = false;
        state.interests.clear();
        let vanished = std::mem::take(&mut state.vanished);
        for reference in &state.objects {
            let Some(object) = object_mut(&mut self.kinds, reference) else {
                continue;
            };
            let effect = if vanished.contains(&reference.group_kind) {
                object.test_vanished(owner)
            } else {
                object.test(owner)
            };
            if let Some(effect) = effect {
                due.add(effect, Cause::Object(reference.clone()));
            }
        }
        for selection in &state.selections {
            let kind = self.kinds.get_mut(&selection.resource.group_kind);
            if let Some(effect) = kind.and_then(|kind| kind.selections.test(owner, selection)) {
                due.add(effect, Cause::Selection(selection.clone()));
            }
        }
        due.push(owner, wakes);
    }

    fn release(&mut self, owner: &O, reference: &ResourceRef) {
        if let Some(kind) = self.kinds.get_mut(&reference.group_kind) {
            let key = ObjectKey::of(reference);
            if let Some(object) = kind.objects.get_mut(&key) {
                object.owners.remove(owner);
                if object.owners.is_empty() {
                    kind.objects.remove(&key);
                }
            }
        }
    }

    fn release_selection(&mut self, owner: &O, selection: &Selection) {
        if let Some(kind) = self.kinds.get_mut(&selection.resource.group_kind) {
            kind.selections.remove(owner, selection);
        }
    }
}

impl<O: Clone + Eq + Hash> KindState<O> {
    fn is_idle(&self) -> bool {
        self.objects.is_empty() && self.selections.is_empty()
    }
}

fn is_running<O: Eq + Hash>(owners: &HashMap<O, OwnerState>, owner: &O) -> bool {
    owners.get(owner).is_some_and(|state| state.running)
}

fn kind_mut<'a, O>(
    kinds: &'a mut HashMap<GroupKind, KindState<O>>,
    resource: &Resource,
) -> &'a mut KindState<O> {
    let kind = kinds
        .entry(resource.group_kind.clone())
        .or_insert_with(|| KindState {
            resource: resource.clone(),
            objects: HashMap::new(),
            selections: Selections::default(),
            listing: 0,
            position: 0,
            gone: false,
            uses: 0,
        });
    if kind.resource != *resource {
        kind.resource.clone_from(resource);
    }
    kind.uses += 1;
    kind
}

fn register<'a, O>(
    kinds: &'a mut HashMap<GroupKind, KindState<O>>,
    target: &Target,
) -> &'a mut ObjectState<O> {
    let kind = kind_mut(kinds, &target.resource());
    let (listing, gone) = (kind.listing, kind.gone);
    kind.objects
        .entry(ObjectKey::of(&target.reference))
        .or_insert_with(|| {
            let latest = if gone {
                Latest::Absent { at: 0 }
            } else {
                Latest::Unknown
            };
            ObjectState::new(latest, listing)
        })
}

fn object_mut<'a, O>(
    kinds: &'a mut HashMap<GroupKind, KindState<O>>,
    reference: &ResourceRef,
) -> Option<&'a mut ObjectState<O>> {
    kinds
        .get_mut(&reference.group_kind)?
        .objects
        .get_mut(&ObjectKey::of(reference))
}

/// The strongest effect so far, and its cause.
#[derive(Default)]
struct Due(Option<(Effect, Cause)>);

impl Due {
    fn add(&mut self, effect: Effect, cause: Cause) {
        if self.0.as_ref().is_none_or(|(known, _)| effect > *known) {
            self.0 = Some((effect, cause));
        }
    }

    fn push<O: Clone>(self, owner: &O, wakes: &mut Vec<Wake<O>>) {
        if let Some((effect, cause)) = self.0 {
            wakes.push(Wake {
                owner: owner.clone(),
                effect,
                cause,
            });
        }
    }
}

/// All that was said of one object.
struct Merged {
    target: Target,
    effects: Effects,
    /// As it was looked up, or else as it was first said to be.
    seen: Seen,
    looked_up: bool,
    all: Vec<Seen>,
}

fn merge(objects: Vec<Dependency>) -> HashMap<ResourceRef, Merged> {
    let mut merged: HashMap<ResourceRef, Merged> = HashMap::with_capacity(objects.len());
    for Dependency { target, role, seen } in objects {
        let effects = Effects::of(role);
        let looked_up = role == Role::Input && seen != Seen::Unseen;
        match merged.get_mut(&target.reference) {
            None => {
                let entry = Merged {
                    effects,
                    seen: seen.clone(),
                    looked_up,
                    all: vec![seen],
                    target,
                };
                merged.insert(entry.target.reference.clone(), entry);
            }
            Some(entry) => {
                entry.effects = entry.effects.and(effects);
                if entry.seen == Seen::Unseen || (looked_up && !entry.looked_up) {
                    entry.seen = seen.clone();
                    entry.looked_up = looked_up;
                }
                entry.all.push(seen);
            }
        }
    }
    merged
}

#[cfg(test)]
mod tests;
