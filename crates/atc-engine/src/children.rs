//! The children of a release: how each stands, read from the cluster, and what that verdict rests on.

use std::time::Duration;

use atc_api::ResourceRef;
use atc_release::cluster::{ErrorKind, Mapping};
use atc_release::object::Object;
use atc_release::readiness::{self, Found, Related, Verdict};
use atc_watch::{Fingerprint, Latest, Resource, Selection, Target};
use serde_json::Value;
use tokio::time::Instant;

use crate::engine::Engine;
use crate::error::EngineError;
use crate::memory::Memory;
use crate::observer::Observer;
use crate::status::Ready;

/// While a stage is waited for, its objects are looked at after this time, then ever later up to [`POLL_MAX`].
const POLL_MIN: Duration = Duration::from_millis(50);
/// The longest pause between two looks at a stage that is waited for.
const POLL_MAX: Duration = Duration::from_secs(1);
/// Children named in one message; the rest is counted.
const NAMED: usize = 5;

/// One child of a release and the verdict on it.
#[derive(Clone, Debug)]
pub struct Child {
    /// Which object, and how its kind is watched.
    pub target: Target,
    /// Whether its kind lives in namespaces.
    pub namespaced: bool,
    /// How it stands.
    pub verdict: Verdict,
    /// The state that the verdict is about; `None` when the object was not there.
    pub judged: Option<Fingerprint>,
    /// Whether its status counts for its readiness.
    pub has_status: bool,
    /// Other objects that the verdict rests on.
    pub rests_on: Vec<Support>,
}

/// Objects that a verdict rests on, and how new they were when it was given.
#[derive(Clone, Debug)]
pub struct Support {
    /// Which objects.
    pub selection: Selection,
    /// What the watch had shown of them by then; `None` where that could not be said.
    pub version: Option<u64>,
}

impl Child {
    fn mapping(&self) -> Mapping {
        Mapping {
            group: self.target.reference.group_kind.group.clone(),
            version: self.target.version.clone(),
            kind: self.target.reference.group_kind.kind.clone(),
            plural: self.target.plural.clone(),
            namespaced: self.namespaced,
        }
    }
}

/// What the children say together: failed before in progress before ready.
pub fn summary(children: &[Child]) -> Ready {
    let failed: Vec<String> = children
        .iter()
        .filter_map(|child| words(child, true))
        .collect();
    if !failed.is_empty() {
        return Ready::error(few(&failed));
    }
    let waiting: Vec<String> = children
        .iter()
        .filter_map(|child| words(child, false))
        .collect();
    if waiting.is_empty() {
        Ready::settled()
    } else {
        Ready::in_progress(format!("waiting for {}", few(&waiting)))
    }
}

fn words(child: &Child, failed: bool) -> Option<String> {
    let reference = &child.target.reference;
    let name = format!("{}/{}", reference.group_kind.kind, reference.name);
    match (&child.verdict, failed) {
        (Verdict::Failed(why), true) => Some(format!("{name} failed: {why}")),
        (Verdict::InProgress(why), false) => Some(format!("{name}: {why}")),
        _ => None,
    }
}

/// The first few of many words.
fn few(words: &[String]) -> String {
    let text = words
        .iter()
        .take(NAMED)
        .cloned()
        .collect::<Vec<_>>()
        .join("; ");
    match words.len().saturating_sub(NAMED) {
        0 => text,
        more => format!("{text}; and {more} more"),
    }
}

impl Engine {
    /// Judges a child: from what its apply answered, or, if it was not applied, from what is known or read.
    pub(crate) async fn child(
        &self,
        object: &Object,
        live: Option<Value>,
        known: &[Child],
        memory: &Memory,
        observer: &dyn Observer,
    ) -> Result<Child, EngineError> {
        let mapping = self
            .cluster()
            .mapping(object.api_version(), object.kind())
            .await
            .map_err(EngineError::cluster)?;
        let reference = object.reference();
        let mut child = Child {
            target: Target::new(reference.clone(), &mapping.version, &mapping.plural),
            namespaced: mapping.namespaced,
            verdict: Verdict::Ready,
            judged: None,
            has_status: readiness::has_verdict(object.group(), object.kind()),
            rests_on: Vec::new(),
        };
        if let Some(live) = live {
            self.judge(&mut child, Some(&live), observer).await?;
            return Ok(child);
        }
        // Not applied: what was known of it still holds, or it is looked at.
        if let Some(before) = known
            .iter()
            .find(|child| child.target.reference == reference)
        {
            child = before.clone();
            self.rejudge_one(&mut child, observer).await?;
        } else if child.has_status {
            self.read_and_judge(&mut child, observer).await?;
        } else {
            child.judged = memory.applied.fingerprint(&reference);
        }
        Ok(child)
    }

    /// Looks again at the children that changed, or whose verdict rests on other objects.
    pub(crate) async fn rejudge(
        &self,
        children: &mut [Child],
        observer: &dyn Observer,
    ) -> Result<(), EngineError> {
        let looks = children
            .iter_mut()
            .map(|child| self.rejudge_one(child, observer));
        futures::future::try_join_all(looks).await.map(drop)
    }

    async fn rejudge_one(
        &self,
        child: &mut Child,
        observer: &dyn Observer,
    ) -> Result<(), EngineError> {
        let unchanged = match (observer.latest(&child.target.reference), &child.judged) {
            (Latest::Present(latest), Some(judged)) => {
                latest.uid == judged.uid && latest.resource_version == judged.resource_version
            }
            _ => false,
        };
        let supported = |support: &Support| {
            support.version.is_some() && support.version == observer.latest_in(&support.selection)
        };
        if unchanged && child.rests_on.iter().all(supported) {
            return Ok(());
        }
        self.read_and_judge(child, observer).await
    }

    async fn read_and_judge(
        &self,
        child: &mut Child,
        observer: &dyn Observer,
    ) -> Result<(), EngineError> {
        let mapping = child.mapping();
        let reference = &child.target.reference;
        let live = if child.has_status {
            match self
                .cluster()
                .get(&mapping, &reference.namespace, &reference.name)
                .await
            {
                Err(error) if error.kind() == ErrorKind::NoSuchKind => None,
                live => live.map_err(EngineError::cluster)?,
            }
        } else {
            // Nothing but its being there counts: the metadata are enough.
            match self.cluster().metadata(&mapping, &reference.namespace, &reference.name).await {
                Err(error) if error.kind() == ErrorKind::NoSuchKind => None,
                live => live.map_err(EngineError::cluster)?.map(|live| {
                    serde_json::json!({"apiVersion": mapping.api_version(), "kind": mapping.kind, "metadata": live.value()})
                }),
            }
        };
        self.judge(child, live.as_ref(), observer).await
    }

    async fn judge(
        &self,
        child: &mut Child,
        live: Option<&Value>,
        observer: &dyn Observer,
    ) -> Result<(), EngineError> {
        let Some(live) = live else {
            child.verdict = Verdict::InProgress("it is not there".into());
            child.judged = None;
            return Ok(());
        };
        child.judged = Some(Fingerprint::of(live));
        let mut found = Vec::new();
        let mut rests_on = Vec::new();
        for related in readiness::related(live) {
            found.push(self.find(related, Some((&mut rests_on, observer))).await?);
        }
        for related in readiness::further(live, &found) {
            // No watch of these: when they change, what was found first changes too.
            let more = self.find(related, None).await?;
            found.push(more);
        }
        child.rests_on = rests_on;
        child.verdict = readiness::judge(live, &found).verdict;
        Ok(())
    }

    async fn find(
        &self,
        related: Related,
        rests_on: Option<(&mut Vec<Support>, &dyn Observer)>,
    ) -> Result<Found, EngineError> {
        let mapping = self
            .cluster()
            .mapping(related.api_version, related.kind)
            .await
            .map_err(EngineError::cluster)?;
        if let (Some((rests_on, observer)), Some((label, value))) =
            (rests_on, related.selector.split_once('='))
        {
            let selection = Selection {
                resource: Resource::new(
                    &mapping.group,
                    &mapping.version,
                    &mapping.kind,
                    &mapping.plural,
                ),
                namespace: related.namespace.clone(),
                label: label.to_owned(),
                value: value.to_owned(),
            };
            observer.interest_in(&selection);
            let version = observer.latest_in(&selection);
            rests_on.push(Support { selection, version });
        }
        let objects = self
            .cluster()
            .list(&mapping, Some(&related.namespace), Some(&related.selector))
            .await;
        Ok(Found {
            objects: objects.map_err(EngineError::cluster)?,
            related,
        })
    }

    /// Waits until all children of a stage are ready, for a bounded time.
    pub(crate) async fn wait_for_stage(
        &self,
        stage: usize,
        stages: usize,
        children: &mut [Child],
        limit: Duration,
        observer: &dyn Observer,
    ) -> Result<(), EngineError> {
        let start = Instant::now();
        let mut pause = POLL_MIN;
        loop {
            let failed: Vec<String> = children
                .iter()
                .filter_map(|child| words(child, true))
                .collect();
            if !failed.is_empty() {
                return Err(EngineError::Stage {
                    stage,
                    stages,
                    why: few(&failed),
                });
            }
            let waiting: Vec<String> = children
                .iter()
                .filter_map(|child| words(child, false))
                .collect();
            if waiting.is_empty() {
                return Ok(());
            }
            if start.elapsed() + pause > limit {
                let why = format!("not within {} s: {}", limit.as_secs_f64(), few(&waiting));
                return Err(EngineError::Stage { stage, stages, why });
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(POLL_MAX);
            for child in children
                .iter_mut()
                .filter(|child| !child.verdict.is_ready())
            {
                self.read_and_judge(child, observer).await?;
            }
        }
    }
}

/// References of children, for messages and tests.
pub fn references(children: &[Child]) -> Vec<ResourceRef> {
    children
        .iter()
        .map(|child| child.target.reference.clone())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn child(name: &str, verdict: Verdict) -> Child {
        Child {
            target: Target::new(ResourceRef::new("n", "batch", "Job", name), "v1", "jobs"),
            namespaced: true,
            verdict,
            judged: None,
            has_status: true,
            rests_on: Vec::new(),
        }
    }

    #[test]
    fn failed_before_waiting_before_ready() {
        let waiting = child("b", Verdict::InProgress("0 of 1 complete".into()));
        let failed = child("c", Verdict::Failed("BackoffLimitExceeded".into()));
        assert_eq!(summary(&[]), Ready::settled());
        assert_eq!(summary(&[child("a", Verdict::Ready)]), Ready::settled());
        let one = summary(&[child("a", Verdict::Ready), waiting.clone()]);
        assert_eq!(
            (one.reason, one.message.as_str()),
            ("InProgress", "waiting for Job/b: 0 of 1 complete")
        );
        let two = summary(&[waiting, failed]);
        assert_eq!(
            (two.reason, two.message.as_str()),
            ("Error", "Job/c failed: BackoffLimitExceeded")
        );
    }

    #[test]
    fn many_are_counted() {
        let many: Vec<Child> = (0..8)
            .map(|i| child(&format!("j{i}"), Verdict::InProgress("not yet".into())))
            .collect();
        assert!(summary(&many).message.ends_with("; and 3 more"));
    }
}
