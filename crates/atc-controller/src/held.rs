//! The instances of one kind that are being deleted and are still there, with what the last try to remove each came to: what
//! their Airway says of them.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use atc_api::ResourceRef;

/// Instances that an Airway names with what holds them: 3. The others are counted; each says it itself.
const NAMED: usize = 3;

/// Characters of what holds one: 400, so that three of them can be read in one message.
const WHY_MAX: usize = 400;

/// What the last try to remove an instance came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hold {
    /// In words.
    pub(crate) why: String,
    /// The API server does not let it go, since it does not fit the schema of its kind.
    pub(crate) unfit: bool,
}

/// See the module's words. As many as there are instances, at most.
#[derive(Debug, Default)]
pub(crate) struct Held(Mutex<BTreeMap<ResourceRef, Hold>>);

impl Held {
    fn table<T>(&self, with: impl FnOnce(&mut BTreeMap<ResourceRef, Hold>) -> T) -> T {
        with(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Takes what holds an instance, or that nothing does. Whether its Airway has to hear of it: it does not fit its schema, or
    /// did not.
    pub(crate) fn note(&self, target: &ResourceRef, hold: Option<Hold>) -> bool {
        self.table(|table| {
            let unfit = |hold: Option<&Hold>| hold.is_some_and(|hold| hold.unfit);
            let before = table.remove(target);
            let news = (unfit(before.as_ref()) || unfit(hold.as_ref())) && before != hold;
            if let Some(hold) = hold {
                table.insert(target.clone(), hold);
            }
            news
        })
    }

    /// Those that do not fit their schema.
    pub(crate) fn unfit(&self) -> Vec<ResourceRef> {
        self.table(|table| {
            let unfit = table.iter().filter(|(_, hold)| hold.unfit);
            unfit.map(|(target, _)| target.clone()).collect()
        })
    }

    /// What an Airway says that is being deleted. `left` are its instances, where it is known how many there are.
    pub(crate) fn waiting(&self, left: Option<usize>) -> String {
        match left {
            None => "waiting for its instances and its CustomResourceDefinition to go".into(),
            Some(0) => "waiting for its CustomResourceDefinition to go".into(),
            Some(left) => self.table(|table| {
                let (s, named) = (plural(left), named(table.iter()));
                let words = format!("waiting for {left} instance{s} to go");
                if named.is_empty() {
                    words
                } else {
                    format!("{words}: {named}")
                }
            }),
        }
    }

    /// What an Airway says that lives: nothing, where all fit their schema.
    pub(crate) fn complaint(&self) -> Option<String> {
        self.table(|table| {
            let unfit: Vec<_> = table.iter().filter(|(_, hold)| hold.unfit).collect();
            let s = plural(unfit.len());
            let number = unfit.len();
            (number > 0).then(|| {
                let named = named(unfit.into_iter());
                format!("{number} instance{s} can't be let go: {named}")
            })
        })
    }
}

fn plural(number: usize) -> &'static str {
    if number == 1 { "" } else { "s" }
}

/// The first of them, by name, each with what holds it.
fn named<'a>(all: impl Iterator<Item = (&'a ResourceRef, &'a Hold)>) -> String {
    let one = |(target, hold): (&ResourceRef, &Hold)| {
        let why: String = hold.why.chars().take(WHY_MAX).collect();
        let cut = if why.len() < hold.why.len() {
            "…"
        } else {
            ""
        };
        let (namespace, name) = (&target.namespace, &target.name);
        let slash = if namespace.is_empty() { "" } else { "/" };
        format!("{namespace}{slash}{name}: {why}{cut}")
    };
    all.take(NAMED).map(one).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn instance(namespace: &str, name: &str) -> ResourceRef {
        ResourceRef::new(namespace, "x.dev", "App", name)
    }

    fn hold(why: &str, unfit: bool) -> Hold {
        Hold {
            why: why.into(),
            unfit,
        }
    }

    #[test]
    fn an_airway_says_how_many_it_waits_for_and_names_a_few() {
        let held = Held::default();
        let all = "waiting for its instances and its CustomResourceDefinition to go";
        assert_eq!(held.waiting(None), all);
        let crd = "waiting for its CustomResourceDefinition to go";
        assert_eq!(held.waiting(Some(0)), crd);
        assert_eq!(held.waiting(Some(1)), "waiting for 1 instance to go");
        held.note(&instance("n", "b"), Some(hold("no right", false)));
        held.note(&instance("", "a"), Some(hold("busy", false)));
        let two = "waiting for 2 instances to go: a: busy; n/b: no right";
        assert_eq!(held.waiting(Some(2)), two);
        for name in ["c", "d", "e"] {
            held.note(&instance("n", name), Some(hold(&"ä".repeat(500), false)));
        }
        let many = held.waiting(Some(5));
        let third = format!("; n/c: {}…", "ä".repeat(WHY_MAX));
        assert!(many.starts_with("waiting for 5 instances to go: a: busy; n/b: "));
        assert!(many.ends_with(&third), "{many}");
        assert_eq!(held.complaint(), None);
    }

    #[test]
    fn an_airway_hears_of_what_does_not_fit_its_schema() {
        let (held, a) = (Held::default(), instance("n", "a"));
        for (hold, news) in [
            (None, false),
            (Some(hold("x", false)), false),
            (Some(hold("invalid", true)), true),
            (Some(hold("invalid", true)), false),
            (Some(hold("invalid in two ways", true)), true),
        ] {
            assert_eq!(held.note(&a, hold.clone()), news, "{hold:?}");
        }
        held.note(&instance("n", "b"), Some(hold("busy", false)));
        assert_eq!(held.unfit(), std::slice::from_ref(&a));
        let words = "1 instance can't be let go: n/a: invalid in two ways";
        assert_eq!(held.complaint().as_deref(), Some(words));
        assert!(held.note(&a, None) && !held.note(&a, None));
        assert_eq!((held.complaint(), held.unfit()), (None, Vec::new()));
    }
}
