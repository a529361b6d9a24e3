//! Owners that are due, each once: bounded by the number of owners, and nothing is lost.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;

use crate::dependency::{Cause, Effect, Wake};

/// A queue in the order of first wake, in which a second wake of an owner only strengthens the first.
#[derive(Debug)]
pub(crate) struct PendingWakes<O> {
    order: VecDeque<O>,
    wakes: HashMap<O, (Effect, Cause)>,
}

impl<O> Default for PendingWakes<O> {
    fn default() -> Self {
        Self {
            order: VecDeque::new(),
            wakes: HashMap::new(),
        }
    }
}

impl<O: Clone + Eq + Hash> PendingWakes<O> {
    pub(crate) fn add(&mut self, wake: Wake<O>) {
        if let Some(known) = self.wakes.get_mut(&wake.owner) {
            if wake.effect > known.0 {
                *known = (wake.effect, wake.cause);
            }
        } else {
            self.order.push_back(wake.owner.clone());
            self.wakes.insert(wake.owner, (wake.effect, wake.cause));
        }
    }

    pub(crate) fn next(&mut self) -> Option<Wake<O>> {
        let owner = self.order.pop_front()?;
        let (effect, cause) = self.wakes.remove(&owner)?;
        Some(Wake {
            owner,
            effect,
            cause,
        })
    }

    /// Drops the wake of an owner that is about to do what this effect asks for.
    pub(crate) fn settle(&mut self, owner: &O, by: Effect) {
        if self
            .wakes
            .get(owner)
            .is_some_and(|(effect, _)| *effect <= by)
        {
            self.remove(owner);
        }
    }

    pub(crate) fn remove(&mut self, owner: &O) {
        if self.wakes.remove(owner).is_some() {
            self.order.retain(|other| other != owner);
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.wakes.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use atc_api::ResourceRef;

    fn wake(owner: &'static str, effect: Effect, name: &str) -> Wake<&'static str> {
        Wake {
            owner,
            effect,
            cause: Cause::Object(ResourceRef::new("", "", "Secret", name)),
        }
    }

    #[test]
    fn coalesces_by_owner_and_keeps_the_strongest() {
        let mut pending = PendingWakes::default();
        pending.add(wake("a", Effect::StatusOnly, "1"));
        pending.add(wake("b", Effect::Evaluate, "2"));
        pending.add(wake("a", Effect::Evaluate, "3"));
        pending.add(wake("b", Effect::StatusOnly, "4"));
        assert_eq!(pending.len(), 2);
        assert_eq!(pending.next(), Some(wake("a", Effect::Evaluate, "3")));
        assert_eq!(pending.next(), Some(wake("b", Effect::Evaluate, "2")));
        assert_eq!(pending.next(), None);
    }

    #[test]
    fn removes() {
        let mut pending = PendingWakes::default();
        pending.add(wake("a", Effect::StatusOnly, "1"));
        pending.add(wake("b", Effect::StatusOnly, "2"));
        pending.add(wake("c", Effect::Evaluate, "2"));
        pending.settle(&"a", Effect::StatusOnly);
        pending.settle(&"c", Effect::StatusOnly);
        assert_eq!(pending.len(), 2);
        pending.settle(&"c", Effect::Evaluate);
        pending.remove(&"d");
        pending.add(wake("a", Effect::StatusOnly, "3"));
        assert_eq!(pending.next(), Some(wake("b", Effect::StatusOnly, "2")));
        assert_eq!(pending.next(), Some(wake("a", Effect::StatusOnly, "3")));
        assert_eq!(pending.next(), None);
    }
}
