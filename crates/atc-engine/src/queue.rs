//! Keyed queue: order per key, coalescing while a run is on, token buckets, backoff, fair turns between lanes.
//!
//! [`Queue`] is plain data: time comes in as an argument, so tests need no clock. [`SharedQueue`] lets tasks wait on it.
//!
//! *Guarantees*: a key never runs twice at once; what is pushed while it runs leads to exactly one further run; a lane
//! with many keys cannot keep another lane from its turn; the queue holds one entry a key, however often it is pushed.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt::Debug;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use atc_api::ResourceRef;
use atc_watch::{Cause as WakeCause, Effect, Wake, WatchHub};
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::disposition::{Disposition, backoff};

/// Wakes by a key's own children, and by those of others that it looked up, that may follow each other at once; further
/// ones come at [`CHILD_REFILL`].
pub const CHILD_BURST: f64 = 5.0;
/// One more wake by children each such time: a child that somebody rewrites all the time costs one run a second at first, and
/// less by and by, see [`Disposition::Paced`].
pub const CHILD_REFILL: Duration = Duration::from_secs(1);

/// Looks at the status because of children come this much later, so that one look serves a burst of changes: what a
/// Deployment and its EndpointSlices go through in their first moments.
pub const LOOK_DELAY: Duration = Duration::from_millis(100);

/// A key belongs to a lane; lanes take fair turns.
pub trait Keyed: Clone + Eq + Hash + Debug + Send + Sync + 'static {
    /// The lane's name, an Airway's for example.
    fn lane(&self) -> &str;
}

/// Why a key was pushed; the deciding code never sees it, the queue and the log do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The object itself was made or edited, or its Airway was.
    Edit(String),
    /// Something it looked up changed.
    Input(String),
    /// Something it looked up changed that another of ours made, which may have looked up what this one makes.
    Peer(String),
    /// One of its own children, or what their readiness rests on, changed.
    Child(String),
    /// A rule of readiness changed that may be for its children.
    Rule(String),
    /// Others changed its status.
    Status(String),
    /// Its drift interval or its backoff is over.
    Timer,
}

impl Cause {
    /// Of a wake by the watches. `own` says whether the owner made a changed object itself, or is it: that is paced, and so
    /// is what another owner made, since it may be the cause of their changes.
    pub fn of_wake<O>(
        wake: &Wake<O>,
        hub: &WatchHub<O>,
        own: impl FnOnce(&ResourceRef) -> bool,
    ) -> Self
    where
        O: Clone + Eq + Hash + Send + Sync + Debug + 'static,
    {
        let what = wake.cause.to_string();
        match &wake.cause {
            WakeCause::Object(changed) if !own(changed) => {
                if hub.is_made(changed) {
                    Self::Peer(what)
                } else {
                    Self::Input(what)
                }
            }
            WakeCause::Object(_) | WakeCause::Selection(_) => Self::Child(what),
        }
    }

    /// Whether wakes like this have a token bucket, and do not end a backoff: their number is in others' hands.
    fn is_paced(&self) -> bool {
        match self {
            Self::Peer(_) | Self::Child(_) | Self::Rule(_) | Self::Status(_) => true,
            Self::Edit(_) | Self::Input(_) | Self::Timer => false,
        }
    }
}

impl std::fmt::Display for Cause {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Edit(what) => write!(f, "edit of {what}"),
            Self::Input(what) => write!(f, "change of {what}, which was looked up"),
            Self::Peer(what) => write!(f, "change of {what}, which it looked up and another made"),
            Self::Child(what) => write!(f, "change of {what}, which it made"),
            Self::Rule(what) => write!(f, "change of the readiness rules in {what}"),
            Self::Status(what) => write!(f, "change of the status of {what} by others"),
            Self::Timer => f.write_str("timer"),
        }
    }
}

/// What a run is to do, and why.
#[derive(Clone, Debug)]
pub struct Work {
    /// Whether the flight is evaluated or only the status looked at.
    pub effect: Effect,
    /// The first reason since the last run.
    pub cause: Cause,
}

/// Bounds of a queue.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Runs at once over all lanes.
    pub total: usize,
    /// Runs at once of one lane.
    pub per_lane: usize,
}

impl Limits {
    /// `total` runs at once, half of them (at least one) for one lane at most.
    pub fn new(total: usize) -> Self {
        let total = total.max(1);
        Self {
            total,
            per_lane: (total / 2).max(1),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Idle,
    Ready,
    Running,
}

/// What a timer of a key is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TimerKind {
    /// Its drift interval or its backoff: an evaluation.
    Again,
    /// Its bucket has a token again: what is pending.
    Bucket,
}

type Slot = (Instant, u64);

#[derive(Debug)]
struct Entry {
    state: State,
    pending: Option<Work>,
    /// What the present run does.
    running: Effect,
    again: Option<Slot>,
    bucket: Option<Slot>,
    failures: u32,
    tokens: f64,
    refilled: Instant,
    /// No evaluation for what instances make comes before this.
    rests_until: Option<Instant>,
    /// Dropped when the present run ends.
    forgotten: bool,
}

/// See the module's words.
#[derive(Debug)]
pub struct Queue<K> {
    limits: Limits,
    entries: HashMap<K, Entry>,
    lanes: HashMap<String, VecDeque<K>>,
    turns: VecDeque<String>,
    timers: BTreeMap<Slot, (K, TimerKind)>,
    ticket: u64,
    running: usize,
    running_in: HashMap<String, usize>,
}

impl<K: Keyed> Queue<K> {
    /// An empty queue.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            entries: HashMap::new(),
            lanes: HashMap::new(),
            turns: VecDeque::new(),
            timers: BTreeMap::new(),
            ticket: 0,
            running: 0,
            running_in: HashMap::new(),
        }
    }

    /// Keys known, for metrics and tests.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether no key is known.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Asks for a run of `key`. Coalesces with what is asked for already; the greater effect wins, and a cause that is
    /// not rate-limited replaces one that is.
    pub fn push(&mut self, key: &K, work: Work, now: Instant) {
        let child = work.cause.is_paced();
        let entry = self
            .entries
            .entry(key.clone())
            .or_insert_with(|| Entry::new(now));
        entry.forgotten = false;
        if !child {
            entry.failures = 0;
        }
        // What waits for its bucket goes on waiting, unless something came that need not.
        let greater = |before: &Work| work.effect > before.effect;
        let waits_on =
            entry.bucket.is_some() && child && !entry.pending.as_ref().is_some_and(greater);
        entry.pending = Some(match entry.pending.take() {
            Some(before) => Work {
                effect: before.effect.max(work.effect),
                cause: match before.cause {
                    Cause::Timer if !child => work.cause,
                    cause if cause.is_paced() && !child => work.cause,
                    cause => cause,
                },
            },
            None => work,
        });
        if entry.state == State::Idle && !waits_on {
            self.schedule(key, now);
        }
    }

    /// Puts an idle key with pending work into its lane, now or when its bucket allows.
    fn schedule(&mut self, key: &K, now: Instant) {
        let Some(entry) = self.entries.get_mut(key) else {
            return;
        };
        let Some(work) = &entry.pending else { return };
        let look = work.effect == Effect::StatusOnly;
        let wait = if work.cause.is_paced() {
            let token = entry.take_token(now).or(look.then_some(now + LOOK_DELAY));
            let rest = entry.rests_until.filter(|at| !look && *at > now);
            token.max(rest)
        } else {
            None
        };
        match wait {
            None => self.make_ready(key),
            Some(at) => self.set_timer(key, at, TimerKind::Bucket),
        }
    }

    fn set_timer(&mut self, key: &K, at: Instant, kind: TimerKind) {
        self.ticket += 1;
        let slot = (at, self.ticket);
        let Some(entry) = self.entries.get_mut(key) else {
            return;
        };
        let place = match kind {
            TimerKind::Again => &mut entry.again,
            TimerKind::Bucket => &mut entry.bucket,
        };
        if let Some(before) = place.replace(slot) {
            self.timers.remove(&before);
        }
        self.timers.insert(slot, (key.clone(), kind));
    }

    fn make_ready(&mut self, key: &K) {
        let Some(entry) = self.entries.get_mut(key) else {
            return;
        };
        entry.state = State::Ready;
        if let Some(slot) = entry.bucket.take() {
            self.timers.remove(&slot);
        }
        let lane = self.lanes.entry(key.lane().to_owned()).or_default();
        if lane.is_empty() {
            self.turns.push_back(key.lane().to_owned());
        }
        lane.push_back(key.clone());
    }

    /// Moves the keys whose timers are due into their lanes.
    fn fire(&mut self, now: Instant) {
        while let Some((&slot, _)) = self.timers.first_key_value()
            && slot.0 <= now
        {
            let Some((key, kind)) = self.timers.remove(&slot) else {
                return;
            };
            let Some(entry) = self.entries.get_mut(&key) else {
                continue;
            };
            match kind {
                TimerKind::Again => {
                    entry.again = None;
                    let work = entry.pending.get_or_insert(Work {
                        effect: Effect::Evaluate,
                        cause: Cause::Timer,
                    });
                    work.effect = Effect::Evaluate;
                }
                TimerKind::Bucket => entry.bucket = None,
            }
            if entry.state == State::Idle && entry.pending.is_some() {
                self.make_ready(&key);
            }
        }
    }

    /// The next key to run, if one is ready and the bounds allow. The caller must call [`done`](Self::done) after.
    pub fn pop(&mut self, now: Instant) -> Option<(K, Work)> {
        self.fire(now);
        if self.running >= self.limits.total {
            return None;
        }
        for _ in 0..self.turns.len() {
            let name = self.turns.pop_front()?;
            let busy = self.running_in.get(&name).copied().unwrap_or(0);
            let Some(lane) = self.lanes.get_mut(&name) else {
                continue;
            };
            if busy >= self.limits.per_lane {
                self.turns.push_back(name);
                continue;
            }
            let key = lane.pop_front();
            if lane.is_empty() {
                self.lanes.remove(&name);
            } else {
                self.turns.push_back(name.clone());
            }
            let Some(key) = key else { continue };
            let Some(entry) = self.entries.get_mut(&key) else {
                continue;
            };
            let Some(work) = entry.pending.take() else {
                entry.state = State::Idle;
                continue;
            };
            entry.state = State::Running;
            entry.running = work.effect;
            if work.effect == Effect::Evaluate
                && let Some(slot) = entry.again.take()
            {
                self.timers.remove(&slot);
            }
            self.running += 1;
            *self.running_in.entry(name).or_default() += 1;
            return Some((key, work));
        }
        None
    }

    /// Ends a run. Returns how many failures in a row the key has now.
    ///
    /// A run that only looked at the status leaves the backoff and the drift timer of the last evaluation as they are,
    /// unless it failed itself.
    pub fn done(&mut self, key: &K, disposition: Disposition, now: Instant, jitter: f64) -> u32 {
        self.running = self.running.saturating_sub(1);
        if let Some(busy) = self.running_in.get_mut(key.lane()) {
            *busy -= 1;
            if *busy == 0 {
                self.running_in.remove(key.lane());
            }
        }
        let Some(entry) = self.entries.get_mut(key) else {
            return 0;
        };
        entry.state = State::Idle;
        if entry.forgotten {
            self.forget(key);
            return 0;
        }
        let looked_only = entry.running == Effect::StatusOnly;
        if !looked_only {
            entry.rests_until = match disposition {
                Disposition::Paced { pause, .. } => Some(now + pause),
                _ => None,
            };
        }
        let again = match disposition {
            Disposition::Wait | Disposition::Terminal if looked_only => None,
            Disposition::Wait | Disposition::Terminal => {
                entry.failures = 0;
                None
            }
            Disposition::After(delay) => {
                entry.failures = 0;
                Some(now + delay)
            }
            Disposition::Paced { again, .. } => {
                entry.failures = 0;
                again.map(|delay| now + delay)
            }
            Disposition::Retry => {
                entry.failures = entry.failures.saturating_add(1);
                Some(now + backoff(entry.failures, jitter))
            }
        };
        let (failures, pending) = (entry.failures, entry.pending.is_some());
        if let Some(at) = again {
            self.set_timer(key, at, TimerKind::Again);
        }
        if pending {
            self.schedule(key, now);
        }
        failures
    }

    /// Drops a key: at once, or when its present run ends. A push in between keeps it.
    pub fn forget(&mut self, key: &K) {
        let Some(entry) = self.entries.get_mut(key) else {
            return;
        };
        entry.pending = None;
        for slot in [entry.again.take(), entry.bucket.take()]
            .into_iter()
            .flatten()
        {
            self.timers.remove(&slot);
        }
        match entry.state {
            State::Running => entry.forgotten = true,
            State::Idle => {
                self.entries.remove(key);
            }
            State::Ready => {
                self.entries.remove(key);
                if let Some(lane) = self.lanes.get_mut(key.lane()) {
                    lane.retain(|other| other != key);
                    if lane.is_empty() {
                        self.lanes.remove(key.lane());
                        self.turns.retain(|name| name != key.lane());
                    }
                }
            }
        }
    }

    /// When the next timer is due.
    pub fn deadline(&self) -> Option<Instant> {
        self.timers.first_key_value().map(|(slot, _)| slot.0)
    }
}

impl Entry {
    fn new(now: Instant) -> Self {
        Self {
            state: State::Idle,
            pending: None,
            running: Effect::StatusOnly,
            again: None,
            bucket: None,
            failures: 0,
            tokens: CHILD_BURST,
            refilled: now,
            rests_until: None,
            forgotten: false,
        }
    }

    /// Takes a token: `None` when there was one, else when there will be. It is paid for in either case.
    fn take_token(&mut self, now: Instant) -> Option<Instant> {
        let gained =
            now.saturating_duration_since(self.refilled).as_secs_f64() / CHILD_REFILL.as_secs_f64();
        self.tokens = (self.tokens + gained).min(CHILD_BURST) - 1.0;
        self.refilled = now;
        (self.tokens < 0.0).then(|| now + CHILD_REFILL.mul_f64(-self.tokens))
    }
}

/// A [`Queue`] that tasks share and wait on.
#[derive(Debug)]
pub struct SharedQueue<K> {
    queue: Mutex<Queue<K>>,
    changed: Notify,
}

impl<K: Keyed> SharedQueue<K> {
    /// An empty shared queue.
    pub fn new(limits: Limits) -> Arc<Self> {
        Arc::new(Self {
            queue: Mutex::new(Queue::new(limits)),
            changed: Notify::new(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Queue<K>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// See [`Queue::push`].
    pub fn push(&self, key: &K, effect: Effect, cause: Cause) {
        self.lock()
            .push(key, Work { effect, cause }, Instant::now());
        self.changed.notify_one();
    }

    /// See [`Queue::done`].
    pub fn done(&self, key: &K, disposition: Disposition) -> u32 {
        let failures = self
            .lock()
            .done(key, disposition, Instant::now(), rand::random());
        self.changed.notify_one();
        failures
    }

    /// See [`Queue::forget`].
    pub fn forget(&self, key: &K) {
        self.lock().forget(key);
    }

    /// Keys known.
    pub fn len(&self) -> usize {
        self.lock().len()
    }

    /// Whether no key is known.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Runs what is due until told to stop; then waits for what is running. A run that breaks down is tried again. Dropped
    /// before its end, it takes what is running with it: nobody runs twice because somebody else goes on.
    pub async fn drive<R>(self: &Arc<Self>, stop: &CancellationToken, run: impl Fn(K, Work) -> R)
    where
        R: Future<Output = Disposition> + Send + 'static,
    {
        let mut runs = tokio::task::JoinSet::new();
        loop {
            let (key, work) = tokio::select! {
                () = stop.cancelled() => break,
                Some(_) = runs.join_next() => continue,
                next = self.next() => next,
            };
            let ran = AbortOnDropHandle::new(tokio::spawn(run(key.clone(), work)));
            let queue = self.clone();
            runs.spawn(async move {
                let disposition = ran.await.unwrap_or_else(|error| {
                    tracing::error!(?key, %error, "a run broke down; it is tried again");
                    Disposition::Retry
                });
                queue.done(&key, disposition);
            });
        }
        while runs.join_next().await.is_some() {}
    }

    /// Waits for the next key to run. One task calls this; others push.
    pub async fn next(&self) -> (K, Work) {
        loop {
            let deadline = {
                let mut queue = self.lock();
                if let Some(found) = queue.pop(Instant::now()) {
                    return found;
                }
                queue.deadline()
            };
            match deadline {
                Some(at) => {
                    let _ = tokio::time::timeout_at(at, self.changed.notified()).await;
                }
                None => self.changed.notified().await,
            }
        }
    }
}

#[cfg(test)]
mod tests;
