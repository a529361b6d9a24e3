//! The children of a release: how each stands, read from the cluster, and what that verdict rests on.

use std::collections::BTreeSet;

use atc_api::ResourceRef;
use atc_api::flight::InventoryEntry;
use atc_release::cluster::{
    Changes, ErrorKind, Known, Listing, Mapping, Wait, WaitError, WaitOptions,
};
use atc_release::object::Object;
use atc_release::readiness::{self, Related, Verdict, Which};
use atc_watch::{Fingerprint, Latest, Resource, Selection, Target};
use serde_json::{Value, json};

use crate::engine::Engine;
use crate::error::EngineError;
use crate::memory::Memory;
use crate::observer::{Observer, Progress};
use crate::readiness::Sight;
use crate::status::Ready;

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
    /// Which rule of a user's counts for its kind; 0 for none.
    pub rule: u64,
}

/// Objects that a verdict rests on, and how new they were when it was given.
#[derive(Clone, Debug)]
pub struct Support {
    /// Which objects.
    pub selection: Selection,
    /// Changes up to this version are in the verdict: that of the list, or what the watch had shown before it; `None` where
    /// neither is known.
    pub version: Option<u64>,
}

/// Notes on what a verdict rests on, while it is read.
struct Supports<'a> {
    observer: &'a dyn Observer,
    /// The last one is being listed.
    open: bool,
    found: Vec<Support>,
}

impl Listing for Supports<'_> {
    fn begin(&mut self, mapping: &Mapping, related: &Related) {
        let selection = selection(mapping, related);
        self.open = selection.is_some();
        if let Some(selection) = selection {
            self.observer.interest_in(&selection);
            let version = self.observer.latest_in(&selection);
            self.found.push(Support { selection, version });
        }
    }

    fn end(&mut self, version: &str) {
        let last = self.found.last_mut().filter(|_| self.open);
        if let (Some(last), Ok(listed)) = (last, version.parse()) {
            last.version = last.version.map(|shown| shown.max(listed));
        }
    }
}

impl Child {
    /// How its kind is served.
    pub fn mapping(&self) -> Mapping {
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
        return Ready::settled();
    }
    let (all, ready) = (children.len(), children.len() - waiting.len());
    Ready::in_progress(format!("{ready} of {all} ready: {}", few(&waiting)))
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

/// The status of a Flight: its resources, and which of them are ready.
pub(crate) fn inventory(children: &[Child]) -> Value {
    let entries: Vec<InventoryEntry> = children
        .iter()
        .map(|child| {
            let ready = matches!(child.verdict, Verdict::Ready);
            InventoryEntry::new(&child.target.reference, &child.target.version, ready)
        })
        .collect();
    json!({ "inventory": entries })
}

/// The first few of many words.
pub(crate) fn few(words: &[String]) -> String {
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
        sight: &Sight<'_>,
    ) -> Result<Child, EngineError> {
        let mapping = self
            .cluster()
            .mapping(object.api_version(), object.kind())
            .await
            .map_err(EngineError::cluster)?;
        let reference = object.reference();
        let rule = sight.rules.version(object.group(), object.kind());
        let mut child = Child {
            target: Target::new(reference.clone(), &mapping.version, &mapping.plural),
            namespaced: mapping.namespaced,
            verdict: Verdict::Ready,
            judged: None,
            has_status: has_status(object.group(), object.kind(), rule),
            rests_on: Vec::new(),
            rule,
        };
        if let Some(live) = live {
            self.judge(&mut child, Some(&live), sight).await?;
            return Ok(child);
        }
        // Not applied: what was known of it still holds, or it is looked at.
        if let Some(before) = known
            .iter()
            .find(|child| child.target.reference == reference)
        {
            child = before.clone();
            self.rejudge_one(&mut child, sight).await?;
        } else if child.has_status {
            self.read_and_judge(&mut child, sight).await?;
        } else {
            child.judged = memory.applied.fingerprint(&reference);
        }
        Ok(child)
    }

    /// Looks again at the children that changed, or whose verdict rests on something else that did.
    pub(crate) async fn rejudge(
        &self,
        children: &mut [Child],
        sight: &Sight<'_>,
    ) -> Result<(), EngineError> {
        let looks = children
            .iter_mut()
            .map(|child| self.rejudge_one(child, sight));
        futures::future::try_join_all(looks).await.map(drop)
    }

    async fn rejudge_one(&self, child: &mut Child, sight: &Sight<'_>) -> Result<(), EngineError> {
        let (observer, kind) = (sight.observer, &child.target.reference.group_kind);
        let unchanged = match (observer.latest(&child.target.reference), &child.judged) {
            (Latest::Present(latest), Some(judged)) => {
                latest.uid == judged.uid && latest.resource_version == judged.resource_version
            }
            _ => false,
        };
        let supported = |support: &Support| {
            let latest = observer.latest_in(&support.selection);
            latest.is_some() && latest <= support.version
        };
        let rule = sight.rules.version(&kind.group, &kind.kind);
        if unchanged && rule == child.rule && child.rests_on.iter().all(supported) {
            return Ok(());
        }
        child.has_status = has_status(&kind.group, &kind.kind, rule);
        child.rule = rule;
        self.read_and_judge(child, sight).await
    }

    async fn read_and_judge(
        &self,
        child: &mut Child,
        sight: &Sight<'_>,
    ) -> Result<(), EngineError> {
        let mapping = child.mapping();
        let reference = &child.target.reference;
        let live = if child.has_status {
            match self
                .reach()
                .get(&mapping, &reference.namespace, &reference.name)
                .await
            {
                Err(error) if error.kind() == ErrorKind::NoSuchKind => None,
                live => live.map_err(EngineError::cluster)?,
            }
        } else {
            // Nothing but its being there counts: the metadata are enough.
            match self.reach().metadata(&mapping, &reference.namespace, &reference.name).await {
                Err(error) if error.kind() == ErrorKind::NoSuchKind => None,
                live => live.map_err(EngineError::cluster)?.map(|live| {
                    serde_json::json!({"apiVersion": mapping.api_version(), "kind": mapping.kind, "metadata": live.value()})
                }),
            }
        };
        self.judge(child, live.as_ref(), sight).await
    }

    async fn judge(
        &self,
        child: &mut Child,
        live: Option<&Value>,
        sight: &Sight<'_>,
    ) -> Result<(), EngineError> {
        let Some(live) = live else {
            child.verdict = Verdict::InProgress("it is not there".into());
            child.judged = None;
            return Ok(());
        };
        child.judged = Some(Fingerprint::of(live));
        if let Some(other) = sight.taken_by(&live["metadata"]) {
            // What it says is the other one's, whatever its state.
            let words = format!("it was taken by release \"{other}\", and only one can have it");
            child.verdict = Verdict::InProgress(words);
            child.rests_on.clear();
            return Ok(());
        }
        let mut supports = Supports {
            observer: sight.observer,
            open: false,
            found: Vec::new(),
        };
        let judgement = self
            .reach()
            .judge(live, &sight.rules, &mut supports)
            .await
            .map_err(EngineError::cluster)?;
        child.rests_on = supports.found;
        child.verdict = judgement.verdict;
        Ok(())
    }

    /// Waits until objects that were applied are ready; `children` are those objects as they were judged then. Told by the
    /// watches of `observer` where it follows them, else by watches of the wait's own.
    ///
    /// # Errors
    /// As soon as one has failed for good, and when the time is up.
    pub async fn wait_ready(
        &self,
        objects: &[Object],
        children: &mut [Child],
        namespace: &str,
        options: WaitOptions,
        observer: &dyn Observer,
    ) -> Result<(), WaitError> {
        let sight = self.sight(namespace, observer);
        let references: Vec<&Object> = objects.iter().collect();
        let known = children.iter().map(|child| {
            let version = child.judged.as_ref().map(|at| at.resource_version.clone());
            Some(Known {
                verdict: child.verdict.clone(),
                version: version.unwrap_or_default(),
            })
        });
        let tells = |index: usize| {
            let child: &Child = children.get(index)?;
            match observer.latest(&child.target.reference) {
                Latest::Present(latest) => Some(latest.resource_version),
                Latest::Absent { .. } => Some(String::new()),
                Latest::Unknown => None,
            }
        };
        let wait = Wait {
            objects: &references,
            known: known.collect(),
            rules: &sight.rules,
            changes: if observer.follows() {
                Changes::Told(&tells)
            } else {
                Changes::Watch
            },
            options: WaitOptions {
                poll: self.options().poll,
                explain: self.options().explain,
                ..options
            },
        };
        let mut unready = BTreeSet::new();
        let mut progress = |index: usize, verdict: &Verdict| {
            if verdict.is_ready() {
                unready.remove(&index);
            } else {
                unready.insert(index);
            }
            if let Some(child) = children.get(index) {
                observer.progress(Progress::Waiting {
                    object: &child.target.reference,
                    verdict,
                });
            }
        };
        let found = self.reach().wait_ready(wait, &mut progress).await?;
        for (index, (child, live)) in children.iter_mut().zip(found).enumerate() {
            if unready.contains(&index) {
                continue;
            }
            child.verdict = Verdict::Ready;
            if let Some(live) = live {
                child.judged = Some(Fingerprint::of(&live));
            }
        }
        Ok(())
    }
}

/// Whether the status of objects of a kind counts: for a rule that is built in, or for a user's.
fn has_status(group: &str, kind: &str, rule: u64) -> bool {
    rule != 0 || readiness::has_verdict(group, kind)
}

/// What the watches call the objects that a verdict goes on resting on.
fn selection(mapping: &Mapping, related: &Related) -> Option<Selection> {
    let Which::Labelled { selector, .. } = &related.which else {
        return None;
    };
    let (label, value) = selector.split_once('=')?;
    Some(Selection {
        resource: Resource::new(
            &mapping.group,
            &mapping.version,
            &mapping.kind,
            &mapping.plural,
        ),
        namespace: related.namespace.clone(),
        label: label.to_owned(),
        value: value.to_owned(),
    })
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
            rule: 0,
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
            ("InProgress", "1 of 2 ready: Job/b: 0 of 1 complete")
        );
        let two = summary(&[waiting, failed]);
        assert_eq!(
            (two.reason, two.message.as_str()),
            ("Error", "Job/c failed: BackoffLimitExceeded")
        );
    }

    /// The watch has shown changes up to 5.
    struct Five;

    impl Observer for Five {
        fn interest(&self, _: &Target) {}

        fn interest_in(&self, _: &Selection) {}

        fn latest(&self, _: &ResourceRef) -> Latest {
            Latest::Unknown
        }

        fn latest_in(&self, _: &Selection) -> Option<u64> {
            Some(5)
        }
    }

    #[test]
    fn a_list_is_as_new_as_it_says() {
        let slices = Mapping {
            group: "discovery.k8s.io".into(),
            version: "v1".into(),
            kind: "EndpointSlice".into(),
            plural: "endpointslices".into(),
            namespaced: true,
        };
        let labelled = |selector: &str| Related {
            api_version: "discovery.k8s.io/v1",
            kind: "EndpointSlice",
            namespace: "n".into(),
            which: Which::Labelled {
                selector: selector.into(),
                fields: None,
                limit: None,
            },
        };
        let noted = |observer: &dyn Observer, version: &str| {
            let mut supports = Supports {
                observer,
                open: false,
                found: Vec::new(),
            };
            supports.begin(&slices, &labelled("kubernetes.io/service-name=web"));
            supports.end(version);
            // One that the watches can't follow says nothing of the one before.
            supports.begin(&slices, &labelled("all"));
            supports.end("99");
            let versions: Vec<_> = supports.found.iter().map(|one| one.version).collect();
            versions
        };
        assert_eq!(noted(&Five, "9"), [Some(9)]);
        assert_eq!(noted(&Five, "4"), [Some(5)]);
        assert_eq!(noted(&Five, ""), [Some(5)]);
        // Where nothing is watched, nothing tells of a change: it is always looked again.
        assert_eq!(noted(&crate::observer::NoObserver, "9"), [None]);
    }

    #[test]
    fn many_are_counted() {
        let many: Vec<Child> = (0..8)
            .map(|i| child(&format!("j{i}"), Verdict::InProgress("not yet".into())))
            .collect();
        let message = summary(&many).message;
        assert!(message.starts_with("0 of 8 ready: Job/j0: not yet; "));
        assert!(message.ends_with("; and 3 more"));
    }
}
