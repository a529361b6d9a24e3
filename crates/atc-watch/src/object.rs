//! What is known of one object, and what each of its owners has seen of it.

use std::collections::HashMap;
use std::hash::Hash;

use atc_api::{GroupKind, ResourceRef};

use crate::change::{Change, Latest, Seen, change, newer_or_unordered, number};
use crate::dependency::{Cause, Effect, Effects, Role, Wake};
use crate::wire::Metadata;

/// An object within its kind.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ObjectKey {
    namespace: String,
    name: String,
}

#[derive(Debug)]
pub(crate) struct ObjectState<O> {
    pub(crate) latest: Latest,
    /// The uid of an object that a run found gone before the watch said so: what the watch still shows of it lags.
    dead: Option<String>,
    /// The list during which it was registered: later ones decide about it.
    pub(crate) since: u64,
    /// The last list that showed it.
    pub(crate) listed: u64,
    pub(crate) owners: HashMap<O, Entry>,
}

#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) effects: Effects,
    /// What the owner has seen, has been woken for, or has been handed at the beginning of a run.
    pub(crate) base: Seen,
    /// The uid that was there before the current (or last) run read: if that run sees nothing, it is dead.
    before: Option<String>,
}

impl ObjectKey {
    pub(crate) fn of(reference: &ResourceRef) -> Self {
        Self {
            namespace: reference.namespace.clone(),
            name: reference.name.clone(),
        }
    }

    pub(crate) fn new(metadata: &Metadata) -> Self {
        Self {
            namespace: metadata.namespace.clone(),
            name: metadata.name.clone(),
        }
    }

    pub(crate) fn reference(&self, kind: &GroupKind) -> ResourceRef {
        ResourceRef {
            namespace: self.namespace.clone(),
            group_kind: kind.clone(),
            name: self.name.clone(),
        }
    }
}

impl<O> ObjectState<O> {
    pub(crate) fn new(latest: Latest, since: u64) -> Self {
        Self {
            latest,
            dead: None,
            since,
            listed: 0,
            owners: HashMap::new(),
        }
    }

    /// Moves latest on, unless the news is lagging. Returns whether owners must be tested.
    pub(crate) fn advance(&mut self, news: Latest) -> bool {
        let uid = news.uid();
        if uid.is_some() && uid == self.dead.as_deref() {
            return false;
        }
        let moves = match (&self.latest, &news) {
            (_, Latest::Unknown) => false,
            (Latest::Unknown, _) => true,
            (Latest::Absent { at }, Latest::Absent { at: later }) => later > at,
            (Latest::Absent { at }, Latest::Present(news)) => {
                number(&news.resource_version).is_none_or(|version| version > *at)
            }
            (Latest::Present(old), Latest::Present(news)) => {
                // The same version may be better known now.
                !old.same_version(news)
                    && newer_or_unordered(&news.resource_version, &old.resource_version)
                    || old.same_version(news) && old.is_bare()
            }
            (Latest::Present(old), Latest::Absent { at }) => {
                number(&old.resource_version).is_none_or(|version| *at > version)
            }
        };
        if moves {
            self.latest = news;
        }
        moves
    }

    /// The watch says that this very object is gone: so it is, at a version after all that were seen of it.
    pub(crate) fn deleted(&mut self, metadata: &Metadata) -> bool {
        let at = number(&metadata.resource_version).unwrap_or_default();
        let after = match &self.latest {
            Latest::Present(old) if old.uid == metadata.uid => {
                number(&old.resource_version).unwrap_or_default()
            }
            Latest::Absent { at } if self.dead.as_ref() == Some(&metadata.uid) => *at,
            _ => return self.advance(Latest::Absent { at }),
        };
        self.latest = Latest::Absent {
            at: at.max(after.saturating_add(1)),
        };
        true
    }

    /// A complete list shows it: whatever a run found gone, it is there.
    pub(crate) fn on_list(&mut self, listing: u64) {
        if self.since < listing {
            self.listed = listing;
            self.dead = None;
        }
    }

    /// It is not on a complete list at this version.
    pub(crate) fn not_listed(&mut self, at: Option<u64>) -> bool {
        if let Some(at) = at {
            return self.advance(Latest::Absent { at });
        }
        // No order, but a list is the truth.
        let was_absent = matches!(self.latest, Latest::Absent { .. });
        self.latest = Latest::Absent { at: 0 };
        !was_absent
    }

    /// The API server does not know the kind: nothing of it is there, since a version that nobody can tell.
    pub(crate) fn kind_gone(&mut self) {
        self.latest = Latest::Absent { at: 0 };
        self.dead = None;
    }
}

impl<O: Clone + Eq + Hash> ObjectState<O> {
    /// What the owner has seen; nothing yet where it is new.
    pub(crate) fn entry(&mut self, owner: &O) -> &mut Entry {
        self.owners.entry(owner.clone()).or_insert_with(|| Entry {
            effects: Effects::of(Role::Input),
            base: Seen::Unseen,
            before: None,
        })
    }

    /// Before a run reads: what is known by now is handed to it. Adds the owner where it is new.
    pub(crate) fn hand_over(&mut self, owner: &O) {
        let latest = self.latest.clone();
        let entry = self.entry(owner);
        entry.before = latest.uid().map(str::to_owned);
        if entry.base == Seen::Unseen || change(&entry.base, &latest).is_some() {
            entry.take(&latest);
        }
    }

    /// A run of this owner saw this, which is news where it is newer than what the watch has shown. Returns whether
    /// the others must be tested.
    pub(crate) fn adopt(&mut self, owner: &O, seen: &Seen) -> bool {
        match seen {
            Seen::Unseen => false,
            // Without an order nothing tells which of the two is newer.
            Seen::Present(fingerprint)
                if self.latest != Latest::Unknown
                    && number(&fingerprint.resource_version).is_none() =>
            {
                false
            }
            Seen::Present(fingerprint) => self.advance(Latest::Present(fingerprint.clone())),
            Seen::Absent => self.adopt_absence(owner),
        }
    }

    /// If the watch still shows the object that it showed before the run read that there is none, it lags.
    fn adopt_absence(&mut self, owner: &O) -> bool {
        match &self.latest {
            Latest::Unknown => {
                self.latest = Latest::Absent { at: 0 };
                true
            }
            Latest::Absent { .. } => false,
            Latest::Present(old) => {
                let before = self
                    .owners
                    .get(owner)
                    .and_then(|entry| entry.before.as_ref());
                if before != Some(&old.uid) {
                    return false;
                }
                self.dead = Some(old.uid.clone());
                self.latest = Latest::Absent {
                    at: number(&old.resource_version).unwrap_or_default(),
                };
                true
            }
        }
    }

    /// Whether this owner is due; from then on it counts as woken.
    pub(crate) fn test(&mut self, owner: &O) -> Option<Effect> {
        self.owners.get_mut(owner)?.test(&self.latest)
    }

    /// The same at the end of a run during which the kind vanished: what the run still saw is gone.
    pub(crate) fn test_vanished(&mut self, owner: &O) -> Option<Effect> {
        let entry = self.owners.get_mut(owner)?;
        let was_there = matches!(entry.base, Seen::Present(_));
        if matches!(self.latest, Latest::Absent { .. }) {
            entry.base = Seen::Absent;
        }
        if was_there {
            entry.effects.on(Change::Drift)
        } else {
            entry.test(&self.latest)
        }
    }

    /// Tests all owners but those in a run.
    pub(crate) fn test_all(
        &mut self,
        reference: impl Fn() -> ResourceRef,
        running: impl Fn(&O) -> bool,
        wakes: &mut Vec<Wake<O>>,
    ) {
        for (owner, entry) in self.owners.iter_mut().filter(|(owner, _)| !running(owner)) {
            if let Some(effect) = entry.test(&self.latest) {
                wakes.push(Wake {
                    owner: owner.clone(),
                    effect,
                    cause: Cause::Object(reference()),
                });
            }
        }
    }
}

impl Entry {
    fn test(&mut self, latest: &Latest) -> Option<Effect> {
        let Some(change) = change(&self.base, latest) else {
            if let (Seen::Present(base), Latest::Present(latest)) = (&mut self.base, latest)
                && base.is_bare()
                && base.same_version(latest)
            {
                base.clone_from(latest);
            }
            return None;
        };
        self.take(latest);
        self.effects.on(change)
    }

    fn take(&mut self, latest: &Latest) {
        match latest {
            Latest::Unknown => {}
            Latest::Absent { .. } => self.base = Seen::Absent,
            Latest::Present(fingerprint) => self.base = Seen::Present(fingerprint.clone()),
        }
    }
}
