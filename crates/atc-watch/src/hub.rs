//! The tracker, fed by watches: what a controller holds.

use std::collections::HashMap;
use std::fmt::Debug;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use atc_api::{GroupKind, ResourceRef};
use kube::Client;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::change::{Latest, Seen};
use crate::dependency::{Effect, Resource, Selection, Target, Wake};
use crate::health::WatchHealth;
use crate::pool::WatchPool;
use crate::tracker::{Dependencies, Tracker};
use crate::wakes::PendingWakes;
use crate::watch::Feed;
use crate::wire::Object;

/// How long the watch of a kind outlives the last one who needed it: an instance that is deleted and made again should
/// not cost a new list. Looked at every [`SWEEP`].
pub const GRACE: Duration = Duration::from_secs(30);
/// How often unneeded watches are looked for.
pub const SWEEP: Duration = Duration::from_secs(10);

/// A watch that nothing was heard of for longer is not trusted. A sound one is renewed after 50 s at most.
pub const TRUST: Duration = Duration::from_mins(1);

/// Who depends on what, the watches that this takes, and who is due.
///
/// `O` names an owner: whoever runs and is woken. A clone is another handle to the same hub; when the last one is
/// dropped, all watches end.
///
/// # Guarantees
///
/// - A change of an object that an owner depends on makes it due, whenever the change happens, if the order
///   [`begin`](Self::begin), [`interest`](Self::interest) *before* each read or apply, [`commit`](Self::commit) or
///   [`fail`](Self::fail) is kept. Each change once: an owner that is due is not due again until there is another.
/// - No wake is sent to an owner while it runs.
/// - Events that lag behind what the owner read wake nobody.
/// - Nothing is kept of objects that nobody depends on.
/// - A broken connection, an API server that refuses or hangs, or a kind that vanishes harms its own watch only, which
///   tries again with waits of at most 30 s; a connection that has gone silent is noticed after 50 s.
///
/// # Caveats
///
/// - Watches are cluster-wide: the credentials need `list` and `watch` on each kind. Where they lack them,
///   [`health`](Self::health) says so and the owners are not woken.
/// - Each watch is a connection of its own. There are as many as kinds that owners depend on.
/// - Wakes are not kept for owners that fail to run: who takes a wake must run, or try again later.
pub struct WatchHub<O: Clone + Eq + Hash + Send + Sync + Debug + 'static>(Arc<Inner<O>>);

impl<O: Clone + Eq + Hash + Send + Sync + Debug + 'static> Clone for WatchHub<O> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

struct Inner<O: Clone + Eq + Hash + Send + Sync + Debug + 'static> {
    // Locked in this order where several are needed: tracker, wakes or the pool's own.
    tracker: Mutex<Tracker<O>>,
    wakes: Mutex<PendingWakes<O>>,
    woken: Notify,
    pool: WatchPool,
    feed: Weak<dyn Feed>,
}

impl<O: Clone + Eq + Hash + Send + Sync + Debug + 'static> WatchHub<O> {
    /// A hub without any watch yet.
    ///
    /// The client should have no read timeout below 60 s, or it ends quiet watches itself.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime, like the client itself.
    pub fn new(client: Client) -> Self {
        let runtime = Handle::current();
        let inner = Arc::new_cyclic(|weak: &Weak<Inner<O>>| Inner {
            tracker: Mutex::new(Tracker::new()),
            wakes: Mutex::new(PendingWakes::default()),
            woken: Notify::new(),
            pool: WatchPool::new(client, runtime.clone()),
            feed: weak.clone(),
        });
        runtime.spawn(sweep(Arc::downgrade(&inner)));
        Self(inner)
    }

    /// A run of this owner begins, of either effect. Until its end it is neither tested nor woken. Must be followed by
    /// [`commit`](Self::commit), [`fail`](Self::fail) or [`forget`](Self::forget), also when it panics or is cancelled.
    ///
    /// A wake for the status only that waits for the owner is dropped, since the run will see what caused it.
    pub fn begin(&self, owner: &O) {
        self.begin_with(owner, Effect::StatusOnly);
    }

    /// [`begin`](Self::begin) for a run that reads all inputs anew: drops any wake that waits for the owner.
    pub fn begin_evaluation(&self, owner: &O) {
        self.begin_with(owner, Effect::Evaluate);
    }

    fn begin_with(&self, owner: &O, effect: Effect) {
        let mut tracker = self.0.tracker();
        tracker.begin(owner);
        self.0.wakes().settle(owner, effect);
    }

    /// The run is about to look up, or to apply, this object. Returns at once; starts the watch of its kind.
    pub fn interest(&self, owner: &O, target: &Target) {
        let mut tracker = self.0.tracker();
        tracker.interest(owner, target);
        self.0.ensure(&target.reference.group_kind);
    }

    /// The run is about to list these objects. Returns at once; starts the watch of their kind.
    pub fn interest_in(&self, owner: &O, selection: &Selection) {
        let mut tracker = self.0.tracker();
        tracker.interest_in(owner, selection);
        self.0.ensure(&selection.resource.group_kind);
    }

    /// The run ended well; from now on the owner depends on this and nothing else. It may be due again at once.
    pub fn commit(&self, owner: &O, dependencies: impl Into<Dependencies>) {
        self.end(owner, dependencies.into(), Tracker::commit);
    }

    /// The run failed; the owner depends on what it did before, and on what the run showed interest in. What the run
    /// did read may be given. Makes the owner due only for what changed since the run began: trying again is up to the
    /// caller.
    pub fn fail(&self, owner: &O, reads: impl Into<Dependencies>) {
        self.end(owner, reads.into(), Tracker::fail);
    }

    fn end(
        &self,
        owner: &O,
        dependencies: Dependencies,
        store: impl FnOnce(&mut Tracker<O>, &O, Dependencies) -> Vec<Wake<O>>,
    ) {
        let kinds = dependencies.kinds();
        let mut tracker = self.0.tracker();
        let wakes = store(&mut tracker, owner, dependencies);
        self.0.send(wakes);
        for kind in &kinds {
            self.0.ensure(kind);
        }
    }

    /// Live objects were read for the status only, outside of a run: moves what the owner has seen of those that it
    /// depends on.
    pub fn refresh(&self, owner: &O, reads: impl IntoIterator<Item = (ResourceRef, Seen)>) {
        let mut tracker = self.0.tracker();
        let wakes = tracker.refresh(owner, reads);
        self.0.send(wakes);
    }

    /// The owner is gone. Watches that nobody else needs end after [`GRACE`].
    pub fn forget(&self, owner: &O) {
        let mut tracker = self.0.tracker();
        tracker.forget(owner);
        self.0.wakes().remove(owner);
    }

    /// The next owner that is due, in the order of first wake. Cancel-safe; may be awaited by several tasks.
    pub async fn next(&self) -> Wake<O> {
        loop {
            if let Some(wake) = self.try_next() {
                return wake;
            }
            self.0.woken.notified().await;
        }
    }

    /// The next owner that is due, if there is one now.
    pub fn try_next(&self) -> Option<Wake<O>> {
        let mut wakes = self.0.wakes();
        let wake = wakes.next()?;
        if wakes.len() > 0 {
            // Several may wait for what one notification told.
            self.0.woken.notify_one();
        }
        Some(wake)
    }

    /// How many owners are due and not yet taken.
    pub fn pending(&self) -> usize {
        self.0.wakes().len()
    }

    /// The newest resourceVersion of any change among these objects, 0 where none was shown; `None` while the watch of
    /// their kind can't be trusted. Two equal answers mean that nothing changed in between.
    pub fn latest_in(&self, selection: &Selection) -> Option<u64> {
        self.synced(&selection.resource.group_kind)
            .then(|| self.0.tracker().latest_in(selection))
    }

    /// The newest that is known of an object: what the watch should show if nobody interfered can be compared with it.
    ///
    /// [`Latest::Unknown`] for objects that nobody depends on, and while the watch of the kind is not
    /// [`synced`](Self::synced).
    pub fn latest(&self, reference: &ResourceRef) -> Latest {
        if self.synced(&reference.group_kind) {
            self.0.tracker().latest(reference)
        } else {
            Latest::Unknown
        }
    }

    /// Whether an owner has made this object.
    pub fn is_made(&self, reference: &ResourceRef) -> bool {
        self.0.tracker().is_made(reference)
    }

    /// Whether what is known of this kind can be trusted: a list has been complete since the kind was last unknown or
    /// forbidden, and the watch was heard of within [`TRUST`].
    pub fn synced(&self, kind: &GroupKind) -> bool {
        let status = self.0.pool.status(kind);
        status.is_some_and(|status| status.synced && status.contact.elapsed() <= TRUST)
    }

    /// A kind was installed: if its watch waits for that, it looks at once.
    pub fn installed(&self, kind: &GroupKind) {
        self.0.pool.nudge(kind);
    }

    /// How each watch fares, in order of kinds.
    pub fn health(&self) -> Vec<WatchHealth> {
        let now = Instant::now();
        let mut kinds = self.0.pool.kinds();
        kinds.sort();
        let tracker = self.0.tracker();
        let health = kinds.into_iter().filter_map(|kind| {
            let status = self.0.pool.status(&kind)?;
            Some(WatchHealth {
                resource: tracker.resource(&kind)?.clone(),
                state: status.state,
                synced: status.synced,
                silence: now.saturating_duration_since(status.contact),
                failures: status.failures,
                fault: status.fault,
                tracked: tracker.tracked(&kind),
            })
        });
        health.collect()
    }
}

impl<O: Clone + Eq + Hash + Send + Sync + Debug + 'static> Inner<O> {
    fn tracker(&self) -> MutexGuard<'_, Tracker<O>> {
        self.tracker.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wakes(&self) -> MutexGuard<'_, PendingWakes<O>> {
        self.wakes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// To be called with the tracker locked, so that starting and sweeping can't cross.
    fn ensure(&self, kind: &GroupKind) {
        self.pool.ensure(kind, &self.feed);
    }

    /// To be called with the tracker locked, so that no wake of before a run is sent after its beginning.
    fn send(&self, new: Vec<Wake<O>>) {
        if new.is_empty() {
            return;
        }
        let mut wakes = self.wakes();
        for wake in new {
            tracing::debug!(owner = ?wake.owner, effect = ?wake.effect, cause = %wake.cause, "due");
            wakes.add(wake);
        }
        self.woken.notify_one();
    }

    /// Ends watches that nobody has needed for [`GRACE`], and starts again those that ended by themselves.
    fn sweep(&self, idle: &mut HashMap<GroupKind, (u64, Instant)>) {
        let now = Instant::now();
        let mut tracker = self.tracker();
        let kinds: HashMap<GroupKind, u64> = tracker.idle_kinds().into_iter().collect();
        idle.retain(|kind, (uses, _)| kinds.get(kind) == Some(uses));
        for (kind, uses) in kinds {
            let (_, since) = *idle.entry(kind.clone()).or_insert((uses, now));
            if now.duration_since(since) >= GRACE && tracker.drop_idle(&kind) {
                self.pool.stop(&kind);
                idle.remove(&kind);
            }
        }
        for Resource { group_kind, .. } in tracker.kinds() {
            self.pool.restart_if_dead(&group_kind, &self.feed);
        }
    }
}

impl<O: Clone + Eq + Hash + Send + Sync + Debug + 'static> Feed for Inner<O> {
    fn resource(&self, kind: &GroupKind) -> Option<Resource> {
        self.tracker().resource(kind).cloned()
    }

    fn list_begins(&self, kind: &GroupKind, version: &str) -> u64 {
        self.tracker().list_begins(kind, version)
    }

    fn listed(&self, kind: &GroupKind, listing: u64, objects: &[Object]) {
        let mut tracker = self.tracker();
        for object in objects {
            let wakes = tracker.listed(kind, listing, object);
            self.send(wakes);
        }
    }

    fn list_ends(&self, kind: &GroupKind, listing: u64, version: &str) {
        let mut tracker = self.tracker();
        let wakes = tracker.list_ends(kind, listing, version);
        self.send(wakes);
    }

    fn changed(&self, kind: &GroupKind, object: &Object) {
        let mut tracker = self.tracker();
        let wakes = tracker.changed(kind, object);
        self.send(wakes);
    }

    fn deleted(&self, kind: &GroupKind, object: &Object) {
        let mut tracker = self.tracker();
        let wakes = tracker.deleted(kind, object);
        self.send(wakes);
    }

    fn passed(&self, kind: &GroupKind, version: &str) {
        self.tracker().passed(kind, version);
    }

    fn kind_gone(&self, kind: &GroupKind) {
        let mut tracker = self.tracker();
        let wakes = tracker.kind_gone(kind);
        self.send(wakes);
    }
}

async fn sweep<O: Clone + Eq + Hash + Send + Sync + Debug + 'static>(hub: Weak<Inner<O>>) {
    let mut idle = HashMap::new();
    let mut ticks = interval(SWEEP);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let Some(hub) = hub.upgrade() else { return };
        hub.sweep(&mut idle);
    }
}

#[cfg(test)]
mod tests;
