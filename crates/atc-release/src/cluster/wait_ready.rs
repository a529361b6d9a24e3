//! Waiting until objects are ready: watches tell when to look, a slow poll covers what no watch shows.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use atc_api::GoDuration;
use futures::FutureExt;
use serde_json::Value;

use super::judge::{Judged, Rules};
use super::{Cluster, ClusterError, LiveMeta};
use crate::object::Object;
use crate::readiness::Verdict;

mod told;
mod watches;

use told::Told;
use watches::Watches;

/// Objects named in one message; the rest is counted.
const NAMED: usize = 5;

/// How long to wait, and how often to look without being told.
#[derive(Clone, Copy, Debug)]
pub struct WaitOptions {
    /// Most time for all objects together. Every object is looked at once even if it is zero. Default 30 s.
    pub limit: Duration,
    /// Longest time between two looks at an object that no watch shows. Default 2 s, as in the existing tool; at least
    /// 25 ms.
    pub poll: Duration,
    /// Whether it is enough that what comes after the objects may be made, see [`Verdict::lets_go_on`]. Default no.
    pub between: bool,
    /// Whether an error also says what the Pods and the events of the objects say: a few calls for each. Default no.
    pub explain: bool,
}

impl WaitOptions {
    /// To wait for so long, else as by default.
    #[must_use]
    pub fn within(limit: Duration) -> Self {
        Self {
            limit,
            ..Self::default()
        }
    }
}

impl Default for WaitOptions {
    fn default() -> Self {
        Self {
            limit: Duration::from_secs(30),
            poll: Duration::from_secs(2),
            between: false,
            explain: false,
        }
    }
}

/// What is known of an object when the wait begins.
#[derive(Clone, Debug)]
pub struct Known {
    /// The verdict on it.
    pub verdict: Verdict,
    /// The resourceVersion that the verdict is about.
    pub version: String,
}

/// Where a wait learns that objects changed.
pub enum Changes<'a> {
    /// Watches of its own, at most 16; each is a connection.
    Watch,
    /// Somebody else's watches: the newest resourceVersion that they show of the object with this index, `None` where
    /// they can't tell.
    Told(&'a (dyn Fn(usize) -> Option<String> + Sync)),
}

/// What to wait for.
pub struct Wait<'a> {
    /// The objects.
    pub objects: &'a [&'a Object],
    /// What is known of them, in their order; whatever is missing is looked at first.
    pub known: Vec<Option<Known>>,
    /// Rules besides the built-in ones.
    pub rules: &'a dyn Rules,
    /// Where changes are learned of.
    pub changes: Changes<'a>,
    /// How long, and how.
    pub options: WaitOptions,
}

/// An object that is not ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unready {
    /// Its canonical name.
    pub object: String,
    /// What it lacks, in one line.
    pub why: String,
    /// What its Pods and its events say, one line each; only where [`WaitOptions::explain`] is set.
    pub details: Vec<String>,
}

/// Why the wait ended without all objects being ready.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WaitError {
    /// The time was up.
    #[error("not ready within {}: {}", GoDuration::from(*limit), list(objects))]
    Late {
        /// The limit.
        limit: Duration,
        /// What is not ready, in the order of the objects; never empty.
        objects: Vec<Unready>,
    },
    /// Objects failed for good: waiting longer is of no use.
    #[error("failed: {}", list(objects))]
    Failed {
        /// What failed, in the order of the objects; never empty.
        objects: Vec<Unready>,
    },
    /// An object can't be read.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
}

impl WaitError {
    /// The objects that it is about.
    pub fn objects(&self) -> &[Unready] {
        match self {
            Self::Late { objects, .. } | Self::Failed { objects } => objects,
            Self::Cluster(_) => &[],
        }
    }
}

fn list(objects: &[Unready]) -> String {
    let one = |unready: &Unready| format!("{}: {}", unready.object, unready.why);
    let few: Vec<String> = objects.iter().take(NAMED).map(one).collect();
    match objects.len().saturating_sub(NAMED) {
        0 => few.join("; "),
        more => format!("{}; and {more} more", few.join("; ")),
    }
}

/// One object that is waited for, and how it stands.
struct Place<'a> {
    object: &'a Object,
    verdict: Option<Verdict>,
    /// What was told of it last.
    told: Option<Verdict>,
    live: Option<Value>,
    /// The resourceVersion that the verdict is about.
    version: String,
    /// Whether it was there: what is absent then was deleted.
    existed: bool,
    /// Whether the last look at it failed.
    missed: bool,
}

impl<'a> Place<'a> {
    fn new(object: &'a Object, known: Option<Known>) -> Self {
        let (verdict, version) = known.map(|known| (known.verdict, known.version)).unzip();
        Self {
            object,
            existed: verdict.is_some(),
            verdict,
            told: None,
            live: None,
            version: version.unwrap_or_default(),
            missed: false,
        }
    }

    fn is_ready(&self) -> bool {
        self.verdict.as_ref().is_some_and(Verdict::is_ready)
    }

    fn is_enough(&self, between: bool) -> bool {
        self.is_ready() || (between && self.verdict.as_ref().is_some_and(Verdict::lets_go_on))
    }

    fn take(&mut self, judged: Judged) {
        self.verdict = Some(match (&judged.live, self.existed) {
            (None, true) => Verdict::InProgress("it was deleted meanwhile".to_owned()),
            _ => judged.judgement.verdict,
        });
        self.missed = false;
        let version = judged.live.as_ref().map(LiveMeta::of);
        let version = version.as_ref().map_or("", LiveMeta::resource_version);
        version.clone_into(&mut self.version);
        self.existed |= judged.live.is_some();
        self.live = judged.live;
    }

    /// Passing trouble: it counts as not ready, and what was known of it stays.
    fn miss(&mut self, error: &ClusterError) {
        self.verdict = Some(Verdict::InProgress(error.to_string()));
        self.missed = true;
    }

    fn unready(&self) -> Unready {
        let why = self.verdict.as_ref().and_then(Verdict::why);
        Unready {
            object: self.object.canonical(),
            why: why.unwrap_or_default().to_owned(),
            details: Vec::new(),
        }
    }
}

/// What is to be done about an object.
enum Due {
    /// To be read.
    Look,
    /// A watch showed it in this state.
    Shown(Value),
    /// A watch showed its end.
    Gone,
}

/// Where changes come from.
enum Source<'a> {
    Watches(Watches),
    Told(Told<'a>),
}

impl Cluster {
    /// Waits until all these objects are ready; `progress` is told the index and the verdict of each, first and whenever
    /// that changes. Returns the objects as they were when they were found ready, `None` for those that were known to be.
    ///
    /// # Errors
    /// [`WaitError::Failed`] as soon as one has failed for good, [`WaitError::Late`] when the time is up. Objects that
    /// can't be read for a passing reason count as not ready.
    pub async fn wait_ready(
        &self,
        wait: Wait<'_>,
        progress: &mut (dyn FnMut(usize, &Verdict) + Send),
    ) -> Result<Vec<Option<Value>>, WaitError> {
        let Wait {
            objects,
            known,
            rules,
            changes,
            options,
        } = wait;
        let deadline = Instant::now() + options.limit;
        let known = known.into_iter().chain(std::iter::repeat_with(|| None));
        let mut places: Vec<Place<'_>> = objects
            .iter()
            .zip(known)
            .map(|(object, known)| Place::new(object, known))
            .collect();
        let unknown = |(index, place): (usize, &Place<'_>)| {
            place.verdict.is_none().then_some((index, Due::Look))
        };
        let mut due: Vec<(usize, Due)> = places.iter().enumerate().filter_map(unknown).collect();
        let mut source = None;
        loop {
            self.attend(&mut places, due, rules).await?;
            tell(&mut places, progress);
            if let Some(objects) = failed(&places) {
                let objects = self.explained(objects, &places, options).await;
                return Err(WaitError::Failed { objects });
            }
            if places.iter().all(|place| place.is_enough(options.between)) {
                return Ok(places.into_iter().map(|place| place.live).collect());
            }
            if Instant::now() >= deadline {
                let objects = unready(&places, options.between);
                let objects = self.explained(objects, &places, options).await;
                return Err(WaitError::Late {
                    limit: options.limit,
                    objects,
                });
            }
            if source.is_none() {
                source = Some(match changes {
                    // A watch of ours would show what the account may not see.
                    Changes::Watch if self.account().is_some() => {
                        Source::Told(Told::new(&|_| None))
                    }
                    Changes::Watch => Source::Watches(self.watches(&places, options.poll).await),
                    Changes::Told(tells) => Source::Told(Told::new(tells)),
                });
            }
            due = match &mut source {
                Some(Source::Watches(watches)) => watches.next(&places, deadline).await,
                Some(Source::Told(told)) => told.next(&places, deadline).await,
                None => Vec::new(),
            };
        }
    }

    /// Looks at what is due, and judges what a watch has shown.
    async fn attend(
        &self,
        places: &mut [Place<'_>],
        due: Vec<(usize, Due)>,
        rules: &dyn Rules,
    ) -> Result<(), ClusterError> {
        let indices: Vec<usize> = due.iter().map(|(index, _)| *index).collect();
        let objects = due.into_iter().filter_map(|(index, due)| {
            let object = places.get(index)?.object;
            let judging = async move {
                match due {
                    Due::Look => self.look(object, rules).await,
                    Due::Shown(live) => self.judged(live, rules).await,
                    Due::Gone => Ok(Judged::absent()),
                }
            };
            Some(judging.boxed())
        });
        let results = self.breadth(objects.collect()).await;
        for (index, result) in indices.into_iter().zip(results) {
            let Some(place) = places.get_mut(index) else {
                continue;
            };
            match result {
                Ok(judged) => place.take(judged),
                Err(error) if error.kind().is_transient() => place.miss(&error),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// The first objects of an error, with what their Pods and events say.
    async fn explained(
        &self,
        mut objects: Vec<Unready>,
        places: &[Place<'_>],
        options: WaitOptions,
    ) -> Vec<Unready> {
        if !options.explain {
            return objects;
        }
        let wanted: BTreeSet<String> = objects
            .iter()
            .take(NAMED)
            .map(|unready| unready.object.clone())
            .collect();
        let looks = places
            .iter()
            .filter(|place| wanted.contains(&place.object.canonical()))
            .map(|place| {
                async { (place.object.canonical(), self.explain_object(place).await) }.boxed()
            });
        for (name, details) in self.breadth(looks.collect()).await {
            if let Some(unready) = objects.iter_mut().find(|unready| unready.object == name) {
                unready.details = details;
            }
        }
        objects
    }

    async fn explain_object(&self, place: &Place<'_>) -> Vec<String> {
        if let Some(live) = &place.live {
            return self.explain(live).await;
        }
        let object = place.object;
        let live = async {
            let mapping = self.mapping(object.api_version(), object.kind()).await?;
            let namespace = object.namespace().unwrap_or_default();
            self.get(&mapping, namespace, object.name()).await
        };
        match live.await {
            Ok(Some(live)) => self.explain(&live).await,
            _ => Vec::new(),
        }
    }
}

/// Tells what changed since it was told last.
fn tell(places: &mut [Place<'_>], progress: &mut (dyn FnMut(usize, &Verdict) + Send)) {
    for (index, place) in places.iter_mut().enumerate() {
        if let Some(verdict) = place
            .verdict
            .as_ref()
            .filter(|_| place.told != place.verdict)
        {
            progress(index, verdict);
            place.told.clone_from(&place.verdict);
        }
    }
}

fn unready(places: &[Place<'_>], between: bool) -> Vec<Unready> {
    let waiting = places.iter().filter(|place| !place.is_enough(between));
    waiting.map(Place::unready).collect()
}

/// What failed for good, if anything did.
fn failed(places: &[Place<'_>]) -> Option<Vec<Unready>> {
    let has_failed = |place: &&Place<'_>| matches!(place.verdict, Some(Verdict::Failed(_)));
    let failed: Vec<Unready> = places
        .iter()
        .filter(has_failed)
        .map(Place::unready)
        .collect();
    (!failed.is_empty()).then_some(failed)
}

#[cfg(test)]
mod tests;
