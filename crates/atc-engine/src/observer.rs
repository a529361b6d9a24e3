//! What an evaluation tells the watches, and what it asks them: the port between one instance and [`atc_watch`].

use std::fmt::Debug;
use std::hash::Hash;
use std::sync::Arc;

use atc_api::ResourceRef;
use atc_release::readiness::Verdict;
use atc_watch::{Dependencies, Latest, Selection, Target, WatchHub};

/// One instance's side of the watches.
///
/// [`interest`](Self::interest) is called before each look-up reads, so that nothing falls between look-up and watch.
pub trait Observer: Send + Sync {
    /// This is about to be read or applied.
    fn interest(&self, target: &Target);

    /// These are about to be listed.
    fn interest_in(&self, selection: &Selection);

    /// What the watch shows of an object that is tracked; `Unknown` where nothing is watched.
    fn latest(&self, reference: &ResourceRef) -> Latest;

    /// The newest version of any change among these; `None` where nothing can be said.
    fn latest_in(&self, selection: &Selection) -> Option<u64>;

    /// Whether an instance has made this object, as far as the watches know.
    fn is_made(&self, _: &ResourceRef) -> bool {
        false
    }

    /// Whether [`latest`](Self::latest) follows what interest was told in; where not, whoever waits watches by itself.
    fn follows(&self) -> bool {
        false
    }

    /// How far a takeoff is, for somebody who looks on.
    fn progress(&self, _: Progress<'_>) {}
}

/// A step of a takeoff or of a wait.
#[derive(Clone, Copy, Debug)]
pub enum Progress<'a> {
    /// The objects of a stage are applied now.
    Applying {
        /// From 1.
        stage: usize,
        /// How many there are.
        stages: usize,
        /// How many objects are sent.
        objects: usize,
    },
    /// An object is waited for, and stands like this; told first and whenever it changes.
    Waiting {
        /// The object.
        object: &'a ResourceRef,
        /// How it stands.
        verdict: &'a Verdict,
    },
    /// Objects that are no longer wanted are removed now.
    Removing {
        /// How many are deleted.
        objects: usize,
    },
}

/// Nothing is watched: a command line, an admission review.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoObserver;

impl Observer for NoObserver {
    fn interest(&self, _: &Target) {}

    fn interest_in(&self, _: &Selection) {}

    fn latest(&self, _: &ResourceRef) -> Latest {
        Latest::Unknown
    }

    fn latest_in(&self, _: &Selection) -> Option<u64> {
        None
    }
}

/// Runs of one instance against the watches: begin, then commit or fail.
pub trait InstanceObserver: Observer {
    /// An evaluation begins: until [`commit`](Self::commit) or [`fail`](Self::fail) nothing wakes this owner, and what
    /// was to wake it is settled by the run.
    fn begin(&self);

    /// The same for a look at the status, which leaves a wake to evaluate as it is.
    fn begin_look(&self);

    /// The run ended well: these are its dependencies from now on.
    fn commit(&self, dependencies: Dependencies);

    /// The run failed: what was tracked stays, and these are added.
    fn fail(&self, dependencies: Dependencies);

    /// The same as what a flight's host can hold.
    fn share(&self) -> Arc<dyn Observer>;
}

/// One owner of a [`WatchHub`].
#[derive(Clone)]
pub struct Watched<O: Clone + Eq + Hash + Debug + Send + Sync + 'static> {
    hub: WatchHub<O>,
    owner: O,
}

impl<O: Clone + Eq + Hash + Debug + Send + Sync + 'static> Watched<O> {
    /// The side of `owner`.
    pub fn new(hub: WatchHub<O>, owner: O) -> Self {
        Self { hub, owner }
    }
}

impl<O: Clone + Eq + Hash + Debug + Send + Sync + 'static> InstanceObserver for Watched<O> {
    fn begin(&self) {
        self.hub.begin_evaluation(&self.owner);
    }

    fn begin_look(&self) {
        self.hub.begin(&self.owner);
    }

    fn commit(&self, dependencies: Dependencies) {
        self.hub.commit(&self.owner, dependencies);
    }

    fn fail(&self, dependencies: Dependencies) {
        self.hub.fail(&self.owner, dependencies);
    }

    fn share(&self) -> Arc<dyn Observer> {
        Arc::new(self.clone())
    }
}

impl<O: Clone + Eq + Hash + Debug + Send + Sync + 'static> Observer for Watched<O> {
    fn interest(&self, target: &Target) {
        self.hub.interest(&self.owner, target);
    }

    fn interest_in(&self, selection: &Selection) {
        self.hub.interest_in(&self.owner, selection);
    }

    fn latest(&self, reference: &ResourceRef) -> Latest {
        self.hub.latest(reference)
    }

    fn latest_in(&self, selection: &Selection) -> Option<u64> {
        self.hub.latest_in(selection)
    }

    fn is_made(&self, reference: &ResourceRef) -> bool {
        self.hub.is_made(reference)
    }

    fn follows(&self) -> bool {
        true
    }
}
