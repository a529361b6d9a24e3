//! The end of an instance: its children go, then its finalizer.
//!
//! What holds a child up is waited for: the end of a child that the watches follow is noticed at once, and it is looked again
//! every so often, since they do not follow those of an instance that was deleted while no process served it.
//!
//! Where a record can't be read, nothing is removed: what it names is not known. Only somebody who mends or deletes it helps,
//! and the status says so.
//!
//! It acts as the account that the release acts as; what that may not remove, since it is gone or has lost its rights, is
//! removed as ourselves, so that no removal waits for an account.

use std::time::{Duration, Instant};

use atc_api::names;
use atc_release::cluster::{ErrorKind, LiveMeta, MetadataEdit, RevisionError};
use atc_release::history::HistoryError;
use atc_watch::{Dependencies, Latest};
use serde_json::Value;

use super::identity::Identity;
use super::{InstanceMemory, InstanceReport, InstanceSettings};
use crate::children::Child;
use crate::disposition::{Disposition, pause};
use crate::engine::Engine;
use crate::error::EngineError;
use crate::mayday::{MaydayReport, MaydayRequest};
use crate::observer::{InstanceObserver, Observer};
use crate::status::Ready;
use crate::takeoff::Report;

/// What others hold up is looked at again after 1 s, doubling up to this: 1 min. Whoever waits for the end of an object wants
/// to see it soon; but each look takes a turn for up to 5 s, so hundreds that one missing controller holds up must not take
/// the turns of all others.
const HELD_UP: Duration = Duration::from_mins(1);

/// When to come back to a removal that came to this. `since` is when it was held up first.
fn again(error: &EngineError, since: &mut Option<Instant>, now: Instant) -> Disposition {
    let waits = matches!(error, EngineError::Going(_)) || unreadable(error).is_some();
    if waits {
        Disposition::After(pause(since, now, HELD_UP))
    } else {
        Disposition::Retry
    }
}

/// The Secret whose content is no revision, if that is what went wrong.
fn unreadable(error: &EngineError) -> Option<&str> {
    let EngineError::Record { source, .. } = error else {
        return None;
    };
    match &**source {
        RevisionError::History(
            HistoryError::Head { secret, .. }
            | HistoryError::Unpack { secret, .. }
            | HistoryError::Content { secret, .. },
        ) => Some(secret.as_str()),
        _ => None,
    }
}

/// Why the children could not be removed, and what to do where only somebody else can do something. `home` is where the record
/// lies.
fn unremoved(error: &EngineError, home: &str) -> String {
    let words = format!("can't remove its resources: {}", error.chain());
    match unreadable(error) {
        None => words,
        Some(secret) => format!(
            "{words}; mend Secret {home}/{secret}, or delete it: then the instance goes, with what its other revisions name \
             and what has it as an owner; what else it made stays, and bears its marks"
        ),
    }
}

/// One whose finalizer the API server does not take off. What it made is gone by then.
fn held(error: &EngineError) -> InstanceReport {
    let unfit =
        matches!(error, EngineError::Cluster { source } if source.kind() == ErrorKind::Invalid);
    let since = if unfit {
        ", since it does not fit the schema of its kind any more (change the one or the other)"
    } else {
        ""
    };
    let words = format!("can't take its finalizer off{since}: {}", error.chain());
    InstanceReport {
        failure: Some(words.clone()),
        unfit,
        ..InstanceReport::of(Ready::terminating(words), Disposition::Retry)
    }
}

/// When to come back to a takeoff that failed like this. What has left the output may be held up as what is removed with an
/// instance may be; `since` is when it was first.
pub(super) fn after_takeoff(
    error: &EngineError,
    since: &mut Option<Instant>,
    now: Instant,
) -> Disposition {
    if matches!(error, EngineError::Going(_)) {
        return again(error, since, now);
    }
    *since = None;
    error.disposition()
}

/// When to come back to a removal because something of a child was shown: at once, if one has gone that was there before.
pub(super) fn seen_going(children: &mut Vec<Child>, observer: &dyn Observer) -> Disposition {
    let before = children.len();
    children.retain(|child| {
        let latest = observer.latest(&child.target.reference);
        !matches!(latest, Latest::Absent { .. })
    });
    if children.len() < before {
        Disposition::After(Duration::ZERO)
    } else {
        Disposition::Wait
    }
}

impl Engine {
    /// Removes the children, then lets the object go.
    pub(super) async fn remove(
        &self,
        settings: &InstanceSettings,
        object: &Value,
        memory: &mut InstanceMemory,
        observer: &dyn InstanceObserver,
    ) -> Result<InstanceReport, EngineError> {
        let identity = Identity::of(object, settings)?;
        let live = LiveMeta::of(object);
        if !live.finalizers().contains(&names::FINALIZER_INSTANCE) {
            return Ok(InstanceReport::gone());
        }
        observer.begin();
        let removed = match self.remove_children(settings, &identity, memory).await {
            Ok(removed) => removed,
            Err(error) => {
                observer.fail(Dependencies::default());
                let words = unremoved(&error, identity.home);
                let waits = matches!(error, EngineError::Going(_));
                let disposition = again(&error, &mut memory.held_up, Instant::now());
                return Ok(InstanceReport {
                    failure: (!waits).then(|| words.clone()),
                    ..InstanceReport::of(Ready::terminating(words), disposition)
                });
            }
        };
        let edit = MetadataEdit {
            remove_finalizer: Some(names::FINALIZER_INSTANCE.into()),
            ..MetadataEdit::default()
        };
        if let Err(error) = self.edit(settings, object, &edit).await {
            observer.fail(Dependencies::default());
            return Ok(held(&error));
        }
        let takeoff = Report {
            pruned: removed.deleted,
            orphaned: removed.orphaned,
            ..Report::default()
        };
        Ok(InstanceReport {
            takeoff,
            ..InstanceReport::gone()
        })
    }

    /// Removes all that the record names, and what is remembered of it; where nothing is, and the namespace is on its way
    /// out and may have taken the record with it, what bears the marks of the release.
    async fn remove_children(
        &self,
        settings: &InstanceSettings,
        identity: &Identity<'_>,
        memory: &InstanceMemory,
    ) -> Result<MaydayReport, EngineError> {
        let home = identity.home;
        let history = memory.release.history().iter();
        let mut remembered: Vec<_> = history.map(|revision| revision.stages.clone()).collect();
        if settings.mapping.namespaced && memory.release.revisions.is_none() {
            remembered.push(self.strays(&identity.owner(settings)).await?);
        }
        let request = MaydayRequest {
            release: identity.record.clone(),
            namespace: home.to_owned(),
            owner: Some(identity.owner(settings)),
            prune: settings.prune,
            confined: settings.subject.is_confined(),
            owner_uid: Some(identity.uid.to_owned()),
            remembered,
            hold: None,
        };
        self.mayday(&request).await
    }
}

#[cfg(test)]
mod tests {
    use atc_api::ResourceRef;
    use atc_release::cluster::ClusterError;
    use atc_release::readiness::Verdict;
    use atc_watch::{Fingerprint, Selection, Target};

    use super::*;

    #[test]
    fn what_is_refused_at_the_end_is_no_end() {
        let misfit = |faults: &str| ClusterError::Misfit {
            object: "n/a".into(),
            faults: faults.into(),
        };
        let unserved = ClusterError::NoSuchKind {
            api_version: "x.dev/v1".into(),
            kind: "App".into(),
        };
        for (error, unfit) in [(misfit("no spec"), true), (unserved, false)] {
            let report = held(&EngineError::cluster(error));
            assert_eq!((report.unfit, report.gone), (unfit, false), "{report:?}");
            assert_eq!(report.ready.reason, "Terminating");
            assert_eq!(report.ready.message.contains("schema of its kind"), unfit);
            assert_eq!(report.failure.as_ref(), Some(&report.ready.message));
            assert_eq!(report.disposition, Disposition::Retry);
        }
    }

    #[test]
    fn what_is_held_up_is_looked_at_within_a_minute() {
        let going = EngineError::Going("still there".into());
        let refused = EngineError::Refused {
            step: "prune",
            failures: vec!["no right".into()],
        };
        let (mut now, mut since) = (Instant::now(), None);
        assert_eq!(again(&refused, &mut since, now), Disposition::Retry);
        for pause in [1, 1, 2, 4, 8, 16, 32, 60, 60].map(Duration::from_secs) {
            let found = again(&going, &mut since, now);
            assert_eq!(found, Disposition::After(pause));
            now += pause;
        }
        assert_eq!(again(&refused, &mut since, now), Disposition::Retry);
    }

    #[test]
    fn whoever_may_mend_a_record_is_told_which() {
        let of = |source| EngineError::record("r", source);
        let secret = || "yoke.1".to_owned();
        let content = HistoryError::Content {
            secret: secret(),
            why: "line 1".into(),
        };
        let head = HistoryError::Head {
            secret: secret(),
            field: "internal.yoke/created-at",
            why: "is no time".into(),
        };
        let unpack = HistoryError::Unpack {
            secret: secret(),
            source: std::io::Error::other("no gzip"),
        };
        for source in [content, head, unpack] {
            let error = of(source.into());
            let words = unremoved(&error, "n");
            assert!(
                words.contains("mend Secret n/yoke.1, or delete it"),
                "{words}"
            );
            let (mut since, now) = (None, Instant::now());
            // Nothing tells that it was mended.
            let soon = Disposition::After(Duration::from_secs(1));
            assert_eq!(again(&error, &mut since, now), soon);
        }
        let unserved = ClusterError::NoSuchKind {
            api_version: "x.dev/v1".into(),
            kind: "App".into(),
        };
        let other = of(unserved.into());
        assert!(!unremoved(&other, "n").contains("mend"));
        assert_eq!(again(&other, &mut None, Instant::now()), Disposition::Retry);
    }

    #[test]
    fn what_has_left_the_output_is_looked_at_within_a_minute() {
        let going = EngineError::Going("still there".into());
        let (mut now, mut since) = (Instant::now(), None);
        for pause in [1, 1, 2, 4, 8, 16, 32, 60, 60].map(Duration::from_secs) {
            let found = after_takeoff(&going, &mut since, now);
            assert_eq!(found, Disposition::After(pause));
            now += pause;
        }
        for other in [
            EngineError::Stopped,
            EngineError::Incomplete("metadata.name"),
        ] {
            let found = after_takeoff(&other, &mut since, now);
            assert_eq!((found, since), (other.disposition(), None));
        }
        let found = after_takeoff(&going, &mut since, now);
        assert_eq!(found, Disposition::After(Duration::from_secs(1)));
    }

    /// The watches follow what is called `there…` and what is called `gone…`.
    struct Shown;

    impl Observer for Shown {
        fn interest(&self, _: &Target) {}

        fn interest_in(&self, _: &Selection) {}

        fn latest(&self, reference: &ResourceRef) -> Latest {
            match &*reference.name {
                name if name.starts_with("gone") => Latest::Absent { at: 5 },
                name if name.starts_with("there") => Latest::Present(Fingerprint::bare("uid", "5")),
                _ => Latest::Unknown,
            }
        }

        fn latest_in(&self, _: &Selection) -> Option<u64> {
            None
        }
    }

    #[test]
    fn the_end_of_each_child_is_noticed_once() {
        let child = |name: &str| Child {
            target: Target::new(ResourceRef::new("n", "", "Pod", name), "v1", "pods"),
            namespaced: true,
            verdict: Verdict::Ready,
            judged: None,
            has_status: true,
            rests_on: Vec::new(),
            rule: 0,
        };
        let mut children: Vec<Child> = ["gone", "there", "unknown", "gone2"].map(child).into();
        let at_once = Disposition::After(Duration::ZERO);
        assert_eq!(seen_going(&mut children, &Shown), at_once);
        assert_eq!(seen_going(&mut children, &Shown), Disposition::Wait);
        let names: Vec<&str> = children
            .iter()
            .map(|child| &*child.target.reference.name)
            .collect();
        assert_eq!(names, ["there", "unknown"]);
        children.push(child("gone"));
        assert_eq!(seen_going(&mut children, &Shown), at_once);
    }
}
