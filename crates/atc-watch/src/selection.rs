//! Dependence on all objects with a label: the newest resourceVersion of any change among them, compared with the one
//! of the list that a run read.

use std::collections::HashMap;
use std::hash::Hash;

use crate::change::number;
use crate::dependency::{Cause, Effect, Resource, Selection, Wake};
use crate::wire::Metadata;

/// Namespace, label key, label value.
type Key = (String, String, String);

/// The selections of one kind.
#[derive(Debug)]
pub(crate) struct Selections<O> {
    states: HashMap<Key, State<O>>,
}

#[derive(Debug)]
struct State<O> {
    /// Newest version of any change of any of the objects that the watch has shown.
    latest: u64,
    owners: HashMap<O, Entry>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    effect: Effect,
    /// What the owner knows or has been woken for.
    base: u64,
}

impl<O> Default for Selections<O> {
    fn default() -> Self {
        Self {
            states: HashMap::new(),
        }
    }
}

fn key(selection: &Selection) -> Key {
    (
        selection.namespace.clone(),
        selection.label.clone(),
        selection.value.clone(),
    )
}

impl<O: Clone + Eq + Hash> Selections<O> {
    pub(crate) fn is_empty(&self) -> bool {
        self.states.is_empty()
    }

    /// Newest version of any change among the objects; 0 where none was shown.
    pub(crate) fn latest(&self, selection: &Selection) -> u64 {
        self.states
            .get(&key(selection))
            .map_or(0, |state| state.latest)
    }

    /// Before a run: what is known by now is handed to it. Adds the owner where it is new.
    pub(crate) fn hand_over(&mut self, owner: &O, selection: &Selection) {
        let state = self.states.entry(key(selection)).or_insert_with(|| State {
            latest: 0,
            owners: HashMap::new(),
        });
        let entry = state.owners.entry(owner.clone()).or_insert(Entry {
            effect: Effect::StatusOnly,
            base: state.latest,
        });
        entry.base = entry.base.max(state.latest);
    }

    /// After a run.
    pub(crate) fn store(&mut self, owner: &O, selection: &Selection, effect: Effect, seen: u64) {
        self.hand_over_unless_there(owner, selection);
        if let Some(entry) = self
            .states
            .get_mut(&key(selection))
            .and_then(|state| state.owners.get_mut(owner))
        {
            entry.effect = effect;
            if seen > 0 {
                entry.base = seen;
            }
        }
    }

    fn hand_over_unless_there(&mut self, owner: &O, selection: &Selection) {
        let there = self
            .states
            .get(&key(selection))
            .is_some_and(|state| state.owners.contains_key(owner));
        if !there {
            self.hand_over(owner, selection);
        }
    }

    pub(crate) fn remove(&mut self, owner: &O, selection: &Selection) {
        let key = key(selection);
        if let Some(state) = self.states.get_mut(&key) {
            state.owners.remove(owner);
            if state.owners.is_empty() {
                self.states.remove(&key);
            }
        }
    }

    /// Whether the owner is due; from then on it counts as woken.
    pub(crate) fn test(&mut self, owner: &O, selection: &Selection) -> Option<Effect> {
        let state = self.states.get_mut(&key(selection))?;
        let latest = state.latest;
        let entry = state.owners.get_mut(owner)?;
        (latest > entry.base).then(|| {
            entry.base = latest;
            entry.effect
        })
    }

    /// The watch showed a change of an object (also its end).
    pub(crate) fn observe(
        &mut self,
        resource: &Resource,
        metadata: &Metadata,
        running: impl Fn(&O) -> bool,
        wakes: &mut Vec<Wake<O>>,
    ) {
        if self.states.is_empty() {
            return;
        }
        for (label, value) in &metadata.labels.pairs {
            let key = (metadata.namespace.clone(), label.clone(), value.clone());
            if let Some(state) = self.states.get_mut(&key) {
                let version = number(&metadata.resource_version).unwrap_or(state.latest + 1);
                state.advance(version, &running, wakes, || cause(resource, &key));
            }
        }
    }

    /// A list is complete, or the kind is gone: objects may have vanished unseen, so everything counts as changed.
    pub(crate) fn all_changed(
        &mut self,
        resource: &Resource,
        version: Option<u64>,
        running: impl Fn(&O) -> bool,
        wakes: &mut Vec<Wake<O>>,
    ) {
        for (key, state) in &mut self.states {
            let known = state
                .owners
                .values()
                .map(|entry| entry.base)
                .fold(state.latest, u64::max);
            state.advance(version.unwrap_or(known + 1), &running, wakes, || {
                cause(resource, key)
            });
        }
    }
}

impl<O: Clone> State<O> {
    fn advance(
        &mut self,
        version: u64,
        running: &impl Fn(&O) -> bool,
        wakes: &mut Vec<Wake<O>>,
        cause: impl Fn() -> Cause,
    ) {
        self.latest = self.latest.max(version);
        for (owner, entry) in &mut self.owners {
            if self.latest > entry.base && !running(owner) {
                entry.base = self.latest;
                wakes.push(Wake {
                    owner: owner.clone(),
                    effect: entry.effect,
                    cause: cause(),
                });
            }
        }
    }
}

fn cause(resource: &Resource, key: &Key) -> Cause {
    Cause::Selection(Selection {
        resource: resource.clone(),
        namespace: key.0.clone(),
        label: key.1.clone(),
        value: key.2.clone(),
    })
}
